"""Against a reference that tries all sets of victims: small full clusters with guarantees, fences, offsets and quotas.

Every decision must agree, so the best set is met in all cases, not in 95 of 100; and with it the laws that the reference
words (`reference.preempting`): no victim takes a queue below its guarantee, is outside the fence or of higher priority, free
space counts first, and no victim can be left out. LICORNE_CONTESTS scenarios from LICORNE_REFERENCE_SEED on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import seeds
from licorne.core import compiled
from licorne.core.preemption.guaranteed import Guaranteed
from licorne.core.preemption.guarantees import PlannedUsage
from licorne.core.preemption.snapshot import PreemptionSnapshot
from reference import preempting
from reference.compare import DisagreementError, run
from reference.contests import Contest
from reference.situations import Situations

CONTESTS = int(os.environ.get("LICORNE_CONTESTS", "150"))
SEED = seeds.first_seed("LICORNE_REFERENCE_SEED")


def compare(count: int) -> tuple[Counter[str], str]:
    """Compare scenarios; return the situations that were met, and the first disagreement."""
    met: Counter[str] = Counter()
    sound = preempting.NodeSearch.find

    def find(self: preempting.NodeSearch) -> Any:
        found = sound(self)
        met["nobody"] += found is None
        if found is not None:
            node, victims = found
            met[f"{min(len(victims), 3)} victims"] += 1
            met["somebody bad"] += any(a.originator or not a.allow_self for a in victims)
            met["elsewhere"] += any(a.node is not node for a in victims)
            met["inside a fence or under a quota"] += self.top.parent is not None
            met["nested queues"] += any(len(a.app.queue.lineage()) > 2 for a in victims)
            met["by an ancestor's guarantee"] += not self.leaf.guaranteed
        return found

    preempting.NodeSearch.find = find  # type: ignore[method-assign]
    try:
        for seed in range(SEED, SEED + count):
            run(seed, Situations(), parking_off=seed % 4 == 0, kind=Contest)
    except DisagreementError as error:
        return met, str(error)
    finally:
        preempting.NodeSearch.find = sound  # type: ignore[method-assign]
    return met, ""


@pytest.mark.timeout(900)
def test_the_best_set_is_chosen() -> None:
    met, fault = compare(CONTESTS)
    assert not fault, fault
    if CONTESTS >= 150 and not seeds.RANDOM:  # with a random seed one may be missed
        wanted = ["nobody", "1 victims", "2 victims", "somebody bad", "elsewhere", "nested queues"]
        assert not [name for name in wanted if not met[name]], met


def _takes_below_the_guarantee(_: Any) -> Any:
    return lambda self, queue: _unguarded(LEVEL(self, queue))


def _unguarded(level: Any) -> Any:
    level.guarded = False
    return level


def _sees_no_claims(sound: Any) -> Any:
    def trade(self: Any, ask: Any, victims: list[Any]) -> Any:
        sound(self, ask, victims)
        self.claims.pop()
        return {}

    return trade


def _leaves_the_fence(_: Any) -> Any:
    return lambda self, ask: (_top(ask), ROOT(self, ask)[1] | {_top(ask): ask.priority})


def _top(ask: Any) -> Any:
    return ask.app.queue.lineage()[-1]


LEVEL = PreemptionSnapshot.budget
ROOT = PlannedUsage.fence_root
FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "below the guarantee": (PreemptionSnapshot, "budget", _takes_below_the_guarantee),
    "everybody is entitled": (PlannedUsage, "shortfall", lambda _: lambda *_arguments: {0: 0}),
    "priorities": (
        PreemptionSnapshot,
        "_gather",
        lambda sound: lambda s, leaf, _highest, *more: sound(s, leaf, None, *more),
    ),
    "outside the fence": (PlannedUsage, "fence_root", _leaves_the_fence),
    "no second try": (Guaranteed, "_something_changed", lambda _: lambda self: self._failed.clear()),
}


@pytest.mark.skipif(bool(compiled), reason="functions can be replaced in plain Python only")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, function, broken = FAULTS[name]
    monkeypatch.setattr(where, function, broken(getattr(where, function)))
    assert compare(400)[1]
