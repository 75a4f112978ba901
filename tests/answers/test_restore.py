"""A scheduler restored from a dump has the state of the one that was dumped, and decides as that one does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.dumps import comparable, full_state
from common.examples import examples
from licorne.answers import DumpError, read_dump, restore
from licorne.si.messages import Allocation, Release
from rest.world import START_NS, World, busy

CONFIG = """
partitions:
  - name: default
    placementrules:
      - {name: user, create: true, filter: {type: allow, users: [dyn]}, parent: {name: fixed, value: root.own}}
      - {name: provided}
    nodesortpolicy: {type: binpacking}
    queues:
      - name: root
        submitacl: 'nobody'
        queues:
          - name: a
            submitacl: '*'
            maxapplications: 2
            resources: {guaranteed: {vcore: 4}, max: {vcore: 10}}
            limits: [{limit: u, users: [ann], maxresources: {vcore: 6}}]
          - name: b
            submitacl: '*'
            properties: {application.sort.policy: fair, priority.offset: '3'}
          - name: own
            parent: true
            submitacl: '*'
            childtemplate: {resources: {max: {vcore: 7}}}
"""


def test_a_busy_cluster_comes_back() -> None:
    world = busy()
    before = full_state(world.api, world.now)
    restored = restore(read_dump(before))
    restored.api.validate()
    after = full_state(restored.api, restored.now_ns)
    assert comparable(after) == comparable(before)
    assert {note.kind for note in restored.notes} == {"assumed"}


@st.composite
def clusters(draw: st.DrawFn) -> World:
    """A cluster in which something runs, and something waits."""
    world = World().register(text=CONFIG, **{"reservation.enabled": "false"})
    for number in range(draw(st.integers(1, 4))):
        world.node(f"n{number}", vcore=draw(st.integers(1, 8)) * 1000, memory=draw(st.integers(1, 4)) * 2**30)
    keys = 0
    for number in range(draw(st.integers(1, 6))):
        user = draw(st.sampled_from(["ann", "bob", "dyn"]))
        world.application(f"app-{number}", draw(st.sampled_from(["root.a", "root.b"])), user)
        for _ in range(draw(st.integers(0, 5))):
            keys += 1
            world.submit(
                Allocation(
                    key=f"k{keys}",
                    application_id=f"app-{number}",
                    resource={"vcore": draw(st.integers(1, 9)) * 500, "memory": draw(st.integers(0, 2)) * 2**29},
                    priority=draw(st.integers(0, 2)),
                    allow_preempt_self=True,
                    allow_preempt_other=True,
                )
            )
            world.now += draw(st.integers(0, 3)) * 10**9
            if draw(st.booleans()):
                world.schedule()
    world.schedule(1.0)
    return world


@examples(40)
@given(clusters(), st.data())
def test_a_restored_scheduler_decides_as_the_one_that_was_dumped(world: World, data: st.DataObject) -> None:
    before = full_state(world.api, world.now)
    restored = restore(read_dump(before))
    restored.api.validate()
    assert comparable(full_state(restored.api, restored.now_ns)) == comparable(before)
    home, copy = world.api.cluster.partition("mycluster"), restored.api.cluster.partition("mycluster")
    assert restored.api.schedule(now_ns=restored.now_ns) == 0
    assert _waiting(home) == _waiting(copy)
    running = sorted(
        (alloc.app.id, key) for app in home.applications.values() for key, alloc in app.allocations.items()
    )
    if running:
        app, key = data.draw(st.sampled_from(running))
        for api in (world.api, restored.api):
            api.submit("mycluster", [Release(application_id=app, key=key)], now_ns=world.now + 10**9)
            api.schedule(now_ns=world.now + 10**9)
    assert _placed(home) == _placed(copy)


def _waiting(partition: Any) -> list[tuple[str, str, str]]:
    return sorted((key, app, repr(reasons)) for key, app, reasons in partition.waiting())


def _placed(partition: Any) -> dict[str, str]:
    return {key: alloc.node.id for app in partition.applications.values() for key, alloc in app.allocations.items()}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"[]", "is no state dump"),
        (b"{}", "neither partitions nor applications"),
        (b'{"status_code":404,"message":"x"}', "an error of the server"),
        (b'{"partitions": [', "cut off"),
        (b"\x1f\x8bxx", "cannot be unpacked"),
        (b'{"timestamp":1,"partitions":[],"applications":[]}', "no resource manager was registered"),
        (b'{"timestamp":"x","partitions":[]}', "Expected `int`, got `str` - at `$.timestamp`"),
    ],
)
def test_what_is_no_dump_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(DumpError, match=said.replace("$", r"\$")):
        restore(read_dump(data))


def test_a_truncated_dump_is_refused_at_any_byte() -> None:
    whole = full_state(busy().api, START_NS).rstrip()
    for end in range(0, len(whole) - 1, 97):
        with pytest.raises(DumpError):
            read_dump(whole[:end])


def test_unknown_members_are_named() -> None:
    found = msgspec.json.decode(full_state(busy().api, START_NS))
    found["applications"][0]["mood"] = "good"
    found["nodes"][0]["nodesInfo"][0]["colour"] = {"r": 1}
    dump = read_dump(msgspec.json.encode(found))
    assert dump.unknown == ("applications.mood", "nodes.nodesInfo.colour")
    assert any(note.kind == "unknown" and note.examples == dump.unknown for note in restore(dump).notes)
