"""Show the results of the soak as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.soak.run import LARGER_MAX, SLOWER_MAX, Soaked

_MIB = 1 << 20


def show_soaked(results: Sequence[Soaked], console: Console | None = None) -> None:
    """Print the results."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 120)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("kind")
    table.add_column("what comes and goes")
    for heading in ("events", "µs in the 2nd tenth", "in the last", "slower by", "MiB at half", "at the end", "growth"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.name,
            result.what,
            f"{result.events:,}",
            f"{result.second_us:.1f}",
            f"{result.last_us:.1f}",
            _marked(f"{(result.slower - 1) * 100:+.1f} %", result.slower <= SLOWER_MAX),
            f"{result.middle_bytes / _MIB:.1f}",
            f"{result.end_bytes / _MIB:.1f}",
            _marked(f"{(result.larger - 1) * 100:+.1f} %", result.larger <= LARGER_MAX),
        )
    console.print(table)
    failed = [result.name for result in results if not result.holds]
    console.print("slower by: less what a fresh scheduler became slower by at the same time", markup=False)
    bounds = f"the last tenth at most {SLOWER_MAX:g} times as slow as the second, and the second half {LARGER_MAX:g} as large"
    console.print(f"{'held by all' if not failed else 'not held by ' + ', '.join(failed)}: {bounds}", markup=False)


def _marked(text: str, good: bool) -> str:
    return text if good else f"[red]{text} ![/red]"
