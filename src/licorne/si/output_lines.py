"""Outputs as lines of text, by which the decisions of two runs are compared: an allocation is its key and its node.

The thread that decides makes the lines of a recording. So decisions, of which there are many, are written by compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from licorne._plain import cython
from licorne.si.allocations import NewAllocation, Released
from licorne.si.messages import Output

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize
    from cython.cimports.libc.string import memcpy

TEXTS: Final = ("reason", "template", "message")
"""Fields that explain a decision to people, and may name a user."""

# Characters of lines. The number of a termination is one digit: there are fewer than ten.
_SPACE = cython.declare(cython.int, ord(" "))
_NEWLINE = cython.declare(cython.int, ord("\n"))
_MINUS = cython.declare(cython.int, ord("-"))
_ZERO = cython.declare(cython.int, ord("0"))
_encode = msgspec.json.Encoder().encode


def output_lines(outputs: Sequence[Output], *, texts: bool) -> tuple[bytes, int]:
    """Return the lines of outputs, one for each, and how many of these are allocations.

    Without `texts`, what explains an output to people is left out.
    """
    if cython.compiled:
        try:
            return _written(outputs, texts)
        except UnicodeEncodeError:
            pass  # half of a surrogate pair, which only the slow way can encode
    lines = "".join([_line(output, texts) for output in outputs])
    return lines.encode("utf-8", "surrogatepass"), sum(type(output) is NewAllocation for output in outputs)


def _line(output: Output, texts: bool) -> str:
    if type(output) is NewAllocation:
        return f"{output.key} {output.node_id}\n"
    if type(output) is Released:
        return f"-{output.key} {output.application_id} {output.termination:d}\n"
    shown = output if texts else _without_texts(output)
    return f"{type(output).__name__}{_fields(shown)}\n"


@cython.cfunc
def _written(outputs: Sequence[Output], texts: cython.bint) -> tuple[bytes, int]:
    """Do what `output_lines` does, compiled: write the lines into bytes of their length, without a text of each line.

    Raises:
        UnicodeEncodeError: a text has half of a surrogate pair.
    """
    new: NewAllocation
    released: Released
    output: object
    line: bytes
    others: list[bytes] = []
    allocations: cython.Py_ssize_t = 0
    length: cython.Py_ssize_t = 0
    for output in outputs:
        if type(output) is NewAllocation:
            new = cython.cast(NewAllocation, output)
            allocations += 1
            length += _size(new.key) + 1 + _size(new.node_id) + 1
        elif type(output) is Released:
            released = cython.cast(Released, output)
            length += 1 + _size(released.key) + 1 + _size(released.application_id) + 3
        else:
            line = _line(output, texts).encode()
            others.append(line)
            length += len(line)
    made: bytes = _new_bytes(length)
    out: cython.p_char = made  # type: ignore[assignment]
    other: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    for output in outputs:
        if type(output) is NewAllocation:
            new = cython.cast(NewAllocation, output)
            at = _put(out, at, new.key, _SPACE)
            at = _put(out, at, new.node_id, _NEWLINE)
        elif type(output) is Released:
            released = cython.cast(Released, output)
            out[at] = _MINUS
            at = _put(out, at + 1, released.key, _SPACE)
            at = _put(out, at, released.application_id, _SPACE)
            out[at] = _ZERO + released.termination
            out[at + 1] = _NEWLINE
            at += 2
        else:
            line = others[other]
            other += 1
            at = _copy(out, at, line)
    return made, allocations


@cython.cfunc
def _new_bytes(length: cython.Py_ssize_t) -> bytes:
    """Return a new bytes object of this length; compiled, its content is undefined until the caller has written it."""
    if cython.compiled:
        return PyBytes_FromStringAndSize(cython.NULL, length)
    return bytes(length)


@cython.cfunc
@cython.exceptval(-1)
def _size(text: str) -> cython.Py_ssize_t:
    """Return the bytes of a text in UTF-8."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        PyUnicode_AsUTF8AndSize(text, cython.address(size))
    return size


@cython.cfunc
@cython.exceptval(-1)
def _put(out: cython.p_char, at: cython.Py_ssize_t, text: str, end: cython.int) -> cython.Py_ssize_t:
    """Copy a text in UTF-8, and a character behind it, into the memory `out` from the offset `at` on; return the offset behind."""
    size: cython.Py_ssize_t = 0
    if cython.compiled:
        content: cython.p_char = cython.cast(cython.p_char, PyUnicode_AsUTF8AndSize(text, cython.address(size)))
        memcpy(out + at, content, size)
    out[at + size] = end
    return at + size + 1


@cython.cfunc
@cython.exceptval(-1)
def _copy(out: cython.p_char, at: cython.Py_ssize_t, line: bytes) -> cython.Py_ssize_t:
    """Copy the bytes of a line into the memory `out` from the offset `at` on; return the offset behind them."""
    if cython.compiled:
        memcpy(out + at, PyBytes_AS_STRING(line), len(line))
    return at + len(line)


def _without_texts(output: Output) -> Output:
    assert isinstance(output, msgspec.Struct)
    return msgspec.structs.replace(output, **dict.fromkeys(set(TEXTS) & set(output.__struct_fields__), ""))


def _fields(output: Output) -> str:
    try:
        return _encode(output).decode()
    except (UnicodeEncodeError, OverflowError):  # half a character, or a very large number
        return repr(output)
