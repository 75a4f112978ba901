"""Where the points of a sweep run. An engine is given points, and yields their outcomes as they come.

`Processes` runs them on this machine; `licorne.lab.sweep.on_ray` on a Ray cluster. Another engine is a class with the one method of
`Engine`; docs/use/sweeps.md shows one for Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from licorne.lab.processes import results
from licorne.lab.sweep.plan import Point
from licorne.lab.sweep.point import Outcome

Run = Callable[[Point], Outcome]


class EngineError(Exception):
    """An engine cannot run points; the text says why, and what to do."""


class Engine(Protocol):
    """Runs points, on whatever machines."""

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points by a function of a module, and yield the position of each with its outcome, in any order.

        A point whose process crashes has an outcome with an error, and the others go on. Closing the generator ends what runs.

        Raises:
            EngineError: no point can be run.
        """
        ...  # pragma: no cover


class Processes(NamedTuple):
    """Runs points on this machine, `at_once` at a time, each in a process of its own; with 1 in this process.

    A point that takes all memory or crashes is recorded as failed (`licorne.lab.processes`).
    """

    at_once: int = 1

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points; see `Engine.outcomes`."""
        called = run if self.at_once == 1 else partial(outcome_of, run=run)
        return results(points, called, self.at_once, crashed=lambda why: Outcome(error=why))


def outcome_of(point: Point, run: Run) -> Outcome:
    """Run one point; a fault of the simulator is that of this point, not of the others."""
    try:
        return run(point)
    except Exception as error:  # noqa: BLE001  # as the docstring says
        return Outcome(error=f"{type(error).__name__}: {error}")
