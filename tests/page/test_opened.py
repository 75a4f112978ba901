"""`licorne page`: the same views of a state dump, of a scheduler elsewhere, and of any moment of a recording."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from licorne.host.web.page import past as opening
from licorne.host.web.page.past import OpenedDump, OpenedRecording, pages_app
from licorne.host.web.page.routes import Opened
from licorne.host.web.rest.state import full_state
from licorne.si.rest_objects import FullState
from licorne.state.dump import DumpError, read_dump
from licorne.state.recording import Recorder
from rest.world import CONFIG, SECOND_NS, START_NS, World, busy, run

ROOT = Path(__file__).resolve().parents[2]
BUSY = "There was no answer in time"
"""What is said on a machine that is too busy for a question; then it is asked again."""
DUMP = ROOT / "examples/pods-wait/dump.json"


def look(opened: Opened, *addresses: str) -> list[httpx.Response]:
    """What the pages of a source answer, one after the other."""
    failures: list[Exception] = []

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(pages_app(opened, lambda _, error: failures.append(error)))
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            return [await client.get(address) for address in addresses]

    found: list[httpx.Response] = run(ask())
    assert not failures, failures
    return found


def dumped(world: World) -> FullState:
    return read_dump(full_state(world.api, world.now)).state


@pytest.mark.parametrize(
    "address",
    ["/", "/queues?queue=root.search", "/applications", "/application?name=index", "/nodes", "/node?name=cpu-0", "/people", "/configuration"],
)  # fmt: skip
def test_each_view_of_a_dump(address: str) -> None:
    state = read_dump(DUMP.read_bytes()).state
    [page] = look(OpenedDump(lambda: state, "dump.json", again=False).opened, address)
    assert page.status_code == 200
    assert "dump.json" in page.text and "2026-11-25 08:25:00 UTC" in page.text
    assert "Look again" not in page.text and "openapi" not in page.text


def test_a_dump_is_asked_why() -> None:
    state = read_dump(DUMP.read_bytes()).state
    page, none = look(OpenedDump(lambda: state, "d", again=False).opened, "/why?name=search/index-0", "/why?name=nix")
    assert "limit of user sue" in page.text and "maxresources" in page.text
    assert "no application, ask, allocation or pod" in none.text


def test_a_running_scheduler_is_asked_again_but_not_by_each_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    world, read = busy(), list[int]()

    def fetch() -> FullState:
        read.append(1)
        return dumped(world)

    opened = OpenedDump(fetch, "http://elsewhere", again=True).opened
    pages = look(opened, "/", "/queues", "/nodes")
    assert len(read) == 1
    assert "Look again every 5 s" in pages[0].text
    monkeypatch.setattr(opening, "AGAIN_S", 0.0)
    look(OpenedDump(fetch, "http://elsewhere", again=True).opened, "/", "/queues")
    assert len(read) == 3


def test_a_scheduler_that_does_not_answer_is_told() -> None:
    def fetch() -> FullState:
        raise DumpError("it is gone")

    [page] = look(OpenedDump(fetch, "http://elsewhere", again=True).opened, "/")
    assert page.status_code == 503 and "it is gone" in page.text


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A pod that runs after the first minute, and one that waits after the second."""
    world = World()
    world.api.input_log = recorder = Recorder(tmp_path / "night")
    world.register().node("n1", vcore=1_000).application("app-1", "root.other", "bob")
    world.now += 60 * SECOND_NS
    world.ask("k1", "app-1", vcore=800).schedule()
    world.now += 60 * SECOND_NS
    world.ask("k2", "app-1", vcore=800).schedule()
    world.now += 60 * SECOND_NS
    world.schedule()
    assert recorder.close()
    return tmp_path / "night"


def test_every_moment_of_a_recording_has_an_address(recording: Path) -> None:
    start = START_NS // SECOND_NS
    moments = ("", f"?t={start + 30}", f"?t={start + 90}", f"?t={start + 150}", f"?t={start + 90}", f"?t={start + 91}")
    counts = []
    for page in look(OpenedRecording(recording).opened, *(f"/{moment}" for moment in moments)):
        assert page.status_code == 200, page.text
        counts.append(re.findall(r"<b[^>]*>([0-9]+)</b> pods? (?:run|wait)s?<", page.text))
    assert counts == [["1", "1"], ["0", "0"], ["1", "0"], ["1", "1"], ["1", "0"], ["1", "0"]]


def test_a_moment_stays_from_view_to_view_and_plays(recording: Path) -> None:
    start = START_NS // SECOND_NS
    addresses = (
        f"/?t={start + 30}",
        f"/queues?t={start + 30}&every=2&step=60",
        f"/?t={start + 170}&every=2&step=60",
        "/?t=x",
    )
    page, playing, ended, wrong = look(OpenedRecording(recording).opened, *addresses)
    assert f'href="/queues?t={start + 30}"' in page.text
    assert 'type="range"' in page.text and "1 min later" in page.text
    assert playing.headers["refresh"] == f"2; url=/queues?t={start + 90}&every=2&step=60"
    assert "refresh" not in ended.headers
    assert wrong.status_code == 400 and "is no time" in wrong.text


def test_a_moment_is_asked_why(recording: Path) -> None:
    start = START_NS // SECOND_NS
    opened, text = OpenedRecording(recording).opened, BUSY
    while BUSY in text:
        text = look(opened, f"/why?name=k2&prove=false&t={start + 150}")[0].text
    assert "What it has to pass" in text


def test_no_more_moments_are_kept_than_are_looked_at(recording: Path) -> None:
    found = OpenedRecording(recording)
    look(found.opened, *(f"/?t={START_NS // SECOND_NS + 10 * number}" for number in range(1, 9)))
    assert len(found._moments) <= opening.MOMENTS_MAX


@contextlib.contextmanager
def command(*arguments: str) -> Iterator[Any]:
    with subprocess.Popen(
        [sys.executable, "-m", "licorne.cli", "page", *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)


def test_the_command_serves_this_machine_until_it_is_ended() -> None:
    with command(str(DUMP)) as process:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:[0-9]+/", process.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0]) as answer:  # noqa: S310  http
            assert b"root.search" in answer.read()
    assert process.returncode == 0


def test_what_is_no_source_is_told_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(CONFIG)
    for source in (tmp_path / "x.yaml", tmp_path / "none"):
        done = subprocess.run(
            [sys.executable, "-m", "licorne.cli", "page", str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode not in (0, 1) and str(source) in done.stderr
