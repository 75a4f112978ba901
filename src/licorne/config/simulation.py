"""The properties of a queue that only the simulator reads: strict order of jobs, and backfill (docs/use/simulator.md).

They say how a batch system would order the jobs of the queue. A live scheduler does not do that, so a configuration that has
them is refused wherever it is not read for a simulation: otherwise a cluster would quietly run under other rules than those
that were simulated. For a simulation the values must be legal, unlike those of the other properties, since a misspelt order
would make its result meaningless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, get_args

import msgspec

from licorne.config.problems import Notes
from licorne.config.raw import RawQueue, Value

JOB_ORDER: Final = "simulation.order"
BACKFILL: Final = "simulation.backfill"
SIMULATED: Final = (JOB_ORDER, BACKFILL)
JobOrder = Literal["fcfs", "sjf", "f1", "wfp3", "uni"]
JOB_ORDERS: Final[tuple[str, ...]] = get_args(JobOrder)
"""The orders of jobs; `licorne.workload.joborders` has their keys."""
_SWITCH: Final = {"enabled": True, "disabled": False}


class JobRules(msgspec.Struct, frozen=True):
    """How a queue's jobs are started: the name of their order, and whether later jobs may be backfilled."""

    order: str
    backfill: bool


def job_rules(properties: Mapping[str, str]) -> JobRules | None:
    """Return the rules of a queue with these merged properties; None if its jobs have no strict order."""
    order = properties.get(JOB_ORDER, "")
    if order not in JOB_ORDERS:
        return None
    return JobRules(order, _SWITCH.get(properties.get(BACKFILL, "").lower(), False))


def check_simulated(queue: RawQueue, notes: Notes, *, simulated: bool) -> None:
    """Check the simulator's properties (`SIMULATED`) of a queue and of all queues below it.

    Unless `simulated`, that is where a text is read for a scheduler, each such property is a fault.
    """
    for properties in _properties(queue):
        for key in SIMULATED:
            value = properties.get(key)
            if value is None:
                continue
            message = (
                f"only `licorne simulate` reads {key}: a scheduler that serves a cluster has no such order of jobs"
            )
            if simulated:
                message = _fault(key, value.text, properties)
            if message:
                notes.fault("property-simulation", value.spot, message)
    for child in queue.queues or ():
        check_simulated(child, notes, simulated=simulated)


def _properties(queue: RawQueue) -> Iterator[Mapping[str, Value]]:
    if queue.properties:
        yield queue.properties
    if queue.childtemplate is not None and queue.childtemplate.properties:
        yield queue.childtemplate.properties


def _fault(key: str, text: str, properties: Mapping[str, Value]) -> str:
    if key == JOB_ORDER and text not in JOB_ORDERS:
        return f"'{text[:80]}' is no order of jobs: {', '.join(JOB_ORDERS)}, in lower case"
    if key == BACKFILL and text.lower() not in _SWITCH:
        return f"'{text[:80]}' is neither enabled nor disabled"
    if JOB_ORDER not in properties:  # of backfill
        return f"backfill needs an order of jobs: {JOB_ORDER} stands beside it"
    return ""
