"""Pieces of a list that are kept are those that would be made now, whatever has happened to what they show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.service.rest import shared, views
from licorne.service.rest.answers import encode
from licorne.service.rest.shared import Pieces
from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import Allocation, NodeAction, NodeUpdate
from rest.world import World, busy, run

NODES = "/ws/v1/partition/default/nodes"
STEPS = (
    "ask", "release", "resize", "preempted", "capacity", "attributes", "drain", "undrain", "foreign", "reserve", "nothing",
)  # fmt: skip


def made(pieces: Pieces, items: list[str], state: dict[str, int], calls: list[str]) -> bytes:
    """The list, and in `calls` what was made anew for it."""

    def make(item: str) -> bytes:
        calls.append(item)
        return f"{item}{state[item]}".encode()

    async def gathered() -> bytes:
        return b",".join(b"".join(each) for each in pieces.of(items, lambda item: state[item], make))

    return bytes(run(gathered()))


def test_only_what_has_changed_is_made_anew() -> None:
    pieces, state = Pieces(), {"a": 1, "b": 1, "c": 1}
    calls: list[str] = []
    assert made(pieces, ["a", "b"], state, calls) == b"a1,b1"
    state["b"] = 2
    assert made(pieces, ["a", "b", "c"], state, calls) == b"a1,b2,c1"
    assert calls == ["a", "b", "b", "c"]
    made(pieces, ["c"], state, calls)
    made(pieces, ["a"], state, calls)  # it was not in the last list
    assert calls == ["a", "b", "b", "c", "a"]


def test_pieces_are_bounded_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, state = Pieces(), {"a": 1, "b": 1}
    calls: list[str] = []
    monkeypatch.setattr(shared, "BODY_MAX", 3)
    made(pieces, ["a", "b"], state, calls)
    made(pieces, ["a"], state, calls)  # together they were too long to be kept
    assert calls == ["a", "b", "a"]
    monkeypatch.setattr(shared, "STALE_S", 0.0)

    async def wait() -> None:
        list(pieces.of(["a"], state.__getitem__, encode))
        await asyncio.sleep(0.05)

    run(wait())
    made(pieces, ["a"], state, calls)
    assert calls == ["a", "b", "a", "a"]


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=12))
@settings(deadline=None)
def test_nodes_are_shown_as_they_are(steps: list[tuple[str, int]]) -> None:
    world = busy()
    home = next(iter(world.backend.partitions()))
    world.get(NODES)
    for _ in act(world, steps):
        shown = world.get(NODES)
        fresh = [msgspec.json.decode(encode(views.node(home.nodes[name], home))) for name in sorted(home.nodes)]
        assert shown == fresh


def act(world: World, steps: list[tuple[str, int]]) -> Iterator[None]:
    """Do one after the other; what cannot be done changes nothing."""
    home = next(iter(world.backend.partitions()))
    for count, (what, number) in enumerate(steps):
        app = home.applications["app-1"]
        running = list(app.allocations.values())
        alloc = running[number % len(running)] if running else None
        node = home.nodes[f"n{number % 2 + 1}"]
        change = NodeUpdate(node_id=node.id, action=NodeAction.UPDATE)
        match what:
            case "ask":
                world.ask(f"new-{count}", "app-1", memory=10**6, vcore=10 + number)
            case "release" if alloc is not None:
                world.release(alloc.key, "app-1")
            case "resize" if alloc is not None:
                world.submit(Allocation(key=alloc.key, application_id="app-1", resource={"vcore": 10 + number}))
            case "preempted" if alloc is not None and not alloc.preempted:
                home.books.preempting(app, alloc)
            case "capacity":
                change.capacity = {"memory": 10**12, "vcore": 20_000 + number, "pods": 110}
                world.submit(change)
            case "attributes":
                change.attributes = {"si/hostname": f"h{number}"}
                world.submit(change)
            case "drain" | "undrain":
                change.action = NodeAction.DRAIN_NODE if what == "drain" else NodeAction.DRAIN_TO_SCHEDULABLE
                world.submit(change)
            case "foreign":
                tags = {TAG_FOREIGN: "static" if number % 2 else "default"}
                resource = {"vcore": 1 + number}
                world.submit(Allocation(key=f"f{number // 2}", node_id=node.id, resource=resource, tags=tags))
            case "reserve":
                world.schedule(5.0)
        world.schedule(0.5)
        yield
