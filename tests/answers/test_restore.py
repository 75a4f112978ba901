"""A scheduler restored from a dump has the state of the one that was dumped, and decides as that one does."""

from __future__ import annotations

from typing import Any, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import fields

from answers.dumps import comparable, full_state
from common.examples import examples
from licorne.answers import applied
from licorne.answers.asks import Wanted
from licorne.answers.changes import QueueMax
from licorne.core.inspection.explain import Preemption
from licorne.si.messages import Allocation, Release
from licorne.si.rest_objects import FullState
from licorne.state.dump import DumpError, _members, _object_in, read_dump
from licorne.state.restore import restore
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


@pytest.mark.parametrize("user", ["1001", "first last", "a+b@x.org"])
def test_a_user_whose_name_is_refused_beside_groups_comes_back(user: str) -> None:
    world = World().register().node("n1", vcore=1000).application("own", "root.a", user)
    world.application("found", "root.a", user, groups=("dev",), groups_found=True)
    world.ask("k1", "own", vcore=1000).ask("k2", "found", vcore=1000).schedule(1.0)
    before = full_state(world.api, world.now)
    restored = restore(read_dump(before))
    assert comparable(full_state(restored.api, restored.now_ns)) == comparable(before)
    assert {note.kind for note in restored.notes} == {"assumed"}


def test_a_configuration_of_any_spelling_is_restored_and_changed() -> None:
    world = World().register(text=CONFIG).node("n1", vcore=1000).application("app", "root.a", "ann")
    world.ask("k", "app", vcore=1000)
    dump = read_dump(full_state(world.api, world.now))
    text = CONFIG.replace("maxapplications: 2\n", "maxapplications: 010\n").replace(
        "max: {vcore: 10}", "max: {vcore: 010}"
    )
    restored = restore(dump, text.replace("priority.offset: '3'", "priority.offset: '3', note: \"\U0001f389\x85\""))
    applied.apply(restored, Wanted("default", "app", "k"), [QueueMax("root.a", {"vcore": 5})], restored.now_ns)
    queue = restored.partitions[0].tree.find("root.a")
    assert queue is not None
    assert (queue.max_apps, queue.max_config) == (8, {"vcore": 10_005})


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
    """What a dump says, that is: not which allocations are being evicted, nor when an ask tried preemption last."""
    home = world.api.cluster.partition("mycluster")
    assume(not any(alloc.preempted for app in home.applications.values() for alloc in app.allocations.values()))
    before = full_state(world.api, world.now)
    restored = restore(read_dump(before))
    restored.api.validate()
    assert comparable(full_state(restored.api, restored.now_ns)) == comparable(before)
    copy = restored.api.cluster.partition("mycluster")
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
    return sorted(
        (key, app, repr([reason for reason in reasons if not isinstance(reason, Preemption)]))
        for key, app, reasons in partition.waiting()
    )


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
        (b'{"timestamp":"x","partitions":[]}', "Expected `int`, got `str` - at `$.timestamp`.*fetch it again"),
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


# -- members that are missing ---------------------------------------------------------------------------------


def _whole() -> dict[str, Any]:
    """Return a dump with every member of the specification, in each of its objects, but the exact state."""
    found: dict[str, Any] = msgspec.json.decode(full_state(busy().api, START_NS))
    _complete(found, FullState)
    del found["licorne"]
    return found


def _complete(value: dict[str, Any], kind: type[msgspec.Struct]) -> None:
    hints = get_type_hints(kind)
    for field in fields(kind):
        name, inner = field.encode_name, _object_in(hints[field.name])
        if inner is not kind:  # else there would be no end
            value.setdefault(name, TEXTS.get(name, _sample(hints[field.name])))
        item = value.get(name, [])
        for each in item if isinstance(item, list) else (item,):
            if inner is not None:
                _complete(each, inner)


TEXTS = {"priority": "0", "backoffDeadline": "", "nodeId": "n1", "requiredNodeId": ""}
"""Values that mean something, in place of any text."""


def _sample(annotation: Any) -> Any:
    if _object_in(annotation) is not None:
        return [{}] if get_origin(annotation) is list else {}
    kind = get_origin(annotation) or annotation
    return {str: "x", int: 1, float: 1.0, bool: True, list: []}.get(kind, {})


def test_a_dump_with_every_member_loads() -> None:
    dump = read_dump(msgspec.json.encode(_whole()))
    assert (dump.unknown, dump.missing) == ((), ())
    assert {note.kind for note in restore(dump).notes} <= {"assumed", "left out", "differs"}


SILENT = ("appHistory", "containerHistory", "eventStreams", "gangHolds")
"""Members that are left out where there is nothing to list, and of which nothing is restored."""


@pytest.mark.parametrize("name", [name for name in _members(FullState) if name != "licorne"])
def test_a_member_that_is_missing_is_told_or_the_dump_is_refused(name: str) -> None:
    found = msgspec.json.decode(full_state(busy().api, START_NS))
    whole = restore(read_dump(msgspec.json.encode(found)))
    found.pop(name, None)
    data = msgspec.json.encode(found)
    if name in ("timestamp", "partitions", "nodes", "config"):
        with pytest.raises(DumpError, match=f"{name}.*curl http://HOST:PORT/debug/fullstatedump"):
            restore(read_dump(data))
        return
    restored = restore(read_dump(data))
    told = [str(note) for note in restored.notes if note.kind == "missing"]
    assert len(told) == (name not in SILENT)
    assert all(name in text for text in told)
    if name in SILENT:
        assert restored.notes == whole.notes


def test_a_member_that_only_describes_may_be_missing() -> None:
    found = msgspec.json.decode(full_state(busy().api, START_NS))
    del found["partitions"][0]["nodeSortingPolicy"]
    for queue in found["queues"]:
        del queue["preemptionEnabled"]
    dump = read_dump(msgspec.json.encode(found))
    assert dump.missing == ("partitions.nodeSortingPolicy", "queues.preemptionEnabled")
    notes = [note for note in restore(dump).notes if note.kind == "missing"]
    assert [(note.text, note.examples) for note in notes] == [("members of the dump that only describe", dump.missing)]


def test_an_object_without_a_name_is_refused_with_a_remedy() -> None:
    found = msgspec.json.decode(full_state(busy().api, START_NS))
    del found["nodes"][0]["nodesInfo"][0]["nodeID"]
    with pytest.raises(DumpError, match=r"missing required field `nodeID`.*fetch it again: curl http://HOST:PORT"):
        read_dump(msgspec.json.encode(found))
