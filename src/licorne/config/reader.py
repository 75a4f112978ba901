"""Reads nodes into typed records, as strictly as the original's parser (docs/spec/config.md, sections 1, 2, 13).

Each record type has a table of its keys; the key decides how its value is read. The oddities of the original's
decoder (null elements vanish, null values in maps become empty texts, merge keys, aliases are counted) are
reproduced here and nowhere else, so that the checks need not know of them.

The reader goes on after a fault: the faulty value is left out and its key remembered as broken.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final, TypeVar

from licorne.config.nodes import YamlNode
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
from licorne.config.values import LimitError, ValueReader, behind, is_merge, is_null, is_text

_ItemT = TypeVar("_ItemT", bound=Item)
_T = TypeVar("_T")
_Decode = Callable[["ConfigReader", YamlNode, str, int], Any]


def read(root: YamlNode | None, notes: Notes) -> RawConfig | None:
    """Read the whole configuration; faults go to `notes`.

    None if there is no document, or if not even its outermost mapping could be read. An empty document is an empty
    configuration.
    """
    if root is None:
        return None
    reader = ConfigReader(notes)
    try:
        config = reader.item(root, "", 0, RawConfig)
    except LimitError as limit:
        notes.fault(limit.rule, limit.spot, limit.message)
        return None
    if config is None and notes.fault_count == 0:
        return RawConfig(path="", node=root)
    return config


class ConfigReader(ValueReader):
    """Reads one document. The methods return None both for null and for faulty values."""

    # -- lists and maps ---------------------------------------------------------------------------------

    def _list(
        self, node: YamlNode, path: str, depth: int, element: Callable[[YamlNode, str], _T | None]
    ) -> list[_T] | None:
        """Read a list, without its null and faulty elements. Paths count the elements as they are written."""

        def decode(node: YamlNode) -> list[_T] | None:
            if is_null(node):
                return None
            if node.kind != "sequence":
                self.wrong_type(node, path, "a list")
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

        return self.through(node, path, depth, decode)

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
                self.wrong_type(node, path, "a mapping")
                return None
            found: dict[str, _T] = {}
            for key, _, item in self._pairs(node, path, depth, is_record=False):
                if key in found and is_null(behind(item)):
                    continue  # a null from a merged mapping does not replace the value of the mapping itself
                content = value(item, join(path, key))
                if content is not None:
                    found[key] = content
            return found

        return self.through(node, path, depth, decode)

    # -- records ----------------------------------------------------------------------------------------

    def item(self, node: YamlNode, path: str, depth: int, kind: type[_ItemT]) -> _ItemT | None:
        """Read a record: a mapping that may have the keys of its table and no others."""
        fields = _FIELDS[kind]

        def decode(node: YamlNode) -> _ItemT | None:
            if is_null(node):
                return None
            if node.kind != "mapping":
                self.wrong_type(node, path, "a mapping with the keys " + ", ".join(fields))
                return None
            record = kind(path=path, node=node)

            for key, key_node, value in self._pairs(node, path, depth, is_record=True):
                if key not in fields:
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

        return self.through(node, path, depth, decode)

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
        first = self.first_keys(node, path)
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
                self.duplicate_key(key_node, path, node.line)
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

            brought = self.through(source, path, depth + 1, pairs) or []
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
