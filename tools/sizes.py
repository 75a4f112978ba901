"""Measures what an installation brings: the wheel in an empty environment, without and with each of its extras.

    python tools/sizes.py WHEEL

For each it prints the packages and megabytes that pip installs, the time of `from licorne import SchedulerAPI` and of
`licorne --help` (medians), and fails unless the first example of docs/use/embedding.md prints there what that page says. The
environments have neither pip nor anything else of the one that runs this.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "use" / "embedding.md"
TIMES = 7


def extras() -> list[str]:
    """Return the extras that users install, as `pyproject.toml` lists them; the empty one first, which is none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return ["", *(extra for extra in project["optional-dependencies"] if extra != "dev")]


def library_example() -> tuple[str, str]:
    """Return the page's first program that embeds the scheduler, and what the page says that it prints."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\nIt prints:\n\n```\n(.*?)```", text, re.DOTALL)
    assert found, f"{PAGE} has the example of the library and its output"
    return found[1], found[2]


def output_of(*command: str | Path) -> str:
    """Run a program away from the sources, and return what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tempfile.gettempdir()).stdout


def seconds(*command: str | Path) -> float:
    """Return the median duration of a program."""
    durations = []
    for _ in range(TIMES):
        start = perf_counter()
        subprocess.run(command, check=False, capture_output=True, cwd=tempfile.gettempdir())
        durations.append(perf_counter() - start)
    return median(durations)


def measure(wheel: Path, extra: str, folder: Path) -> str:
    """Install the wheel with an extra, and return a line with what that brings."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", wanted], check=True)
    program, printed = library_example()
    assert output_of(python, "-I", "-c", program) == printed, f"the example prints what {PAGE} says"
    (packages,) = folder.glob("lib/python3*/site-packages")
    count = len(list(packages.glob("*.dist-info")))
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    bare = seconds(python, "-I", "-c", "pass")
    library = seconds(python, "-I", "-c", "from licorne import SchedulerAPI") - bare
    command = seconds(folder / "bin" / "licorne", "--help")
    return f"{extra or '-':8} {count:8} {size / 1e6:8.1f} {library * 1000:12.0f} {command * 1000:16.0f}"


def main(wheel: Path) -> None:
    """Print a line for each extra."""
    print(f"{'extra':8} {'packages':>8} {'MB':>8} {'import (ms)':>12} {'--help (ms)':>16}")
    for extra in extras():
        with tempfile.TemporaryDirectory() as folder:
            print(measure(wheel.resolve(), extra, Path(folder)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
