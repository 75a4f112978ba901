"""Kinds: what an attribute may hold, and how a column of such values is written and read.

A kind is named as in an annotation: `int`, `str | None`, `tuple[str, ...]`, `dict[str, Ask]`. Numbers, texts and tuples
stand in the column itself. Everything that has an identity (an object of the core, a list, a dict) is a member of a table,
and the column has its number there: so what two objects share they share again when it is read. `Map[int]` is a dict from
texts that nobody changes, such as the amounts of a message; equal ones become one.

A number refers to the table of its kind and to no other, so that whatever a file holds, an attribute gets an object of the
class that compiled code expects there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, Protocol

from licorne.core.base.states import ApplicationState, ObjectState

from .columns import (
    EQUAL,
    CheckpointError,
    Column,
    listed,
    of_types,
    pack_flags,
    pack_integers,
    repeated,
    slices,
    unpack_flags,
    unpack_integers,
)
from .contract import ENUMERATIONS, OBJECTS, PLANS, SUBJECTS, VALUES

NONE: Final = type(None)


class Found(Protocol):
    """What a checkpoint is made of while it is taken: the members of all tables."""

    def add(self, table: str, members: Sequence[Any]) -> None:
        """Add to a table of the checkpoint those members that are not in it yet."""

    def numbers(self, table: str, members: Sequence[Any]) -> list[int]:
        """Return the number of each member, from 1 on; 0 for None."""

    def texts(self, texts: Sequence[str | None]) -> list[int]:
        """Return the number of each text, from 1 on; 0 for None."""


class Source(Protocol):
    """What a checkpoint that is being read has made so far."""

    def members(self, table: str, numbers: list[int], *, optional: bool) -> list[Any]:
        """Return the members of a table with these numbers."""


class Kind:
    """A kind of values."""

    def visit(self, values: Sequence[Any], found: Found) -> None:
        """Find the members of tables that the values refer to."""

    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables that values refer to."""
        return ()

    def write(self, values: list[Any], found: Found) -> Column:
        """Return the column of these values."""
        raise NotImplementedError

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        """Return so many values of a column; raises CheckpointError if it holds something else."""
        raise NotImplementedError


class _Integers(Kind):
    def write(self, values: list[Any], found: Found) -> Column:
        return pack_integers(values)

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        return unpack_integers(column, count)


class _Flags(Kind):
    def __init__(self, *, optional: bool = False) -> None:
        self.allowed: frozenset[type] = frozenset({bool, NONE} if optional else {bool})

    def write(self, values: list[Any], found: Found) -> Column:
        return pack_flags(values)

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        return unpack_flags(column, count, self.allowed)


class _Floats(Kind):
    def write(self, values: list[Any], found: Found) -> Column:
        return [float(value) for value in values]

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        return of_types(listed(column, count), (float,))


def _members(source: Source, table: str, column: Column, count: int, *, optional: bool) -> list[Any]:
    """Return the members of a table whose numbers a column has: one is looked up once where all are equal."""
    if type(column) is dict and EQUAL in column:
        return repeated(source.members(table, unpack_integers(column, 1), optional=optional), count)
    return source.members(table, unpack_integers(column, count), optional=optional)


class _Texts(Kind):
    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    def write(self, values: list[Any], found: Found) -> Column:
        return pack_integers(found.texts(values))

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        return _members(source, "str", column, count, optional=self.optional)


class _Members(_Texts):
    """Members of an enumeration, by their values."""

    def __init__(self, enumeration: type[ApplicationState | ObjectState]) -> None:
        super().__init__()
        self.known: dict[str, Any] = {member.value: member for member in enumeration}

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        try:
            return [self.known[text] for text in super().read(column, count, source)]
        except KeyError as error:
            raise CheckpointError(f"damaged: a state {error} is unknown") from None


class _Nothing(Kind):
    """The values of a dict that is used as a set that keeps its order."""

    def write(self, values: list[Any], found: Found) -> Column:
        assert values.count(None) == len(values), "a value where none was expected"

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        return [None] * count


class _References(Kind):
    """Members of a table, or of one of several."""

    def __init__(self, names: tuple[str, ...], *, optional: bool) -> None:
        self.names = names
        self.optional = optional

    def tables(self) -> tuple[str, ...]:
        return self.names

    def visit(self, values: Sequence[Any], found: Found) -> None:
        for table, members in self._divided(values).items():
            found.add(table, members)

    def _divided(self, values: Sequence[Any]) -> dict[str, Sequence[Any]]:
        if len(self.names) == 1:
            return {self.names[0]: values}
        found: dict[str, list[Any]] = {table: [] for table in self.names}
        for value in values:
            if value is not None:
                found[type(value).__name__].append(value)
        return {table: members for table, members in found.items() if members}

    def write(self, values: list[Any], found: Found) -> Column:
        assert self.optional or not any(value is None for value in values), f"None in place of {self.names}"
        if len(self.names) == 1:
            return pack_integers(found.numbers(self.names[0], values))
        numbers = {table: iter(found.numbers(table, each)) for table, each in self._divided(values).items()}
        kinds = [0 if value is None else self.names.index(type(value).__name__) + 1 for value in values]
        return [
            pack_integers(kinds),
            pack_integers([0 if value is None else next(numbers[type(value).__name__]) for value in values]),
        ]

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        if len(self.names) == 1:
            return _members(source, self.names[0], column, count, optional=self.optional)
        kinds, numbers = (unpack_integers(part, count) for part in listed(column, 2))
        if not {*kinds} <= {*range(0 if self.optional else 1, len(self.names) + 1)}:
            raise CheckpointError("damaged: a reference to an object of an unexpected class")
        divided = [
            iter(source.members(table, [n for k, n in zip(kinds, numbers, strict=True) if k == i], optional=False))
            for i, table in enumerate(self.names, start=1)
        ]
        return [None if kind == 0 else next(divided[kind - 1]) for kind in kinds]


class _Tuples(Kind):
    """Tuples of a fixed length; `make` makes one of its items. None stands for none of them where `optional`."""

    def __init__(
        self, parts: list[Kind], make: Callable[[tuple[Any, ...]], Any] = lambda items: items, *, optional: bool = False
    ) -> None:
        self.parts = parts
        self.make = make
        self.optional = optional

    def tables(self) -> tuple[str, ...]:
        return tuple(table for part in self.parts for table in part.tables())

    def visit(self, values: Sequence[Any], found: Found) -> None:
        there = [value for value in values if value is not None]
        for at, part in enumerate(self.parts):
            part.visit([value[at] for value in there], found)

    def write(self, values: list[Any], found: Found) -> Column:
        there = [value for value in values if value is not None]
        assert self.optional or len(there) == len(values), "None where a tuple was expected"
        columns = [part.write([value[at] for value in there], found) for at, part in enumerate(self.parts)]
        return [pack_flags([value is not None for value in values]), *columns]

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        flags, *columns = listed(column, len(self.parts) + 1)
        present = unpack_flags(flags, count, frozenset({bool}))
        there = sum(present)
        if there < count and not self.optional:
            raise CheckpointError("damaged: a tuple is missing")
        parts = [part.read(one, there, source) for part, one in zip(self.parts, columns, strict=True)]
        items = iter(list(zip(*parts, strict=True)))
        return [self.make(next(items)) if one else None for one in present]


class _Rows(Kind):
    """Tuples of any length, of items of one kind."""

    def __init__(self, item: Kind) -> None:
        self.item = item

    def tables(self) -> tuple[str, ...]:
        return self.item.tables()

    def visit(self, values: Sequence[Any], found: Found) -> None:
        self.item.visit(list(chain.from_iterable(values)), found)

    def write(self, values: list[Any], found: Found) -> Column:
        return [pack_integers([*map(len, values)]), self.item.write(list(chain.from_iterable(values)), found)]

    def read(self, column: Column, count: int, source: Source) -> list[Any]:
        lengths, items = read_lengths(column, count)
        flat = self.item.read(items, sum(lengths), source)
        return [tuple(flat[start:end]) for start, end in slices(lengths)]


def read_lengths(column: Column, count: int) -> tuple[list[int], Column]:
    """Return the lengths and the items of a column of rows; raises CheckpointError if it is none."""
    lengths, items = listed(column, 2)
    found = unpack_integers(lengths, count)
    if found and min(found) < 0:
        raise CheckpointError("damaged: a length below zero")
    return found, items


# -- from names ----------------------------------------------------------------------------------------------

INTEGERS: Final = _Integers()
TEXTS: Final = _Texts()
_SIMPLE: Final[dict[str, Kind]] = {
    "int": INTEGERS,
    "bool": _Flags(),
    "bool | None": _Flags(optional=True),
    "float": _Floats(),
    "str": TEXTS,
    "str | None": _Texts(optional=True),
    "None": _Nothing(),
    **{one.__name__: _Members(one) for one in ENUMERATIONS},
}
TABLES: Final = frozenset({"Vec", "Minima", "Timer", *(one.__name__ for one in (*OBJECTS, *VALUES))})
"""Tables of objects by the names of their classes. Others are named by the kind of their members: `dict[str, Ask]`."""
COLLECTIONS: Final = frozenset({"dict", "list", "deque", "Map"})
_kinds: dict[str, Kind] = dict(_SIMPLE)


def kind_of(name: str) -> Kind:
    """Return the kind of a name; raises KeyError for a name that is none."""
    known = _kinds.get(name)
    if known is None:
        known = _kinds[name] = _parsed(ast.parse(name, mode="eval").body)
    return known


def _parsed(node: ast.expr) -> Kind:
    names = [ast.unparse(one) for one in _alternatives(node)]
    optional = "None" in names
    names = [name for name in names if name != "None"]
    first = names[0]
    if first == PLANS[0].__name__:
        return _Tuples(_items(ast.parse(PLANS[1], mode="eval").body), lambda items: PLANS[0](*items), optional=optional)
    if first.startswith("tuple["):
        items = ast.parse(first, mode="eval").body
        assert isinstance(items, ast.Subscript) and isinstance(items.slice, ast.Tuple)
        if isinstance(items.slice.elts[-1], ast.Constant):  # tuple[X, ...]
            return _Rows(kind_of(ast.unparse(items.slice.elts[0])))
        return _Tuples(_items(items), optional=optional)
    unknown = [name for name in names if name not in TABLES and name.partition("[")[0] not in COLLECTIONS]
    if unknown:
        raise KeyError(f"no kind of values: {unknown[0]}")
    return _References(tuple(names), optional=optional)


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]


def _items(node: ast.expr) -> list[Kind]:
    assert isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple)
    return [kind_of(ast.unparse(item)) for item in node.slice.elts]


def parts_of(table: str) -> list[str]:
    """Return the names of the kinds that the members of a table of collections hold: `dict[str, Ask]` holds two."""
    node = ast.parse(table, mode="eval").body
    assert isinstance(node, ast.Subscript)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [ast.unparse(item) for item in items]


SUBJECT: Final = f"{SUBJECTS} | None"
