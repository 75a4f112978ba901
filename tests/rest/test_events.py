"""Events: a batch from an ID on, and streams that are cut when their readers are too slow.

Source: docs/spec/events.md, section 4; docs/spec/rest-api.md, "Stream".
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from typing import Any

import msgspec
import pytest

from common.waiting import eventually
from licorne.host.web.event_ring import STREAM_BUFFER
from licorne.host.web.rest import RequestLimits
from licorne.si.messages import Allocation, Release
from rest.world import World, busy

BATCH = "/ws/v1/events/batch"
STREAM = "/ws/v1/events/stream"


def test_a_batch_has_all_events_in_order() -> None:
    world = busy()
    found = world.get(BATCH)
    assert list(found) == ["InstanceUUID", "LowestID", "HighestID", "EventRecords"]
    records = found["EventRecords"]
    assert (found["InstanceUUID"], found["LowestID"], found["HighestID"]) == ("u-u-i-d", 0, len(records) - 1)
    added = {
        "type": 4,
        "objectID": "root",
        "timestampNano": world.backend.started_ns,
        "eventChangeType": 2,
        "resource": {},
    }
    assert records[0] == added
    assert list(records[0]) == list(added)
    kinds = {(record["type"], record.get("eventChangeDetail", 0)) for record in records}
    assert {(2, 203), (2, 201), (2, 200), (3, 303), (4, 405)} <= kinds
    alloc = next(record for record in records if record.get("eventChangeDetail") == 303)
    assert alloc["resource"]["resources"]["memory"] == {"value": 10**6}


def test_from_an_id_on() -> None:
    world = busy()
    records = world.get(BATCH)["EventRecords"]
    assert world.get(f"{BATCH}?start=3&count=2")["EventRecords"] == records[3:5]
    assert world.get(f"{BATCH}?start={len(records) - 1}")["EventRecords"] == records[-1:]
    for beyond in (len(records), 10**9):
        found = world.get(f"{BATCH}?start={beyond}")
        assert (found["EventRecords"], found["LowestID"], found["HighestID"]) == (None, 0, len(records) - 1)


def test_the_ring_forgets_the_oldest() -> None:
    world = World(event_capacity=5).register()
    found = world.get(BATCH)
    assert found["EventRecords"] is None
    assert found["HighestID"] - found["LowestID"] == 4
    again = world.get(f"{BATCH}?start={found['LowestID']}")
    assert len(again["EventRecords"]) == 5
    world.monitor.ring.resize(2)
    assert world.get(BATCH)["LowestID"] == found["HighestID"] - 1
    world.node("n", vcore=1)
    assert world.get(BATCH)["HighestID"] == found["HighestID"] + 3


def test_a_batch_is_bounded() -> None:
    world = World(limits=RequestLimits(batch=4)).register()
    for query in ("", "?count=100"):
        assert len(world.get(BATCH + query)["EventRecords"]) == 4


@pytest.mark.parametrize("path", [BATCH, STREAM])
def test_switched_off(path: str) -> None:
    world = World(event_capacity=0).register().node("n", vcore=1)
    assert world.get(path, 500)["message"] == "Event tracking is disabled"


def test_switched_off_by_the_resource_manager() -> None:
    world = World().register(**{"event.trackingEnabled": "false"}).node("n", vcore=1)
    assert world.get(BATCH) == {"InstanceUUID": "u-u-i-d", "LowestID": 0, "HighestID": 0, "EventRecords": None}


# -- streams: the ASGI application is driven by hand, as httpx gives an answer only when it is complete ---------


class Stream:
    """One client of the stream."""

    def __init__(self, world: World, query: str = "", host: str = "h") -> None:
        self.text = b""
        self.status = 0
        self.done = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self._left = asyncio.Event()
        scope = {
            "type": "http", "method": "GET", "path": STREAM, "raw_path": STREAM.encode(), "http_version": "1.1",
            "query_string": query.encode(), "scheme": "http", "client": ("c", 1), "server": ("s", 1),
            "headers": [(b"host", host.encode()), (b"accept-encoding", b"gzip")], "root_path": "",
        }  # fmt: skip
        self.task = asyncio.create_task(self._run(world.app(scope, self._receive, self._send)))

    async def _run(self, call: Any) -> None:
        await call
        self.done.set()

    async def _receive(self) -> dict[str, Any]:
        if not self.status and not self._left.is_set():
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.gate.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            assert not any(name == b"content-encoding" for name, _ in message["headers"])
        self.text += message.get("body", b"")

    def leave(self) -> None:
        self._left.set()

    @property
    def lines(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.text.splitlines()]

    async def until(self, number: int) -> list[Any]:
        await eventually(lambda: len(self.lines) >= number)
        return self.lines


async def test_a_stream_follows() -> None:
    world = World().register()
    stream = Stream(world)
    assert await stream.until(1) == [{"InstanceUUID": "u-u-i-d"}]
    world.node("n1", vcore=1)
    lines = await stream.until(4)
    assert [line.get("message") for line in lines[1:]] == ["schedulable: true", None, "Node added to the scheduler"]
    stream.leave()
    await stream.done.wait()
    assert not world.monitor.ring.listeners


async def test_settings_that_belong_to_the_process_have_no_effect_in_extra_config() -> None:
    extra = {"event.ringBufferCapacity": "1", "event.RESTResponseSize": "1", "event.maxStreamsPerHost": "1"}
    world = World().register(**extra).register("off", **{"event.trackingEnabled": "false"}).node("n", vcore=1)
    streams = [Stream(world, "count=100"), Stream(world, "count=100")]
    for stream in streams:
        lines = await stream.until(8)  # all that is told of the one who did not switch it off
        assert lines[-1]["message"] == "Node added to the scheduler"
        assert stream.status == 200
        stream.leave()
        await stream.done.wait()


async def test_a_stream_begins_with_past_events_without_gap_or_duplicate() -> None:
    world = World().register()
    past = world.monitor.ring.made
    stream = Stream(world, "count=3")
    await stream.until(1)
    world.node("n1", vcore=1)
    lines = (await stream.until(7))[1:]
    batch = world.monitor.ring.batch(past - 3, 100)[0]
    assert batch is not None
    assert [line["timestampNano"] for line in lines] == [event.time_ns for event in batch]
    assert [line["objectID"] for line in lines] == [event.object_id for event in batch]
    stream.leave()
    await stream.done.wait()


async def test_a_slow_reader_is_cut() -> None:
    world = World().register()
    stream = Stream(world)
    await stream.until(1)
    stream.gate.clear()
    for number in range(STREAM_BUFFER):
        world.node(f"n{number}", vcore=1)
    stream.gate.set()
    await stream.done.wait()
    assert stream.lines[-1]["message"] == "Event stream was closed by the producer"
    assert stream.status == 200
    assert len(stream.lines) <= STREAM_BUFFER + 3
    assert not world.monitor.ring.listeners


async def test_a_stream_without_a_reader_is_closed() -> None:
    world = World(limits=RequestLimits(send_s=0.02)).register()
    stream = Stream(world)
    await stream.until(1)
    stream.gate.clear()
    world.node("n", vcore=1)
    await stream.done.wait()
    assert not world.monitor.ring.listeners


async def test_streams_are_counted() -> None:
    world = World(limits=RequestLimits(streams=3, streams_per_host=2)).register()
    streams = [Stream(world, host=host) for host in ("a", "a", "b")]
    for stream in streams:
        await stream.until(1)
    for host in ("a", "c"):
        refused = Stream(world, host=host)
        await refused.done.wait()
        assert (refused.status, refused.lines[0]["message"]) == (503, "Too many streaming connections")
    streams[0].leave()
    await streams[0].done.wait()
    late = Stream(world, host="c")
    await late.until(1)
    assert late.status == 200
    for stream in [*streams, late]:
        stream.leave()
        await stream.done.wait()


# -- what they take ------------------------------------------------------------------------------------------

BYTES_OF_AN_EVENT = 200
"""As docs/reference/rest.md says, at most; a cluster of its own strings, as here, is the worst case."""


def test_an_event_takes_few_bytes() -> None:
    world = World().register().node("n1", vcore=10**9)
    ring = world.monitor.ring
    tracemalloc.start()
    try:
        for number in range(4):
            app = f"app-{number}"
            world.application(app)
            keys = [f"an-uuid-of-a-pod-{number}-{key:08}" for key in range(250)]
            world.submit(*(Allocation(key=key, application_id=app, resource={"vcore": 1}) for key in keys))
            world.schedule()
            world.submit(*(Release(application_id=app, key=key) for key in keys))
            world.outputs.clear()
        made = ring.made
        assert made >= 8 * 1000, "asked, on the node, used, on the application; and the opposites"
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        ring.resize(1)
        gc.collect()
        kept -= tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    sys.stdout.write(f"{kept / made:.0f} bytes an event\n")
    assert 0 < kept / made <= BYTES_OF_AN_EVENT
