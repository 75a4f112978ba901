"""licorne beside another scheduler, without writing anything: what it would have done otherwise, and how much earlier.

The manager decides as always, so a pod has its place in licorne's view from the decision on. The other scheduler's
decision is adopted when it is seen, in place of licorne's own, so the two views stay the same however often they differ.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from licorne.kube.manager.commands import AnyCommand, Bind, GiveUpClaims
from licorne.kube.objects import Pod

DIFFERENCES_MAX: Final = 1000
"""How many of the last differences are kept."""
SAME, ELSEWHERE, FIRST, GONE = "same", "elsewhere", "first", "gone"
OUTCOMES: Final = (SAME, ELSEWHERE, FIRST, GONE)
"""What can become of a pod: the other scheduler bound it to the node that licorne had chosen, or to another one, or
before licorne had chosen any; or it ended before the other scheduler bound it."""


class Difference(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that the other scheduler bound otherwise. `licorne` is "" if licorne had not decided yet."""

    pod: str
    licorne: str
    other: str
    earlier_seconds: float = 0.0
    """How long before the other's binding was seen licorne had decided."""


class _Decision(msgspec.Struct, frozen=True):
    node: str
    at_s: float


class Shadow:
    """Compares decisions with those of another scheduler.

    Parameters:
        clock: returns seconds from any start.
        told: told of each difference.

    It keeps one entry for each pod that licorne has decided and the other scheduler has not, and the last
    `DIFFERENCES_MAX` differences. `counts`: pods by outcome. `unwritten`: other commands that were not carried out, by name.
    """

    def __init__(self, clock: Callable[[], float], told: Callable[[Difference], None] = lambda _: None) -> None:
        self._clock = clock
        self._told = told
        self._decisions: dict[str, _Decision] = {}
        self.counts = dict.fromkeys(OUTCOMES, 0)
        self.unwritten: Counter[str] = Counter()
        self.differences: deque[Difference] = deque(maxlen=DIFFERENCES_MAX)
        self.earlier_s = 0.0
        """By how much licorne was earlier, over all pods that both have decided."""

    def take(self, command: AnyCommand) -> None:
        """Note a command to the API server in place of carrying it out."""
        if isinstance(
            command, Bind | GiveUpClaims
        ):  # the latter is the last command of a decision with claims to be bound
            self._decisions[command.uid] = _Decision(command.node, self._clock())
        else:
            self.unwritten[type(command).__name__] += 1

    def bound(self, pod: Pod) -> None:
        """Compare, now that the other scheduler has bound a pod that waited before."""
        meta, other = pod.metadata, pod.spec.node_name
        decision = self._decisions.pop(meta.uid, None)
        if decision is None:
            self._differs(FIRST, Difference(f"{meta.namespace}/{meta.name}", "", other))
            return
        earlier_s = self._clock() - decision.at_s
        self.earlier_s += earlier_s
        if decision.node == other:
            self.counts[SAME] += 1
        else:
            found = Difference(f"{meta.namespace}/{meta.name}", decision.node, other, round(earlier_s, 3))
            self._differs(ELSEWHERE, found)

    def _differs(self, outcome: str, found: Difference) -> None:
        self.counts[outcome] += 1
        self.differences.append(found)
        self._told(found)

    def gone(self, pod: Pod) -> None:
        """Forget a pod that has ended, or is no longer there."""
        if self._decisions.pop(pod.metadata.uid, None) is not None:
            self.counts[GONE] += 1

    def report(self) -> dict[str, Any]:
        """Return everything, as data for JSON."""
        both = self.counts[SAME] + self.counts[ELSEWHERE]
        now = self._clock()
        return {
            "pods": dict(self.counts),
            "onlyLicorne": len(self._decisions),
            "onlyLicorneLongestSeconds": round(
                max((now - one.at_s for one in self._decisions.values()), default=0.0), 3
            ),
            "earlierMeanSeconds": round(self.earlier_s / both, 3) if both else 0.0,
            "notWritten": dict(sorted(self.unwritten.items())),
            "differences": msgspec.to_builtins(list(self.differences)),
        }
