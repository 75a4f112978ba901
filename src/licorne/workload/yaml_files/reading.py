"""Read YAML as plain objects, and collect what is wrong with them, by paths.

A path is looked up in the tree of YAML nodes, which has the line and column of every value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from licorne.config.nodes import YamlNode, behind, compose
from licorne.config.problems import Notes
from licorne.config.scalars import ScalarError, is_merge, resolve
from licorne.workload.yaml_files.faults import DocumentError, Path, Problem, YamlFileError, spoken

VALUES_MAX: Final = 1_000_000
"""Values of a document, aliases written out, at most."""
PROBLEMS_MAX: Final = 100
BROKEN: Final = object()
"""Stands in place of a value that is faulty, which was noted."""


class Problems:
    """Collects what is wrong with a document; `tree` is None where it was not read from a text, `error` is the class that it raises."""

    def __init__(self, file: str, tree: YamlNode | None = None, error: type[YamlFileError] = YamlFileError) -> None:
        self.file = file
        self.tree = tree
        self._error = error
        self.found: list[Problem] = []
        self.warnings: list[Problem] = []
        self._paths: set[Path] = set()
        self._repaired: frozenset[Path] = frozenset()

    def note(self, path: Path, message: str, *, at_key: bool = False, place: tuple[int, int] | None = None) -> None:
        """Note a fault at its place in the text, unless it is about something a part of which was left out as faulty.

        Its place is that of the value at the path, or of the key (`at_key`), or `place`, a line and column.
        """
        if len(self.found) >= PROBLEMS_MAX or path in self._repaired:
            return
        problem = self._placed(path, message, at_key=at_key, place=place)
        if place is None:  # else the value itself is there, and what is wrong is a key beside it
            self._paths.add(path)
        if problem not in self.found:
            self.found.append(problem)

    def add(self, *faults: DocumentError) -> None:
        """Note faults that were raised."""
        for fault in faults:
            self.note(fault.path, fault.message)

    def warn(self, path: Path, message: str) -> None:
        """Note a warning with its line and column, unless it is about what was left out, or there are too many."""
        if len(self.warnings) < PROBLEMS_MAX and path not in self._repaired:
            self.warnings.append(self._placed(path, message))

    def leave_out(self) -> None:
        """Note that what is faulty so far is left out from now on, so what contains it looks as if something were missing."""
        self._repaired = frozenset(path[:length] for path in self._paths for length in range(len(path) + 1))

    def is_faulty(self, path: Path) -> bool:
        """Whether anything is wrong with a value or what it contains."""
        return any(each[: len(path)] == path for each in self._paths)

    def _placed(
        self, path: Path, message: str, *, at_key: bool = False, place: tuple[int, int] | None = None
    ) -> Problem:
        node = self.node(path, at_key=at_key)
        line, column = place or ((0, 0) if node is None else (node.line, node.column))
        return Problem(self.file, line, column, spoken(path), message)

    def at(self, line: int, column: int, message: str) -> None:
        """Add a problem at a line and column."""
        self.found.append(Problem(self.file, line, column, "", message))

    def within(self, path: Path, problem: Problem) -> None:
        """Add a problem within the value at a path, at a place of its own."""
        self._paths.add(path)
        self.found.append(problem)

    def refuse(self) -> None:
        """Raise an error if there is a problem."""
        if self.found:
            raise self._error(tuple(sorted(self.found, key=lambda one: (one.line, one.column))))

    def node(self, path: Path, *, at_key: bool = False) -> YamlNode | None:
        """Return the node of a path, or the last one that is there on the way."""
        node = self.tree
        for index, part in enumerate(path):
            if node is None:
                return None
            inner = behind(node)
            if isinstance(part, int):
                if inner.kind != "sequence" or part >= len(inner.items):
                    return node
                node = inner.items[part]
                continue
            found = next(((key, value) for key, value in _pairs(inner) if key.text == part), None)
            if found is None:
                return node
            node = found[0] if at_key and index == len(path) - 1 else found[1]
        return node


def _pairs(node: YamlNode) -> Iterator[tuple[YamlNode, YamlNode]]:
    """Yield the keys and values of a mapping, then those that `<<` merges in."""
    if node.kind != "mapping":
        return
    merged: list[YamlNode] = []
    for key, value in zip(node.items[::2], node.items[1::2], strict=True):
        if is_merge(key):
            inner = behind(value)
            merged += inner.items if inner.kind == "sequence" else [inner]
        else:
            yield key, value
    for one in merged:
        yield from _pairs(behind(one))


def compose_text(text: str, file: str, error: type[YamlFileError] = YamlFileError) -> tuple[object, Problems]:
    """Return a YAML text as plain objects, an empty mapping if it is empty, and the collector of its problems.

    A value that cannot be read is noted, and `BROKEN` stands in its place.

    Raises:
        YamlFileError: it is not YAML; an `error`, if another class is given.
    """
    notes = Notes(file)
    tree = compose(text, notes) or YamlNode("mapping", "", "", False, 1, 1)
    problems = Problems(file, tree, error)
    for problem in notes.report().faults:
        problems.at(problem.line, problem.column, problem.message)
    problems.refuse()
    try:
        made = _Plain(problems).value(tree, ())
    except DocumentError as fault:
        problems.add(fault)
        problems.refuse()
    return made, problems


class _Plain:
    """Makes plain objects of YAML nodes, and notes what cannot be read."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._values = 0
        self._open: list[YamlNode] = []

    def value(self, given: YamlNode, path: Path) -> object:
        """Return what a node means, `BROKEN` if that is noted as a fault. Raises DocumentError: nothing can be read."""
        node = behind(given)
        self._values += 1
        if self._values > VALUES_MAX:
            raise DocumentError(path, f"there are more than {VALUES_MAX:,} values, aliases written out")
        if any(node is one for one in self._open):
            raise DocumentError(path, "this alias stands for a value that contains it")
        if node.kind == "scalar":
            try:
                return _scalar(node, path)
            except DocumentError as fault:
                self._problems.add(fault)
                return BROKEN
        self._open.append(node)
        try:
            if node.kind == "sequence":
                return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
            return self._mapping(node, path)
        finally:
            self._open.pop()

    def _mapping(self, node: YamlNode, path: Path) -> dict[str, Any]:
        own: set[str] = set()
        for key in node.items[::2]:
            if key.kind != "scalar":
                self._problems.note(path, "a key must be a text", place=(key.line, key.column))
            elif key.text in own:
                place = key.line, key.column
                self._problems.note((*path, key.text), "this key is there twice", place=place)
            own.add(key.text)
        made: dict[str, Any] = {}
        for key, value in _pairs(node):
            if key.kind == "scalar" and key.text not in made:
                made[key.text] = self.value(value, (*path, key.text))
        return made


def _scalar(node: YamlNode, path: Path) -> str | int | float | bool | None:
    try:
        tag, value = resolve(node)
    except ScalarError as error:
        raise DocumentError(path, str(error)) from None
    if tag == "!!int" and str(value) != node.text.removeprefix("+"):
        raise DocumentError(path, f"{node.text!r} means {value} in YAML; write that, or put it in quotes")
    return value
