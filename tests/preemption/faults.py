"""Faults to plant in claims: random clusters must show each of them. `faults.py NAME` prints after how many."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from common.planting import raised_by_a_law
from licorne.core.preemption.claims import Claims
from licorne.core.preemption.evictions import Outcome
from licorne.core.queues.ask import Ask
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.reservations import Reservations
from preemption import clusters

ENOUGH = 300
"""A fault that is not caught in so many clusters is not caught."""


def _one_by_one(self: Reservations, asks: list[Ask], outcome: Outcome) -> None:
    for ask in asks:
        self.cancel(ask, outcome)


FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "quotas are not claimed": (
        Descent,
        "subtract_claims",
        lambda _: lambda self, _app, ask: self.headroom_left.covers(ask.shape.amounts),
    ),
    "nodes are not claimed": (Claims, "fits_node", lambda _: lambda *_arguments: True),
    "no ask gives up": (Claims, "_review", lambda _: lambda *_arguments: None),
    "a node that goes ends the reservations of a gang one by one": (
        Reservations,
        "_cancel_each",
        lambda _: _one_by_one,
    ),
}


def caught(name: str) -> str:
    """The failure that shows the fault, and the number of clusters until then. An error that is no broken law is raised."""
    where, function, broken = FAULTS[name]
    setattr(where, function, broken(getattr(where, function)))
    for seed in range(ENOUGH):
        for kind in clusters.KINDS:
            try:
                clusters.lived(seed, kind)
            except AssertionError as error:
                if not raised_by_a_law(error, clusters):
                    raise
                return f"caught after {seed + 1}: {error}"
    return "not caught"


if __name__ == "__main__":
    sys.stdout.write(f"{caught(sys.argv[1])}\n")
