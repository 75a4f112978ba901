"""Asks an installation with each extra alone for what it must do without the others: `make nightly PART=extras` runs it.

    python tools/extras.py WHEEL [EXTRA ...]

Each extra is installed into an environment of its own. There every command has to print its help, a misspelled one to be
answered with the right name, and a command whose extra is missing to name the command that installs it; without the extra
`cli` every call has to name that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from licorne.cli.commands import app
from licorne.cli.statuses import Status
from sizes import extras

NEEDED = {"serve": "service", "health": "service", "kube": "kube", "mcp": "mcp"}
"""The commands that end at once without their extra, and what that is."""
UV = Path(sys.executable).with_name("uv")


def expect(python: Path, arguments: str, status: int, words: str) -> None:
    """Run the command in an environment, and fail unless it ends with this status and prints these words."""
    command: list[str | Path] = [python, "-I", "-m", "licorne.cli", *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    said = done.stdout + done.stderr
    if done.returncode != status or words not in said:
        sys.exit(f"licorne {arguments}: status {done.returncode} in place of {status}, without {words!r}:\n{said}")


def has(python: Path, extra: str) -> bool:
    """Return whether an environment has the packages of an extra."""
    program = f"from licorne._extras import require; require({extra!r})"
    return not subprocess.run([python, "-I", "-c", program], capture_output=True, check=False).returncode


def ask(wheel: Path, extra: str, folder: Path) -> int:
    """Install the wheel with an extra, and return how many calls of the command were as they have to be."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, wanted], check=True)
    if not has(python, "cli"):
        expect(python, "--version", Status.PACKAGES, "'licorne[cli]'")
        return 1
    names = [name for name in app.resolved_commands() if not name.startswith("-")]
    calls = [(f"{name} --help", Status.DONE, f"Usage: licorne {name}") for name in names]
    calls += [(name[:-1] + "x", Status.USAGE, "Did you mean") for name in names]
    calls += [
        (name, Status.PACKAGES, f"'licorne[{needed}]'") for name, needed in NEEDED.items() if not has(python, needed)
    ]
    for arguments, status, words in calls:
        expect(python, arguments, status, words)
    return len(calls)


def main(wheel: Path, wanted: list[str]) -> None:
    """Print a line for each extra."""
    for extra in wanted or extras():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{extra or '-':8} {ask(wheel.resolve(), extra, Path(folder) / 'env'):3} calls", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
