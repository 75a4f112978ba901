"""Tables for a terminal or a pipe.

On a narrow terminal the least important columns go first (the title says which), then names are abbreviated from the left; no
word or number is broken. In a file or a pipe lines have no blanks at their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table

from licorne._wording import counted
from licorne.cli.common import clean

if TYPE_CHECKING:
    from rich.text import Text

_Row = TypeVar("_Row")
_BETWEEN, _EDGES = 3, 2
"""Blanks between two columns, and at both edges of a table."""
_NAME_LENGTH_MIN = 12
"""A name is not abbreviated to less than this."""
_PIPE_WIDTH = 140
"""The width of a file or a pipe, which have none: Rich's default of 80 columns would cut the words of long cells."""


def output() -> Console:
    """Return standard output as a console, at least as wide as tables need in a file or a pipe."""
    return widened(_Output(highlight=False, markup=False, emoji=False))


class _Output(Console):
    """A console that prints texts, those in tables too, without markup and with control characters escaped."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401  as Rich has them
        """Return a text as Rich prints it."""
        return super().render_str(clean(text), **how)


def widened(console: Console) -> Console:
    """Return the console, made wide enough if it is a file or a pipe."""
    if not console.is_terminal:
        console.width = max(console.width, _PIPE_WIDTH)
    return console


def print_plainly(console: Console, what: RenderableType) -> None:
    """Print without the blanks with which tables fill their lines, except on a terminal, where nobody sees them."""
    if console.is_terminal:
        console.print(what)
        return
    with console.capture() as capture:
        console.print(what)
    console.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


class Sheet:
    """A table before it has its width.

    `columns` are titles: `<` before a title is for a name, aligned left, `=` for one that is copied and thus never abbreviated, `~` for
    prose, which may wrap; all others are numbers, aligned right. `drop` are the titles of the columns that may go, the least important first.
    """

    def __init__(self, title: str, columns: Sequence[str], *, drop: Sequence[str] = ()) -> None:
        self.title = title
        self.kinds = [column[0] if column[0] in "<=~" else ">" for column in columns]
        self.columns = [column.lstrip("<=~") for column in columns]
        self.drop = drop
        self.rows: list[list[str]] = []
        self.ending: list[str] = []

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(list(map(clean, cells)))

    def first(self, rows: Sequence[_Row], most: int, noun: str) -> Sequence[_Row]:
        """Return the first rows, `most` of them, and say under the table how many more there are of this noun."""
        self.more(len(rows) - most, noun)
        return rows[:most]

    def more(self, number: int, noun: str, told: str = "") -> None:
        """Say under the table how much was left out, if anything was. `told` follows the noun, which is singular."""
        if number > 0:
            self.ending.append(f"… {counted(number, f'more {noun}')}{told and f' {told}'}: see --json")

    def fits(self, room: int) -> bool:
        """Return whether there is room for all columns, with names as they are."""
        return _total(range(len(self.columns)), self._needed()) <= room

    def print(self, console: Console) -> None:
        """Print the table in the width that there is, and a blank line; nothing if it has no rows."""
        if not self.rows:
            return
        kept, widths = self._fit(console.width)
        gone = [title for index, title in enumerate(self.columns) if index not in kept]
        title = f"{self.title} (left out: {', '.join(gone)})" if gone else self.title
        console.print(clean(title), style="bold", markup=False)
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for index in kept:
            prose, left = self.kinds[index] == "~", self.kinds[index] != ">"
            table.add_column(
                self.columns[index], justify="left" if left else "right", no_wrap=not prose, overflow="fold"
            )
        for row in self.rows:
            table.add_row(
                *(_abbreviated(row[index], widths[index]) if index in widths else row[index] for index in kept)
            )
        print_plainly(console, table)
        for line in self.ending:
            console.print(f" {line}")
        if self.ending:
            console.print()

    def _fit(self, room: int) -> tuple[list[int], dict[int, int]]:
        """Return the indices of the columns that there is room for, and the widths of names."""
        needed = self._needed()
        least = [
            min(width, {"<": _NAME_LENGTH_MIN, "~": 2 * _NAME_LENGTH_MIN}.get(kind, width))
            for kind, width in zip(self.kinds, needed, strict=True)
        ]
        kept = list(range(len(self.columns)))
        for title in self.drop:
            if _total(kept, needed) > room and _total(kept, least) > room:
                kept.remove(self.columns.index(title))
        widths = {index: needed[index] for index in kept if self.kinds[index] == "<"}
        prose = [index for index in kept if self.kinds[index] == "~"]
        over = _total(kept, [least[index] if index in prose else width for index, width in enumerate(needed)]) - room
        for index in sorted(widths, key=needed.__getitem__, reverse=True):
            less = max(0, min(over, widths[index] - least[index]))
            widths[index] -= less
            over -= less
        return kept, widths

    def _needed(self) -> list[int]:
        """Return the width of each column in which nothing is cut."""
        return [
            max(map(cell_len, (title, *(row[index] for row in self.rows)))) for index, title in enumerate(self.columns)
        ]


def _total(columns: Iterable[int], widths: Sequence[int]) -> int:
    """Return the width of a table with these columns."""
    found = [widths[index] for index in columns]
    return sum(found) + _BETWEEN * (len(found) - 1) + _EDGES


def _abbreviated(name: str, width: int) -> str:
    """Return a name in at most this width: without its first parts, cut at a dot or slash if possible."""
    if cell_len(name) <= width:
        return name
    cuts = [index for index, sign in enumerate(name) if sign in "./" and cell_len(name[index:]) < width]
    return "…" + (name[cuts[0] :] if cuts else name[-(width - 1) :])
