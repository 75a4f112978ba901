"""Objects of random strange content beside ordinary ones: what becomes of the others is the same, whatever they contain."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.examples import examples
from common.virtual import run
from kube import schedules
from licorne.kube.objects import ConfigMap, Namespace, Node, Pod
from licorne.kube.pods import keys
from licorne.kube.settings import RunSettings

LONG = "x" * (256 << 10)
TEXTS = st.sampled_from(
    [
        "{",
        "[",
        "[" * 10_000,
        "null",
        "7",
        '{"user":',
        '{"cpu":"-1"}',
        '{"cpu":"1e999"}',
        '[{"name":"g"}]',
        LONG,
        "\x00",
        "٣",
    ]
) | st.text(min_size=1, max_size=8)
AMOUNTS: st.SearchStrategy[Any] = st.sampled_from(
    [
        "",
        "x",
        "-1",
        "1e999",
        "9223372036854775807",
        "8E",
        "9" * 5000,
        "0x10",
        "NaN",
        "٣",
        None,
        True,
        -5,
        10**30,
        ["1"],
        {},
    ]
)
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "new.example/thing"]), AMOUNTS, min_size=1)
POD_KEYS = [keys.USER_INFO, keys.ALLOW_PREEMPTION, keys.TASK_GROUPS, keys.TASK_GROUP_NAME, keys.GANG_PARAMETERS]
POD_KEYS += [keys.GANG_KIND, keys.APP_ID, keys.QUEUE]
NAMESPACE_KEYS = [keys.NAMESPACE_QUOTA, keys.NAMESPACE_GUARANTEED, keys.NAMESPACE_MAX_APPS, keys.NAMESPACE_PARENT_QUEUE]
SETTINGS = [
    "service.placeholderRunAsUser",
    "log.level",
    "event.ringBufferCapacity",
    "health.checkInterval",
]
MAPS = st.one_of(
    st.dictionaries(st.sampled_from(SETTINGS), TEXTS, min_size=1, max_size=2),
    st.sampled_from([{"queues.yaml": text} for text in ("{", "[", "[" * 10_000, "7", "partitions: 7", LONG)]),
)
WORDS = st.sampled_from(["", "Perhaps", "In", "Exists", "Always", LONG])
CONDITION = st.fixed_dictionaries({"key": WORDS, "operator": WORDS}, optional={"values": st.lists(WORDS, max_size=2)})
TERM = st.fixed_dictionaries({}, optional={"matchExpressions": st.lists(CONDITION), "matchFields": st.lists(CONDITION)})
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return lists of up to two items."""
    return st.lists(items, max_size=2)


CONTAINERS = st.one_of(
    few(st.builds(lambda asked, policy: {"resources": {"requests": asked}, "restartPolicy": policy}, REQUESTS, WORDS)),
    st.just([{"name": f"c{n}"} for n in range(1000)]),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "containers": CONTAINERS,
        "initContainers": CONTAINERS,
        "resources": st.builds(lambda asked: {"requests": asked}, REQUESTS),
        "overhead": REQUESTS,
        "nodeSelector": st.dictionaries(WORDS, WORDS, max_size=2),
        "affinity": st.builds(lambda terms: {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}, few(TERM)),
        "tolerations": few(st.fixed_dictionaries({"key": WORDS, "operator": WORDS, "effect": WORDS})),
        "topologySpreadConstraints": few(st.fixed_dictionaries({"topologyKey": WORDS, "whenUnsatisfiable": WORDS})),
        "preemptionPolicy": WORDS,
        "priorityClassName": WORDS,
        "priority": st.sampled_from([-(2**31), 2**31 - 1, 2**63]),
        "resourceClaims": few(st.dictionaries(WORDS, WORDS, max_size=2)),
        "volumes": few(st.fixed_dictionaries({"name": WORDS, "ephemeral": st.dictionaries(WORDS, WORDS, max_size=1)})),
    },
)
HALF = "\ud800"
"""Half of a surrogate pair, which JSON can have as an escape, and which no text that is sent can have."""
NAMES = st.sampled_from(["g", "", HALF, LONG, "\x00", "G/%", 7, None])
FIELDS: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        5,
        "abc",
        ["a"],
        {},
        {"a": "b"},
        {"a": 7},
        {"a": HALF},
        {HALF: "a"},
        {"a": {"b": None}},
        [{"key": HALF}],
        [{"key": 10**30}],
    ]
)
PLACEHOLDER_FIELDS = ("labels", "annotations", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
GROUP = st.fixed_dictionaries(
    {
        "name": st.just("g") | NAMES,
        "minMember": st.just(2) | st.sampled_from([0, -1, True, "2", 10**30]),
        "minResource": st.just({"cpu": "0"}) | st.dictionaries(st.sampled_from(["cpu", HALF, ""]), AMOUNTS, max_size=2),
    },
    optional=dict.fromkeys(PLACEHOLDER_FIELDS, FIELDS),
)


def groups(**fields: Any) -> str:
    """Return the annotation of a gang of two with these fields."""
    return json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "0"}, **fields}])


def nested(depth: int) -> str:
    """Return the annotation of a gang whose affinity has so many levels."""
    return groups(affinity="DEEP").replace('"DEEP"', '{"a":' * depth + "1" + "}" * depth)


ANNOTATIONS = st.dictionaries(st.sampled_from(POD_KEYS), TEXTS, max_size=3)
GANG_ANNOTATIONS = st.builds(
    lambda others, group: {**others, keys.TASK_GROUPS: json.dumps([group])}, ANNOTATIONS, GROUP
)
NODES = st.fixed_dictionaries(
    {"allocatable": REQUESTS, "taints": few(st.fixed_dictionaries({"key": WORDS, "effect": WORDS}))}
)
HOSTILE = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), ANNOTATIONS | GANG_ANNOTATIONS, SPECS),
        st.tuples(st.just("node"), st.dictionaries(WORDS, TEXTS, max_size=2), NODES),
        st.tuples(st.just("namespace"), st.dictionaries(st.sampled_from(NAMESPACE_KEYS), TEXTS, min_size=1), st.none()),
        st.tuples(st.just("map"), MAPS, st.none()),
    ),
    min_size=1,
    max_size=4,
)


class Ordinary(schedules.World):
    """A cluster with room for ten pods of a core, of which one more waits because no node is that large."""

    def begin(self) -> None:
        self.server.put("namespaces", msgspec.convert({"metadata": {"name": "hostile"}}, Namespace))
        for number in range(10):
            self.add(f"good{number}", {}, {"containers": [{"resources": {"requests": {"cpu": "1"}}}]})
        self.add("large", {}, {"containers": [{"resources": {"requests": {"cpu": "7"}}}]})

    def add(self, name: str, annotations: dict[str, str], spec: dict[str, Any], namespace: str = "default") -> None:
        """Create a pod."""
        body = {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": name,
                "annotations": annotations,
                "creationTimestamp": datetime.fromtimestamp(self.now_s(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
            "spec": {"schedulerName": "yunikorn", **spec},
            "status": {"phase": "Pending"},
        }
        self.server.put("pods", msgspec.convert(body, Pod))

    def put_hostile(self, number: int, kind: str, texts: dict[str, str], more: Any) -> None:
        """Create, or change, an object of strange content."""
        name = f"hostile{number}"
        meta = {"name": name, "uid": name, "annotations": texts}
        if kind == "pod":
            self.add(name, texts, more, "hostile")
        elif kind == "node":
            taints = [*more["taints"], {"key": "hostile", "effect": "NoSchedule"}]
            node = {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": more["allocatable"]}}
            self.server.put("nodes", msgspec.convert(node, Node))
        elif kind == "namespace":
            self.server.put("namespaces", msgspec.convert({"metadata": {**meta, "name": "hostile"}}, Namespace))
        else:
            found = {"name": "yunikorn-configs", "namespace": "default", "uid": "map"}
            data = {**schedules.DATA, **texts}
            self.server.put("configmaps", msgspec.convert({"metadata": found, "data": data}, ConfigMap))

    def fates(self) -> dict[str, str]:
        """Return what has become of the ordinary pods: whether they are bound, and what those that wait are told."""
        fates = {}
        for pod in self.server.pods():
            if pod.metadata.namespace == "default":
                told = {one.type: one.reason for one in pod.status.conditions or ()}
                fates[pod.metadata.name] = "bound" if pod.spec.node_name else told.get("PodScheduled", "nothing")
        return fates


def play(hostile: list[tuple[str, dict[str, str], Any]], settings: RunSettings | None = None) -> Ordinary:
    """Have the ordinary pods scheduled beside these objects; fail if licorne ends, or breaks one of its invariants."""

    async def scenario() -> Ordinary:
        world = Ordinary(1)
        runner, task = schedules.start(world, settings=settings)
        await asyncio.sleep(1.0)
        for number, (kind, texts, more) in enumerate(hostile):
            world.put_hostile(number, kind, texts, more)
        world.begin()
        await asyncio.sleep(20.0)
        if task.done():
            task.result()
        runner.api.validate()
        assert runner.api.diagnostics()["mycluster"].keys() >= {"cache"}
        await schedules.stop(task)
        return world

    return run(scenario())


USUAL = {**{f"good{number}": "bound" for number in range(10)}, "large": "Unschedulable"}


def test_the_ordinary_pods_alone() -> None:
    assert play([]).fates() == USUAL


def test_a_gang_among_the_strange_objects_gets_its_placeholders() -> None:
    """Otherwise no gang here would be tested further than its annotation."""
    world = play([("pod", {keys.TASK_GROUPS: groups(labels={"a": "b"})}, {})])
    made = [pod for pod in world.server.pods() if (pod.metadata.annotations or {}).get(keys.PLACEHOLDER)]
    assert [(pod.metadata.labels or {})["a"] for pod in made] == ["b", "b"]


STRANGE_GROUPS = {
    "labels that are a list": groups(labels=["a"]),
    "labels that are a text": groups(labels="abc"),
    "annotations that are a number": groups(annotations=5),
    "labels that are numbers": groups(labels={"a": 5}),
    "half a surrogate pair as a name": groups(name=HALF),
    "half a surrogate pair as a resource": groups(minResource={HALF: "1"}),
    "half a surrogate pair as a resource, without an amount": groups(minResource={HALF: "x"}),
    "half a surrogate pair as a label": groups(labels={"a": HALF}),
    "half a surrogate pair as a label's name": groups(labels={HALF: "a"}),
    "half a surrogate pair in the affinity": groups(affinity={"nodeAffinity": {"a": [HALF]}}),
    "half a surrogate pair where nothing is read": groups(other=[HALF]),
    "tolerations that are an object": groups(tolerations={"a": "b"}),
    "a node selector that is a list": groups(nodeSelector=["a"]),
    "an affinity that is a text": groups(affinity="a"),
    "topology constraints that are texts": groups(topologySpreadConstraints=["a"]),
    **{f"an affinity of {depth} levels": nested(depth) for depth in (60, 900, 970, 980, 985, 990, 995)},
    "a group of 980 levels": "[" * 980 + "]" * 980,
}


@pytest.mark.parametrize("dry_run", [False, True], ids=["writing", "dry run"])
@pytest.mark.parametrize("kind", [{}, {keys.GANG_KIND: "atomic"}], ids=["placeholders", "as a whole"])
@pytest.mark.parametrize("what", STRANGE_GROUPS)
def test_task_groups_of_which_no_placeholder_can_be_made(what: str, kind: dict[str, str], dry_run: bool) -> None:
    world = play([("pod", {keys.TASK_GROUPS: STRANGE_GROUPS[what], **kind}, {})], RunSettings(dry_run=dry_run))
    if not dry_run:
        assert world.fates() == USUAL
        assert "TaskGroupsError" in {event["action"] for event in world.server.events}
        [strange] = [pod for pod in world.server.pods() if pod.metadata.namespace == "hostile"]
        assert strange.spec.node_name


@examples(60)
@given(HOSTILE)
@example([("pod", dict.fromkeys(POD_KEYS, LONG), {})])
@example([("pod", {keys.USER_INFO: "["}, {"containers": [{"resources": {"requests": {"cpu": "9" * 5000}}}]})])
@example([("map", {"queues.yaml": "["}, None)])
def test_others_fare_as_if_the_strange_objects_were_not_there(hostile: list[tuple[str, dict[str, str], Any]]) -> None:
    world = play(hostile)
    assert world.fates() == USUAL
    told = {event["regarding"]["name"] for event in world.server.events}
    for pod in world.server.pods():
        if pod.metadata.namespace == "hostile" and not pod.spec.node_name and pod.status.phase == "Pending":
            assert pod.metadata.name in told, f"{pod.metadata.name} waits, and no event says why"
