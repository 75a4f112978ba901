"""The situations of gangs that the scenarios must have met, counted in the reference's records and in the messages of both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from licorne.si.messages import Output, RejectedApplication, Released, Termination, UpdatedApplication
from reference import gangs

if TYPE_CHECKING:
    from reference.cluster import ReferenceCluster
    from reference.situations import Situations

WANTED: Final = (
    "gang: real ask waits for a placeholder",
    "gang: placeholder replaced",
    "gang: placeholder replaced on another node",
    "gang: replacement confirmed",
    "gang: placed in full",
    "gang: pending placeholder timed out",
    "gang: soft style resumes",
    "gang: soft style goes on",
    "gang: hard style fails",
    "gang: refused",
)


def count(situations: Situations, reference: ReferenceCluster, said: Iterable[tuple[str, Output]]) -> None:
    """Count situations in the records now, and in the messages since the last call."""
    for partition in reference.partitions():
        for app in partition.apps.values():
            flying = app.gang.flying
            situations.count(WANTED[0], sum(gangs.waits(ask) for ask in app.asks.values()))
            situations.count(WANTED[2], sum(ask.place is not None and ask.node is not ask.place.node for ask in flying))
            situations.count(WANTED[3], bool(app.gang.gained))
            situations.count(WANTED[4], app.gang.whole)
            situations.count(WANTED[7], app.gang.fallen and app.state == "Running")
    for _, output in said:
        match output:
            case Released(termination=Termination.PLACEHOLDER_REPLACED):
                situations.count(WANTED[1])
            case Released(ask=True):
                situations.count(WANTED[5])
            case UpdatedApplication(state="Resuming"):
                situations.count(WANTED[6])
            case UpdatedApplication(state="Failing", message=gangs.OVER):
                situations.count(WANTED[8])
            case RejectedApplication(application_id=name) if name.startswith("gang"):
                situations.count(WANTED[9])
