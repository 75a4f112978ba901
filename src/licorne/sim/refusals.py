"""What the scheduler refused of a workload: equal reasons counted, each with one example and the line that it comes from.

A refusal carries its reason a second time without the names in it (`template`), so nothing is searched for in sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from licorne.si import messages
from licorne.sim import lines
from licorne.sim.workload import Workload

PLACES_MAX = 1_000
"""For so many different reasons the line of an example is looked for."""
_LINES: dict[type[lines.Line], tuple[str, str]] = {
    lines.Node: ("node", "id"),
    lines.App: ("application", "id"),
    lines.Ask: ("ask", "key"),
    lines.Foreign: ("foreign", "key"),
}
"""By what lines and refusals name things: what it is, and the field with its name."""


class Refused(msgspec.Struct, frozen=True):
    """Something that the scheduler refused: node, application, ask, foreign or reload; why, how often, one of them, and where.

    `place` is `FILE:LINE`, empty where the workload was not read from a file.
    """

    what: str
    reason: str
    number: int
    example: str
    place: str


class _Row(msgspec.Struct):
    example: str
    place: str
    number: int = 0


class Refusals:
    """Counts refusals. `asks`: reasons why new asks were refused, with their keys, and how many allocations that means."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._given: Sequence[lines.Line] = ()
        self._first = -1
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._rows: dict[tuple[str, str], _Row] = {}
        self._applications: dict[str, tuple[str, str]] = {}
        self._places: dict[str, str] = {}
        self.asks: Counter[tuple[str, str]] = Counter()

    def handing_in(self, given: Sequence[lines.Line], first: int) -> None:
        """Attribute the refusals that follow to workload lines, the first of which has index `first`; -1: to no line."""
        self._given, self._first = given, first
        self._verdicts.clear()

    def accepted(self, what: str, name: str) -> None:
        """A node or an application was taken: the next verdict on this name is about a further line."""
        self._verdicts[(what, name)] += 1

    def node(self, output: messages.RejectedNode) -> None:
        """A node was refused."""
        self._count("node", output.node_id, output.template or output.reason)

    def application(self, output: messages.RejectedApplication, *, there: bool) -> str:
        """An application was refused; returns why. `there`: one of this name is there already, and takes asks."""
        reason = _one_line(output.template or output.reason)
        place = self._count("application", output.application_id, reason)
        if not there:
            self._applications[output.application_id] = reason, place
        return reason

    def ask(self, output: messages.RejectedAllocation, number: int) -> None:
        """A new ask was refused, which is for so many allocations; if its application was, for that reason."""
        reason = _one_line(output.template or output.reason)
        reason, place = self._applications.get(output.application_id, (reason, ""))
        if reason not in self._places:
            self._places[reason] = place or self._place("ask", output.key)
        self.asks[(reason, output.key)] += number

    def given_up(self, reason: str, ask: lines.Ask, app: str) -> None:
        """An ask was not even handed in, as its application is no more."""
        self._places.setdefault(reason, self._applications.get(app, ("", ""))[1])
        self.asks[(reason, ask.key)] += ask.max

    def allocation(self, output: messages.RejectedAllocation) -> None:
        """Anything else was refused: a change of an ask, a placeholder, another scheduler's allocation."""
        what = "foreign" if not output.application_id else "ask"
        self._count(what, output.key, output.template or output.reason)

    def reload(self, reason: str, place: str) -> None:
        """Record that the scheduler refused a changed configuration."""
        self._add("reload", "", reason, place)

    def rows(self) -> list[Refused]:
        """What was refused, in the order in which each reason was met first; new asks are not among them."""
        return [Refused(what, reason, row.number, row.example, row.place) for (what, reason), row in self._rows.items()]

    def place_of(self, reason: str) -> str:
        """The line of the first ask that was refused for this reason."""
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
        """The line that a refusal is about: of several with this name the one whose turn it is."""
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
