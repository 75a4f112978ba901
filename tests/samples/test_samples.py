"""Each command that a document shows prints what the document shows, except for what `masks.py` and `NOT_RUN` list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samples.documents import ROOT, documents, samples
from samples.shell import Shell

NOT_RUN = {
    r"make (test|demo|docs|coverage|faults|sizes|check|bench)\b": "a target that runs tests, the benchmark, or sets everything up",
}
"""Commands that are not run here, and why."""


def is_run(command: str) -> bool:
    """Is this command run, and its output compared?"""
    return not any(re.match(pattern, command) for pattern in NOT_RUN)


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_command_prints_what_the_document_shows(path: Path, tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        for sample in samples(path):
            if is_run(sample.command):
                try:
                    shell.check(sample)
                except AssertionError as error:
                    raise AssertionError(f"{path.relative_to(ROOT)}:{sample.line}: {error}") from None


@pytest.mark.parametrize("pattern", NOT_RUN)
def test_each_pattern_of_commands_that_are_not_run_is_needed(pattern: str) -> None:
    assert any(re.match(pattern, sample.command) for path in documents() for sample in samples(path))
