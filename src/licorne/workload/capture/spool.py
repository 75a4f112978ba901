"""The lines of a workload on the disk while they are collected, and the file in which they are in order.

A line is complete only when its pod has ended, since it says how long the pod ran, and lines must be ordered by the time
at which the pod was asked for. So lines are kept in a database beside the file, which sorts them at the end without
keeping them in memory. The file itself is written as FILE.part and then renamed, so there is never half a file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from licorne.workload import lines
from licorne.workload.finished import written
from licorne.workload.lines import Line

_RANKS: dict[type[Line], int] = {
    lines.Reload: 0,
    lines.Node: 1,
    lines.NodeUpdate: 2,
    lines.NodeDrain: 3,
    lines.NodeUndrain: 3,
    lines.NodeRemove: 4,
    lines.App: 5,
    lines.Foreign: 6,
    lines.Ask: 7,
    lines.Release: 8,
}
"""What comes first of lines of the same time."""


class Spool:
    """Collects lines in any order. `path`: the file that is written at the end; its folder holds the rest until then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = path.with_name(f".{path.name}.lines")
        self._kept.unlink(missing_ok=True)
        os.close(os.open(self._kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._data = sqlite3.connect(self._kept)
        self._data.execute("PRAGMA journal_mode = OFF")
        self._data.execute("PRAGMA synchronous = OFF")
        self._data.execute("CREATE TABLE lines (at INTEGER, rank INTEGER, since INTEGER, line BLOB)")
        self.asks = 0
        """How many lines of asks there are."""

    def __enter__(self) -> Self:
        """Return itself; the end of the `with` block removes what was kept."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was kept."""
        self._data.close()
        self._kept.unlink(missing_ok=True)

    def put(self, at_ns: int, line: Line, since_ns: int | None = None) -> None:
        """Add a line at a time since the beginning; of lines of the same time and kind that of the smaller `since_ns` is first."""
        line.at = lines.from_ns(max(at_ns, 0))
        self.asks += type(line) is lines.Ask
        row = (max(at_ns, 0), _RANKS[type(line)], at_ns if since_ns is None else since_ns, lines.encode(line))
        self._data.execute("INSERT INTO lines VALUES (?, ?, ?, ?)", row)

    def write(self, head: Iterable[Line]) -> None:
        """Write the file: the head, and then all lines in order. Raises OSError as the file system does."""
        with written(self._path, 0o600) as file:
            for line in head:
                file.write(lines.encode(line) + b"\n")
            for (text,) in self._data.execute("SELECT line FROM lines ORDER BY at, rank, since, rowid"):
                file.write(text + b"\n")
