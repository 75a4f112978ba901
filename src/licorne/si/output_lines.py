"""Outputs as lines of text, by which the decisions of two runs are compared: an allocation is its key and its node.

The thread that decides makes the lines of a recording. So decisions, of which there are many, are written by compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from licorne.si.messages import Output, Termination

if TYPE_CHECKING:
    import cython
else:
    from licorne._plain import cython

if cython.compiled:
    from cython.cimports.licorne.si.allocations import NewAllocation, Released
else:
    from licorne.si.allocations import NewAllocation, Released

TEXTS: Final = ("reason", "template", "message")
"""Fields that explain a decision to people, and may name a user."""

_ENDS: Final = [f" {number:d}\n" for number in range(len(Termination))]
"""The ends of the lines of releases, by the number of the termination: to format a number took as long as all the rest."""
_encode = msgspec.json.Encoder().encode


def output_lines(outputs: Sequence[Output], *, texts: bool) -> tuple[bytes, int]:
    """Return the lines of outputs, one for each, and how many of these are allocations.

    Without `texts`, what explains an output to people is left out.
    """
    parts: list[str] = []
    allocations: cython.Py_ssize_t = 0
    ends: list[str] = _ENDS
    number: cython.Py_ssize_t
    new: NewAllocation
    released: Released
    output: object
    for output in outputs:
        if type(output) is NewAllocation:
            new = cython.cast(NewAllocation, output)
            allocations += 1
            parts.append(new.key)
            parts.append(" ")
            parts.append(new.node_id)
            parts.append("\n")
        elif type(output) is Released:
            released = cython.cast(Released, output)
            number = released.termination
            parts.append("-")
            parts.append(released.key)
            parts.append(" ")
            parts.append(released.application_id)
            parts.append(ends[number])
        else:
            shown = output if texts else _without_texts(output)
            parts.append(f"{type(output).__name__}{_fields(shown)}\n")
    return "".join(parts).encode("utf-8", "surrogatepass"), allocations


def _without_texts(output: Output) -> Output:
    assert isinstance(output, msgspec.Struct)
    return msgspec.structs.replace(output, **dict.fromkeys(set(TEXTS) & set(output.__struct_fields__), ""))


def _fields(output: Output) -> str:
    try:
        return _encode(output).decode()
    except (UnicodeEncodeError, OverflowError):  # half a character, or a very large number
        return repr(output)
