"""What pods mean to the scheduler: the keys that users of YuniKorn write (docs/spec/k8shim.md, sections 1 to 3)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from licorne.kube.manager.manager import _namespace_faults
from licorne.kube.objects import Namespace, Node, Pod, PriorityClass
from licorne.kube.pods import misspelled
from licorne.kube.pods.foreign import foreign_allocation
from licorne.kube.pods.namespaces import misnamed_resources, namespace_tags, unread_annotations
from licorne.kube.pods.nodes import node_update
from licorne.kube.pods.work import PodContext, Work, WorkSettings, placeholder_ask, read_pod
from licorne.si.messages import NodeAction

Y = "yunikorn.apache.org/"
LONG = "x" * ((256 << 10) - 500)
GROUPS = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "500m", "memory": "1Gi"}}])


def pod(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    **meta: Any,
) -> Pod:
    """Return a pod of namespace `ns`."""
    metadata = {"name": "p", "namespace": "ns", "uid": "u-1", "labels": labels, "annotations": annotations, **meta}
    return msgspec.convert({"metadata": metadata, "spec": {"schedulerName": "yunikorn", **(spec or {})}}, Pod)


def work(given: Pod, context: PodContext | None = None) -> Work:
    """Return what the pod asks for."""
    return read_pod(given, context or PodContext())


def tags_of(given: Pod) -> dict[str, str]:
    """Return the tags of what the pod asks for."""
    return work(given).ask.tags or {}


@pytest.mark.parametrize(
    ("labels", "annotations", "wanted"),
    [
        ({Y + "app-id": "a", "applicationId": "b"}, {Y + "app-id": "c"}, "a"),
        ({"applicationId": "b"}, {Y + "app-id": "c"}, "c"),
        ({"applicationId": "b", "spark-app-selector": "s"}, {}, "b"),
        ({"spark-app-selector": "s"}, {}, "s"),
        ({"applicationId": "x-uniqueautogen"}, {}, "x-u-1"),
        ({}, {Y + "app-id": "x" * 80 + "-uniqueautogen"}, "x" * 26 + "-u-1"),
        ({}, {}, "yunikorn-ns-autogen"),
    ],
)
def test_the_id_of_an_application(labels: dict[str, str], annotations: dict[str, str], wanted: str) -> None:
    assert work(pod(labels, annotations)).ask.application_id == wanted


def test_each_pod_is_an_application_of_its_own_if_the_configuration_says_so() -> None:
    context = PodContext(settings=WorkSettings(generate_unique_app_id=True))
    assert work(pod(), context).ask.application_id == "ns-u-1"


@pytest.mark.parametrize(
    ("labels", "annotations", "wanted"),
    [
        ({Y + "queue": "a", "queue": "b"}, {Y + "queue": "c"}, "a"),
        ({"queue": "b"}, {Y + "queue": "c"}, "c"),
        ({"queue": "b"}, {}, "b"),
        ({}, {}, ""),
    ],
)
def test_the_queue(labels: dict[str, str], annotations: dict[str, str], wanted: str) -> None:
    assert work(pod(labels, annotations)).application.queue == wanted


def test_keys_that_say_different_things_are_noted() -> None:
    notes = work(pod({"queue": "b"}, {Y + "queue": "c"})).notes
    assert [note.reason for note in notes] == ["Scheduling"]
    assert "(Label) queue: b" in notes[0].text
    assert work(pod({"queue": "b"}, {Y + "queue": "b"})).notes == ()


@pytest.mark.parametrize(
    ("labels", "annotations", "user", "groups"),
    [
        ({}, {Y + "user.info": '{"user":"ann","groups":["dev"]}'}, "ann", ["dev"]),
        ({}, {Y + "user.info": '{"user":"ann"}'}, "ann", []),
        ({}, {Y + "user.info": '{"user":""}'}, "nobody", []),
        ({}, {Y + "user.info": "{"}, "nobody", []),
        ({}, {Y + "user.info": "[" * 100000}, "nobody", []),
        ({Y + "username": "bob"}, {}, "bob", []),
        ({}, {}, "nobody", []),
    ],
)
def test_the_user(labels: dict[str, str], annotations: dict[str, str], user: str, groups: list[str]) -> None:
    application = work(pod(labels, annotations)).application
    assert (application.user, list(application.groups)) == (user, groups)


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({Y + "user.info": "["}, "its user is nobody"),
        ({Y + "user.info": "7"}, "its user is nobody"),
        ({Y + "user.info": '{"user":"u","groups":[1]}'}, "its user is nobody"),
        ({Y + "user.info": "[" * 100_000}, "its user is nobody"),
        ({Y + "user.info": "{}"}, "it names no user"),
        ({Y + "user.info": json.dumps({"user": LONG})}, "has 261644 characters, and at most 1024 are allowed"),
        ({Y + "user.info": json.dumps({"user": "u", "groups": ["g", LONG]})}, "its group 'xxx"),
        ({Y + "user.info": json.dumps({"user": "u", "groups": ["g"] * 1001})}, "1001 groups, and at most 1000"),
        ({Y + "allow-preemption": "maybe"}, "'maybe': must be 'true' or 'false'"),
        ({Y + "allow-preemption": "x" * (256 << 10)}, "must be 'true' or 'false'"),
        ({Y + "task-groups": GROUPS, "gang.scheduling": "loose"}, "'loose': must be 'atomic'"),
        ({Y + "task-groups": GROUPS, Y + "schedulingPolicyParameters": "gangSchedulingStyle=Firm"}, "Soft counts"),
        ({Y + "task-groups": GROUPS, Y + "schedulingPolicyParameters": "placeholderTimeoutInSeconds=-1"}, "'-1': must"),
        (
            {
                Y + "task-groups": GROUPS,
                Y + "schedulingPolicyParameters": "placeholderTimeoutInSeconds=" + "9" * 200_000,
            },
            "must be a number",
        ),
    ],
)
def test_an_annotation_that_cannot_be_used_is_told(annotations: dict[str, str], why: str) -> None:
    [note] = work(pod({}, annotations)).notes
    assert (note.reason, note.warning) == ("InvalidAnnotation", True)
    assert why in note.text and len(note.text) < 500
    placeholder = annotations | {"internal.yunikorn.apache.org/placeholder": "true"}
    assert work(pod({}, placeholder)).notes == ()


@pytest.mark.parametrize(
    ("labels", "annotations", "spec", "why"),
    [
        ({}, {Y + "app-id": LONG}, {}, "its application id 'xxx"),
        ({}, {Y + "queue": LONG}, {}, "its queue 'xxx"),
        ({}, {Y + "task-group-name": LONG}, {}, "its task group 'xxx"),
        ({f"l{n}": "" for n in range(1001)}, {}, {}, "1001 labels, and at most 1000 are allowed (licorne.max-tags)"),
        (
            {},
            {},
            {"containers": [{"name": "c", "resources": {"requests": {f"example.com/{n}": "1" for n in range(1001)}}}]},
            "1002 kinds of resources, and at most 1000 are allowed (licorne.max-tags)",
        ),
    ],
)
def test_a_pod_beyond_a_limit_is_not_asked_for(
    labels: dict[str, str], annotations: dict[str, str], spec: dict[str, Any], why: str
) -> None:
    given = pod(labels, annotations, spec)
    fault = work(given).fault
    assert why in fault and len(fault) < 300
    settings = WorkSettings(name_chars_max=len(LONG), entries_max=1002)
    assert work(given, PodContext(settings=settings)).fault == ""


@pytest.mark.parametrize(
    ("annotations", "unread"),
    [
        (
            {"namespace.quota": '{"cpu":\n x}'},
            ["namespace.quota (line 2, column 2: Expecting value)"],
        ),
        ({"namespace.quota": ""}, ["namespace.quota (line 1, column 1: Expecting value)"]),
        ({"namespace.quota": '{"cpu":"-1"}', "namespace.max.cpu": "x"}, ["namespace.quota"]),
        ({"namespace.max.cpu": "x", "namespace.max.memory": "1G"}, ["namespace.max.cpu"]),
        ({"namespace.guaranteed": "[" * 100_000}, ["namespace.guaranteed"]),
        ({"namespace.maxApps": "many"}, ["namespace.maxApps"]),
        ({"namespace.quota": '{"cpu":"1"}', "namespace.guaranteed": "{}", "namespace.maxApps": "0"}, []),
    ],
)
def test_annotations_of_a_namespace_that_cannot_be_read(annotations: dict[str, str], unread: list[str]) -> None:
    own = {Y + key: value for key, value in annotations.items()}
    namespace = msgspec.convert({"metadata": {"name": "ns", "annotations": own}}, Namespace)
    assert unread_annotations(namespace) == [Y + key for key in unread]


@pytest.mark.parametrize(
    ("annotations", "counts"),
    [
        ({"namespace.quota": "x", "namespace.guaranteed": '{"cpu": 2}'}, "the queue has no max, not even that of"),
        (
            {"namespace.quota": '{"cpu": 2}', "namespace.guaranteed": "x"},
            "the queue has no guaranteed, not even that of",
        ),
        ({"namespace.max.cpu": "x", "namespace.max.memory": "1G"}, "the queue has no guaranteed"),
        ({"namespace.quota": "x"}, "those of the parent's childtemplate count, if it has any"),
        (
            {"namespace.quota": '{"cpu": 2}', "namespace.guaranteed": '{"cpu": 1}', "namespace.maxApps": "x"},
            "its max and guaranteed count",
        ),
    ],
)
def test_what_counts_is_told_where_annotations_of_a_namespace_cannot_be_read(
    annotations: dict[str, str], counts: str
) -> None:
    own = {Y + key: value for key, value in annotations.items()}
    namespace = msgspec.convert({"metadata": {"name": "ns", "annotations": own}}, Namespace)
    (event,) = _namespace_faults(namespace)
    assert counts in event


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        ('{"vcore":"2"}', ["vcore counts thousandths of a core here; cores are called cpu"]),
        ('{"cpu":"2","mem":"4Gi"}', ["no pod asks for 'mem'; the resource is called 'memory'"]),
        ('{"cpus":"2"}', ["no pod asks for 'cpus'; the resource is called 'cpu'"]),
        ('{"cpu":"2","memory":"4Gi","nvidia.com/gpu":"1"}', []),
        ("{", []),
    ],
)
def test_resources_of_a_quota_that_have_another_name_are_told(quota: str, told: list[str]) -> None:
    meta = {"name": "ns", "annotations": {Y + "namespace.quota": quota}}
    found = misnamed_resources(msgspec.convert({"metadata": meta}, Namespace))
    assert found == [f"annotation {Y}namespace.quota: {each}" for each in told]


@pytest.mark.parametrize(
    ("annotations", "tags"),
    [
        ({Y + "namespace.quota": '{"cpu":"64","memory":"1G"}'}, {"vcore": 64000, "memory": 10**9}),
        ({Y + "namespace.max.cpu": "2", Y + "namespace.max.memory": "1k"}, {"vcore": 2000, "memory": 1000}),
        ({Y + "namespace.max.cpu": "x", Y + "namespace.max.memory": "1k"}, {"memory": 1000}),
        ({Y + "namespace.max.cpu": "x"}, None),
        ({Y + "namespace.quota": "{", Y + "namespace.max.cpu": "2"}, None),
        ({Y + "namespace.quota": '{"cpu":"-1"}'}, None),
        ({}, None),
    ],
)
def test_the_quota_of_a_namespace(annotations: dict[str, str], tags: dict[str, int] | None) -> None:
    namespace = msgspec.convert({"metadata": {"name": "ns", "annotations": annotations}}, Namespace)
    found = namespace_tags(namespace).get("namespace.resourcequota")
    wanted = None if tags is None else {name: {"value": amount} for name, amount in tags.items()}
    assert (json.loads(found)["resources"] if found else None) == wanted


@pytest.mark.parametrize(("said", "wanted"), [(None, None), (30, None), (600, "600"), (0, "0")])
def test_the_scheduler_is_told_of_a_grace_period_that_is_not_the_usual_one(
    said: int | None, wanted: str | None
) -> None:
    made = pod(spec={"terminationGracePeriodSeconds": said})
    assert tags_of(made).get("licorne/termination-grace-period") == wanted


@pytest.mark.parametrize(
    ("own", "of_class", "policy", "wanted"),
    [
        ("", "", None, (True, True)),
        ("false", "true", None, (False, True)),
        ("", "false", "Never", (False, False)),
        ("maybe", "", "PreemptLowerPriority", (True, True)),
    ],
)
def test_who_may_be_evicted(own: str, of_class: str, policy: str | None, wanted: tuple[bool, bool]) -> None:
    key = Y + "allow-preemption"
    known = msgspec.convert({"metadata": {"name": "c", "annotations": {key: of_class}}}, PriorityClass)
    made = pod({}, {key: own} if own else {}, {"priorityClassName": "c", "preemptionPolicy": policy})
    found = work(made, PodContext(classes={"c": known})).ask
    assert (found.allow_preempt_self, found.allow_preempt_other) == wanted


@pytest.mark.parametrize(
    ("labels", "annotations", "told"),
    [
        ({}, {"taskGroup": "[]"}, f"annotation {Y}taskGroup: it is not known; did you mean {Y}task-groups?"),
        ({}, {"taskGroupName": "g"}, f"annotation {Y}taskGroupName: it is not known; did you mean {Y}task-group-name?"),
        ({"appid": "a"}, {}, f"label {Y}appid: it is not known; did you mean {Y}app-id?"),
        ({"allow-preemption": "false"}, {}, f"label {Y}allow-preemption: it counts as an annotation only"),
        ({}, {"username": "ann"}, f"annotation {Y}username: it counts as a label only"),
        (
            {},
            {"gangSchedulingStyle": "hard"},
            (
                f"annotation {Y}gangSchedulingStyle: it does not count; "
                f"gangSchedulingStyle is an item of the annotation {Y}schedulingPolicyParameters"
            ),
        ),
        (
            {},
            {"schedulingPolicyParameters": "placeholderTimeoutSeconds=30,gangSchedulingStyle=Hard"},
            (
                f"annotation {Y}schedulingPolicyParameters: 'placeholderTimeoutSeconds' is not known; "
                "did you mean placeholderTimeoutInSeconds?"
            ),
        ),
        (
            {},
            {"schedulingPolicyParameters": "queue=a"},
            (
                f"annotation {Y}schedulingPolicyParameters: 'queue' is not known; "
                "known are gangSchedulingStyle and placeholderTimeoutInSeconds, with a blank between"
            ),
        ),
        ({}, {"ignore-application": "true"}, None),
        ({}, {"somebody-elses": "key"}, None),
    ],
)
def test_keys_and_items_that_mean_nothing_are_told(
    labels: dict[str, str], annotations: dict[str, str], told: str | None
) -> None:
    given = [{Y + key: value for key, value in each.items()} for each in (labels, annotations)]
    notes = work(pod(*given)).notes
    assert [(note.reason, note.text) for note in notes] == ([("InvalidAnnotation", told)] if told else [])


@pytest.mark.parametrize(
    "annotations",
    [
        {f"schedulingPolicyParameter{number}": "" for number in range(5000)},
        {"schedulingPolicyParameters": " ".join(f"gangSchedulingStyl{number}" for number in range(5000))},
    ],
    ids=["keys", "items"],
)
def test_of_thousands_that_mean_nothing_few_are_looked_at(
    annotations: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison takes a third of a millisecond in the process that decides."""
    compared: list[str] = []
    nearest = misspelled._nearest

    def counted(name: str, known: Iterable[str]) -> str:
        compared.append(name)
        return nearest(name, known)

    monkeypatch.setattr(misspelled, "_nearest", counted)
    notes = work(pod({}, {Y + key: value for key, value in annotations.items()})).notes
    assert 0 < len(notes) <= misspelled.LOOKED_AT_MAX
    assert len(compared) <= 2 * misspelled.LOOKED_AT_MAX


def test_a_gang() -> None:
    annotations = {
        Y + "task-groups": GROUPS,
        Y + "task-group-name": "g",
        Y + "schedulingPolicyParameters": "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard what ever=",
    }
    found = work(pod({}, annotations))
    assert found.gang is not None
    assert placeholder_ask(found.gang) == {"vcore": 1000, "memory": 2 << 30, "pods": 2}
    assert (found.ask.task_group, found.application.gang_style) == ("g", "Hard")
    assert found.application.execution_timeout_ms == 30000


def task_groups(*members: int, name: str = "g{}", key: str = "minMember") -> str:
    """Return an annotation with groups of so many members."""
    return json.dumps(
        [{"name": name.format(number), key: each, "minResource": {}} for number, each in enumerate(members)]
    )


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '[{"name":""}]',
        task_groups(0),
        "[" * 200000,
        task_groups(1, 1, name="g"),
        task_groups(1, key="MinMember"),
        task_groups(*[1] * 101),
        task_groups(5000, 5001),
    ],
)
def test_task_groups_that_cannot_be_read_are_noted_and_passed_over(text: str) -> None:
    found = work(pod({}, {Y + "task-groups": text}))
    assert found.gang is None
    assert [note.action for note in found.notes] == ["TaskGroupsError"]


def test_task_groups_that_are_no_json_are_told_with_the_place() -> None:
    [note] = work(pod({}, {Y + "task-groups": GROUPS[:-1] + ",\n x]"})).notes
    assert "line 2, column 2: Expecting value" in note.text


def test_the_most_task_groups_and_members() -> None:
    found = work(pod({}, {Y + "task-groups": task_groups(*[100] * 100)}))
    assert found.gang is not None and found.notes == ()


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, '"x" not found'),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, 'create the persistentvolumeclaim "p-v"'),
        ({"schedulingGroup": {"podGroupName": "g"}}, "pod group ns/g is there"),
    ],
)
def test_what_is_not_decided_yet_makes_a_pod_wait(spec: dict[str, Any], part: str) -> None:
    assert part in work(pod(spec=spec)).later


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}]},
        {"schedulingGates": []},
    ],
)
def test_what_makes_no_difference(spec: dict[str, Any]) -> None:
    found = work(pod(spec=spec))
    assert (found.later, found.gates) == ("", ())


def test_quantities_that_cannot_be_read_are_a_fault_of_the_pod() -> None:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]
    assert "cpu: 'lots'" in work(pod(spec={"containers": containers})).fault


def test_where_a_pod_may_run() -> None:
    spec = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                        }
                    ]
                }
            }
        },
    }
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "apiVersion": "apps/v1"}
    tags = tags_of(pod(spec=spec, ownerReferences=[owner]))
    assert json.loads(tags["licorne/node-constraints"]) == {
        "nodeSelector": {"disk": "ssd"},
        "nodeAffinity": [
            [
                {"key": "zone", "operator": "In", "values": ["a"]},
            ]
        ],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    assert tags[Y + "requiredNode"] == "n1"


def test_the_pods_of_a_daemon_set_have_the_same_constraints() -> None:
    """The scheduler evaluates each set of constraints for the labels of every node; the name is a tag of its own."""
    owner = {"kind": "DaemonSet", "name": "d", "uid": "d", "apiVersion": "apps/v1"}
    made = [tags_of(pod(spec=on_node(f"n{n}"), ownerReferences=[owner])) for n in range(2)]
    assert [tags[Y + "requiredNode"] for tags in made] == ["n0", "n1"]
    assert not any("licorne/node-constraints" in tags for tags in made)
    alone = tags_of(pod(spec=on_node("n0")))
    assert json.loads(alone["licorne/node-constraints"]) == {
        "nodeAffinity": [[{"key": "field:metadata.name", "operator": "In", "values": ["n0"]}]]
    }


def on_node(name: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def test_a_node() -> None:
    given = {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "3500m", "memory": "8Gi", "example.com/odd": "many", "example.com/all": str(1 << 62)}
        },
    }
    made = node_update(msgspec.convert(given, Node), NodeAction.CREATE)
    attributes = made.attributes or {}
    assert made.capacity == {"vcore": 3500, "memory": 8 << 30}
    assert attributes["label/zone"] == "a"
    assert [taint["key"] for taint in json.loads(attributes["taints"])] == [
        "gpu",
        "node.kubernetes.io/unschedulable",
    ]


@pytest.mark.parametrize(("kind", "wanted"), [("Node", "static"), ("ReplicaSet", "default")])
def test_a_pod_of_another_scheduler(kind: str, wanted: str) -> None:
    owner = {"kind": kind, "name": "o", "uid": "o", "apiVersion": "v1"}
    made = pod(spec={"schedulerName": "default-scheduler", "nodeName": "n1"}, ownerReferences=[owner])
    allocation = foreign_allocation(made)
    assert ((allocation.tags or {})["foreign"], allocation.node_id) == (wanted, "n1")
