"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from licorne.workload.workload import Progress


@contextmanager
def progress_bar(what: str, *, remaining: bool = False) -> Iterator[Progress | None]:
    """Show a progress bar within the `with` block; `what` is its label. `remaining`: with the time that is left.

    Yields a function that takes the steps done and their total (0: unknown); None if standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Imported here, since the import takes long and is of no use without a terminal.
    from rich import console, progress  # noqa: PLC0415

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        *((progress.TextColumn("left"), progress.TimeRemainingColumn()) if remaining else ()),
    )
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield tell
