"""Read the document of a scenario: YAML, or mappings of a program, as the classes of `licorne.sim.scenarios.document`.

msgspec converts and checks by these classes; it stops at the first error. So each pool, each class of applications and each
event is converted by itself, and one mistake in each of them is reported at once. A path of msgspec's message is looked up in
the tree of YAML nodes, which has the line and column of every value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import inspect

from licorne.config.nodes import YamlNode, behind, compose
from licorne.config.problems import Notes
from licorne.config.scalars import ScalarError, is_merge, resolve
from licorne.sim.scenarios.document import Arrivals, Document, Event, Pool
from licorne.sim.scenarios.faults import DocumentError, Path, Problem, ScenarioError, spoken
from licorne.sim.workload import explain

if TYPE_CHECKING:
    from licorne.config.problems import Problem as ConfigProblem
    from licorne.sim.scenarios.excerpts import Excerpt

VALUES_MAX: Final = 1_000_000
"""Values of a document, aliases written out, at most."""
PROBLEMS_MAX: Final = 100
_T = TypeVar("_T")
_PARTS: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_WORDS: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "keys with values",
    "str": "a text",
    "|": "or",
}
_WORD: Final = re.compile(r"\b(?:array|bool|float|int|null|object|str)\b|\|")
_NAMED: Final = re.compile(r"unknown field `([^`]*)`")
_SCENARIO: Final = re.compile(r"(?m)^scenario\s*:")


def is_scenario_text(text: str) -> bool:
    """Whether a text seems to be a scenario: it has the key `scenario` at the beginning of a line."""
    return _SCENARIO.search(text) is not None


class Problems:
    """Collects what is wrong with a scenario; `tree` is None where it was not read from a text."""

    def __init__(self, file: str, tree: YamlNode | None = None) -> None:
        self.file = file
        self.tree = tree
        self.found: list[Problem] = []

    def add(self, fault: DocumentError) -> None:
        """Add a fault at its place in the text."""
        if len(self.found) < PROBLEMS_MAX:
            node = self.node(fault.path, at_key=fault.at_key)
            line, column = fault.place or ((0, 0) if node is None else (node.line, node.column))
            problem = Problem(self.file, line, column, spoken(fault.path), fault.message)
            if problem not in self.found:
                self.found.append(problem)

    def at(self, line: int, column: int, message: str) -> None:
        """Add a problem at a line and column."""
        self.found.append(Problem(self.file, line, column, "", message))

    def of_config(self, excerpt: Excerpt, fault: ConfigProblem, path: Path) -> None:
        """Add a fault of a queue configuration, at its place in the text that it was cut out of, or in its file."""
        if not excerpt.exact:
            self.add(DocumentError(path, f"{fault.place or fault.path}: {fault.message}"))
            return
        place = fault.place or fault.path or spoken(path)
        line, column = fault.line + excerpt.lines, fault.column + excerpt.columns
        self.found.append(Problem(fault.file, line, column, place, fault.message))

    def refuse(self) -> None:
        """Raise ScenarioError if there is a problem."""
        if self.found:
            raise ScenarioError(tuple(sorted(self.found, key=lambda one: (one.line, one.column))))

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


def compose_text(text: str, file: str) -> tuple[dict[str, Any], Problems]:
    """Return the mappings of a YAML text as plain objects, and the collector of its problems.

    Raises:
        ScenarioError: it is not YAML, or not a mapping.
    """
    notes = Notes(file)
    tree = compose(text, notes)
    problems = Problems(file, tree)
    for problem in notes.report().faults:
        problems.at(problem.line, problem.column, problem.message)
    problems.refuse()
    try:
        made: Any = {} if tree is None else _Plain().value(tree, ())
    except DocumentError as fault:
        problems.add(fault)
        problems.refuse()
    if not isinstance(made, dict) or "scenario" not in made:
        problems.at(
            1, 1, "this is no scenario: it begins with `scenario:` and a name; docs/use/scenarios.md says how one looks"
        )
        problems.refuse()
    return made, problems


class _Plain:
    """Makes plain objects of YAML nodes."""

    def __init__(self) -> None:
        self._values = 0
        self._open: list[YamlNode] = []

    def value(self, given: YamlNode, path: Path) -> object:
        """Return what a node means. Raises DocumentError."""
        node = behind(given)
        self._values += 1
        if self._values > VALUES_MAX:
            raise DocumentError(path, f"there are more than {VALUES_MAX:,} values, aliases written out")
        if any(node is one for one in self._open):
            raise DocumentError(path, "this alias stands for a value that contains it")
        if node.kind == "scalar":
            return _scalar(node, path)
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
                raise DocumentError(path, "a key must be a text")
            if key.text in own:
                raise DocumentError((*path, key.text), "this key is there twice", place=(key.line, key.column))
            own.add(key.text)
        made: dict[str, Any] = {}
        for key, value in _pairs(node):
            if key.text not in made:
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


def convert(made: dict[str, Any], problems: Problems) -> Document:
    """Return the document that plain objects are.

    Raises:
        ScenarioError: they are none; every pool, class and event with a mistake is among the problems.
    """
    for key, kind in (("cluster", Pool), ("arrivals", Arrivals), ("events", Event)):
        given = made.get(key)
        entries = given.items() if isinstance(given, dict) else enumerate(given) if isinstance(given, list) else ()
        for name, value in entries:
            _part(value, kind, (key, name), problems)
    if not problems.found:
        whole = _part(made, Document, (), problems)
        if whole is not None:
            return whole
    problems.refuse()
    raise AssertionError("a fault was noted")


def _part(value: object, kind: type[_T], path: Path, problems: Problems) -> _T | None:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problems.add(_fault(str(error), value, kind, path))
        return None


def _fault(text: str, value: object, kind: type[Any], path: Path) -> DocumentError:
    """Return the fault of a message of msgspec about `value`."""
    _, _, where = text.rpartition(" - at `")
    inner: list[str | int] = []
    if " - at `" in text:
        for name, index in _PARTS.findall(where.removeprefix("$").rstrip("`").removeprefix("key in ")):
            if index == "...":
                key = _culprit(text, value, kind, tuple(inner))
                if key is None:
                    break
                inner.append(key)
            else:
                inner.append(name or int(index))
    message = text.partition(" - at `")[0]
    unknown = _NAMED.search(message)
    if unknown is not None:
        return DocumentError((*path, *inner, unknown[1]), _unknown(unknown[1], _keys(kind, inner)), at_key=True)
    missing = re.search(r"missing required field `([^`]*)`", message)
    if missing is not None:
        return DocumentError((*path, *inner), f"needs the key {missing[1]}")
    complaint = explain(message)[1]
    if complaint.startswith("expected "):
        quotes = complaint.startswith("expected str, got ") and complaint.split()[-1] in ("int", "float", "bool")
        complaint = (
            _WORD.sub(lambda word: _WORDS[word[0]], complaint.replace(" | null", "")) + "; put it in quotes" * quotes
        )
    return DocumentError((*path, *inner), complaint)


def _culprit(text: str, value: object, kind: type[Any], inner: Path) -> str | None:
    """Return the key of a mapping that msgspec complains of only as `[...]`: the one that alone gives the same complaint."""
    holder: Any = value
    for part in inner:
        holder = holder[part]
    if not isinstance(holder, dict):
        return None
    for key in list(holder):
        try:
            msgspec.convert(_with_only(value, inner, key), kind)
        except msgspec.ValidationError as error:
            if str(error) == text:
                return str(key)
    return None


def _with_only(value: object, inner: Path, key: str) -> object:
    """Return a copy in which the mapping at `inner` has only one key."""
    whole: Any = value
    if not inner:
        return {key: whole[key]}
    first, *others = inner
    changed = _with_only(whole[first], tuple(others), key)
    if isinstance(value, dict):
        return {**value, first: changed}
    return [changed if index == first else each for index, each in enumerate(whole)]


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    meant = f", did you mean `{close[0]}`?" if close else ";"
    return f"unknown key{meant} the keys here are {', '.join(known)}"


def _keys(kind: type[Any], inner: list[str | int]) -> list[str]:
    """Return the keys of the class to which a path leads."""
    found = _options(inspect.type_info(kind))
    for part in inner:
        found = [option for one in found for each in _below(one, part) for option in _options(each)]
    return [field.encode_name for one in found if isinstance(one, inspect.StructType) for field in one.fields]


def _options(one: inspect.Type) -> list[inspect.Type]:
    return list(one.types) if isinstance(one, inspect.UnionType) else [one]


def _below(one: inspect.Type, part: str | int) -> list[inspect.Type]:
    """Return the types of what may stand at a key or an index of a value of this type."""
    if isinstance(one, inspect.StructType):
        return [field.type for field in one.fields if field.encode_name == part]
    if isinstance(one, inspect.DictType):
        return [one.value_type]
    return [one.item_type] if isinstance(one, inspect.ListType) else []
