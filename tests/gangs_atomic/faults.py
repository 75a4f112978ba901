"""Faults of the kind that gangs invite, planted in the product one at a time; as a program it shows what caught one.

`python -m gangs_atomic.faults NAME`, with LICORNE_INTERPRETED=1. The laws see a fault in the messages and by
`validate()`, which the bench calls after each step.
"""

# ruff: noqa: ARG005  what is replaced has these arguments
from __future__ import annotations

import random
import sys
from typing import Any

from common.planting import Faults, raised_by_a_law, replace
from gangs_atomic import laws, packings
from licorne.core.gangs import atomic, backfill, packing, plans, trial
from licorne.core.waiting.accounting import Accounting

FAULTS = Faults()
RUNS = 150


@FAULTS.add
def a_trial_is_not_undone() -> None:
    trial.Trial.undo = lambda self, placed: None  # type: ignore[method-assign]


@FAULTS.add
def a_trial_leaves_one_member() -> None:
    real = trial.Trial.undo
    trial.Trial.undo = lambda self, placed: real(self, placed[1:])  # type: ignore[method-assign]


@FAULTS.add
def the_search_gives_up_at_once() -> None:
    packing.WORK_MAX = 0


@FAULTS.add
def the_search_takes_nodes_for_equal_that_are_not() -> None:
    packing.GangPacking._state = lambda self, node: (0, (10**9,) * len(self._types))  # type: ignore[method-assign]


@FAULTS.add
def members_are_not_parked() -> None:
    real = Accounting.pend

    def pend(self: Any, app: Any, ask: Any) -> None:
        gang, app.atomic = app.atomic, None
        real(self, app, ask)
        app.atomic = gang
        self.wakeups.gang_changed(app)

    replace(Accounting, "pend", pend)


@FAULTS.add
def held_nodes_stay_open() -> None:
    backfill.Backfill.holds = lambda self, node: False  # type: ignore[method-assign]


@FAULTS.add
def a_job_may_end_a_second_late() -> None:
    real = backfill.Filling._end_of
    backfill.Filling._end_of = lambda self, app, ask: real(self, app, ask) - 10**9  # type: ignore[method-assign]


@FAULTS.add
def an_endless_job_counts_as_short() -> None:
    backfill.Filling._end_of = lambda self, app, ask: self._partition.now + ask.timeout_ns  # type: ignore[method-assign]


@FAULTS.add
def room_beside_the_gang_is_given_twice() -> None:
    backfill.Filling.node_for = _twice(backfill.Filling.node_for)  # type: ignore[method-assign]


def _twice(real: Any) -> Any:
    def node_for(self: Any, app: Any, ask: Any) -> Any:
        node = real(self, app, ask)
        if node is not None and self._end_of(app, ask) > self._hold.plan.last[0]:
            self._rest[node].plus(ask.shape.amounts)
        return node

    return node_for


@FAULTS.add
def what_ends_last_counts_first() -> None:
    replace(plans, "end_of", lambda alloc: (alloc.bound_ns, alloc.seq, alloc.id))


@FAULTS.add
def a_plan_may_move_later() -> None:
    plans.StartPlan.still_fits = lambda self, partition, members: False  # type: ignore[method-assign]
    real = plans.make_plan
    calls = [0]

    def make_plan(partition: Any, members: Any, held: Any) -> Any:
        calls[0] += 1
        plan = real(partition, members, held)
        return plan if plan is None or calls[0] % 2 else plan._replace(placing=plan.placing[:1])

    replace(backfill, "make_plan", make_plan)


@FAULTS.add
def a_member_is_left_out() -> None:
    real = atomic.AtomicGangs._start

    def start(self: Any, app: Any, placing: Any) -> None:
        real(self, app, placing[:-1] if len(placing) > 2 else placing)

    atomic.AtomicGangs._start = start  # type: ignore[method-assign]


def caught() -> str:
    """The message of the first run in which a law fails; empty if all hold. Other errors are raised."""
    rng = random.Random(5)
    for number in range(RUNS):
        work = [(rng.randint(1, 8), rng.randint(1, 25)) for _ in range(rng.randint(2, 8))]
        jobs = [(rng.randint(0, 20), rng.randint(1, 6), rng.choice([0, *range(1, 25)])) for _ in range(10)]
        gang = [rng.randint(2, 9)] * rng.randint(1, 4)
        nodes = [rng.randint(6, 12) for _ in range(rng.randint(1, 4))]
        try:
            laws.check(nodes, work, gang, jobs)
            packings.check(number)
        except Exception as error:
            if not raised_by_a_law(error, laws, packings):
                raise
            return f"caught after {number + 1} runs: {type(error).__name__} {error}"
    return ""


if __name__ == "__main__":
    if sys.argv[1:]:
        FAULTS[sys.argv[1]]()
    sys.stdout.write(caught() or "not caught\n")
