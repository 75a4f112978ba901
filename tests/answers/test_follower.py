"""A process that follows a scheduler answers as the recording of the same moment does, and never holds the scheduler up."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from answers.dumps import full_state
from common.waiting import WAIT_S, eventually, wait_for
from licorne.answers import Home, why
from licorne.answers.process import Question, UnansweredError, answer_to
from licorne.answers.recorded import restore_moment
from licorne.answers.shares import Shares
from licorne.answers.why import Answer, AskAnswer
from licorne.host import follower as following
from licorne.host.follower import QUEUE_BYTES, Follower
from licorne.si.messages import Allocation
from licorne.state.dump import read_dump
from licorne.state.recording import Recorder, Run, choose_run, runs
from licorne.state.recording.blocks import MAGIC, BlockWriter
from licorne.state.recording.entries import Entry
from licorne.state.recording.noting import Both
from licorne.state.restore import restore
from recording.recorded import record_history
from rest.world import World


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BEHIND_S", WAIT_S)
    monkeypatch.setattr(following, "AGAIN_S", 0.1)


@asynccontextmanager
async def followed(
    recording: Path | None = None,
    queue_bytes: int = QUEUE_BYTES,
    trouble: Callable[[str], object] = lambda _: None,
) -> AsyncIterator[tuple[World, Follower]]:
    """Yield a scheduler of which six asks want a node for four, and what follows it."""
    follower = Follower(recording, trouble, queue_bytes)
    world = World()
    follower.start()
    try:
        if recording is None:
            world.api.input_log = follower
            yield waiting(world), follower
        else:
            with Recorder(recording) as recorder:
                world.api.input_log = Both.of(recorder, follower)
                yield waiting(world), follower
    finally:
        follower.close()
        assert follower.pid is None


def waiting(world: World) -> World:
    world.register(**{"reservation.enabled": "false"}).node("n1", vcore=4_000)
    world.application("app-1")
    for number in range(6):
        ask(world, f"k{number}", 1_000)
    world.schedule()
    return world


def ask(world: World, key: str, vcore: int) -> None:
    """Submit an ask that may preempt and be evicted, as restored dumps assume of all."""
    world.submit(
        Allocation(
            key=key,
            application_id="app-1",
            resource={"vcore": vcore},
            allow_preempt_self=True,
            allow_preempt_other=True,
        )
    )


def send(follower: Follower, what: signal.Signals) -> int:
    """Send its process a signal; return the number of the process."""
    assert follower.pid is not None
    os.kill(follower.pid, what)
    return follower.pid


async def answered(follower: Follower, name: str, world: World, *, prove: bool = True) -> AskAnswer:
    found = await follower.ask(Question("why", name, prove=prove, limit_s=WAIT_S), world.now)
    assert found is not None
    return msgspec.json.decode(found, type=AskAnswer)


@pytest.mark.gate
async def test_what_it_answers_is_what_a_dump_of_the_same_moment_answers() -> None:
    async with followed() as (world, follower):
        for _ in range(2):
            home = Home(restore(read_dump(full_state(world.api, world.now))))
            for key in ("k4", "k5"):
                expected = why(home, key)
                found = await answered(follower, key, world)
                assert isinstance(expected, AskAnswer)
                assert found.proposals is not None and found.proposals.found
                assert found.age_s is not None and 0 <= found.age_s < WAIT_S
                assert replace(found, age_s=None, notes=()) == replace(expected, notes=(), has_constraints=True, log=())
            ask(world, "k9", 500)
            world.schedule(1.0)


@pytest.mark.parametrize("first_interface", [False, True])
async def test_after_a_random_history_it_answers_as_the_recording_does(tmp_path: Path, first_interface: bool) -> None:
    follower = Follower()
    follower.start()
    try:
        life = record_history(tmp_path, 120, first_interface=first_interface, beside=follower)
        restored = restore_moment(choose_run(tmp_path))
        questions = [Question("why", limit_s=WAIT_S), Question("shares", limit_s=WAIT_S)]
        asks = [key for part in restored.partitions for app in part.applications.values() for key in app.asks]
        questions += [Question("why", key, prove=False, limit_s=WAIT_S) for key in asks[:5]]
        for question in questions:
            found = await follower.ask(question, restored.now_ns)
            assert found is not None
            given = msgspec.json.decode(found, type=Shares if question.what == "shares" else Answer)
            restored = restore_moment(choose_run(tmp_path))
            assert replace(given, age_s=None) == answer_to(question, restored, lambda: True)
        assert life.allocations
    finally:
        follower.close()


async def test_what_is_not_there_has_no_answer() -> None:
    async with followed() as (world, follower):
        with pytest.raises(UnansweredError, match="no application, ask, allocation or pod is named 'k77'"):
            await answered(follower, "k77", world)


async def test_it_follows_while_a_question_is_answered_and_a_question_that_was_given_up_is_ended() -> None:
    async with followed() as (world, follower):
        first = asyncio.create_task(answered(follower, "k4", world))
        await asyncio.sleep(0)
        first.cancel()
        ask(world, "k9", 500)
        world.schedule(1.0)
        assert (await answered(follower, "k9", world)).state == "waits"


async def test_a_process_that_is_killed_is_replaced_at_the_next_run() -> None:
    async with followed() as (world, follower):
        assert (await answered(follower, "k4", world, prove=False)).state == "waits"
        send(follower, signal.SIGKILL)
        await eventually(lambda: follower.pid is None)
        assert await follower.ask(Question("why", "k4"), world.now) is None
        world.api.stop("mycluster")
        waiting(world)
        assert (await answered(follower, "k5", world, prove=False)).state == "waits"


@pytest.mark.parametrize("questions", [1, 3])
async def test_the_end_of_the_process_is_noticed_however_many_questions_it_has_answered(questions: int) -> None:
    troubles: list[str] = []
    async with followed(trouble=troubles.append) as (world, follower):
        for _ in range(questions):
            await answered(follower, "k4", world, prove=False)
        send(follower, signal.SIGKILL)
        await eventually(lambda: troubles)
        assert await follower.ask(Question("why", "k4"), world.now) is None
    assert troubles == [f"its process ended with {-signal.SIGKILL}"]


async def test_with_a_recording_another_process_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "read_run", _must_not_wait)
    async with followed(tmp_path) as (world, follower):
        await answered(follower, "k4", world, prove=False)
        killed = send(follower, signal.SIGKILL)
        ask(world, "k6", 700)
        world.schedule(1.0)
        await eventually(lambda: follower.pid not in (None, killed))
        ask(world, "k7", 800)
        world.schedule(1.0)
        expected = why(Home(restore(read_dump(full_state(world.api, world.now)))), "k7")
        found = await answered(follower, "k7", world)
        assert isinstance(expected, AskAnswer)
        assert replace(found, age_s=None, notes=()) == replace(expected, notes=(), has_constraints=True, log=())


def _must_not_wait(_: Path) -> Run:
    raise AssertionError("the loop of the scheduler waits for no file of the recording")


def replace_recording(folder: Path, entries: list[Entry]) -> None:
    (segment,) = folder.glob("run-*/segment-*")
    segment.unlink()
    writer = BlockWriter(segment)
    writer.write(entries)
    writer.close()


async def test_a_process_that_cannot_catch_up_is_started_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    later = Follower._later

    def noted(follower: Follower) -> None:
        delays.append(follower._again_s)
        later(follower)

    monkeypatch.setattr(Follower, "_later", noted)
    async with followed(tmp_path) as (world, follower):
        await answered(follower, "k4", world, prove=False)
        await eventually(lambda: any(path.stat().st_size > len(MAGIC) for path in tmp_path.glob("run-*/segment-*")))
        replace_recording(tmp_path, [("time", follower._began_ns), ("nonsense",)])
        send(follower, signal.SIGKILL)
        await eventually(lambda: len(delays) >= 4)
    assert delays[:4] == [0.1, 0.2, 0.4, 0.8]


async def test_a_process_that_is_stopped_is_cut_off_and_nothing_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BEHIND_S", 0.2)
    async with followed(queue_bytes=300_000) as (world, follower):
        await eventually(lambda: follower.pid)
        send(follower, signal.SIGSTOP)
        assert await follower.ask(Question("why", "k4"), world.now) is None
        for number in range(5_000):
            world.ask(f"many-{number}", "app-1", vcore=100, memory=number)
        await eventually(lambda: follower.pid is None)
        assert await follower.ask(Question("why", "k4"), world.now) is None


async def test_a_process_that_was_behind_and_has_caught_up_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with followed() as (world, follower):
        await answered(follower, "k4", world, prove=False)
        send(follower, signal.SIGSTOP)
        monkeypatch.setattr(following, "BEHIND_S", 0.05)
        assert await follower.ask(Question("why", "k4"), world.now) is None
        assert follower._waits_since
        send(follower, signal.SIGCONT)
        await eventually(lambda: not follower._waits_since)
        monkeypatch.setattr(following, "BEHIND_S", WAIT_S)
        monkeypatch.setattr(following, "STUCK_S", 0.0)
        assert (await answered(follower, "k5", world, prove=False)).state == "waits"


async def test_a_process_that_does_not_begin_a_question_for_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "BEHIND_S", 0.05)
    monkeypatch.setattr(following, "STUCK_S", 0.1)
    async with followed() as (world, follower):
        await eventually(lambda: follower.pid)
        send(follower, signal.SIGSTOP)
        assert await follower.ask(Question("why", "k4"), world.now) is None
        await asyncio.sleep(0.1)
        assert await follower.ask(Question("why", "k4"), world.now) is None
        await eventually(lambda: follower.pid is None)


async def test_rest_asks_it_and_a_state_dump_where_it_does_not_follow() -> None:
    async with followed() as (world, follower), world.client() as client:
        world.backend.follower = follower
        found = (await client.get("/api/v1/why/k4")).json()
        assert found["state"] == "waits" and found["age_s"] < WAIT_S
        assert "s before this answer" in (await client.get("/why?name=k4")).text
        assert (await client.get("/api/v1/why/k77")).status_code == 404
        send(follower, signal.SIGKILL)
        await eventually(lambda: follower.pid is None)
        found = (await client.get("/api/v1/why/k4")).json()
        assert (found["state"], found["age_s"]) == ("waits", None)


async def test_what_the_resource_manager_alone_knows_is_told_from_a_state_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    async with followed() as (world, follower), world.client() as client:
        world.backend.follower = follower
        monkeypatch.setattr(type(world.backend), "diagnostics", lambda _: {"held": {"ns/p": "It has gates."}})
        said = await client.get("/api/v1/why/ns/p")
        assert said.status_code == 404
        assert "the scheduler is not asked for pod ns/p now: It has gates." in said.text


STOPPED = """
import asyncio
from licorne.host import follower as following
from answers.test_follower import answered, followed

async def main():
    following.BEHIND_S = 300
    async with followed() as (world, follower):
        await answered(follower, "k4", world, prove=False)
        print(follower.pid, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stopped process does not notice the end of its parent")
@pytest.mark.parametrize("stopped", [False, True])
def test_no_process_is_left_over_when_the_service_is_killed(stopped: bool) -> None:
    tests = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, env=environment) as service:
        assert service.stdout is not None
        pid = int(service.stdout.readline())
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        service.kill()
        service.wait()
    wait_for(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"
