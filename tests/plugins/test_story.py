"""The stories of applications and asks, as data (docs/spec/design.md, rule 4)."""

from __future__ import annotations

import msgspec

from core.bench import SECOND_NS, START_S, Bench, config
from licorne.core.inspection.story import (
    AllocationStory,
    Ended,
    EnteredState,
    Holds,
    Submitted,
    allocation_story,
    application_story,
)

NOW = START_S * SECOND_NS


def at(seconds: float) -> int:
    return NOW + int(seconds * SECOND_NS)


def test_an_application() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=1)
    b.app("x", "root.a", "u", "g", "h")
    assert application_story(b.partition, "x") == [Submitted(NOW, "root.a", "u", ("g", "h")), Holds(NOW, 0, 0)]
    b.seconds += 1
    b.ask("x", "k", vcore=1)
    b.ask("x", "waits", vcore=1)
    b.run(after=1)
    assert application_story(b.partition, "x")[1:] == [
        EnteredState(at(1), "Accepted"),
        EnteredState(at(2), "Running"),
        Holds(at(2), 1, 1),
    ]
    b.release("x", "waits")
    b.release("x", "k")
    b.run(after=60)
    assert application_story(b.partition, "x")[3:] == [
        EnteredState(at(2), "Completing"),
        EnteredState(at(32), "Completed"),
        Ended(at(32), "completeApplication"),
    ]
    b.app("x")
    assert len(application_story(b.partition, "x")) == 2, "of equal ids the one that lives"
    assert application_story(b.partition, "unknown") == []


def test_an_ask_that_becomes_an_allocation() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=1)
    b.app("x")
    b.ask("x", "k", vcore=1)
    assert allocation_story(b.partition, "x", "k") == AllocationStory("k", "x", NOW)
    b.run(after=3)
    story = AllocationStory("k", "x", NOW, id="k", bound_ns=at(3), node="n1")
    assert allocation_story(b.partition, "x", "k") == story
    b.release("x", "k")
    assert allocation_story(b.partition, "x", "k") is None
    assert allocation_story(b.partition, "unknown", "k") is None


def test_a_reservation_and_a_victim() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=10)
    b.app("x")
    b.ask("x", "victim", vcore=8)
    b.run()
    b.ask("x", "daemon", vcore=8, required="n1", priority=1)
    b.node("n2", vcore=10)
    b.run(after=1)
    b.run(after=1)
    daemon = allocation_story(b.partition, "x", "daemon")
    assert daemon == AllocationStory("daemon", "x", NOW, reserved_ns=at(1), reserved_node="n1")
    victim = allocation_story(b.partition, "x", "victim")
    assert victim is not None and (victim.release_asked, victim.preempted) == (True, True)


def test_allocations_of_the_first_interface_go_by_uuid_and_expire() -> None:
    b = Bench(config("a"), first_interface=True)
    b.node("n1", vcore=10)
    b.app("x")
    b.ask("x", "k", vcore=1, times=2, timeout_ms=5000)
    b.run()
    first, second = b.uuids()
    b.run(after=6)
    for uuid in (first, second):
        story = allocation_story(b.partition, "x", uuid)
        assert story == AllocationStory("k", "x", NOW, id=uuid, bound_ns=NOW, node="n1", release_asked=True)


def test_stories_can_be_encoded() -> None:
    b = Bench(config("a"))
    b.app("x")
    written = msgspec.json.decode(msgspec.json.encode(application_story(b.partition, "x")))
    assert [chapter["type"] for chapter in written] == ["submitted", "holds"]
