"""Texts of the repository in passages: a docstring, a block of comments, a string, a paragraph or table row of a page.

A reference is searched in a passage with its line breaks removed, since a line may end anywhere within it. Every passage
keeps the introduction of its file, because a bare "section 7.1" means the one file of docs/spec that is named there.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN = "tests/references/"
"""This checker and its tests hold texts that are wrong on purpose, so they are not checked."""

Kind = Literal["prose", "string", "raw"]


class Passage(NamedTuple):
    """A text without line breaks, with the file and line where it begins.

    `kind`: "prose" is written for readers and is checked for everything; "string" is a string of a program; "raw" is a
    line of a file in another language. `intro`: the docstring of the module, or all of a page.
    """

    path: str
    line: int
    text: str
    kind: Kind
    intro: str


def repository_files() -> list[str]:
    """The files that belong to the repository: those that git knows, or would if they were added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not in a git checkout")
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def texts(names: list[str]) -> dict[str, str]:
    """The text files that are checked, by path: no recorded data, nothing generated, nothing of this folder."""
    found = {}
    for name in names:
        data = (ROOT / name).read_bytes()
        recorded = name.startswith(("tests/data/", "bench/results/")) and not name.endswith(".md")
        if (
            not recorded
            and not name.startswith(OWN)
            and not name.endswith((".lock", ".sum"))
            and b"\0" not in data[:8192]
        ):
            found[name] = data.decode("utf-8")
    return found


def passages(path: str, text: str) -> Iterator[Passage]:
    """The passages of one file, by its kind."""
    if path.endswith(".py"):
        yield from _of_python(path, text)
    elif path.endswith(".md"):
        yield from _of_page(path, text)
    else:
        for number, line in enumerate(text.splitlines(), 1):
            yield Passage(path, number, line, "raw", "")


def _of_python(path: str, text: str) -> Iterator[Passage]:
    tree = ast.parse(text)
    intro = _flat(ast.get_docstring(tree) or "")
    prose: set[ast.Constant] = set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.add(node.value)
            yield Passage(path, node.lineno, _flat(node.value.value), "prose", intro)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield Passage(path, node.lineno, _flat(node.value), "string", intro)
    for line, comment in _comments(text):
        yield Passage(path, line, comment, "prose", intro)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments with the line where each begins. Comments that follow each other in one column are one."""
    block: list[str] = []
    first = last = column = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start == (last + 1, column):
            block.append(token.string)
        else:
            if block:
                yield first, _flat(" ".join(line.lstrip("#") for line in block))
            block, first = [token.string], token.start[0]
        last, column = token.start
    if block:
        yield first, _flat(" ".join(line.lstrip("#") for line in block))


def _of_page(path: str, text: str) -> Iterator[Passage]:
    """Paragraphs, headings, items of lists and rows of tables. Text within fences is an example and is raw."""
    block: list[str] = []
    first, fenced = 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begins = line.lstrip().startswith(("|", "* ", "- ", "#", "```")) or not line.strip()
        if block and (begins or fenced or block[0].startswith("#")):
            yield Passage(path, first, _flat(" ".join(block)), "prose", text)
            block = []
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield Passage(path, number, line, "raw", text)
        elif line.strip():
            first = first if block else number
            block.append(line)


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
