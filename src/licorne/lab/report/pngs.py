"""Drawing the pictures of a report as PNG, in a process of its own while another one draws those of the page.

Drawing takes most of the time of a report, and matplotlib draws on one processor. The process needs nothing but the folder, in
which `report.json` has all figures: so it is started as a program, which works from any thread and from programs that
`multiprocessing` would run a second time. If it cannot be started or fails, its pictures are drawn here, as on one processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from licorne.lab.report import figures
from licorne.workload.finished import finished_file


@contextmanager
def pngs_beside(folder: Path) -> Iterator[None]:
    """Draw the PNG of a report into its folder while the context is there; they are complete when it is left."""
    process = _start(folder)
    try:
        yield
        if process is None or process.wait() != 0:
            draw(folder)
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _start(folder: Path) -> subprocess.Popen[bytes] | None:
    """Start the process; None if it would not help, or cannot be started."""
    if (os.cpu_count() or 1) == 1 or not sys.executable:
        return None
    command = [sys.executable, "-P", "-m", __name__, str(folder.absolute())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)  # noqa: S603  a program of its own
    except OSError:
        return None


def draw(folder: Path) -> None:
    """Draw all PNG of the report of which this folder has the figures."""
    from licorne.lab.report.page import picture  # noqa: PLC0415  # matplotlib is loaded only where it is wanted
    from licorne.lab.report.sections import sections  # noqa: PLC0415

    runs = figures.decode_figures((folder / figures.FILE).read_bytes())
    for part in sections(runs):
        for plot in part.plots:
            with finished_file(folder / f"{plot.name}.png") as path:
                path.write_bytes(picture(plot, runs))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
