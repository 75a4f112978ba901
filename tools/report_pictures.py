"""Makes the pictures of docs/use/reports.md and docs/use/sweeps.md, from the samples that ship with licorne (`make picture`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs/site"
HOLIDAY = "examples/gpu-holiday"
COMMANDS: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (
        ("simulate", "examples/demo/week.jsonl", "--report"),
        {
            "utilisation.png": "report-utilisation.png",
            "queues.png": "report-queues.png",
            "nodes.png": "report-nodes.png",
        },
    ),
    (
        ("compare", "own", f"{HOLIDAY}/no-preemption.yaml", f"{HOLIDAY}/workload.jsonl", "--output"),
        {"gantt.png": "report-gantt.png"},
    ),
    (
        ("sweep", "--file", "examples/sweeps/holiday.yaml", "--output"),
        {"slowdown-mean.png": "sweep-slowdown.png"},
    ),
)
"""Commands that make reports in a folder, which is their last argument, and which of its pictures are shown."""


def main() -> None:
    """Make the pictures."""
    for arguments, pictures in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "licorne.cli", *arguments, folder]
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  the command is ours
            for name, shown in pictures.items():
                shutil.copyfile(Path(folder) / name, SITE / shown)
                print(SITE / shown)


if __name__ == "__main__":
    main()
