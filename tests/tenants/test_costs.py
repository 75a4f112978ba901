"""The acts of one tenant cost the others no work: counted, not measured, so that it holds on every machine.

`docs/reference/limits.md` has a table of these acts.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.bench import Bench
from licorne.core.constants import NO_PRIORITY
from licorne.core.queues.priorities import PriorityBag
from tenants.acts import ACTS, leave, one_cycle, world

CYCLES = 20
TIMES = 200
MORE = 4
"""So much more work of a kind than without the tenant a cycle may cost: a look or two, but none for each thing it has."""


def work(b: Bench) -> dict[str, float]:
    """The counted work of a cycle of another tenant, on average."""
    before = b.partition.work()
    assert all(one_cycle(b, number) for number in range(CYCLES)), "the other tenant waits"
    return {name: (count - before[name]) / CYCLES for name, count in b.partition.work().items()}


@pytest.mark.parametrize("act", ACTS, ids=[act.__name__ for act in ACTS])
def test_acts_of_a_tenant_cost_others_no_work(act: Callable[[Bench, int], None]) -> None:
    b = world()
    alone = work(b)
    act(b, TIMES)
    b.api.schedule()
    for _ in range(2):
        beside = work(b)
        assert all(beside[name] <= alone[name] + MORE for name in alone), (alone, beside)
        b.seconds += 3
        b.api.schedule()
    leave(b)
    assert work(b) == alone
    b.api.validate()


def test_a_million_priorities_do_not_cause_a_million_visits() -> None:
    """The next maximum is found without a look at all: with one, this would take hours."""
    bag = PriorityBag()
    count = 200_000
    bag.refill(list(range(count)))
    assert bag.top == count - 1 and len(bag.below) == count - 1
    leaf = world()
    app = leaf.application("x")
    assert app.bag.top == NO_PRIORITY
