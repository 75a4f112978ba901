"""What the scheduler refused of a workload: equal reasons counted, each with an example and the line it comes from.

A refusal carries its reason a second time without the names in it (`template`), so reasons need not be parsed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from licorne.si import messages
from licorne.workload import lines
from licorne.workload.workload import Workload

PLACES_MAX = 1_000
"""Most different reasons for which the line of an example is looked up."""
_LINES: dict[type[lines.Line], tuple[str, str]] = {
    lines.Node: ("node", "id"),
    lines.App: ("application", "id"),
    lines.Ask: ("ask", "key"),
    lines.Foreign: ("foreign", "key"),
}
"""How lines and refusals name things: the kind of thing, and the field of the line that has its name."""


class Refused(msgspec.Struct, frozen=True):
    """Things that the scheduler refused for one reason: node, application, ask, foreign or reload.

    `number` counts them, `example` names one. `place` is `FILE:LINE`, empty where the workload was not read from a file.
    """

    what: str
    reason: str
    number: int
    example: str
    place: str


class RejectedQueue(msgspec.Struct):
    """The queue that refused applications asked for ("": none), their number, and one of them with its line.

    `exists` says whether there is such a queue at the end: a queue that was renamed is none any more.
    """

    queue: str
    applications: int
    example: str
    place: str
    exists: bool = False


class _Row(msgspec.Struct):
    example: str
    place: str
    number: int = 0


class Refusals:
    """Counts refusals. `asks`: by (reason, key) of a refused new ask, the number of allocations that it asked for."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._given: Sequence[lines.Line] = ()
        self._first = -1
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._rows: dict[tuple[str, str], _Row] = {}
        self._applications: dict[str, tuple[str, str]] = {}
        self._places: dict[str, str] = {}
        self.asks: Counter[tuple[str, str]] = Counter()
        self.queues: dict[str, RejectedQueue] = {}

    def handing_in(self, given: Sequence[lines.Line], first: int) -> None:
        """Attribute the refusals that follow to workload lines, the first of which has index `first`; -1: to no line."""
        self._given, self._first = given, first
        self._verdicts.clear()

    def accepted(self, what: str, name: str) -> None:
        """Note that a node or an application was accepted: the next verdict on this name belongs to a later line."""
        self._verdicts[(what, name)] += 1

    def node(self, output: messages.RejectedNode) -> None:
        """Count a refused node."""
        self._count("node", output.node_id, output.template or output.reason)

    def application(self, output: messages.RejectedApplication, *, there: bool, queue: str) -> str:
        """Count a refused application, which asked for `queue`; return the reason.

        `there`: one of this name exists already and takes asks.
        """
        reason = _one_line(output.template or output.reason)
        name = output.application_id
        if queue not in self.queues and not there:
            self.queues[queue] = RejectedQueue(queue, 0, name, self._place("application", name))
        place = self._count("application", name, reason)
        if not there:
            self._applications[name] = reason, place
            self.queues[queue].applications += 1
        return reason

    def ask(self, output: messages.RejectedAllocation, number: int) -> None:
        """Count a refused new ask for `number` allocations; if its application was refused, for that reason."""
        reason = _one_line(output.template or output.reason)
        reason, place = self._applications.get(output.application_id, (reason, ""))
        if reason not in self._places:
            self._places[reason] = place or self._place("ask", output.key)
        self.asks[(reason, output.key)] += number

    def given_up(self, reason: str, ask: lines.Ask, number: int) -> None:
        """Count an ask for `number` allocations that will not be made because its application has ended."""
        self._places.setdefault(reason, self._applications.get(ask.app, ("", ""))[1])
        self.asks[(reason, ask.key)] += number

    def allocation(self, output: messages.RejectedAllocation) -> None:
        """Count a refused change of an ask, a refused placeholder, or a refused allocation of another scheduler."""
        what = "foreign" if not output.application_id else "ask"
        self._count(what, output.key, output.template or output.reason)

    def reload(self, reason: str, place: str) -> None:
        """Count a refused change of the configuration."""
        self._add("reload", "", reason, place)

    def rows(self) -> list[Refused]:
        """Return what was refused except new asks, in the order in which each reason first occurred."""
        return [Refused(what, reason, row.number, row.example, row.place) for (what, reason), row in self._rows.items()]

    def place_of(self, reason: str) -> str:
        """Return the line of the first ask that was refused for this reason; empty if it is not known."""
        return self._places.get(reason, "")

    def _count(self, what: str, name: str, reason: str) -> str:
        known = self._rows.get((what, _one_line(reason)))
        place = self._place(what, name) if known is None else ""
        self._verdicts[(what, name)] += 1
        return self._add(what, name, reason, place)

    def _add(self, what: str, name: str, reason: str, place: str) -> str:
        row = self._rows.setdefault((what, _one_line(reason)), _Row(name, place))
        row.number += 1
        return row.place

    def _place(self, what: str, name: str) -> str:
        """Return the line that a refusal is about: of several with this name, the next without a verdict."""
        if self._first < 0 or len(self._rows) + len(self._places) > PLACES_MAX:
            return ""
        found = [
            index
            for index, line in enumerate(self._given, self._first)
            if (named := _LINES.get(type(line))) is not None and named[0] == what and getattr(line, named[1]) == name
        ]
        if not found:
            return ""
        return self._workload.place(found[min(self._verdicts[(what, name)], len(found) - 1)])


def _one_line(reason: str) -> str:
    return " ".join(reason.split())
