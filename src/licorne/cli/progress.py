"""A progress bar on standard error, and none where nobody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from licorne.sim.workload import Progress


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A function to tell how much is done, of how much (0: unknown); None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    # Not needed, and not waited for, where nobody looks.
    from rich import console, progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield tell
