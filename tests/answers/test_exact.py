"""A dump that has a checkpoint is restored to the very scheduler that was dumped."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import licorne
from answers.dumps import full_state
from licorne.answers import Home, why
from licorne.answers.shares import shares
from licorne.core.api import SchedulerAPI
from licorne.core.checkpoint import CheckpointError
from licorne.host.web.rest import handlers
from licorne.si.messages import Allocation
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from rest.world import World, busy


def dumped(world: World) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(full_state(world.api, world.now, exact=True))
    return found


def test_nothing_is_assumed_and_the_state_is_the_same() -> None:
    world = busy()
    restored = restore(read_dump(full_state(world.api, world.now, exact=True)))
    assert restored.notes == ()
    assert restored.api.checkpoint() == world.api.checkpoint()
    assert restored.now_ns == world.api.cluster.now


def test_it_decides_as_the_other_does() -> None:
    world = busy()
    restored = restore(read_dump(full_state(world.api, world.now, exact=True)))
    said: list[object] = []
    restored.outputs.handler = said.append
    application = next(iter(world.api.cluster.partition(restored.rm_id).applications.values()))
    for api in (world.api, restored.api):
        later = [
            Allocation(key=f"later-{n}", application_id=application.id, resource={"vcore": 100}) for n in range(1000)
        ]
        api.submit(restored.rm_id, later, now_ns=world.now + 10**9)
        api.schedule(now_ns=world.now + 10**9)
    assert restored.api.checkpoint() == world.api.checkpoint()
    assert said


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("version", 2, "version 2, of licorne"),
        ("checkpoint", "AAAA", "damaged"),
        ("checkpoint", "no base64!", "damaged"),
        ("checkpoint", None, "cut off"),
    ],
)
def test_one_that_cannot_be_used_is_told_and_the_rest_restored(member: str, value: object, words: str) -> None:
    world = busy()
    raw = dumped(world)
    raw["licorne"][member] = raw["licorne"][member][:-400] if value is None else value
    restored = restore(read_dump(msgspec.json.encode(raw)))
    left_out = [note for note in restored.notes if "exact state" in note.text]
    assert len(left_out) == 1 and left_out[0].kind == "left out" and words in left_out[0].text
    assert any(note.kind == "assumed" for note in restored.notes)
    restored.api.validate()


def test_a_checkpoint_of_many_lists_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy()
    monkeypatch.setattr("licorne._bounded.PACKED_CONTAINERS_MAX", 100)
    notes = restore(read_dump(full_state(world.api, world.now, exact=True))).notes
    assert any("has more than 100 lists and maps" in note.text for note in notes)


def test_another_configuration_may_take_its_place() -> None:
    world = busy()
    text = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: other}]}]}]"
    restored = restore(read_dump(full_state(world.api, world.now, exact=True)), text)
    assert restored.config == text
    assert restored.api.cluster.partition(restored.rm_id).tree.find("root.other") is not None


def test_rest_has_it_on_request_alone() -> None:
    world = busy()
    assert "licorne" not in world.get("/debug/fullstatedump")
    found = world.get("/debug/fullstatedump?checkpoint=true")
    assert found["licorne"]["version"] == 1
    restored = restore(read_dump(msgspec.json.encode(found)))
    assert restored.api.checkpoint() == world.api.checkpoint()


def test_a_scheduler_of_this_process_is_asked_and_not_touched() -> None:
    world = busy()
    before = world.api.checkpoint()
    dump = read_dump(full_state(world.api, world.now, exact=True))
    assert licorne.explain(world.api) == why(Home(restore(dump)))
    waiting = [
        ask.key for app in world.api.cluster.partition("mycluster").applications.values() for ask in app.asks.values()
    ]
    for key in waiting[:2]:
        assert licorne.explain(world.api, key) == why(Home(restore(dump)), key)
    assert licorne.shares(world.api) == shares(restore(dump))
    assert waiting and world.api.checkpoint() == before
    with pytest.raises(ValueError, match="at_ns: a scheduler is no recording"):
        licorne.explain(world.api, at_ns=0)
    with pytest.raises(ValueError, match="since_ns: a scheduler is no recording"):
        licorne.shares(world.api, since_ns=0)
    with pytest.raises(CheckpointError, match="no resource manager was registered"):
        licorne.explain(licorne.SchedulerAPI())


def test_checkpoints_take_a_tenth_of_the_time_however_often_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = busy()
    now_s = 100.0
    began: list[float] = []
    take = SchedulerAPI.checkpoint

    def slow(api: SchedulerAPI) -> bytes:
        nonlocal now_s
        began.append(now_s)
        now_s += 2.0
        return take(api)

    async def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(SchedulerAPI, "checkpoint", slow)
    monkeypatch.setattr(handlers, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(handlers, "asyncio", SimpleNamespace(to_thread=asyncio.to_thread, sleep=sleep))
    for _ in range(3):
        world.get("/debug/fullstatedump?checkpoint=true")
    assert began == [100.0, 120.0, 140.0]
