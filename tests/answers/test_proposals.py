"""What `licorne why` proposes, against brute force: each change works, nothing smaller of its kind does, none is missing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note, seed
from hypothesis import strategies as st
from msgspec.structs import replace

import seeds
from answers import scenes
from answers.clusters import clusters, is_placed, is_placed_later
from common.examples import examples, scaled
from common.planting import LOOKED_AT, Counted, a_law_breaks
from licorne.answers import AskAnswer, Home, asks, changes, proposals, repairs, trials, why
from licorne.answers.asks import Wanted
from licorne.answers.budget import WORK_MAX, Budget, WorkSpentError
from licorne.answers.proposals import Proposal, propose
from licorne.answers.trials import WORK_UNBOUNDED, Outcome
from licorne.core.inspection import explain
from licorne.core.inspection.sentences import NEVER
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from licorne.state.restored import Restored

DUMP = Path(__file__).resolve().parents[2] / "examples" / "pods-wait" / "dump.json"
GRID = 500
"""All amounts are multiples of this."""


Placed = Callable[[Iterable[changes.Change]], bool]
EFFORT = 100.0
"""So much that no search in a cluster of an example is cut short."""
EFFORTS = [2**doublings / 100_000 for doublings in range(11)]
"""From one trial in such a cluster to all."""
ONE_QUEUE = {
    "partitions": [
        {
            "name": "default",
            "placementrules": [{"name": "provided"}],
            "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}],
        }
    ]
}
ASKS_MAX = 2
"""Of so many asks of a cluster the proposals are checked."""


@pytest.mark.gate
@pytest.mark.timeout(scaled(1800))
@examples(60)
@given(clusters(quiet=True, gpus=True))
def test_what_is_proposed_works_and_nothing_smaller_does(dump: bytes) -> None:
    check(lambda: restore(read_dump(dump)), lambda key: lambda made: is_placed(dump, made, key))


@pytest.mark.nightly
@examples(60)
@given(clusters(quiet=False, gpus=True))
def test_so_it_is_where_nodes_are_reserved_and_allocations_evicted(dump: bytes) -> None:
    check(lambda: restore(read_dump(dump)), lambda key: lambda made: is_placed_later(dump, made, key))


@pytest.mark.gate
@pytest.mark.timeout(scaled(1800))
@examples(30)
@given(scenes.scenes(gpus=True))
def test_so_it_is_with_gangs_and_everything_else_under_way(scene: scenes.Scene) -> None:
    check_scene(scene)


def _node(vcore: int = 1000, action: NodeAction = NodeAction.CREATE, **more: Any) -> NodeUpdate:
    return NodeUpdate(node_id="n0", action=action, capacity={"vcore": vcore}, **more)


def _app(name: str = "app", **more: Any) -> AddApplication:
    return AddApplication(application_id=name, queue="root.a", user="ann", **more)


def _ask(key: str = "k0", app: str = "app", resource: dict[str, int] | None = None) -> Allocation:
    return Allocation(key=key, application_id=app, resource=resource or {"vcore": 1000})


def _proposed(scene: scenes.Scene, key: str = "k0", app: str = "app") -> tuple[Proposal, ...]:
    return propose(Home(scene.restored()), Wanted("default", app, key), effort=EFFORT).found


def _for_one_ask(node: NodeUpdate, **resource: int) -> list[str]:
    """What is proposed for an ask that is alone in a cluster of one node."""
    scene = scenes.Scene(ONE_QUEUE, ((node,), (_app(),), (_ask(resource=resource),), 0))
    return [each.text for each in _proposed(scene)]


def _gang_without_nodes() -> scenes.Scene:
    def asked(key: str) -> Allocation:
        small = {"vcore": 500}
        return Allocation(key=key, application_id="app", resource=small, task_group="g", placeholder=key != "k0")

    gang = _app(execution_timeout_ms=20_000, placeholder_ask={"vcore": 1000})
    return scenes.Scene(ONE_QUEUE, ((gang,), (asked("p0"), asked("p1")), (asked("k0"),), 0))


def test_a_placeholder_that_is_placed_counts_although_nobody_replaces_it_before_the_timeout() -> None:
    scene = _gang_without_nodes()
    (found,) = _proposed(scene, "p1")
    assert found.text == "2 nodes more of 500m vcore"
    assert scenes.Waited(scene, "p1").placed(found.changes)


def test_an_ask_waits_for_what_its_placeholder_waits_for() -> None:
    scene = _gang_without_nodes()
    found = _proposed(scene)
    assert [each.text for each in found] == ["one node more of 500m vcore"]
    assert scenes.Waited(scene, "k0").placed(found[0].changes)


def test_an_ask_that_an_end_under_way_makes_room_for_needs_no_change() -> None:
    """A placeholder has the only node until its timeout, which has just come; its end is not confirmed yet."""
    gang = _app("gang", execution_timeout_ms=20_000, placeholder_ask={"vcore": 1000})
    held = Allocation(key="p0", application_id="gang", resource={"vcore": 1000}, task_group="g", placeholder=True)
    scene = scenes.Scene(ONE_QUEUE, ((_node(),), (gang,), (held,), 0, (_app(),), (_ask(),), 20))
    assert propose(Home(scene.restored()), Wanted("default", "app", "k0"), effort=EFFORT).by_itself
    assert scenes.Waited(scene, "k0").placed(())


def test_an_ask_that_is_larger_than_every_node_may_want_less() -> None:
    assert _for_one_ask(_node(), vcore=1500) == ["500m vcore less in the ask", "one node more of 1500m vcore"]


def test_an_ask_for_a_type_that_no_node_has_gets_a_node_made_for_it() -> None:
    wants = {"vcore": 500, "nvidia.com/gpu": 1}
    assert _for_one_ask(_node(), **wants) == ["one node more of 1 nvidia.com/gpu, 500m vcore"]


def test_a_node_that_drains_and_has_the_taint_of_a_cordoned_one_is_opened_by_one_change() -> None:
    cordon = json.dumps([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    found = _for_one_ask(_node(action=NodeAction.CREATE_DRAIN, attributes={"taints": cordon}))
    assert [text for text in found if "node n0" in text] == ["node n0 schedulable again"]


@pytest.mark.parametrize(
    ("of", "where"),
    [
        ({"maxapplications": 1}, "root.a"),
        ({"limits": [{"limit": "l", "users": ["ann"], "maxapplications": 1}]}, "the limit of user ann at root.a"),
    ],
    ids=["of the queue", "of the user"],
)
def test_no_priority_is_proposed_against_a_maximum_of_applications(of: dict[str, Any], where: str) -> None:
    config = deepcopy(ONE_QUEUE)
    config["partitions"][0]["queues"][0]["queues"][0].update(of)  # type: ignore[index]
    first, second = ((_app(f"app-{number}"), _ask(f"k{number}", f"app-{number}")) for number in range(2))
    scene = scenes.Scene(config, ((_node(2000),), first, 0, second, 0))
    assert [each.text for each in _proposed(scene, "k1", "app-1")] == [f"1 running application more in {where}"]


def _gang_of_two() -> AddApplication:
    groups = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "500m"}}])
    return _app(tags={scenes.GROUPS_TAG: groups, "gang.scheduling": "atomic"})


def _member(key: str, vcore: int, constraints: dict[str, Any], **tags: str) -> Allocation:
    tags = {scenes.CONSTRAINTS: json.dumps(constraints), **tags}
    return Allocation(key=key, application_id="app", resource={"vcore": vcore}, task_group="g", tags=tags)


def test_members_of_a_gang_that_need_different_nodes_get_nodes_of_each_kind_under_names_that_are_free() -> None:
    taken = NodeUpdate(node_id="new-node~1", action=NodeAction.CREATE, capacity={"vcore": 100})
    for first, second in (
        (_member("k0", 500, {"nodeSelector": {"disk": "ssd"}}), _member("k1", 500, {})),
        (_member("k0", 1500, {}), _member("k1", 500, {})),
    ):
        scene = scenes.Scene(ONE_QUEUE, ((taken,), (_gang_of_two(),), (first, second), 0))
        found = _proposed(scene, "k1")
        kinds = [each.changes for each in found if len(each.changes) == 2]
        assert kinds, found
        for each in kinds:
            assert all(isinstance(change, changes.MoreNodes) for change in each)
            assert scenes.Waited(scene, "k1").placed(each)


def test_members_of_a_gang_that_require_a_node_that_is_not_there_get_it_with_room_and_labels_for_all() -> None:
    required = {TAG_REQUIRED_NODE: "n1"}
    members = [
        _member(key, 500, {"nodeSelector": {label: "yes"}}, **required) for key, label in (("k0", "ssd"), ("k1", "gpu"))
    ]
    scene = scenes.Scene(ONE_QUEUE, ((_gang_of_two(),), tuple(members), 0))
    for key in ("k0", "k1"):
        (found,) = _proposed(scene, key)
        assert found.text == "a node n1 of 1 vcore with the labels gpu=yes, ssd=yes"
        assert scenes.Waited(scene, key).placed(found.changes)


@pytest.mark.timeout(scaled(1800))
@examples(150)
@given(scenes.scenes(gpus=True))
def test_what_never_runs_as_things_are_does_not_run_in_an_empty_cluster_and_all_else_does(scene: scenes.Scene) -> None:
    check_never(scene)


def check_never(scene: scenes.Scene) -> None:
    """Check the one sentence for all asks that wait: it says "never" of those that would not run alone, and of no others."""
    home = Home(scene.restored())
    for app in home.partition("default").applications.values():
        for key in list(app.asks):
            answer = why(home, key, prove=False)
            assert isinstance(answer, AskAnswer)
            assert answer.chain is not None
            never = NEVER in answer.sentence
            note(f"{key}: {answer.sentence}")
            assert never == any(reason.never for reason in answer.chain.reasons)
            if never or not app.asks[key].task_group:  # a member of a gang waits for the others, too
                assert never != scenes.is_placed_alone(scene, key), f"{key}: {answer.sentence}"


def check(restored: Callable[[], Restored], placed_for: Callable[[str], Placed]) -> None:
    """Check all proposals for asks that wait in a cluster."""
    home = Home(restored())
    partition = home.partition("default")
    waiting = [(app.id, key) for app in partition.applications.values() for key in app.asks]
    for application, key in waiting[:ASKS_MAX]:
        placed = placed_for(key)
        found = propose(home, Wanted("default", application, key), effort=EFFORT)
        note(f"{key}: {found}")
        assert placed(()) == found.by_itself, key
        if found.by_itself:
            continue
        assert found.complete
        assert found.found, f"nothing is proposed for {key}"
        for proposal in found.found:
            assert placed(proposal.changes), f"{key}: {proposal.text} does not help"
            if proposal.smallest:
                for smaller in _smaller(restored(), proposal):
                    assert not placed(smaller), f"{key}: {smaller} does, not {proposal.text}"
    home.restored.api.validate()


def check_scene(scene: scenes.Scene) -> None:
    """Check all proposals for asks that wait in a scene."""
    check(scene.restored, lambda key: scenes.Waited(scene, key).placed)


@pytest.mark.gate
@examples(40)
@given(clusters(quiet=True, gpus=True), st.sampled_from(EFFORTS))
def test_a_search_that_is_cut_short_says_so_and_claims_no_more_than_it_has_tried(dump: bytes, effort: float) -> None:
    check_cut(dump, effort)


def check_cut(dump: bytes, effort: float) -> None:
    """Check what a budget leaves: as many trials as it pays, proposals that work, and nothing called smallest that is not."""
    home = Home(restore(read_dump(dump)))
    partition = home.partition("default")
    apps = partition.applications.values()
    wanted = next((Wanted("default", app.id, key) for app in apps for key in app.asks), None)
    if wanted is None:
        return
    trial = len(partition.nodes) + sum(len(app.asks) + len(app.allocations) for app in apps)
    found = propose(home, wanted, effort=effort)
    assert (found.trials - 1) * trial <= WORK_MAX * effort
    assert found.complete or any("cut short" in each for each in found.untried)
    assert propose(home, wanted, effort=effort) == found
    for proposal in found.found:
        assert is_placed(dump, proposal.changes, wanted.key), proposal.text
        if proposal.smallest:
            for smaller in _smaller(restore(read_dump(dump)), proposal):
                assert not is_placed(dump, smaller, wanted.key), f"{smaller} does, not {proposal.text}"


def _spends_nothing(*_: object, **__: bool) -> None:
    pass


def test_each_trial_is_paid_from_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    wanted, effort = Wanted("default", "index", "index-0"), 0.00012
    paid = propose(home, wanted, effort=effort)
    assert not paid.complete
    monkeypatch.setattr(Budget, "spend", _spends_nothing)  # then more is found, as each trial alone costs less than all
    assert len(propose(home, wanted, effort=effort).found) > len(paid.found)


def test_what_a_budget_has_cut_is_not_called_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    wanted = Wanted("default", "index", "index-0")
    whole = propose(home, wanted)
    told: list[Proposal] = []
    for allowed in range(1, whole.trials):
        left = iter(range(allowed))

        def paid(_: Budget, left: Iterator[int] = left, *, suggest: bool) -> int:
            if next(left, None) is None:
                raise WorkSpentError
            return WORK_UNBOUNDED

        monkeypatch.setattr(Budget, "work_max", paid)
        found = propose(home, wanted)
        if not found.complete:
            assert any("cut short" in each for each in found.untried)
            told += found.found
    assert any(not each.smallest for each in told)
    assert all(each in whole.found for each in told if each.smallest)


@pytest.mark.parametrize(
    ("most", "works", "least"),
    [
        (8, {8}, (8, True)),
        (8, {2, 8}, (2, True)),
        (64, {2, *range(6, 65)}, (2, True)),
        (64, set(range(9, 65)), (9, False)),
        (64, {2, *range(9, 65)}, (9, False)),
    ],
)
def test_each_number_up_to_eight_is_tried_though_more_may_do_harm(
    most: int, works: set[int], least: tuple[int, bool]
) -> None:
    assert proposals._least(most, works.__contains__) == least


@pytest.mark.parametrize(
    ("members", "waiting", "text"),
    [(4, 1, "2 nodes more like n0"), (12, 9, "")],
    ids=["a number of at most eight", "a larger one is not called the smallest"],
)
def test_fewer_nodes_are_found_though_more_would_do_harm(members: int, waiting: int, text: str) -> None:
    """Two nodes are for `other` and `wanted`; with as many as the gang has members, and one more, it comes first."""
    groups = json.dumps([{"name": "g", "minMember": members, "minResource": {"cpu": "1"}}])
    tags = {"gang": {scenes.GROUPS_TAG: groups, "gang.scheduling": "atomic"}}

    def submitted(name: str, asks: int, **more: Any) -> tuple[AddApplication | Allocation, ...]:
        each = {"application_id": name, "resource": {"vcore": 1000}, **more}
        app = _app(name, tags=tags.get(name, {}))
        return app, *(Allocation(key=f"{name}-{number}", **each) for number in range(asks))

    gang = submitted("gang", members, task_group="g")
    running, others = (_node(), *submitted("running", 1)), (*submitted("other", waiting), *submitted("wanted", 1))
    scene = scenes.Scene(ONE_QUEUE, (running, 0, (*gang, *others), 0))
    found = propose(Home(scene.restored()), Wanted("default", "wanted", "wanted-0"), effort=EFFORT)
    nodes = [each for each in found.found if isinstance(each.changes[0], changes.MoreNodes)]
    assert [each.text for each in nodes if each.smallest] == ([text] if text else [])
    assert all(scenes.Waited(scene, "wanted-0").placed(each.changes) for each in nodes) and nodes


def test_more_nodes_than_the_bound_are_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    wanted = Wanted("default", "report", "report-0")
    monkeypatch.setattr(proposals, "SIZE_MAX", 0)
    found = propose(home, wanted)
    assert "more than 0 new nodes, or ends of allocations" in found.untried
    assert not any(isinstance(change, changes.MoreNodes) for each in found.found for change in each.changes)


def _smaller(restored: Restored, proposal: Proposal) -> Iterator[list[changes.Change]]:
    """Yield all that is smaller in one place: a change left out, a lower number, fewer allocations of any kind."""
    for index, change in enumerate(proposal.changes):
        before, after = proposal.changes[:index], proposal.changes[index + 1 :]
        yield [*before, *after]
        for less in _less(restored, change):
            yield [*before, less, *after]


def _less(restored: Restored, change: changes.Change) -> Iterator[changes.Change]:
    match change:
        case changes.MoreMembers() | changes.FewerMembers():
            for number in range(1, changes.amounts(change)["g"]):
                yield changes.with_amounts(change, {"g": number})
        case changes.Priority():
            for priority in range(change.before + 1, change.priority):
                yield replace(change, priority=priority)
        case _ if isinstance(change, changes.Counted):
            amounts = changes.amounts(change)
            for name, amount in amounts.items():
                for less in (*range(0, amount, GRID), amount - 1):
                    fewer = {**amounts, name: less}
                    if any(fewer.values()):  # else it is left out
                        yield changes.with_amounts(change, {each: more for each, more in fewer.items() if more})
        case changes.MoreNodes():
            for count in range(1, change.count):
                yield replace(change, count=count)
        case changes.MaxApplications():
            for more in range(1, change.more):
                yield replace(change, more=more)
        case changes.End():
            running = [
                changes.Running(key, app.queue.path, alloc.node.id)
                for app in restored.partitions[0].applications.values()
                for key, alloc in app.allocations.items()
                if alloc.node is not None
            ]
            for size in range(1, len(change.allocations)):
                for some in combinations(running, size):
                    yield changes.End(tuple(sorted(some)))


def _not_the_least(most: int, _: Callable[[int], bool]) -> tuple[int, bool]:
    return most, True


def _never_tried(*_: object, **__: object) -> Outcome:
    return Outcome("cpu-0")


def test_a_search_ends_when_the_process_that_asked_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    assert propose(home, Wanted("default", "index", "index-0")).complete
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert not propose(home, Wanted("default", "index", "index-0")).complete


def test_what_is_known_to_do_is_told_where_the_time_ends_before_less_is_tried() -> None:
    home = Home(restore(read_dump(DUMP.read_bytes())))
    wanted = Wanted("default", "index", "index-0")
    whole = propose(home, wanted)
    told: list[Proposal] = []
    for allowed in range(1, whole.trials):
        trials_left = iter(range(allowed))
        found = propose(home, wanted, more=lambda left=trials_left: next(left, None) is not None)  # type: ignore[misc]
        if not found.complete:
            told += found.found
    assert any(not each.smallest for each in told)
    assert all(each in whole.found for each in told if each.smallest)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("where", "name", "fault"),
    [
        (proposals, "_least", _not_the_least),
        (trials.Trials, "_change", _never_tried),
    ],
    ids=["more than is needed is proposed", "a change is not tried"],
)
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], where: Any, name: str, fault: Any
) -> None:
    law = Counted(check)

    @examples(100, phases=(Phase.generate,), report_multiple_bugs=False)
    @given(clusters(quiet=True))
    def holds(dump: bytes) -> None:
        law(lambda: restore(read_dump(dump)), lambda key: lambda made: is_placed(dump, made, key))

    monkeypatch.setattr(where, name, fault)
    with a_law_breaks(sys.modules[__name__]):
        holds()
    record_property(LOOKED_AT, law.looked_at)


def _no_further(partition: Any, ask: Any) -> list[repairs.Obstacle]:
    return [repairs.Obstacle(ask, reason) for reason in explain.reasons(partition, ask.app, ask)]


def _nothing_owed(_: Any) -> Iterator[Any]:
    return iter(())


def _cordoned_for_ever(partition: Any, ask: Any) -> Iterator[Any]:
    for node, reason, unfit in SURVEY(partition, ask):
        yield node, reason, unfit or reason == "not schedulable"


SURVEY = explain.survey
FEW_SCENES, RANDOM_SCENES = 25, 400
"""So few scenes from a known seed show a fault; of other scenes about one in a hundred does."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("where", "name", "fault", "law", "known"),
    [(explain, "survey", _cordoned_for_ever, check_never, 1)],
    ids=["a node that is cordoned counts as unfit"],
)
def test_a_planted_fault_is_caught_with_gangs(
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    where: Any,
    name: str,
    fault: Any,
    law: Callable[[scenes.Scene], None],
    known: int,
) -> None:
    counted = Counted(law)

    @seed(seeds.SEED if seeds.RANDOM else known)
    @examples(RANDOM_SCENES if seeds.RANDOM else FEW_SCENES, phases=(Phase.generate,), report_multiple_bugs=False)
    @given(scenes.scenes())
    def holds(scene: scenes.Scene) -> None:
        counted(scene)

    monkeypatch.setattr(where, name, fault)
    with a_law_breaks(sys.modules[__name__]):
        holds()
    record_property(LOOKED_AT, counted.looked_at)


@pytest.mark.parametrize(
    ("where", "name", "fault", "law"),
    [
        (trials, "_owed", _nothing_owed, test_an_ask_that_an_end_under_way_makes_room_for_needs_no_change),
        (trials, "obstacles", _no_further, test_an_ask_waits_for_what_its_placeholder_waits_for),
        (
            asks,
            "_less",
            lambda ask, _: dict(ask.shape.resource),
            test_an_ask_that_is_larger_than_every_node_may_want_less,
        ),
    ],
    ids=[
        "what is ending stays for ever",
        "what a placeholder waits for is not looked at",
        "the ask wants as much as before",
    ],
)
def test_a_planted_fault_is_caught_by_one_scene(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Any, law: Callable[[], None]
) -> None:
    """Faults that hardly any random scene shows."""
    monkeypatch.setattr(where, name, fault)
    with a_law_breaks(sys.modules[__name__]):
        law()
