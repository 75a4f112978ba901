"""Problems of a configuration: each has its place, the value there, and the rule that is broken.

A fault refuses the configuration, a warning does not; they do not differ otherwise, so they are one type.
Rules have stable identifiers because people search for them and suppress them; `licorne.config.rules` lists them,
and no problem can be noted under another name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from licorne.config.rules import FAULT_RULES, WARNING_RULES

MAX_PROBLEMS: Final = 1000
NO_PARTITION: Final = "config-empty"
_LONGEST_VALUE: Final = 80


class Spot(NamedTuple):
    """A place in a document: line and column from 1, the path to it, and the text there."""

    line: int
    column: int
    path: str
    text: str = ""


class Problem(msgspec.Struct, frozen=True):
    """One fault or warning.

    `line` and `column` count from 1. `path` names the place within the document, such as
    `partitions[0].queues[1].limits[0]`, and is empty for the document itself. `value` is the faulty text, cut
    if it is long; `rule` is the name of the rule. `place` is the path with the name of the queue, such
    as `root.dept3: limits[0]`.
    """

    file: str
    line: int
    column: int
    path: str
    value: str
    rule: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        said = self.place or self.path
        place = f"{said}: " if said else ""
        return f"{self.file}:{self.line}:{self.column}: {place}{self.message} [{self.rule}]"


def by_line(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return problems in the order of the text."""
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


class Report(msgspec.Struct, frozen=True):
    """The problems that `check` found. The first fault is the one at which the original would have stopped."""

    faults: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


class ConfigError(ValueError):
    """The refusal of a configuration; `problems` holds every fault, the decisive one first.

    Its text has the problems in the order of their lines.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in by_line(problems)))
        self.problems = problems

    def fields(self) -> dict[str, object]:
        """Return the fields for a log: the place and rule of the decisive fault, and the number of faults.

        The value is left out, since a log must not repeat text of the configuration.
        """
        first = self.problems[0]
        place = {"line": first.line, "column": first.column, "path": first.path[:200]}
        return {**place, "rule": first.rule, "faults": len(self.problems)}


class Notes:
    """The collector of the problems that the checks find.

    The same problem at the same place is noted once, whichever check finds it first. At most MAX_PROBLEMS faults
    and as many warnings are kept: a generated configuration with one mistake in each of a million lines must not
    have an answer of a million lines.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.place: Callable[[str], str] | None = None
        """The name of the place to which a path leads, if one is known."""
        self._faults: dict[tuple[str, int, int, str], Problem] = {}
        self._warnings: dict[tuple[str, int, int, str], Problem] = {}

    def fault(self, rule: str, spot: Spot, message: str) -> None:
        """Note a problem for which the configuration is refused."""
        assert rule in FAULT_RULES, rule
        self._note(self._faults, rule, spot, message)

    def warn(self, rule: str, spot: Spot, message: str) -> None:
        """Note something legal that is surely not meant, or means something else in the original."""
        assert rule in WARNING_RULES, rule
        self._note(self._warnings, rule, spot, message)

    @property
    def fault_count(self) -> int:
        """Return the number of faults noted so far."""
        return len(self._faults)

    def report(self) -> Report:
        """Return the problems: faults in the order in which they were found, warnings in the order of the text."""
        return Report(self._placed(self._faults), by_line(self._placed(self._warnings)))

    def _placed(self, notes: dict[tuple[str, int, int, str], Problem]) -> tuple[Problem, ...]:
        problems = tuple(notes.values())
        if self.place is None:
            return problems
        return tuple(msgspec.structs.replace(problem, place=self.place(problem.path)) for problem in problems)

    def _note(self, notes: dict[tuple[str, int, int, str], Problem], rule: str, spot: Spot, message: str) -> None:
        if len(notes) >= MAX_PROBLEMS:
            return
        text = spot.text if len(spot.text) <= _LONGEST_VALUE else spot.text[:_LONGEST_VALUE] + "…"
        problem = Problem(self.file, spot.line, spot.column, spot.path, text, rule, message)
        notes.setdefault((rule, spot.line, spot.column, spot.path), problem)
