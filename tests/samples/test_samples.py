"""Each command that a document shows prints what the document shows, except for what `masks.py` and `NOT_RUN` list."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from samples.documents import ROOT, documents, pages, samples, without_output
from samples.shell import Shell

NOT_RUN = {
    r"make\b": "a target that runs tests, the benchmark, or sets everything up",
    r"git clone\b": "the address of the repository is the reader's",
    r"(\S+=\S* )*(pip|kubectl|python3 -m venv)\b": "another program: it changes the environment, or needs a cluster",
    r"curl .*scheduler_application_total|licorne why (\S+ )?--from http://127": "what the demonstration shows depends on the moment",
    r"licorne convert http": "the scheduler is the reader's; tests/yunikorn and tests/capture run it",
    r"licorne (simulate|compare \S+ \S+) (week|cluster)\.jsonl$": "the workload is the reader's",
    r"licorne (convert|simulate|reproduce fgd) openb\b": "the trace is others', and the reader's to fetch",
    r"licorne convert cluster\.json\b": "the cluster is the reader's; tests/kube/test_importing.py runs it",
    r"licorne shares --from DIR\b": "the recording is the reader's; tests/answers/test_hours.py adds up others",
    r"licorne .*/var/lib/licorne": "the folder is the reader's; a simulation is recorded, and replayed, in its place",
    r"licorne sweep .*--(engine ray|shard|join)\b": "it needs a Ray cluster, or an array of jobs; tests/sweep runs both",
    r"licorne kube\b": "it needs a Kubernetes cluster; tests/kube run it on one",
    r"(\S+=\S* )*\S*python -m (pytest|bench|cProfile)\b": "runs tests or the benchmark, or profiles",
}
"""Commands that are not run here, and why."""


def is_run(command: str) -> bool:
    """Is this command run, and its output compared?"""
    return not any(re.match(pattern, command) for pattern in NOT_RUN)


PROGRAMS = ("openssl", "curl")
"""Programs of the reader's machine that samples use; a page that needs one is left out where it is not installed."""


def missing_programs(commands: list[str]) -> list[str]:
    """Return the programs that these commands use, and that are not installed."""
    return [name for name in PROGRAMS if any(re.match(rf"{name}\b", one) for one in commands) and not which(name)]


SLOW = ("docs/use/reports.md", "docs/use/scenarios.md")
"""Pages whose samples take more than half a minute: they draw whole reports. They run at night."""


def of_rings(paths: list[Path]) -> list[Any]:
    """Return the pages as parameters of a test, each in its ring."""
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return [
        pytest.param(path, id=name, marks=pytest.mark.nightly if name in SLOW else pytest.mark.gate)
        for name, path in names.items()
    ]


@pytest.mark.parametrize("path", of_rings(documents()))
def test_each_command_prints_what_the_document_shows(path: Path, tmp_path: Path) -> None:
    run = [sample for sample in samples(path) if is_run(sample.command)]
    if missing := missing_programs([sample.command for sample in run]):
        pytest.skip(f"not installed: {', '.join(missing)}")
    with Shell(tmp_path) as shell:
        for sample in run:
            try:
                shell.check(sample)
            except AssertionError as error:
                raise AssertionError(f"{path.relative_to(ROOT)}:{sample.line}: {error}") from None


def test_a_page_needs_only_the_programs_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = ["openssl rand -hex 24 > token", "licorne serve --token-file openssl", "curl -s http://127.0.0.1:9080/"]
    assert missing_programs(["licorne --version"]) == []
    monkeypatch.setenv("PATH", "")
    assert missing_programs(commands) == ["openssl", "curl"]
    assert missing_programs(commands[1:]) == ["curl"]


def test_each_command_without_a_prompt_is_listed_as_not_run() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {command}" for path in pages() for line, command in without_output(path)
        if is_run(command)
    ]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("pattern", NOT_RUN)
def test_each_pattern_of_commands_that_are_not_run_is_needed(pattern: str) -> None:
    shown = [sample.command for path in documents() for sample in samples(path)]
    shown += [command for path in pages() for _, command in without_output(path)]
    assert any(re.match(pattern, command) for command in shown)
