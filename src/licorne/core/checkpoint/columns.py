"""Columns: how many values of one kind are written, as short as they are alike.

A checkpoint is written by columns and not object by object: the values of one attribute of all objects of a class stand
together. They are read and set by loops that run in C, and are mostly alike, so that they are short when compressed.
Numbers that rise are written as differences, and a column of equal ones as that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, TypeAlias

INT64_MIN: Final = -(1 << 63)
UINT64_MAX: Final = (1 << 64) - 1
Column: TypeAlias = Any
"""A column as MessagePack holds it: what it is made of is checked when it is read."""
EQUAL: Final = "="
RISING: Final = "+"
EQUAL_MAX: Final = 8_000_000
"""Equal values that a column may have as one, and members of all tables: each takes memory, of which the file need hold none."""


class CheckpointError(ValueError):
    """Bytes are no checkpoint that can be used here; the text says why, and what to do."""


def pack_integers(numbers: list[int]) -> Column:
    """Return a column of integers in its shortest form."""
    if len(numbers) < 2:
        return _within_64_bits(numbers)
    if numbers.count(numbers[0]) == len(numbers):
        return {EQUAL: _within_64_bits(numbers[:1])[0]}
    changes = [after - before for before, after in pairwise(numbers)]
    if max(numbers) <= UINT64_MAX and min(numbers) >= INT64_MIN and sum(map(abs, changes)) < sum(map(abs, numbers)):
        changes.insert(0, numbers[0])
        return {RISING: _within_64_bits(changes)}
    return _within_64_bits(numbers)


def _within_64_bits(numbers: list[int]) -> list[Any]:
    """Return the numbers with those that MessagePack cannot hold as texts."""
    if numbers and (max(numbers) > UINT64_MAX or min(numbers) < INT64_MIN):
        return [number if INT64_MIN <= number <= UINT64_MAX else str(number) for number in numbers]
    return numbers


def unpack_integers(column: Column, count: int) -> list[int]:
    """Return so many integers of a column.

    Raises:
        CheckpointError: the column holds something else.
    """
    if type(column) is dict:
        if EQUAL in column:
            return repeated(_integers([column[EQUAL]]), count)
        return list(accumulate(_integers(listed(column.get(RISING), count))))
    return _integers(listed(column, count))


def repeated(values: list[Any], count: int) -> list[Any]:
    """Return a value, the only one of a list, so many times; raises CheckpointError if that is too many."""
    if count > EQUAL_MAX:
        raise CheckpointError(f"damaged: a column has more than {EQUAL_MAX:,} equal values")
    return values * count


def _integers(values: list[Any]) -> list[int]:
    if not {*map(type, values)} <= {int}:
        try:
            values = [int(value) if type(value) is str else value for value in values]
        except ValueError:
            values = [None]
        if not {*map(type, values)} <= {int}:
            raise CheckpointError("damaged: a number was expected")
    return values


def pack_flags(flags: list[bool | None]) -> Column:
    """Return a column of truth values, None among them perhaps."""
    return {EQUAL: flags[0]} if len(flags) > 1 and flags.count(flags[0]) == len(flags) else flags


def unpack_flags(column: Column, count: int, allowed: frozenset[type]) -> list[Any]:
    """Return so many values of a column, each of which is of an allowed type.

    Raises:
        CheckpointError: the column holds something else.
    """
    if type(column) is dict:
        column = repeated([column.get(EQUAL)], count)
    return of_types(listed(column, count), allowed)


def of_types(values: list[Any], allowed: Iterable[type]) -> list[Any]:
    """Return the values; raises CheckpointError if one is of no allowed type."""
    if not {*map(type, values)} <= {*allowed}:
        raise CheckpointError("damaged: a value is of another type than expected")
    return values


def listed(column: Column, count: int) -> list[Any]:
    """Return a column that is a list of so many items; raises CheckpointError if it is none."""
    if type(column) is not list or len(column) != count:
        raise CheckpointError("damaged: a column has another length than expected")
    return column


def slices(lengths: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Yield where each of a row of parts begins and ends, from their lengths."""
    return pairwise(accumulate(lengths, initial=0))
