"""Reads nodes into typed records, as strictly as the original's parser (docs/spec/config.md, sections 1, 2, 13).

Each record type has a table of its keys; the key decides how its value is read. The oddities of the original's
decoder (null elements vanish, null values in maps become empty texts, merge keys, aliases are counted) are
reproduced here and nowhere else, so that the checks need not know of them.

The reader goes on after a fault: the faulty value is left out and its key remembered as broken.

Aliases can expand a small text to a huge document, so every value is counted as it is read. There are two bounds: the
original's ratio of values that come from aliases, beyond which it refuses a document, and licorne's `MAX_VALUES`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from licorne.config import scalars
from licorne.config.nodes import MAX_DEPTH, YamlNode, behind
from licorne.config.problems import Notes, Spot
from licorne.config.raw import (
    Item,
    RawConfig,
    RawFilter,
    RawLimit,
    RawNodeSort,
    RawPartition,
    RawPreemption,
    RawQueue,
    RawResolver,
    RawResources,
    RawRule,
    RawTemplate,
    Value,
    join,
)
from licorne.config.scalars import is_merge, is_null, is_text

MAX_VALUES: Final = 1_000_000
SHOWN_KEYS: Final = ("extra", "deadlockdetectionenabled", "deadlocktimeoutseconds")
"""What REST shows beside the configuration; the last two always (docs/spec/rest-api.md, "Config")."""

_ItemT = TypeVar("_ItemT", bound=Item)
_T = TypeVar("_T")
_Decode = Callable[["ConfigReader", YamlNode, str, int], Any]


class LimitError(Exception):
    """The expanded document exceeds a bound on its size or depth, which is noted; nothing more is read."""


def read(root: YamlNode | None, notes: Notes) -> RawConfig | None:
    """Read the whole configuration; faults go to `notes`.

    None if not even its outermost mapping could be read. No document, or an empty one, is an empty configuration.
    """
    try:
        config = None if root is None else ConfigReader(notes).item(root, "", 0, RawConfig)
    except LimitError:
        return None
    if config is None and notes.fault_count == 0:
        return RawConfig(path="", node=root or YamlNode("mapping", "", "", False, 1, 1))
    return config


class ConfigReader:
    """Reads one document. The methods return None for null, and for a fault, which is noted."""

    def __init__(self, notes: Notes, values_max: float = MAX_VALUES) -> None:
        self.notes = notes
        self._values_max = values_max
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
            self._end("yaml-depth", node.spot(path), f"nested deeper than {MAX_DEPTH} levels")
        if self._values > self._values_max:
            self._end("yaml-size", node.spot(path), f"more than {self._values_max} values, aliases written out")
        if self._alias_values > 100 and self._values > 1000:
            # 99 % of the values may come from aliases in a document of up to 400,000 values, 10 % at 4 million.
            allowed = 0.99 - 0.89 * min(1.0, max(0.0, (self._values - 400_000) / 3_600_000))
            if self._alias_values / self._values > allowed:
                self._end("yaml-aliases", node.spot(path), "the document consists of aliases almost wholly")

    def _end(self, rule: str, spot: Spot, message: str) -> NoReturn:
        self.notes.fault(rule, spot, message)
        raise LimitError

    def _through(self, node: YamlNode, path: str, depth: int, decode: Callable[[YamlNode], _T]) -> _T | None:
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
                self._wrong_type(node, path, expected)
                return None
            try:
                tag, value = scalars.resolve(node)
            except scalars.ScalarError as error:
                self.notes.fault("yaml-type", node.spot(path), str(error))
                return None
            return None if tag == "!!null" else (tag, value)

        return self._through(node, path, depth, decode)

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
            self._wrong_type(behind(node), path, expected)
        return value

    def _wrong_type(self, node: YamlNode, path: str, expected: str) -> None:
        """Note that a value does not have the type that its key requires."""
        if node.kind == "mapping":
            self._first_keys(node, path)  # notes duplicate keys, which come before the wrong type
        found = {"mapping": "a mapping", "sequence": "a list"}.get(node.kind) or f"'{node.spot(path).text[:40]}'"
        is_path = not path and node.kind == "scalar" and node.spot(path).text.endswith((".yaml", ".yml"))
        advice = "; give the text of the configuration, not the path of its file" if is_path else ""
        self.notes.fault("yaml-type", node.spot(path), f"{expected} is expected here, not {found}{advice}")

    # -- keys -------------------------------------------------------------------------------------------

    def _first_keys(self, node: YamlNode, path: str) -> dict[tuple[str, str], YamlNode]:
        """Return the first key of each spelling in a mapping; further ones are faults."""
        first: dict[tuple[str, str], YamlNode] = {}
        for key in node.items[::2]:
            earlier = first.setdefault((key.kind, key.text), key)
            if earlier is not key:
                self._duplicate_key(key, path, earlier.line)
        return first

    def _duplicate_key(self, node: YamlNode, path: str, line: int) -> None:
        """Note that a mapping has a key already."""
        message = f"the key '{node.text[:80]}' is there already, see line {line}"
        self.notes.fault("yaml-key-duplicate", node.spot(path), message)

    # -- lists and maps ---------------------------------------------------------------------------------

    def _list(
        self, node: YamlNode, path: str, depth: int, element: Callable[[YamlNode, str], _T | None]
    ) -> list[_T] | None:
        """Read a list, without its null and faulty elements. Paths count the elements as they are written."""

        def decode(node: YamlNode) -> list[_T] | None:
            if is_null(node):
                return None
            if node.kind != "sequence":
                self._wrong_type(node, path, "a list")
                return None
            elements = []
            for index, item in enumerate(node.items):
                place = f"{path}[{index}]"
                value = element(item, place)
                if value is not None:
                    elements.append(value)
                elif is_null(behind(item)):
                    self.notes.warn("null-dropped", item.spot(place), "an empty element of a list is left out")
            return elements

        return self._through(node, path, depth, decode)

    def texts(self, node: YamlNode, path: str, depth: int) -> list[Value] | None:
        """Read a list of texts."""

        def element(item: YamlNode, place: str) -> Value | None:
            text = self.text(item, place, depth + 1)
            return None if text is None else Value(text, behind(item).spot(place))

        return self._list(node, path, depth, element)

    def items(self, node: YamlNode, path: str, depth: int, kind: type[_ItemT]) -> list[_ItemT] | None:
        """Read a list of records."""
        return self._list(node, path, depth, lambda item, place: self.item(item, place, depth + 1, kind))

    def text_map(self, node: YamlNode, path: str, depth: int) -> dict[str, Value] | None:
        """Read a map of texts; a null value is an empty text, a null key vanishes with its value."""

        def value(item: YamlNode, place: str) -> Value | None:
            text = self.text(item, place, depth + 1)
            if text is None and not is_null(behind(item)):
                return None
            return Value(text or "", item.spot(place))

        return self._map(node, path, depth, value)

    def weights(self, node: YamlNode, path: str, depth: int) -> dict[str, tuple[float, Spot]] | None:
        """Read a map of numbers; a null is 0."""

        def value(item: YamlNode, place: str) -> tuple[float, Spot] | None:
            if is_null(behind(item)):
                return 0.0, item.spot(place)
            number = self.number(item, place, depth + 1)
            return None if number is None else (number, item.spot(place))

        return self._map(node, path, depth, value)

    def _map(
        self, node: YamlNode, path: str, depth: int, value: Callable[[YamlNode, str], _T | None]
    ) -> dict[str, _T] | None:
        def decode(node: YamlNode) -> dict[str, _T] | None:
            if is_null(node):
                return None
            if node.kind != "mapping":
                self._wrong_type(node, path, "a mapping")
                return None
            found: dict[str, _T] = {}
            for key, _, item in self._pairs(node, path, depth, is_record=False):
                if key in found and is_null(behind(item)):
                    continue  # a null from a merged mapping does not replace the value of the mapping itself
                content = value(item, join(path, key))
                if content is not None:
                    found[key] = content
            return found

        return self._through(node, path, depth, decode)

    # -- data without a table ---------------------------------------------------------------------------

    def data(self, node: YamlNode, path: str, depth: int) -> Any:  # noqa: ANN401  any YAML
        """Read a value of any type. Keys are texts."""
        if behind(node).kind == "scalar":
            found = self._scalar(node, path, depth, "a scalar")
            return None if found is None else found[1]

        def decode(node: YamlNode) -> Any:  # noqa: ANN401
            if node.kind == "sequence":
                return [self.data(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.items)]
            pairs = self._pairs(node, path, depth, is_record=False)
            return {key: self.data(item, join(path, key), depth + 1) for key, _, item in pairs}

        return self._through(node, path, depth, decode)

    # -- records ----------------------------------------------------------------------------------------

    def item(self, node: YamlNode, path: str, depth: int, kind: type[_ItemT]) -> _ItemT | None:
        """Read a record: a mapping that may have the keys of its table and no others."""
        fields = _FIELDS[kind]

        def decode(node: YamlNode) -> _ItemT | None:
            if is_null(node):
                return None
            if node.kind != "mapping":
                self._wrong_type(node, path, "a mapping with the keys " + ", ".join(fields))
                return None
            record = kind(path=path, node=node)

            for key, key_node, value in self._pairs(node, path, depth, is_record=True):
                if key not in fields:
                    if not (kind is RawConfig and self._is_shown(key, node, key_node)):
                        self._unknown_key(key, key_node, path, fields)
                    continue
                record.nodes[key] = value
                faults = self.notes.fault_count
                content = fields[key](self, value, join(path, key), depth + 1)
                if content is not None:
                    setattr(record, key, content)
                if self.notes.fault_count > faults:
                    record.broken.add(key)
            return record

        return self._through(node, path, depth, decode)

    def _is_shown(self, key: str, node: YamlNode, key_node: YamlNode) -> bool:
        """Return whether REST adds the key to the configuration that it shows, as this text seems to be one.

        What `GET /ws/v1/config` answers can then be edited and put back. A key that stands alone is unknown.
        """
        if key not in SHOWN_KEYS or not {item.text for item in node.items[::2]}.issuperset(SHOWN_KEYS[1:]):
            return False
        self.notes.warn("key-shown", key_node.spot(key), f"'{key}' is no part of a configuration, and is passed over")
        return True

    def _unknown_key(self, key: str, node: YamlNode, path: str, fields: dict[str, _Decode]) -> None:
        close = difflib.get_close_matches(key.lower()[:80], fields, n=1, cutoff=0.75)
        meant = f", did you mean '{close[0]}'" if close else ""
        message = f"unknown key '{key[:80]}'{meant}; the keys here are {', '.join(fields)}"
        self.notes.fault("yaml-key-unknown", node.spot(path), message)

    def _pairs(
        self, node: YamlNode, path: str, depth: int, *, is_record: bool, merged: set[str] | None = None
    ) -> list[tuple[str, YamlNode, YamlNode]]:
        """Return the keys of a mapping with their nodes and values, in order; then those that `<<` merges in.

        `merged` names the keys that a merged mapping may no longer set: those of the mapping itself win, and of
        several merged mappings the first.
        """
        found: list[tuple[str, YamlNode, YamlNode]] = []
        first = self._first_keys(node, path)
        names: set[str] = set()
        merge: YamlNode | None = None
        for key_node, value in zip(node.items[::2], node.items[1::2], strict=True):
            if first[key_node.kind, key_node.text] is not key_node:
                continue
            if is_merge(key_node):
                merge = value
                continue
            key = self.text(key_node, path, depth + 1)
            if key is None or (merged is not None and key in merged):
                continue
            if is_record and key in names:  # a key that is an alias, of text that is a key already
                self._duplicate_key(key_node, path, node.line)
                continue
            names.add(key)
            found.append((key, key_node, value))
        if merge is not None:
            if merged is None:
                # Like the original, protect only keys that are texts by their spelling from being merged in again.
                merged = {item.text for item in map(behind, node.items[::2]) if is_text(item)}
            else:
                merged |= names
            found += self._merged(merge, path, depth, is_record, merged)
        return found

    def _merged(
        self, merge: YamlNode, path: str, depth: int, is_record: bool, merged: set[str]
    ) -> list[tuple[str, YamlNode, YamlNode]]:
        found: list[tuple[str, YamlNode, YamlNode]] = []
        for source in merge.items if merge.kind == "sequence" else [merge]:
            if behind(source).kind != "mapping":
                self.notes.fault("yaml-merge", source.spot(path), "a merge key takes a mapping or a list of mappings")
                continue

            def pairs(mapping: YamlNode) -> list[tuple[str, YamlNode, YamlNode]]:
                return self._pairs(mapping, path, depth + 1, is_record=is_record, merged=merged)

            brought = self._through(source, path, depth + 1, pairs) or []
            merged.update(key for key, _, _ in brought)
            found += brought
        return found


def _items(kind: type[Item]) -> _Decode:
    return lambda reader, node, path, depth: reader.items(node, path, depth, kind)


def _item(kind: type[Item]) -> _Decode:
    return lambda reader, node, path, depth: reader.item(node, path, depth, kind)


_FIELDS: Final[dict[type[Item], dict[str, _Decode]]] = {
    RawConfig: {"partitions": _items(RawPartition), "checksum": ConfigReader.text},
    RawPartition: {
        "name": ConfigReader.text,
        "queues": _items(RawQueue),
        "placementrules": _items(RawRule),
        "limits": _items(RawLimit),
        "preemption": _item(RawPreemption),
        "nodesortpolicy": _item(RawNodeSort),
        "usergroupresolver": _item(RawResolver),
    },
    RawQueue: {
        "name": ConfigReader.text,
        "parent": ConfigReader.flag,
        "queues": _items(RawQueue),
        "resources": _item(RawResources),
        "maxapplications": ConfigReader.unsigned,
        "properties": ConfigReader.text_map,
        "adminacl": ConfigReader.text,
        "submitacl": ConfigReader.text,
        "childtemplate": _item(RawTemplate),
        "limits": _items(RawLimit),
    },
    RawResources: {"guaranteed": ConfigReader.text_map, "max": ConfigReader.text_map},
    RawTemplate: {
        "maxapplications": ConfigReader.unsigned,
        "properties": ConfigReader.text_map,
        "resources": _item(RawResources),
    },
    RawLimit: {
        "limit": ConfigReader.text,
        "users": ConfigReader.texts,
        "groups": ConfigReader.texts,
        "maxresources": ConfigReader.text_map,
        "maxapplications": ConfigReader.unsigned,
    },
    RawRule: {
        "name": ConfigReader.text,
        "create": ConfigReader.flag,
        "filter": _item(RawFilter),
        "parent": _item(RawRule),
        "value": ConfigReader.text,
    },
    RawFilter: {"type": ConfigReader.text, "users": ConfigReader.texts, "groups": ConfigReader.texts},
    RawPreemption: {"enabled": ConfigReader.flag, "quotapreemptionenabled": ConfigReader.flag},
    RawNodeSort: {"type": ConfigReader.text, "resourceweights": ConfigReader.weights},
    RawResolver: {"type": ConfigReader.text},
}
