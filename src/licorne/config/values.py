"""Reads single values: resolves aliases, and converts scalars to the type that a key requires.

Aliases can expand a small text to a huge document, so every value is counted as it is read. There are two bounds: the
original's ratio of values that come from aliases, beyond which it refuses a document, and licorne's `MAX_VALUES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from licorne.config import scalars
from licorne.config.nodes import MAX_DEPTH, YamlNode
from licorne.config.problems import Notes, Spot

MAX_VALUES: Final = 1_000_000

_T = TypeVar("_T")


class LimitError(Exception):
    """The expanded document exceeds a bound on its size or depth; nothing more is read."""

    def __init__(self, rule: str, spot: Spot, message: str) -> None:
        super().__init__(message)
        self.rule, self.spot, self.message = rule, spot, message


class ValueReader:
    """Reads scalars and resolves aliases. The methods return None for null, and for a fault, which is noted."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._values = 0
        self._alias_values = 0
        self._alias_depth = 0
        self._open_aliases: set[YamlNode] = set()

    # -- bounds ---------------------------------------------------------------------------------------

    def _count(self, node: YamlNode, path: str, depth: int) -> None:
        """Count a value; raise LimitError if the document, with its aliases expanded, has become too deep or large."""
        self._values += 1
        self._alias_values += self._alias_depth > 0
        if depth > MAX_DEPTH:
            raise LimitError("yaml-depth", node.spot(path), f"nested deeper than {MAX_DEPTH} levels")
        if self._values > MAX_VALUES:
            message = f"more than {MAX_VALUES} values, aliases written out"
            raise LimitError("yaml-size", node.spot(path), message)
        if self._alias_values > 100 and self._values > 1000:
            # 99 % of the values may come from aliases in a document of up to 400,000 values, 10 % at 4 million.
            allowed = 0.99 - 0.89 * min(1.0, max(0.0, (self._values - 400_000) / 3_600_000))
            if self._alias_values / self._values > allowed:
                raise LimitError("yaml-aliases", node.spot(path), "the document consists of aliases almost wholly")

    def through(self, node: YamlNode, path: str, depth: int, decode: Callable[[YamlNode], _T]) -> _T | None:
        """Call `decode` on the node, or on the node that it is an alias of.

        An alias within the value of its own anchor is a fault.
        """
        self._count(node, path, depth)
        if node.kind != "alias":
            return decode(node)
        if node in self._open_aliases:
            self.notes.fault("yaml-anchor", node.spot(path), f"the value of the anchor '{node.text}' contains itself")
            return None
        assert node.target is not None
        self._open_aliases.add(node)
        self._alias_depth += 1
        try:
            self._count(node.target, path, depth)
            return decode(node.target)
        finally:
            self._alias_depth -= 1
            self._open_aliases.discard(node)

    # -- scalars ----------------------------------------------------------------------------------------

    def _scalar(self, node: YamlNode, path: str, depth: int, expected: str) -> scalars.Resolved | None:
        """Return the tag and value of a scalar; None for null, and for a fault, which is noted."""

        def decode(node: YamlNode) -> scalars.Resolved | None:
            if node.kind != "scalar":
                self.wrong_type(node, path, expected)
                return None
            try:
                tag, value = scalars.resolve(node)
            except scalars.ScalarError as error:
                self.notes.fault("yaml-type", node.spot(path), str(error))
                return None
            return None if tag == "!!null" else (tag, value)

        return self.through(node, path, depth, decode)

    def text(self, node: YamlNode, path: str, depth: int) -> str | None:
        """Read a text: any scalar as it is spelled."""
        found = self._scalar(node, path, depth, "a text")
        if found is None:
            return None
        scalar = behind(node)
        return str(found[1]) if scalar.tag == "!!binary" else scalar.text

    def flag(self, node: YamlNode, path: str, depth: int) -> bool | None:
        """Read a truth value."""
        found = self._scalar(node, path, depth, "true or false")
        return None if found is None else self._converted(scalars.as_bool(found[1]), node, path, "true or false")

    def unsigned(self, node: YamlNode, path: str, depth: int) -> int | None:
        """Read an unsigned integer of 64 bits."""
        expected = "a whole number, not negative"
        found = self._scalar(node, path, depth, expected)
        if found is None:
            return None
        number = scalars.as_unsigned(found[1])
        if number is not None and str(number) != behind(node).text:
            self.notes.warn("number-spelling", node.spot(path), f"this spelling means {number}")
        return self._converted(number, node, path, expected)

    def number(self, node: YamlNode, path: str, depth: int) -> float | None:
        """Read a number, whole or not."""
        found = self._scalar(node, path, depth, "a number")
        return None if found is None else self._converted(scalars.as_float(found[1]), node, path, "a number")

    def _converted(self, value: _T | None, node: YamlNode, path: str, expected: str) -> _T | None:
        if value is None:
            self.wrong_type(behind(node), path, expected)
        return value

    def wrong_type(self, node: YamlNode, path: str, expected: str) -> None:
        """Note that a value does not have the type that its key requires."""
        if node.kind == "mapping":
            self.first_keys(node, path)  # notes duplicate keys, which come before the wrong type
        found = {"mapping": "a mapping", "sequence": "a list"}.get(node.kind) or f"'{node.spot(path).text[:40]}'"
        self.notes.fault("yaml-type", node.spot(path), f"{expected} is expected here, not {found}")

    # -- keys -------------------------------------------------------------------------------------------

    def first_keys(self, node: YamlNode, path: str) -> dict[tuple[str, str], YamlNode]:
        """Return the first key of each spelling in a mapping; further ones are faults."""
        first: dict[tuple[str, str], YamlNode] = {}
        for key in node.items[::2]:
            earlier = first.setdefault((key.kind, key.text), key)
            if earlier is not key:
                self.duplicate_key(key, path, earlier.line)
        return first

    def duplicate_key(self, node: YamlNode, path: str, line: int) -> None:
        """Note that a mapping has a key already."""
        message = f"the key '{node.text[:80]}' is there already, see line {line}"
        self.notes.fault("yaml-key-duplicate", node.spot(path), message)


def behind(node: YamlNode) -> YamlNode:
    """Return the node itself, or the node that it is an alias of."""
    return node if node.target is None else node.target


def is_null(node: YamlNode) -> bool:
    """Return whether a node is a null, written or left out."""
    if node.kind != "scalar" or len(node.text) > 4:
        return False
    try:
        return scalars.resolve(node)[0] == "!!null"
    except scalars.ScalarError:
        return False


def is_text(node: YamlNode) -> bool:
    """Return whether a node is a text by its spelling."""
    try:
        return node.kind == "scalar" and scalars.resolve(node)[0] == "!!str"
    except scalars.ScalarError:
        return False


def is_merge(node: YamlNode) -> bool:
    """Return whether a key is the merge key `<<`."""
    return node.kind == "scalar" and node.text == "<<" and (node.tag == "!!merge" or (node.plain and not node.tag))
