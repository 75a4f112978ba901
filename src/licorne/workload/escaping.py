r"""Escape names in formats that separate fields by tabs and line ends: decision lines, and the traces that tests compare.

A backslash is written `\\`, a tab `\t`, a line feed `\n`, a carriage return `\r`; everything else stands for itself. So a
name takes one field of one line, ordinary names are unchanged, and two different lists of decisions never give the same
text, nor the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def escaped(name: str) -> str:
    """Escape a name, as a field of a line."""
    return name.translate(_ESCAPES)


def decision_lines(decisions: Iterable[tuple[str, str]]) -> str:
    """Return a line `ask<TAB>node` for each pair of an ask and a node."""
    made = [f"{key}\t{node}\n" for key, node in decisions]
    text = "".join(made)
    if text.count("\t") == text.count("\n") == len(made) and "\\" not in text and "\r" not in text:  # as mostly
        return text
    return "".join([f"{escaped(key)}\t{escaped(node)}\n" for key, node in decisions])
