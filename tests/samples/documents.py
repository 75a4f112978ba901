"""The samples of the documents: code blocks that show commands, each after `$ `, and what they print.

A line `...`, which may be followed by a remark in parentheses, stands for any number of lines that are left out. A command
that ends with a backslash goes on in the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "$ "
LEFT_OUT = re.compile(r"\s*\.\.\.(\s+\(.*\))?")
_BLOCK = re.compile(r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"(?:[A-Z_]+=\S* )*(?:\S*/)?(?:licorne|python3?|pip|make|git|kubectl|curl|docker|podman|systemctl|pre-commit|openssl|cd|go)\s"
)
_SHELL = ("", "console", "sh")
"""Languages of blocks that may show commands."""


class Sample(NamedTuple):
    """A command, the lines that the document shows of its output, and the number of the command's line."""

    command: str
    shown: list[str]
    line: int


def pages() -> list[Path]:
    """Return all documents."""
    found = sorted(ROOT.glob("*.md"))
    for folder in ("docs", "examples", "deploy", "bench", "controlplane"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return found


def documents() -> list[Path]:
    """Return the documents that have samples."""
    return [path for path in pages() if next(samples(path), None) is not None]


def without_output(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the commands that a document shows without a prompt, and so without their output, with their lines."""
    text = path.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if block["language"] in _SHELL and not block["text"].startswith(PROMPT):
            first = text.count("\n", 0, block.start("text")) + 1
            for number, line in enumerate(block["text"].splitlines(), first):
                if _COMMAND.match(line.strip()):
                    yield number, line.strip()


def samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a document, in order."""
    text = path.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if block["language"] in _SHELL and block["text"].startswith(PROMPT):
            first = text.count("\n", 0, block.start("text")) + 1
            yield from _in_block(block["text"].splitlines(), first)


def _in_block(lines: list[str], number: int) -> Iterator[Sample]:
    command, shown, at = "", list[str](), number
    for offset, line in enumerate(lines):
        if command.endswith("\\"):
            command = f"{command[:-1].rstrip()} {line.strip()}"
        elif line.startswith(PROMPT):
            if command:
                yield Sample(command, _without_blank_end(shown), at)
            command, shown, at = line.removeprefix(PROMPT), [], number + offset
        else:
            shown.append(line.rstrip())
    yield Sample(command, _without_blank_end(shown), at)


def _without_blank_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


def difference(shown: list[str], printed: list[str]) -> str | None:
    """Return the first shown line that the output has not at its place, or None if all are there."""
    rest = list(printed)
    skipping = False
    for line in shown:
        if LEFT_OUT.fullmatch(line):
            skipping = True
            continue
        while rest and skipping and rest[0] != line:
            rest.pop(0)
        if not rest or rest.pop(0) != line:
            return line
        skipping = False
    return None if skipping or not rest else f"(the end, but the output goes on: {rest[0]})"
