"""Configurations are checked in processes that can be ended: when a check takes too long, is not awaited, or the service ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable
from pathlib import Path

import httpx
import pytest

import licorne.cli
from common.waiting import WAIT_S, eventually, wait_for
from licorne.config import ConfigError, Configuration, check, load
from licorne.grpc.service.checking import checks
from licorne.grpc.service.checking.checks import Checks
from licorne.host.setting_table import MIB
from service.peers import Peer, watched
from service.processes import Serving, resident_kb, serving
from service.test_item_limits import queues

ENDLESS = "- a\n" * (1 << 18)
"""1 MiB that means nothing, and takes much longer to read than the least limit of these tests."""


def made(limit_s: float = WAIT_S, most: int = 10_000) -> Checks:
    return Checks(lambda: limit_s, lambda: most)


TEXTS = {
    "legal": queues(100),
    "short": queues(2),
    "refused": queues(100) + "unknown: 1\n",
    "deep": "[" * 3_000,
    "aliases": "partitions:\n  - &p {name: default}\n  - *p\n",
}


async def result(reading: Awaitable[Configuration]) -> object:
    try:
        return await reading
    except ConfigError as error:
        return error.problems


async def test_a_check_finds_what_the_reader_finds() -> None:
    found = made()
    for text in TEXTS.values():
        assert await found.report(text, file="x") == check(text, file="x")
        try:
            expected: object = load(text)
        except ConfigError as error:
            expected = error.problems
        assert await result(found.read(text)) == expected
        assert await result(asyncio.to_thread(found.read_queues, text, 10_000)) == expected
    assert (await made(most=7).report(queues(100), file="x")).faults[0].rule == "queues-too-many"
    assert (await made(most=7).report(queues(9), file="x")).faults[0].rule == "queues-too-many"
    found.close()


async def test_a_check_that_takes_too_long_or_that_no_caller_awaits_is_ended() -> None:
    found = made(limit_s=0.05)
    (fault,) = (await found.report(ENDLESS, file="x")).faults
    assert (fault.rule, fault.message) == ("check-ended", "took longer than 0.05 s to check, or too much memory")
    patient = made()
    work = asyncio.create_task(patient.report(ENDLESS, file="x"))
    await eventually(lambda: patient._processes)
    (process,) = patient._processes.values()
    work.cancel()
    await eventually(lambda: process.returncode is not None)
    assert (await patient.report(queues(100), file="x")).faults == ()
    found.close()
    patient.close()


async def test_a_process_that_dies_costs_its_job_only() -> None:
    found = made()
    work = asyncio.create_task(found.report(ENDLESS, file="x"))
    await eventually(lambda: found._processes)
    os.kill(next(iter(found._processes.values())).pid, signal.SIGKILL)
    assert (await work).faults[0].rule == "check-ended"
    assert (await found.report(queues(100), file="x")).faults == ()
    assert found._processes == {}
    found.close()


async def test_without_a_process_a_text_is_checked_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    found = made()
    assert await found.report(queues(100), file="x") == check(queues(100), file="x")
    found.close()


async def test_memory_of_a_check_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "import licorne.grpc.service.checking.check_process as c; c.MEMORY_BYTES = 48 << 20; c.main()"
    monkeypatch.setattr(checks, "_COMMAND", lines)
    found = made()
    (fault,) = (await found.report(ENDLESS, file="x")).faults
    assert fault.rule == "check-ended"
    found.close()


# -- in a service ------------------------------------------------------------------------------------------


def rest(running: Serving) -> str:
    wait_for(lambda: running.events("listening for REST"))
    return f"http://{running.events('listening for REST')[0]['addresses'][0]}"


def ask_in_thread(base: str, body: str) -> threading.Thread:
    def ask() -> None:
        try:
            httpx.post(f"{base}/ws/v1/validate-conf", content=body, timeout=WAIT_S)
        except httpx.HTTPError:
            return  # the service has ended

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


@pytest.mark.gate
def test_a_signal_ends_the_service_while_checks_run() -> None:
    with serving("--rest", "127.0.0.1:0") as running:
        base = rest(running)
        asking = [ask_in_thread(base, ENDLESS) for _ in range(4)]
        time.sleep(2.0)
        assert httpx.get(f"{base}/ws/v1/metrics", timeout=WAIT_S).status_code == 200
        assert running.end() == 0  # 1 if it was ended by force
        assert not any('"library"' in line for line in running.lines)
        for thread in asking:
            thread.join(WAIT_S)


STUCK_CHECK = """
import time
from licorne.grpc.service.checking import check_process
done = check_process.done
check_process.done = lambda job: done(job) if len(job.text) < 1 << 18 else time.sleep(3600)
check_process.main()
"""


async def test_a_configuration_to_apply_does_not_wait_for_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_COMMAND", STUCK_CHECK)
    async with watched(settings={"request_s": 3600.0}) as (running, client), Peer(running.addresses[0]) as peer:
        await peer.register()
        endless = [asyncio.create_task(client.post("/ws/v1/validate-conf", content=ENDLESS)) for _ in range(4)]
        await eventually(lambda: len(running.checks._processes) == 2)
        assert (await client.put("/ws/v1/config", content=queues(100))).status_code == 200
        await peer.register(config=queues(120))
        assert not any(one.done() for one in endless)
        for one in endless:
            one.cancel()
        await eventually(lambda: not running.checks._processes)


@pytest.mark.gate
def test_refused_texts_leave_nothing_in_memory() -> None:
    with serving("--rest", "127.0.0.1:0") as running, httpx.Client(base_url=rest(running), timeout=WAIT_S) as client:

        def ask(count: int) -> int:
            for _ in range(count):
                answer = client.post("/ws/v1/validate-conf", content="- " * 100_000)
                assert answer.json()["problems"][0]["rule"] == "yaml-depth"
            return resident_kb(running.process.pid)

        before = ask(5)
        assert ask(25) - before < 3_000  # it was 280 kB for each
        assert running.end() == 0


async def test_a_body_is_as_long_as_a_legal_configuration_may_be() -> None:
    async with watched() as (_, client):
        for method, path in (("POST", "/ws/v1/validate-conf"), ("PUT", "/ws/v1/config")):
            answer = await client.request(method, path, content=b"#" * (MIB + 1))
            assert answer.status_code == 413


@pytest.mark.parametrize("kind", ["pipe", "device", "socket"])
def test_a_path_that_is_no_file_is_refused_without_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / "queues.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    for option in ("--config", "--settings", "--token-file"):
        assert licorne.cli.run(["serve", "--grpc", "127.0.0.1:0", option, str(path)]) == 1
        told = capsys.readouterr().err
        assert "is no regular file" in told or "No such device or address" in told


async def test_a_configuration_that_becomes_a_pipe_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(queues(3))
    with serving("--config", str(path)) as running:
        path.unlink()
        os.mkfifo(path)
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: running.events("configuration refused, the old one stays"))
        assert "is no regular file" in running.events("configuration refused, the old one stays")[0]["reason"]
        path.unlink()
        path.write_text(queues(4))
        wait_for(lambda: running.events("queue configuration applied"))
        async with Peer(running.address) as peer:
            await peer.register()
            assert (await peer.node()).accepted
        assert running.end() == 0


STUCK = """
import sys, time
import licorne.grpc.service.configuration.changes as changes
import licorne.host.signals as signals
import licorne.cli
signals.ENDS_IN_S = 1.0 if sys.argv[1] == "loop" else 100.0
def mark(path):
    sys.stderr.write("{}\\n")
    sys.stderr.flush()
    if sys.argv[1] == "file":
        time.sleep(1000)
if sys.argv[1] == "file":
    changes.mark = mark
elif sys.argv[1] == "loop":
    import licorne.grpc.service.server as server
    server.Service.stop = lambda self: time.sleep(1000)
class Garbage:
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep(1000)
if sys.argv[1] == "destructor":
    kept = Garbage()
licorne.cli.main(["serve", "--grpc", "127.0.0.1:0", "--config", sys.argv[2], "--log-format", "json"])
"""


@pytest.mark.gate
@pytest.mark.parametrize(("what", "status"), [("file", 0), ("loop", 1), ("destructor", 0)])
def test_a_signal_ends_the_service_whatever_hangs(tmp_path: Path, what: str, status: int) -> None:
    """A file system that never answers, a loop that never goes on, and a destructor that Python would run at its end."""
    path = tmp_path / "queues.yaml"
    path.write_text(queues(3))
    process = subprocess.Popen([sys.executable, "-c", STUCK, what, str(path)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if ('"listening"' in line and what != "file") or line == "{}\n":
                break
        time.sleep(0.5)
        process.terminate()
        assert process.wait(WAIT_S) == status
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
