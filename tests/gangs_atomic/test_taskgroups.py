"""The tag with the task groups: its meaning, and refusals that name field, value and rule."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import config, parent
from gangs_atomic.helpers import GangBench, task_groups
from licorne.core.gangs.task_groups import TaskGroupsError, parse_task_groups, sum_of

AMOUNTS = [
    # resource, quantity, what an ask would say
    ("cpu", "500m", {"vcore": 500}),
    ("cpu", "2", {"vcore": 2000}),
    ("cpu", 2, {"vcore": 2000}),
    ("cpu", 0.5, {"vcore": 500}),
    ("cpu", "0.0001", {"vcore": 1}),  # rounded up, as Kubernetes does
    ("vcore", "3", {"vcore": 3000}),
    ("memory", "1Gi", {"memory": 1 << 30}),
    ("memory", "1.5Ki", {"memory": 1536}),
    ("memory", "100M", {"memory": 10**8}),
    ("memory", "1e3", {"memory": 1000}),
    ("memory", "1E", {"memory": 10**18}),
    ("memory", "1500m", {"memory": 2}),
    ("nvidia.com/gpu", "1", {"nvidia.com/gpu": 1}),
]


@pytest.mark.parametrize(("kind", "quantity", "amounts"), AMOUNTS)
def test_quantities_are_those_of_kubernetes(kind: str, quantity: object, amounts: dict[str, int]) -> None:
    text = json.dumps([{"name": "w", "minMember": 3, "minResource": {kind: quantity}, "tolerations": 7}])
    (group,) = parse_task_groups(text)
    assert (group.name, group.members, group.resource) == ("w", 3, amounts)
    assert sum_of((group,)) == {name: 3 * amount for name, amount in amounts.items()}


REFUSED = [
    ("", "task-groups: '': must be a JSON list of task groups that is not empty: line 1, column 1: Expecting value"),
    ("[]", "task-groups: '[]': must be a JSON list of task groups that is not empty"),
    ("{}", "task-groups: '{}': must be a JSON list of task groups that is not empty"),
    ("[1]", "task-groups[0]: 1: must be an object"),
    ('[{"minMember": 1}]', "task-groups[0].name: missing: must be a text that is not empty"),
    ('[{"name": "w"}]', "task-groups[0].minMember: missing: must be an integer from 1 to 10000"),
    ('[{"name": "w", "minMember": true}]', "task-groups[0].minMember: True: must be an integer from 1 to 10000"),
    ('[{"name": "w", "minMember": 0}]', "task-groups[0].minMember: 0: must be an integer from 1 to 10000"),
    (task_groups(a=9000, b=9000), "task-groups: 18000 members: must be at most 10000"),
    (
        '[{"name": "w", "minMember": 1, "minResource": {}}, {"name": "w", "minMember": 1, "minResource": {}}]',
        "task-groups[1].name: 'w': must be there once only",
    ),
    (
        '[{"name": "w", "minMember": 1, "minResource": {"cpu": "-1"}}]',
        "task-groups[0].minResource.cpu: '-1': must be a quantity, such as 500m, 2 or 4Gi",
    ),
    (
        '[{"name": "w", "minMember": 1}]',
        "task-groups[0].minResource: missing: must be a map of quantities",
    ),
    (
        '[{"name": "w", "minMember": 1, "minResource": []}]',
        "task-groups[0].minResource: []: must be a map of quantities",
    ),
    (
        '[{"name": "w", "minMember": 9, "minResource": {"memory": "4E"}}]',
        f"task-groups: {36 * 10**18} of memory in all: must be at most {2**62 - 1}",
    ),
    (
        '[{"name": "w", "minMember": 1, "minResource": {"memory": "8E"}}]',
        f"task-groups[0].minResource.memory: '8E': must be at most {2**62 - 1}",
    ),
    ("[" * 100_000, f"task-groups: '{'[' * 60}': must be a JSON list of task groups that is not empty"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_a_tag_that_cannot_be_used_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(TaskGroupsError) as error:
        parse_task_groups(text)
    assert str(error.value) == reason


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_document_crashes_the_reader(document: object) -> None:
    with contextlib.suppress(TaskGroupsError):
        parse_task_groups(json.dumps(document))


# -- admission -----------------------------------------------------------------------------------------------

ATOMIC = "b properties: {gang.scheduling: atomic}"
ADMITTED = [
    # queues, queue, text, the application's own word, whether it is a gang; the reason where it is refused
    (("a",), "root.a", task_groups(w=2), "", False, ""),
    (("a",), "root.a", task_groups(w=2), "atomic", True, ""),
    (("a",), "root.a", task_groups(w=2), "ATOMIC", True, ""),
    (("a",), "root.a", task_groups(w=2), "nonsense", False, ""),
    (("a",), "root.a", "rubbish", "", False, ""),
    ((ATOMIC,), "root.b", task_groups(w=2), "", True, ""),
    ((ATOMIC,), "root.b", task_groups(w=2), "default", False, ""),
    ((ATOMIC,), "root.b", "", "", False, ""),
    ((ATOMIC,), "root.b", "7", "", False, "task-groups: '7': must be a JSON list of task groups that is not empty"),
    ((parent("p properties: {gang.scheduling: atomic}", "c"),), "root.p.c", task_groups(w=2), "", True, ""),
    (
        ("a",),
        "root.a",
        "",
        "atomic",
        False,
        "gang.scheduling: 'atomic': the application must have the tag yunikorn.apache.org/task-groups",
    ),
    (
        (parent("p resources: {max: {vcore: 5m}}", "c"),),
        "root.p.c",
        task_groups(w=6),
        "atomic",
        False,
        "task-groups: queue root.p cannot hold the gang: it wants 6 of vcore, its max is 5",
    ),
    ((parent("p resources: {max: {vcore: 6m}}", "c"),), "root.p.c", task_groups(w=6), "atomic", True, ""),
    (("a properties: {application.sort.policy: fair}",), "root.a", task_groups(w=2), "atomic", True, ""),
]


@pytest.mark.parametrize(("queues", "queue", "text", "how", "is_gang", "reason"), ADMITTED)
def test_conditions_that_make_an_application_a_gang(
    queues: tuple[str, ...], queue: str, text: str, how: str, is_gang: bool, reason: str
) -> None:
    b = GangBench(text=config(*queues))
    said = b.add("g", text, how, queue=queue)
    if reason:
        assert said == [f"rejected g: {reason}"]
        assert not b.partition.applications
    else:
        assert said == ["accepted g"]
        assert (b.application("g").atomic is not None) == is_gang


def test_an_atomic_gang_has_no_placeholders() -> None:
    b = GangBench(10, text=config("a", "b properties: {gang.scheduling: atomic}"))
    reason = "gang.scheduling: 'atomic': an application with a placeholder ask cannot be placed as a whole"
    assert b.add("g", task_groups(w=2), placeholder_ask={"vcore": 2}) == [f"rejected g: {reason}"]
    # The queue's word alone: it is a gang with placeholders, as it would be elsewhere.
    assert b.add("g", task_groups(w=2), "", queue="root.b", placeholder_ask={"vcore": 2}) == ["accepted g"]
    assert b.application("g").atomic is None
    b.add("h", task_groups(w=2))
    assert b.member("h", "p", 1, placeholder=True) == [
        "rejected p of h: placeholder: application h is placed as a whole and has none"
    ]


def test_a_rejected_application_leaves_no_queue_behind() -> None:
    b = GangBench(10, text=config("p parent: true, childtemplate: {resources: {max: {vcore: 1m}}}"))
    before = b.queues()
    assert b.add("g", "rubbish", queue="root.p.new")[0].startswith("rejected g: ")
    assert b.queues() == before
    assert b.add("g", task_groups(w=2), queue="root.p.new")[0].startswith("rejected g: ")
    b.run(after=10)  # the cleaner
    assert b.queues() == before
