"""What others chose (names, reasons, the words of a server) is nothing but text on a terminal."""

from __future__ import annotations

import ast
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import licorne as package
from licorne import SchedulerAPI
from licorne.cli.common import clean
from licorne.core.base.states import SECOND_NS
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate
from licorne.state.recording import Recorder, list_runs
from licorne.state.recording.blocks import BlockWriter

Command = Callable[..., Any]
EVIL = "a\x1b]0;PWNED\x07\x1b[31m\nforged\r\x00\u202e\u2066\x9b31m[bold]:smile:[/x]"
HARM = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|^forged", re.MULTILINE)
CLI = Path(package.__file__).parent / "cli"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with hostile names, and a hostile reason at its end."""
    folder = tmp_path / "recording"
    with Recorder(folder) as recorder:
        api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
        api.input_log = recorder
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), now_ns=SECOND_NS)
        node = NodeUpdate(node_id=EVIL, action=NodeAction.CREATE, capacity={"vcore": 1_000})
        application = AddApplication(application_id=EVIL, queue="root.default", user="ann", groups=("dev",))
        asks = [Allocation(key=f"{EVIL}{number}", application_id=EVIL, resource={"vcore": 800}) for number in range(2)]
        api.submit("rm", [node, application, *asks], now_ns=SECOND_NS)
        api.schedule(now_ns=2 * SECOND_NS)
    writer = BlockWriter(list_runs(folder)[0].folder / "segment-000002")
    writer.write([("gap", EVIL)])
    writer.close()
    return folder


def test_texts_of_a_recording_do_nothing_to_a_terminal(licorne: Command, recording: Path) -> None:
    for command in (
        ("why", "--from", recording),
        ("why", EVIL, "--from", recording),
        ("why", f"{EVIL}1", "--from", recording),
        ("shares", "--from", recording),
        ("replay", recording),
        ("compare", "own", "own", recording),
        ("why", "--from", recording, "--json"),
        ("why", f"{EVIL}2", "--from", recording),
    ):
        done = licorne(*command)
        assert done.out or done.err
        assert not HARM.search(done.out + done.err), command
        if command[-1] == "--json":
            assert any(EVIL in note["text"] for note in json.loads(done.out)["notes"])


def test_the_version_of_a_manifest_is_one(licorne: Command, recording: Path) -> None:
    manifest = {"kind": "licorne recording", "format": 9, "licorne": EVIL}
    (recording / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = licorne("replay", recording)
    assert done.status == 4
    assert "is no version" in done.err
    assert not HARM.search(done.err)


def test_the_words_of_a_server_do_nothing_to_a_terminal(licorne: Command) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(500, "\x1b]0;PWNED\x1b\\")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        done = licorne("why", "--from", f"http://127.0.0.1:{server.server_port}")
        thread.join()
    assert done.status == 4
    assert r"500 \x1b]0;PWNED\x1b" in done.err
    assert not HARM.search(done.err)


def test_a_text_without_such_characters_stays_as_it_is() -> None:
    assert clean("größer … 字 [x] \\n") == "größer … 字 [x] \\n"
    assert clean("a\nb\u202ec\ud800") == r"a\nb\u202ec\ud800"


def test_commands_print_in_no_other_way() -> None:
    """All output passes `say`, `print_json` or the console of `licorne.cli.sheets`."""
    found = []
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            written = name == "write" and isinstance(node.func, ast.Attribute) and "std" in ast.unparse(node.func.value)  # type: ignore[attr-defined]
            named = name in ("print", "Text") and isinstance(node.func, ast.Name)  # type: ignore[attr-defined]
            if named or written or name == "Console":
                found.append((path.name, name))
    assert sorted(found) == [
        ("common.py", "Console"),
        ("common.py", "print"),
        ("common.py", "print"),
        ("help.py", "Text"),
        ("progress.py", "Console"),
    ]
