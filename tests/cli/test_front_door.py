"""What all commands have in common: help, version, errors without tracebacks, a quick start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from licorne import __version__
from licorne._extras import MODULES
from licorne.cli.commands import app
from licorne.cli.common import say
from licorne.cli.statuses import MEANINGS

Command = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "examples" / "scenarios" / "halved-queue.yaml"
COMMANDS = (*(name for name in app.resolved_commands() if not name.startswith("-")), "config check", "scenario check")
GROUPS = {"config", "scenario"}
CALLS = {
    "compare": "compare own examples/gpu-holiday/no-preemption.yaml examples/gpu-holiday/workload.jsonl",
    "config": "config check examples/migration/queues.yaml",
    "place": "place --config examples/migration/queues.yaml --user ann --tag namespace=dev",
    "scenario": "scenario check examples/scenarios/halved-queue.yaml",
    "shares": "shares --from examples/pods-wait/dump.json",
    "convert": "convert examples/scenarios/halved-queue.yaml",
    "simulate": "simulate examples/lowered-quota/workload.jsonl",
    "why": "why --from examples/pods-wait/dump.json",
}
"""A call of each command that needs no more than an example, and ends by itself."""


def test_help_lists_the_commands(licorne: Command) -> None:
    outcome = licorne("--help")
    assert outcome.status == 0
    for command in COMMANDS:
        assert command.split()[0] in outcome.out


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_first_call_of_each_command(licorne: Command, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    monkeypatch.chdir(ROOT)
    outcome = licorne(*call.split())
    assert outcome.status == 0
    assert outcome.out


@pytest.mark.parametrize("arguments", ["--version", "-V"])
def test_the_version_shows_whether_it_is_compiled(licorne: Command, arguments: str) -> None:
    outcome = licorne(arguments)
    assert outcome.status == 0
    assert outcome.out.startswith(f"licorne {__version__} (")
    assert ("(compiled," in outcome.out) != ("(interpreted," in outcome.out)


@pytest.mark.parametrize(
    "arguments",
    [("simulate",), ("simulat",), ("config", "chek")],
)
def test_wrong_usage_is_status_2(licorne: Command, arguments: tuple[str, ...]) -> None:
    assert licorne(*arguments).status == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("simulate", "{}/none"), "none: no such file; give a workload"),
        (("simulate", "{}"), "is a folder without a recording, and no workload"),
        (("simulate", "{}/binary"), "binary:1: not JSON"),
        (
            ("simulate", "{}/text"),
            "text:1: not JSON: invalid character (byte 0); is this a workload, a file of JSON lines?",
        ),
        (("simulate", "{}/node"), "node:2: res:"),
        (("simulate", "{}/good", "--config", "{}/none"), "none: no such file; give the path of a queue configuration"),
        (("simulate", "{}/good", "--config", "{}"), "is a folder; give the path of a queue configuration"),
        (("simulate", "{}/good", "--config", "{}/binary"), "is not UTF-8 text"),
        (("simulate", "{}/good", "--decisions", "{}/none/x"), "none/x: No such file or directory"),
        (("convert", str(SCENARIO), "-o", "{}/none/x"), "none/x: No such file or directory"),
        (("convert", "{}/json"), "json: not JSON: 'utf-8' codec can't decode byte 0xff"),
        (("convert", "{}/jsons"), "jsons: not JSON: 'utf-8' codec can't decode byte 0xff"),
        (("why", "--from", "{}/json"), "json: the dump is no JSON: 'utf-8' codec can't decode byte 0xff"),
        (("replay", "{}/damaged"), "manifest.json: cannot be read: 'utf-8' codec can't decode byte 0xff"),
        (("config", "check", "{}/none"), "none: no such file; give the path of a queue configuration"),
        (("place", "--config", "{}/none", "--user", "u"), "none: no such file"),
    ],
)
def test_an_error_names_the_remedy(
    licorne: Command, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    (tmp_path / "json").write_bytes(b'{"kind": "\xff"}')
    (tmp_path / "jsons").write_bytes(b'{"kind": "List", "items": []}\n{"kind": "\xff"}')
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "manifest.json").write_bytes(b'{"kind": "\xff"}')
    (tmp_path / "text").write_text("# licorne\n")
    (tmp_path / "good").write_text('{"t":"meta"}\n')
    (tmp_path / "node").write_bytes(b'{"t":"meta"}\n{"t":"node","res":{"vcore":"1"},"id":"\xff"}\n')
    (tmp_path / "script").write_text('{"t":"meta","version":2}\n')
    outcome = licorne(*(argument.replace("{}", str(tmp_path)) for argument in arguments))
    unread = any(part in complaint for part in ("no such file", "No such file", "is a folder;", "not UTF-8", "utf-8"))
    assert outcome.status == (4 if unread else 1)
    assert outcome.err.startswith("licorne: ")
    assert complaint in outcome.err


def test_each_command_names_its_exit_statuses(licorne: Command) -> None:
    for command in COMMANDS:
        if command not in GROUPS:
            assert "Exit status: 0 " in licorne(*command.split(), "--help").out


def test_the_table_of_exit_statuses_is_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "exit-statuses.md"
    rows = [f"| {status:d} | {meaning} |" for status, meaning in MEANINGS.items()]
    assert [line for line in page.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d", line)] == rows


def test_help_shows_no_default_that_says_nothing(licorne: Command) -> None:
    for command in COMMANDS:
        shown = licorne(*command.split(), "--help").out
        assert not re.search(r"\[default:\s+(\(\)|\"\"|None|False)\]", shown), command


def test_help_does_not_wait_for_the_scheduler() -> None:
    """Start-up is quick because nothing is imported that is not needed; time itself depends on the machine."""
    script = (
        "import sys\nfrom licorne.cli import run\nrun(['--help'])\n"
        "heavy = [name for name in sys.modules if name.startswith(('licorne.core', 'licorne.sim', 'licorne.si.', 'yaml'))]\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    command = f"'{sys.executable}' -m licorne.cli convert {SCENARIO} | head -c 10"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.stdout == '{"t":"meta'


@pytest.mark.parametrize(
    "arguments",
    [
        "convert examples/scenarios/halved-queue.yaml",
        "simulate examples/migration/small.jsonl",
        "simulate --help",
        "config check examples/migration/bad.yaml",
    ],
)
def test_a_closed_pipe_has_its_own_status(arguments: str) -> None:
    """Be it written by the command, by Rich, or by the library that prints the help."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        result = subprocess.run(
            [sys.executable, "-m", "licorne.cli", *arguments.split()],
            stdout=closed,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            check=False,
        )
    assert (result.returncode, result.stderr) == (141, b"")


OPTIONAL = sorted({name for names in MODULES.values() for name in names} - {*MODULES["cli"]})
WITHOUT_EXTRAS = f"""
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
from licorne.cli import run
sys.exit(max(run(line.split()) for line in sys.argv[1:]))
"""


def without_extras(*lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS, *lines], capture_output=True, text=True, check=False)


def test_help_needs_no_extra() -> None:
    done = without_extras(*(f"{command} --help" for command in COMMANDS))
    assert (done.returncode, done.stderr) == (0, "")
    for command in COMMANDS:
        assert f"Usage: licorne {command}" in done.stdout


def test_completion_is_installed_where_the_shell_looks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = without_extras("--install-completion --shell bash")
    assert done.returncode == 0, done.stderr
    (script,) = tmp_path.rglob("completions/licorne")
    completed = script.read_text(encoding="utf-8")
    for word in ("why", "--assumptions", "--scheduler-name", "--rm-timeout"):
        assert word in completed


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "told"),
    [
        (Terminal, {"TERM": "xterm"}, "\x1b[31m[a] b\x1b[0m\n"),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, "[a] b\n"),
        (StringIO, {"TERM": "xterm"}, "[a] b\n"),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, stream: type[StringIO], environment: dict[str, str], told: str
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    to = stream()
    say("[a] b", to=to, style="red")
    assert to.getvalue() == told


def test_faults_and_warnings_differ_in_colour(licorne: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for line in licorne("config", "check", ROOT / "examples" / "migration" / "bad.yaml").out.splitlines():
        assert line.startswith("\x1b[33m" if "(warning)" in line else "\x1b[31m")


def test_a_misspelled_command_needs_no_extra() -> None:
    done = without_extras("wyh")
    assert done.returncode == 2
    assert 'Unknown command "wyh". Did you mean "why"?' in done.stderr + done.stdout
