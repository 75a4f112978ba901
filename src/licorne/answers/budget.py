"""How much the trials of one question may cost, in steps that are counted, so that an answer is the same on every machine.

A clock would end the search somewhere else each time, and on a busy machine after few trials; so it is only a guard
(`more` of `licorne.answers.proposals`), and the work is what is bounded. A step is what a copy costs for each node, ask and
allocation of the partition; everything else is told in such steps: a decision, an ask that is attempted without result, and
a look at all nodes and allocations for what may be done next. On one processor of an AMD EPYC a million steps take about
0.08 s.

Each search has half of that, so that one that fills thousands of nodes leaves something for the others; those that need few
trials come first.
"""

from __future__ import annotations

from typing import Final

from licorne.core.partition import Partition

WORK_MAX: Final = 16_000_000
"""Steps of all trials of one question."""
DECISION: Final = 400
"""Steps of a decision, and one more for each ask that reserves a node: these are tried before each decision."""
ATTEMPT: Final = 30
"""Steps of an attempt to place an ask."""
LOOK: Final = 4
"""Steps for each node and allocation to find out what may be done next."""


class WorkSpentError(Exception):
    """The share of a search, or the time of the question, is spent."""


class Budget:
    """The steps that are spent, and how many may be: `effort` times `WORK_MAX`."""

    def __init__(self, partition: Partition, effort: float) -> None:
        apps = partition.applications.values()
        allocations = sum(len(app.allocations) for app in apps)
        self.copy = len(partition.nodes) + allocations + sum(len(app.asks) for app in apps)
        self.look = LOOK * (len(partition.nodes) + allocations)
        self.most = int(WORK_MAX * effort)
        self.allowed = self.most
        self.spent = 0

    def share(self) -> None:
        """Allow the next search half of all, if so much is left."""
        self.allowed = min(self.most, self.spent + self.most // 2)

    def work_max(self, *, suggest: bool) -> int:
        """Return how many steps the next trial may make; `suggest`: it also finds out what may be done next.

        Raises:
            WorkSpentError: there may be no further trial.
        """
        left = self.allowed - self.spent - self._cost(suggest=suggest)
        if left < 0:
            raise WorkSpentError
        return left

    def spend(self, work: int, *, suggest: bool) -> None:
        """Count a trial that has made so many steps."""
        self.spent += self._cost(suggest=suggest) + work

    def _cost(self, *, suggest: bool) -> int:
        return self.copy + (self.look if suggest else 0)


def work_of(partition: Partition, decisions: int) -> int:
    """Return the steps that a partition has made since it was restored, of which `decisions` were made in a trial."""
    return ATTEMPT * partition.descent.attempts + (DECISION + len(partition.reservations)) * decisions
