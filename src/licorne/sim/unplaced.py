"""Which asks of a simulation were never placed, and why.

They are those that the scheduler refused, those that wait in it, and those that a gang or a strict order of jobs kept back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from licorne.sim.reasons import waiting

if TYPE_CHECKING:
    from licorne.sim.simulation import SimulatedCluster

TAKEN_BACK = "taken back before it was placed"
"""The reason of asks that the workload withdrew, of which the scheduler knows nothing any more."""


REPLACING = "takes the place of a placeholder, whose end is not confirmed yet"
"""Why a member of a gang is not placed that replaces a placeholder; a line of a script has to confirm the placeholder's end."""


class Unplaced(NamedTuple):
    """An ask, why it was not placed, and how many allocations of it are missing.

    `place`: the line of an ask that was refused, as `FILE:LINE`, if it is known. `application`: that of an ask that was not
    refused; two of them may have asks of one key.
    """

    reason: str
    key: str
    number: int
    place: str = ""
    application: str = ""


def unplaced(simulation: SimulatedCluster) -> Iterator[Unplaced]:
    """Yield the asks that are not placed now, those that were refused first; without those that were taken back."""
    for (reason, key), number in simulation.refusals.asks.items():
        yield Unplaced(f"rejected: {reason}", key, number, simulation.refusals.place_of(reason))
    gangs: dict[str, str] = {}  # why the first waiting placeholder of an application waits
    for ask, text in waiting(simulation.partition):
        pod = simulation.model.find(ask.app.id, ask.key)
        if pod is not None and pod.ask.ph:
            gangs.setdefault(ask.app.id, text)
            continue
        yield Unplaced(text, ask.key, ask.repeats, application=ask.app.id)
    for application in simulation.partition.applications.values():
        for ask in application.gang.replacing.values() if application.gang is not None else ():
            yield Unplaced(REPLACING, ask.key, 1, application=application.id)
    for app, line in simulation.model.gangs.kept_back():
        text = f"waits for the placeholders of its gang: {gangs.get(app, 'not all are there yet')}"
        yield Unplaced(text, line.key, line.max, application=app)
    for queue, pod in simulation.jobs.held_back() if simulation.jobs is not None else ():
        text = f"held back: another job is first in the strict order of {queue}"
        yield Unplaced(text, pod.ask.key, 1, application=pod.ask.app)
