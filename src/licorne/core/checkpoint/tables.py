"""Tables: all objects of one class, or all collections of one kind, in a checkpoint.

A table is read in two steps. First its members are made, empty, so that there is something to refer to; then they are
filled. Only what refers to no object is complete from the start, since dicts are keyed by it: values, vectors, needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec

from licorne.core.amounts.minima import Minima
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, vec_of
from licorne.core.base.timers import Timer
from licorne.core.nodes.foreign import Foreign
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import SHARED, Need, ScorePolicy
from licorne.core.nodes.reading import TextCache

from .columns import CheckpointError, listed, pack_flags, pack_integers, slices, unpack_flags, unpack_integers
from .contract import OBJECTS, VALUES, fields_of, transient_of
from .kinds import INTEGERS, NONE, SUBJECT, TEXTS, Found, Kind, Source, kind_of, parts_of, read_lengths

_BOOL: Final = frozenset({bool})
_INITIAL: Final[dict[str, type]] = {one.__name__: one for one in (TextCache, Vec, bool, dict, int, list, tuple)}
COUNT: Final = "count"


class Table:
    """How the members of a table are written and read."""

    early = False
    """The members are complete when they are made."""

    def key(self, member: object) -> object:
        """Return by what a member is known: its identity, or its value where equal members are one."""
        return id(member)

    def visit(self, members: Sequence[Any], found: Found) -> None:
        """Find what the members refer to."""

    def write(self, members: Sequence[Any], found: Found) -> dict[str, Any]:
        """Return what the members have, as one column for each of their fields: a packed value by the name of the column."""
        raise NotImplementedError

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        """Return the members, which `fill` completes."""
        raise NotImplementedError

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        """Complete the members."""


class _Objects(Table):
    """Objects of a class of the contract."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.fields: dict[str, Kind] = {name: kind_of(kind) for name, kind in fields_of(cls).items()}
        initial = {name: _initial(kind) for name, kind in transient_of(cls).items()}
        self.transient = {name: make for name, make in initial.items() if make is not None}

    def visit(self, members: Sequence[Any], found: Found) -> None:
        for name, kind in self.fields.items():
            if type(kind).visit is not Kind.visit:
                kind.visit([*map(attrgetter(name), members)], found)

    def write(self, members: Sequence[Any], found: Found) -> dict[str, Any]:
        return {name: kind.write([*map(attrgetter(name), members)], found) for name, kind in self.fields.items()}

    def check_names(self, columns: dict[str, Any]) -> None:
        """Raise CheckpointError if the attributes are not those of this licorne."""
        if columns.keys() != self.fields.keys():
            names = ", ".join(sorted(columns.keys() ^ self.fields.keys()))
            raise CheckpointError(
                f"{self.cls.__name__} has other attributes in this licorne ({names}): use the one that wrote it"
            )

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        self.check_names(columns)
        cls: Any = self.cls
        made = [*map(cls.__new__, repeat(cls, count))]
        for name, make in self.transient.items():
            self.set(made, name, [make() for _ in range(count)])
        return made

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        for name, kind in self.fields.items():
            self.set(members, name, kind.read(columns[name], len(members), source))

    def set(self, members: list[Any], name: str, values: list[Any]) -> None:
        """Set an attribute of all members."""
        deque(map(setattr, members, repeat(name), values), maxlen=0)


def _initial(kind: str) -> Callable[[], object] | None:
    """Return a function that makes the first value of a transient attribute of this kind; None: another step of restoring sets it."""
    return NONE if kind.endswith("| None") else _INITIAL.get(kind.partition("[")[0])


class _Needs(_Objects):
    early = True

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        self.check_names(columns)
        numbers = INTEGERS.read(columns["number"], count, source)
        if numbers and not 0 <= min(numbers) <= max(numbers) <= SHARED:
            raise CheckpointError("damaged: the number of a need is out of range")
        constraints = self.fields["constraints"].read(columns["constraints"], count, source)
        return [Need(*each) for each in zip(constraints, numbers, strict=True)]


class _Constructed(_Objects):
    """Objects that have C arrays, or refuse changes: their constructors make them."""

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        self.check_names(columns)
        return [_CONSTRUCTORS[self.cls]() for _ in range(count)]


class _Foreign(_Constructed):
    def set(self, members: list[Any], name: str, values: list[Any]) -> None:
        deque(map(msgspec.structs.force_setattr, members, repeat(name), values), maxlen=0)


class _Vectors(Table):
    early = True

    def write(self, members: Sequence[Vec], found: Found) -> dict[str, Any]:
        rows = [vec.values() for vec in members]
        beyond = [(at, *item) for at, vec in enumerate(members) if vec.beyond for item in vec.beyond.items()]
        return {
            "fill": pack_integers([vec.fill for vec in members]),
            "is_sum": pack_flags([vec.is_sum for vec in members]),
            "length": pack_integers([*map(len, rows)]),
            "amount": pack_integers([*chain.from_iterable(rows)]),
            "beyond": [pack_integers([*map(itemgetter(i), beyond)]) for i in range(3)],
            "beyonds": len(beyond),
        }

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        fills = unpack_integers(columns["fill"], count)
        sums = unpack_flags(columns["is_sum"], count, _BOOL)
        lengths, amounts = read_lengths([columns["length"], columns["amount"]], count)
        flat = unpack_integers(amounts, sum(lengths))
        vecs = [
            vec_of(flat[start:end], fill, is_sum)
            for (start, end), fill, is_sum in zip(slices(lengths), fills, sums, strict=True)
        ]
        beyond = [unpack_integers(part, columns["beyonds"]) for part in listed(columns["beyond"], 3)]
        for at, d, amount in zip(*beyond, strict=True):
            vec = vecs[at]
            vec.beyond = vec.beyond or {}
            vec.beyond[d] = amount
        return vecs


class _Minima(Table):
    early = True

    def write(self, members: Sequence[Minima], found: Found) -> dict[str, Any]:
        rows = [[amount for row in minima.rows() for amount in row] for minima in members]
        return {
            "discards_excess": pack_flags([minima.discards_excess for minima in members]),
            "width": pack_integers([minima.width for minima in members]),
            "length": pack_integers([*map(len, rows)]),
            "amount": pack_integers([*chain.from_iterable(rows)]),
        }

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        discards = unpack_flags(columns["discards_excess"], count, _BOOL)
        widths = unpack_integers(columns["width"], count)
        lengths, amounts = read_lengths([columns["length"], columns["amount"]], count)
        flat = unpack_integers(amounts, sum(lengths))
        made = [Minima(one) for one in discards]
        for minima, width, (start, end) in zip(made, widths, slices(lengths), strict=True):
            minima.set_rows(flat[start:end], width)
        return made


class _Timers(Table):
    """Deadlines, which are lists (`licorne.core.base.timers`)."""

    fields: Final = {"due_ns": INTEGERS, "number": INTEGERS, "kind": TEXTS, "subject": kind_of(SUBJECT)}

    def visit(self, members: Sequence[Timer], found: Found) -> None:
        self.fields["subject"].visit([timer[3] for timer in members], found)

    def write(self, members: Sequence[Timer], found: Found) -> dict[str, Any]:
        return {
            name: kind.write([timer[at] for timer in members], found)
            for at, (name, kind) in enumerate(self.fields.items())
        }

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        return [[] for _ in range(count)]

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        parts = [kind.read(columns[name], len(members), source) for name, kind in self.fields.items()]
        for timer, items in zip(members, zip(*parts, strict=True), strict=True):
            timer += items


class _Dicts(Table):
    def __init__(self, name: str) -> None:
        self.key_kind, self.value_kind = map(kind_of, parts_of(name))

    def visit(self, members: Sequence[dict[Any, Any]], found: Found) -> None:
        self.key_kind.visit([*chain.from_iterable(members)], found)
        self.value_kind.visit([*chain.from_iterable(one.values() for one in members)], found)

    def write(self, members: Sequence[dict[Any, Any]], found: Found) -> dict[str, Any]:
        return {
            "length": pack_integers([*map(len, members)]),
            "key": self.key_kind.write([*chain.from_iterable(members)], found),
            "value": self.value_kind.write([*chain.from_iterable(one.values() for one in members)], found),
        }

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        return [{} for _ in range(count)]

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        lengths, keys = read_lengths([columns["length"], columns["key"]], len(members))
        items = [
            *zip(
                self.key_kind.read(keys, sum(lengths), source),
                self.value_kind.read(columns["value"], sum(lengths), source),
                strict=True,
            )
        ]
        for one, (start, end) in zip(members, slices(lengths), strict=True):
            if start != end:  # most are empty
                one.update(items[start:end])
                if len(one) != end - start:
                    raise CheckpointError("damaged: two equal keys")


class _Maps(_Dicts):
    """Dicts from texts that nobody changes; equal ones are one."""

    early = True

    def __init__(self, name: str) -> None:
        self.key_kind, self.value_kind = TEXTS, kind_of(parts_of(name)[0])

    def key(self, member: object) -> object:
        assert isinstance(member, dict)
        return tuple(member.items())

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        made = super().make(columns, count, source)
        super().fill(made, columns, source)
        return made

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        return


class _Lists(Table):
    def __init__(self, name: str) -> None:
        self.item_kind = kind_of(parts_of(name)[0])

    def visit(self, members: Sequence[Any], found: Found) -> None:
        self.item_kind.visit([*chain.from_iterable(members)], found)

    def write(self, members: Sequence[Any], found: Found) -> dict[str, Any]:
        return {
            "length": pack_integers([*map(len, members)]),
            "item": self.item_kind.write([*chain.from_iterable(members)], found),
        }

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        return [[] for _ in range(count)]

    def fill(self, members: list[Any], columns: dict[str, Any], source: Source) -> None:
        lengths, items = read_lengths([columns["length"], columns["item"]], len(members))
        flat = self.item_kind.read(items, sum(lengths), source)
        for one, (start, end) in zip(members, slices(lengths), strict=True):
            if start != end:
                one.extend(flat[start:end])


class _Deques(_Lists):
    def write(self, members: Sequence[Any], found: Found) -> dict[str, Any]:
        return {**super().write(members, found), "maxlen": pack_integers([one.maxlen for one in members])}

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        return [deque(maxlen=most) for most in unpack_integers(columns["maxlen"], count)]


class _Values(Table):
    """Objects that refer to no others, kept as a whole; equal ones are one where they can be compared."""

    early = True

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def key(self, member: object) -> object:
        try:
            hash(member)
        except TypeError:
            return id(member)
        return member

    def write(self, members: Sequence[Any], found: Found) -> dict[str, Any]:
        return {"value": [msgspec.to_builtins(member) for member in members]}

    def make(self, columns: dict[str, Any], count: int, source: Source) -> list[Any]:
        try:
            return [msgspec.convert(value, self.cls) for value in listed(columns["value"], count)]
        except msgspec.ValidationError as error:
            raise CheckpointError(f"damaged: {self.cls.__name__}: {error}") from None


_SPECIAL: Final[dict[type, type[_Objects]]] = {
    Need: _Needs,
    NodeIndex: _Constructed,
    Types: _Constructed,
    Foreign: _Foreign,
}
_NO_NODE: Final[Any] = None
_CONSTRUCTORS: Final[dict[type, Callable[[], object]]] = {
    NodeIndex: lambda: NodeIndex(ScorePolicy("fair", [])),
    Types: Types,
    Foreign: lambda: Foreign(_NO_NODE, {}, 0, 0),
}
_COLLECTIONS: Final[dict[str, Callable[[str], Table]]] = {
    "dict": _Dicts,
    "list": _Lists,
    "deque": _Deques,
    "Map": _Maps,
}
_tables: dict[str, Table] = {}
ORDER: Final = {name: at for at, name in enumerate(["Timer", *(cls.__name__ for cls in OBJECTS)])}
"""In which order objects are looked at while a checkpoint is taken: so that those of which there are many, and which refer
to each other in long chains, are all known when they are looked at. Collections come before all."""


def table_of(name: str) -> Table:
    """Return the table of a name; raises KeyError for a name that is none."""
    if not _tables:
        _tables.update({"Vec": _Vectors(), "Minima": _Minima(), "Timer": _Timers()})
        _tables.update({cls.__name__: _Values(cls) for cls in VALUES})
        _tables.update({cls.__name__: _SPECIAL.get(cls, _Objects)(cls) for cls in OBJECTS})
    known = _tables.get(name)
    if known is None:
        known = _tables[name] = _COLLECTIONS[name.partition("[")[0]](name)
    return known


def all_tables() -> frozenset[str]:
    """Return the names of all tables that a checkpoint may have."""
    found: set[str] = set()
    waiting = ["Timer", *(cls.__name__ for cls in OBJECTS), "Vec", "Minima", *(cls.__name__ for cls in VALUES)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += _referred(name)
    return frozenset(found)


def _referred(name: str) -> list[str]:
    """Return the collections that members of a table refer to directly."""
    classes = {cls.__name__: cls for cls in OBJECTS}
    kinds = [*fields_of(classes[name]).values()] if name in classes else parts_of(name) if "[" in name else []
    return [table for kind in kinds for table in kind_of(kind).tables() if "[" in table]
