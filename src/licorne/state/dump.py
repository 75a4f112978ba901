"""Reads a state dump: the JSON of `/debug/fullstatedump`, as YuniKorn 1.9 and licorne write it.

Source: docs/spec/rest-api.md, section 3, "FullState".

A dump is data from elsewhere. It is checked whole before anything is made of it; members that the specification does
not have are passed over, and named, because they may hold something that the answer depends on. Members that are missing are
named too; where nothing can be made of a dump without one, it is refused.
"""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from licorne._bounded import CONTAINERS_MAX, DUMP_BYTES, TooLargeError, json_value, unpacked
from licorne.si import rest_objects as objects
from licorne.si.rest_objects import FullState

GZIP: Final = b"\x1f\x8b"
_NAMED_MAX: Final = 50
FETCH_AGAIN: Final = "fetch it again: curl http://HOST:PORT/debug/fullstatedump"
REMEDY: Final = f"is it of another version, or shortened? {FETCH_AGAIN}"
"""The end of an error about a dump that is malformed or incomplete."""
ALWAYS_THERE: Final = ("nodes", "clusterInfo", "queues", "rmDiagnostics", "logLevel", "config", "placementRules")
"""Members of a dump that are there even where nothing runs; lists without entries are left out."""
_NEEDED: Final[Mapping[type[msgspec.Struct], frozenset[str]]] = {
    objects.FullState: frozenset({"timestamp"}),
    objects.Partition: frozenset({"clusterId", "name"}),
    objects.Application: frozenset({"applicationID", "partition", "queueName"}),
    objects.Ask: frozenset({"allocationKey"}),
    objects.Allocation: frozenset({"allocationKey"}),
    objects.ForeignAllocation: frozenset({"allocationKey"}),
    objects.PartitionNodes: frozenset({"partitionName"}),
    objects.Node: frozenset({"nodeID", "schedulable"}),
    objects.Queue: frozenset({"queuename", "isLeaf", "isManaged"}),
    objects.ExactState: frozenset({"version", "licorne", "checkpoint"}),
}
"""Members without which nothing can be made of an object. All others that are always there only describe."""


class DumpError(ValueError):
    """The data is no state dump that can be read; the text says where and what to do."""


class Dump(msgspec.Struct, frozen=True):
    """A state dump.

    `unknown`: the paths of members that the specification does not have, without indices. `missing`: of those that it always
    has.
    """

    state: FullState
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def read_dump(data: bytes) -> Dump:
    """Read a dump, which may be compressed with gzip.

    Raises:
        DumpError: the data is no JSON, is cut off, or has not the form of a dump.
    """
    raw = _decoded(without_gzip(data))
    if not isinstance(raw, dict):
        raise DumpError("this is no state dump: a JSON object is expected, such as GET /debug/fullstatedump answers")
    if "partitions" not in raw and "applications" not in raw:
        if "rmDiagnostics" in raw:
            raise DumpError(
                "no resource manager is registered with the scheduler, so there is nothing to ask about yet"
            )
        hint = " It is an error of the server." if "status_code" in raw else ""
        raise DumpError(
            f"this is no state dump: it has neither partitions nor applications.{hint} "
            "GET /debug/fullstatedump of the scheduler gives one"
        )
    cleaning = _Cleaning()
    cleaning.clean(raw, FullState, "")
    missing = {name: None for name in ALWAYS_THERE if name not in raw} | cleaning.missing
    try:
        state = msgspec.convert(raw, FullState)
    except msgspec.ValidationError as error:
        raise DumpError(f"the dump has not the form that YuniKorn 1.9 and licorne write: {error}; {REMEDY}") from None
    return Dump(state, tuple(cleaning.unknown), tuple(missing))


def without_gzip(data: bytes, bytes_max: int = DUMP_BYTES) -> bytes:
    """Return an answer of a scheduler without gzip, if it is compressed so.

    Raises:
        DumpError: it cannot be unpacked, or is larger than `bytes_max`.
    """
    if not data.startswith(GZIP):
        return data
    try:
        return unpacked(data, bytes_max, gzip=True)
    except ValueError as error:
        raise DumpError(f"the dump {error}; fetch it again") from None


def _decoded(data: bytes) -> object:
    if not data.strip():
        raise DumpError("the dump is empty")
    try:
        return json_value(data)
    except msgspec.DecodeError as error:
        cut = " It is cut off; fetch it again." if "truncated" in str(error) else ""
        raise DumpError(f"the dump is no JSON: {error}.{cut}") from None
    except TooLargeError as error:
        raise DumpError(f"this is no state dump: it {error}") from None
    except RecursionError:
        raise DumpError("the dump is no state dump: it is nested too deep") from None


# -- what the specification does not have, and what the dump does not ---------------------------------------


class _Cleaning:
    """Makes the objects of a dump into what the specification has, and notes what is unknown and what is missing."""

    def __init__(self) -> None:
        self.unknown: dict[str, None] = {}
        self.missing: dict[str, None] = {}
        self._added = 0

    def clean(self, value: dict[str, Any], kind: type[msgspec.Struct], path: str) -> None:
        """Remove members that are null or unknown from an object of `kind`, and add those that are missing and only describe."""
        known = _members(kind)
        for name in [name for name, item in value.items() if item is None or name not in known]:
            if name not in known and len(self.unknown) < _NAMED_MAX:
                self.unknown[_below(path, name)] = None
            del value[name]
        for name, neutral in _described(kind).items():
            if name not in value:
                self._added += 1
                if self._added > CONTAINERS_MAX:  # they take memory that the dump does not have
                    raise DumpError(
                        f"this is no state dump: too many of its objects lack {_below(path, name)}; {REMEDY}"
                    )
                value[name] = copy.copy(neutral)
                if len(self.missing) < _NAMED_MAX:
                    self.missing[_below(path, name)] = None
        for name, item in value.items():
            inner = known[name]
            if inner is not None:
                below = _below(path, name)
                for each in item if isinstance(item, list) else (item,):
                    if isinstance(each, dict):
                        self.clean(each, inner, below)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _described(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the members that an object always has and that only describe, each with a value that says nothing."""
    hints, needed = typing.get_type_hints(kind), _NEEDED.get(kind, frozenset())
    return {
        each.encode_name: _neutral(hints[each.name])
        for each in fields(kind)
        if each.required and each.encode_name not in needed
    }


def _neutral(annotation: Any) -> Any:  # noqa: ANN401  any value of JSON
    kind = typing.get_origin(annotation) or annotation
    if kind in (types.UnionType, typing.Union):
        return _neutral(typing.get_args(annotation)[0])
    return kind() if kind in (str, int, float, bool, list) else {}


@cache
def _members(kind: type[msgspec.Struct]) -> Mapping[str, type[msgspec.Struct] | None]:
    """Return the members of an object by name, each with the kind of the objects in it, if there are any."""
    hints = typing.get_type_hints(kind)
    return {each.encode_name: _object_in(hints[each.name]) for each in fields(kind)}


def _object_in(annotation: object) -> type[msgspec.Struct] | None:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    if typing.get_origin(annotation) in (list, types.UnionType, typing.Union):
        return next((kind for each in typing.get_args(annotation) if (kind := _object_in(each))), None)
    return None
