"""Makes docs/site/terminal.svg, the picture in README: what a terminal shows of the demonstration (`make picture`).

The command runs as in a terminal of 100 columns with colours. What differs between machines, the time that it took, comes
after the lines that are shown. Rich draws the picture; its format is changed in that it names no fonts of other hosts.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/site/terminal.svg"
COMMAND = ["licorne", "simulate", "examples/demo/week.jsonl"]
COLUMNS, LINES = 100, 23


def picture() -> str:
    """Return the picture, as SVG."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(  # noqa: S603  the command is ours
        [sys.executable, "-m", "licorne.cli", *COMMAND[1:]], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(f"[bold]$[/] {' '.join(COMMAND)}", highlight=False)
    shown = "\n".join(done.stdout.decode().splitlines()[:LINES])
    console.print(Text.from_ansi(shown), "...", highlight=False, sep="\n")
    drawn = console.export_svg(title="licorne", unique_id="licorne")
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text("\n".join(line.rstrip() for line in picture().splitlines()) + "\n", encoding="utf-8")
