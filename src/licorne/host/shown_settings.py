"""How settings are printed: for each its value, where it comes from, and when a change takes effect."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator

import msgspec


class Shown(msgspec.Struct, frozen=True):
    """One setting as it is printed; the value of a secret is shown as `set`.

    `source`: `default`, FILE:LINE, the name of a ConfigMap, `environment NAME` or `option --NAME`.
    """

    key: str
    value: str
    source: str
    applies: str


def table(settings: Iterable[Shown]) -> Iterator[str]:
    """Yield the lines of a table of settings, for people. On a terminal that is too narrow, each has a line for its value."""
    rows = [Shown("setting", "value", "from", "changes take effect"), *settings]
    texts = [(row.key, row.value or "-", row.source, row.applies) for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(3)]
    if sum(widths) + len(rows[0].applies) + 6 > _width():
        yield from (line for key, *rest in texts for line in (key, f"    {'  '.join(rest)}"))
        return
    for row in texts:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[3]])


def _width() -> int:
    """Return the width of the terminal; of a file or a pipe, more than any table has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
