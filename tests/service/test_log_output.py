"""A log that cannot be written, or is not read, stops nothing; records of libraries are structured too."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from common.waiting import WAIT_S, wait_for
from licorne.grpc.service import make_log
from licorne.host import log_writer
from licorne.host.log import Levels, dropped_of
from licorne.host.log_writer import LogWriter
from licorne.host.process_log import Bridge, process_log
from service.peers import Peer


def missing(count: int) -> str:
    return f"missing {count}\n"


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe of 4 kB."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield reading, writing
    finally:
        os.close(writing)
        os.close(reading)


def test_writing_never_waits_and_dropped_lines_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "WAITING_CHARS", 10_000)
    with pipe() as (reading, writing):
        writer = LogWriter(writing, missing)
        lines = [f"{number:08d}\n" for number in range(5_000)]
        for line in lines:
            writer.write(line)
        assert writer.dropped > 2_000
        lost = writer.dropped
        found = b""
        while found.count(b"\n") - found.count(b"missing") < len(lines) - lost:
            found += os.read(reading, 65_536)
        writer.write("the end\n")
        while not found.endswith(b"the end\n"):
            found += os.read(reading, 65_536)
        writer.close(5)
    at = 0
    for line in found.decode().splitlines()[:-1]:  # in order, and where some are missing it says how many
        at += int(line.removeprefix("missing ")) if line.startswith("missing ") else 1
        assert line.startswith("missing ") or int(line) == at - 1
    assert at == len(lines)
    assert writer.dropped == lost


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_lines_wait_for_room_on_a_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(log_writer, "RETRY_S", 0.01)
    monkeypatch.setattr(log_writer, "WAITING_CHARS", 6)
    target = os.open("/dev/full", os.O_WRONLY)
    writer = LogWriter(target, missing)
    for number in range(5):
        writer.write(f"{number}\n")
    assert writer.dropped == 2
    room = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(room, target)
    wait_for(lambda: (tmp_path / "log").read_text() == "0\n1\n2\n")
    wait_for(lambda: not writer._lines)
    writer.write("5\n")
    writer.close(5)
    assert (tmp_path / "log").read_text() == "0\n1\n2\nmissing 2\n5\n"
    os.close(room)
    os.close(target)


def test_a_line_that_was_cut_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_writer, "RETRY_S", 0.01)
    written, room = bytearray(), [7]

    def write(_descriptor: int, data: bytes) -> int:
        some = data[: room[0]]
        if not some:
            raise OSError("full")
        room[0] -= len(some)
        written.extend(some)
        return len(some)

    monkeypatch.setattr(os, "write", write)
    writer = LogWriter(0, missing)
    writer.write("abc\n")
    writer.write("defg\n")  # cut after its third letter
    writer.write("h\n")
    wait_for(lambda: bytes(written) == b"abc\ndef")
    room[0] = 10_000
    wait_for(lambda: bytes(written) == b"abc\ndefg\nh\n")
    assert writer.dropped == 0
    writer.close(5)


def test_a_stream_that_fails_costs_a_line_and_nothing_else() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    log = make_log(Full())
    log.info("registered", rm="x")
    assert dropped_of(log) == 1
    assert dropped_of(log.bind(a=1)) == 1


def test_log_records_of_libraries_become_events() -> None:
    out = io.StringIO()
    with process_log(out, form="json", levels=Levels()):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        for number in range(50):
            logging.getLogger("concurrent.futures").error("it failed %d times", number)
        logging.getLogger("uvicorn.error").info("not of interest")
        try:
            int("a reason")
        except ValueError:
            logging.getLogger("grpc").exception("it broke\x1b[2J")
        failing = threading.Thread(target=lambda: 1 // 0)
        failing.start()
        failing.join()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(one["event"], one["logger"]) for one in events[:3]] == [
        ("Invalid HTTP request received.", "core.rest"),
        ("it failed 0 times", "core"),  # once a second
        ("it broke\x1b[2J", "core.rmproxy"),
    ]
    assert "a reason" in events[2]["exception"]
    assert events[3]["event"] == "a thread failed"
    assert "ZeroDivisionError" in events[3]["exception"]
    assert len(events) == 4


def test_frequent_records_are_counted() -> None:
    out, now = io.StringIO(), [0.0]
    bridge = Bridge(make_log(out, form="json"), lambda: now[0])
    record = logging.LogRecord("asyncio", logging.ERROR, "", 1, "again", (), None)
    for _ in range(7):
        bridge.emit(record)
    now[0] = 1.0
    bridge.emit(record)
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one.get("repeated") for one in events] == [None, 6]


@contextmanager
def unread(folder: Path, stderr: int) -> Iterator[subprocess.Popen[bytes]]:
    """A service whose log goes there, with unix sockets `grpc` and `rest`."""
    command = [sys.executable, "-m", "licorne.cli", "serve", "--grpc", f"unix:{folder}/grpc"]
    process = subprocess.Popen([*command, "--rest", f"unix:{folder}/rest", "--log-level", "debug"], stderr=stderr)
    try:
        wait_for((folder / "rest").exists)
        yield process
    finally:
        process.kill()
        process.wait()


def metrics(folder: Path) -> str:
    transport = httpx.HTTPTransport(uds=str(folder / "rest"))
    with httpx.Client(transport=transport, base_url="http://x", timeout=WAIT_S) as client:
        return client.get("/ws/v1/metrics").text


async def test_decisions_go_on_while_nobody_reads_the_log(tmp_path: Path) -> None:
    with pipe() as (_, writing), unread(tmp_path, writing) as process:
        async with Peer(f"unix:{tmp_path}/grpc") as peer:
            for _ in range(60):  # some 10 kB of lines
                await peer.register(version="v" * 80)
        async with Peer(f"unix:{tmp_path}/grpc", "other") as peer:
            await peer.running()
            await peer.asks("a")
            assert await peer.allocations(1) == {"a": "n1"}
        assert "licorne_decisions_total 1.0\n" in metrics(tmp_path)
        process.terminate()
        assert process.wait(WAIT_S) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_registrations_go_on_while_the_disk_is_full(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full, unread(tmp_path, full.fileno()) as process:

        async def story() -> None:
            async with Peer(f"unix:{tmp_path}/grpc") as peer:
                await peer.running()

        asyncio.run(story())
        process.terminate()
        assert process.wait(WAIT_S) == 0
