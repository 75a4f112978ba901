"""How much the trials of one question may cost, in steps that are counted, so that an answer is the same on every machine.

A clock would end the search somewhere else each time, and on a busy machine after few trials; so it is only a guard
(`more` of `licorne.answers.proposals`), and the work is what is bounded. The size of a partition is the number of its nodes,
asks and allocations. A trial costs as many steps as three times that size: once for the copy of the process, twice for the
decisions that are tried on it; a change that is refused costs the copy alone, and a trial that also finds out what may be
done next costs the size once more, as it looks at all nodes. Each decision that is made costs `DECISION` steps. `WORK_MAX`
is meant to take less than two seconds of one processor: where the size is 105,000, that many steps take about 0.025 s.

Each search has a share of what is left, so that one that fills thousands of nodes leaves something for the others. What a
search does not use passes to those after it, and those that need few trials come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from licorne.core.partition import Partition

WORK_MAX: Final = 8_000_000
"""Steps of all trials of one question."""
DECISION: Final = 1_500
"""Steps of a decision."""


class WorkSpentError(Exception):
    """The share of a search is spent."""


class Budget:
    """The steps that are spent, and how many may be: `effort` times `WORK_MAX`."""

    def __init__(self, partition: Partition, effort: float) -> None:
        apps = partition.applications.values()
        self.size = len(partition.nodes) + sum(len(app.asks) + len(app.allocations) for app in apps)
        self.most = int(WORK_MAX * effort)
        self.allowed = self.most
        self.spent = 0

    def share(self, weight: int, weights: int) -> None:
        """Allow the next search `weight` of `weights` parts of what is left."""
        self.allowed = self.spent + (self.most - self.spent) * weight // weights

    def decisions_max(self, *, suggest: bool) -> int:
        """Return how many decisions the next trial may make; `suggest`: it also finds out what may be done next.

        Raises:
            WorkSpentError: there may be no further trial.
        """
        left = self.allowed - self.spent - self._cost(suggest=suggest)
        if left < 0:
            raise WorkSpentError
        return left // DECISION

    def spend(self, decisions: int, *, suggest: bool, refused: bool) -> None:
        """Count a trial that has made so many decisions."""
        self.spent += self.size if refused else self._cost(suggest=suggest) + DECISION * decisions

    def _cost(self, *, suggest: bool) -> int:
        return self.size * (4 if suggest else 3)


__all__ = ["DECISION", "WORK_MAX", "Budget", "WorkSpentError"]
