"""Messages that come together give the same events as one by one (`Intake.take_run`)."""

from __future__ import annotations

import cProfile
import sys

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from licorne.core.events.runs import AskRun
from licorne.host.web.event_ring import EventRing
from licorne.si.constants import TAG_FOREIGN
from licorne.si.events import Event
from licorne.si.messages import AddApplication, Allocation, Input, NodeAction, NodeUpdate, Release, RemoveApplication
from rest.world import World

APPS = st.sampled_from(["x", "y", "none"])
KEYS = st.sampled_from(["a", "b", "c", "d"])


def _ask(app: str, key: str, vcore: int, node: str, foreign: bool) -> Allocation:
    tags = {TAG_FOREIGN: "static"} if foreign and node else None
    return Allocation(key=key, application_id="" if tags else app, resource={"vcore": vcore}, node_id=node, tags=tags)


ASKS = st.builds(_ask, APPS, KEYS, st.integers(-1, 3), st.sampled_from(["", "", "", "", "n1", "n9"]), st.booleans())
MESSAGES: st.SearchStrategy[Input] = st.one_of(
    ASKS,
    ASKS,
    ASKS,
    st.builds(lambda app: AddApplication(application_id=app, queue="root.other", user="u"), APPS),
    st.builds(lambda app, key: Release(application_id=app, key=key), APPS, KEYS),
    st.builds(lambda app: RemoveApplication(application_id=app), APPS),
)


def _world() -> World:
    world = World().register()
    world.submit(NodeUpdate(node_id="n1", action=NodeAction.CREATE, capacity={"vcore": 6}))
    return world.application("x", "root.other").application("y", "root.a")


def everything(world: World) -> list[Event]:
    ring = world.monitor.ring
    found = ring.batch(0, ring.made)[0]
    assert found is not None and len(found) == len(list(found)) == ring.made
    return list(found)


@examples(150)
@given(st.lists(st.lists(MESSAGES, max_size=8), max_size=4))
def test_together_or_one_by_one(batches: list[list[Input]]) -> None:
    together, single = _world(), _world()
    for batch in batches:
        together.submit(*batch)
        for message in batch:
            single.submit(message)
        together.schedule(1.0)
        single.schedule(1.0)
    together.api.validate()
    found, expected = map(everything, (together, single))
    assert found == expected


def _calls(*, recorded: bool) -> list[int]:
    """Functions called for a hundred asks, their allocations, and their releases."""
    world = World(event_capacity=100_000 if recorded else 0).register()
    world.node("n1", vcore=10**9).application("x", "root.other")
    world.ask("first", "x", vcore=1).schedule()
    keys = [f"k{number}" for number in range(100)]
    found = []
    for step in (
        lambda: world.submit(*(Allocation(key=key, application_id="x", resource={"vcore": 1}) for key in keys)),
        world.schedule,
        lambda: world.submit(*(Release(application_id="x", key=key) for key in keys)),
    ):
        profile = cProfile.Profile()
        profile.runcall(step)
        found.append(sum(entry.callcount for entry in profile.getstats()))
    return found


def test_a_record_costs_few_calls() -> None:
    """Two more for an ask, none for an allocation, seventeen for a release; 4, 8 and 40 when each event was made at once."""
    asks, decisions, releases = (
        (more - less) / 100 for more, less in zip(_calls(recorded=True), _calls(recorded=False), strict=True)
    )
    sys.stdout.write(f"calls for an ask {asks}, an allocation {decisions}, a release {releases}\n")
    assert asks < 3
    assert decisions < 1
    assert releases < 25


def test_a_run_is_divided_where_a_key_comes_again() -> None:
    world = _world()
    made = world.monitor.ring.made
    keys = ("a", "b", "a", "c")
    world.submit(*(Allocation(key=key, application_id="x", resource={"vcore": 1}) for key in keys))
    events = everything(world)[made:]
    assert [event.reference_id for event in events if event.detail == 201] == ["a", "b", "c"]


@examples(60)
@given(st.lists(st.integers(1, 400), max_size=12), st.integers(1, 900), st.integers(1, 900), st.data())
def test_any_part_of_the_ring_can_be_read(runs: list[int], capacity: int, other: int, data: st.DataObject) -> None:
    """Records of any number of events: IDs, order and limits are those of single events."""
    ring = EventRing("u", capacity)
    made = 0
    for at, count in enumerate(runs):
        names = [str(made + n) for n in range(count)]
        ring.record("rm", AskRun(count, 0, ["x"] * count, ["q"] * count, names, [{}] * count))
        made += count
        if at == len(runs) // 2:
            ring.resize(other)
    lowest, highest = ring.lowest, max(made - 1, 0)
    assert made - lowest <= max(capacity, other)
    start = data.draw(st.integers(0, made + 1))
    count = data.draw(st.integers(1, made + 2))
    found, *limits = ring.batch(start, count)
    assert limits == [lowest, highest]
    if lowest <= start < made:
        assert found is not None
        expected = [str(n) for n in range(start, min(start + count, made))]
        assert [event.reference_id for event in found] == expected
    else:
        assert found is None
