r"""How names are written where tabs and line ends separate: in decision lines and in the traces of scripts.

A backslash is written `\\`, a tab `\t`, a line feed `\n`, a carriage return `\r`; everything else stands for itself. So a
name takes one field of one line, ordinary names look as they are, and two different lists of decisions never give the
same text, nor the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def escaped(name: str) -> str:
    """A name as a field of a line."""
    return name.translate(_ESCAPES)


def decision_lines(decisions: Iterable[tuple[str, str]]) -> str:
    """A line `ask<TAB>node` for each of these asks and nodes."""
    made = [f"{key}\t{node}\n" for key, node in decisions]
    text = "".join(made)
    if text.count("\t") == text.count("\n") == len(made) and "\\" not in text and "\r" not in text:  # as mostly
        return text
    return "".join([f"{escaped(key)}\t{escaped(node)}\n" for key, node in decisions])
