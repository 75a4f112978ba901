"""What `licorne why` says of pods that licorne kube schedules: its words, and changes that do in the cluster what they did in a trial."""

from __future__ import annotations

import json
from typing import Any

import pytest

from licorne.answers import AskAnswer, Home, Overview, why
from licorne.answers.explained import explain
from licorne.host.web.rest.state import full_state
from licorne.kube.manager.commands import SetCondition
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from licorne.state.restored import UnknownNameError

from .places import Places, apart

ONE_CORE = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
FAST = {"key": "disk", "operator": "In", "values": ["ssd"]}
CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def required(term: dict[str, Any]) -> dict[str, Any]:
    """Return the `affinity` of a pod that may run on the nodes that a term means."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def asked(places: Places, name: str) -> AskAnswer:
    """Return the answer about a pod that waits, after all decisions."""
    places.run()
    answer = explain(places.api, name)
    assert isinstance(answer, AskAnswer)
    assert answer.proposals is not None and not answer.proposals.by_itself
    return answer


def proposed(places: Places, name: str) -> set[str]:
    proposals = asked(places, name).proposals
    assert proposals is not None
    return {each.text for each in proposals.found}


@pytest.mark.parametrize("taints", [[], [CORDON_TAINT]], ids=["without its taint", "with its taint"])
def test_a_cordoned_node_is_made_schedulable_again(taints: list[dict[str, Any]]) -> None:
    places = Places()
    places.node("n0", unschedulable=True, taints=taints)
    places.pod("waits", containers=ONE_CORE)
    assert proposed(places, "waits") == {
        "node n0 schedulable again",
        "a toleration of the taint node.kubernetes.io/unschedulable:NoSchedule in the ask",
        "one node more of 1 pods, 1 vcore",
    }
    places.node("n0")
    assert places.run() == {"waits": "n0"}


def only_on(operator: str, *names: str) -> dict[str, Any]:
    """Return the `affinity` of a pod that may run on nodes by their names."""
    return required({"matchFields": [{"key": "metadata.name", "operator": operator, "values": [*names]}]})


@pytest.mark.parametrize(
    ("may", "texts"),
    [
        ({"affinity": only_on("In", "n0")}, {"the end of pod ns/ours of root.all on n0"}),
        ({"nodeSelector": {"kubernetes.io/hostname": "n0"}}, {"the end of pod ns/ours of root.all on n0"}),
        ({"affinity": only_on("NotIn", "n0")}, {"one node more like n0", "the end of pod ns/others of root.all on n1"}),
    ],
    ids=["In", "by its host name", "NotIn"],
)
def test_no_node_is_proposed_that_would_need_the_name_of_another(may: dict[str, Any], texts: set[str]) -> None:
    places = Places()
    for name, pod in (("n0", "ours"), ("n1", "others")):
        places.node(name, allocatable={"cpu": "1"})
        places.pod(pod, containers=ONE_CORE, nodeSelector={"kubernetes.io/hostname": name})
    places.run()
    places.pod("waits", containers=ONE_CORE, **may)
    answer = asked(places, "waits")
    assert answer.proposals is not None
    assert {each.text for each in answer.proposals.found} == texts
    assert not any("64 new nodes" in each for each in answer.proposals.untried)


@pytest.mark.parametrize(
    ("affinity", "with_labels"),
    [(None, ""), (required({"matchExpressions": [FAST]}), " with the labels disk=ssd")],
    ids=["without affinity", "with node affinity"],
)
def test_a_pod_that_running_pods_keep_off_waits_for_their_end(affinity: Any, with_labels: str) -> None:
    places = Places()
    places.node("n0", labels={"zone": "a", "disk": "ssd"})
    places.pod("guard", node="n0", affinity=apart({"app": "x"}, "zone"))
    places.pod("waits", labels={"app": "x"}, containers=ONE_CORE, affinity=affinity)
    answer = asked(places, "waits")
    assert answer.sentence == "No node takes the ask now: anti-affinity of running pods (1 node)."
    assert answer.proposals is not None
    assert [each.text for each in answer.proposals.found] == [f"one node more of 1 pods, 1 vcore{with_labels}"]
    places.no_pod("guard")
    assert places.run() == {"waits": "n0"}


def test_no_new_node_is_proposed_in_a_zone_that_a_pod_is_kept_off() -> None:
    places = Places()
    for name, zone in (("n0", "a"), ("n1", "b")):
        places.node(name, labels={"zone": zone})
    places.pod("guard", node="n0", affinity=apart({"app": "x"}, "zone"))
    places.pod("waits", labels={"app": "x"}, containers=ONE_CORE, nodeSelector={"zone": "a"})
    assert proposed(places, "waits") == {"no node selector zone=a in the ask"}


def test_a_pod_that_is_kept_off_the_node_that_it_requires_may_run_there_later() -> None:
    places = Places()
    places.node("n0")
    places.pod("guard", node="n0", affinity=apart({"app": "x"}))
    places.pod("waits", labels={"app": "x"}, containers=ONE_CORE, affinity=only_on("In", "n0"))
    places.pods["waits"]["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d", "uid": "d"}]
    places.show("waits")
    answer = asked(places, "waits")
    assert answer.sentence == "Node n0, which the ask requires, does not take it: anti-affinity of running pods."
    assert answer.proposals is not None and not answer.proposals.found
    places.no_pod("guard")
    assert places.run() == {"waits": "n0"}


@pytest.mark.parametrize("ours", [0, 1, 2])
def test_no_end_is_proposed_on_a_node_where_others_have_all(ours: int) -> None:
    places = Places()
    for number in range(3):
        places.node(f"n{number}", allocatable={"cpu": "1"})
        if number < ours:
            places.pod(f"ours-{number}", containers=ONE_CORE)
            places.run()
        else:
            places.pod(f"other-{number}", node=f"n{number}", containers=ONE_CORE)
    places.pod("waits", containers=ONE_CORE)
    ends = {each for each in proposed(places, "waits") if "the end of" in each}
    assert ends == ({"the end of pod ns/ours-0 of root.all on n0"} if ours else set())


GROUPS = json.dumps([{"name": "g", "minMember": 3, "minResource": {"cpu": "1"}}])
GANG = {"yunikorn.apache.org/task-groups": GROUPS, "yunikorn.apache.org/task-group-name": "g"}


@pytest.mark.parametrize(
    ("annotations", "spec", "reason"),
    [
        (GANG, {}, "The pod waits until all placeholders of application app run."),
        ({}, {"schedulingGates": [{"name": "example.com/quota"}]}, "The pod has scheduling gates: example.com/quota."),
        (
            {},
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            'persistentvolumeclaim "c" not found',
        ),
    ],
    ids=["a gang without its room", "scheduling gates", "what is not decided yet"],
)
@pytest.mark.parametrize("name", ["waits", "ns/waits"])
def test_a_pod_that_the_scheduler_was_not_asked_for_is_known(
    annotations: dict[str, str], spec: dict[str, Any], reason: str, name: str
) -> None:
    places = Places()
    places.node("n0", allocatable={"cpu": "2"})
    places.namespace("ns")
    meta = {"name": "waits", "namespace": "ns", "uid": "waits", "labels": {"applicationId": "app"}}
    places.pods["waits"] = {
        "metadata": {**meta, "annotations": annotations},
        "spec": {"schedulerName": "yunikorn", "containers": ONE_CORE, **spec},
    }
    places.show("waits")
    places.run()
    home = Home(restore(read_dump(full_state(places.api, places.now_ns))))
    with pytest.raises(UnknownNameError) as said:
        why(home, name)
    assert str(said.value).startswith("the scheduler is not asked for pod ns/waits now: ")
    assert reason in str(said.value)
    overview = why(home)
    assert isinstance(overview, Overview)
    ((held, pods),) = overview.held.items()
    assert pods == ["ns/waits"]
    assert reason in held
    with pytest.raises(UnknownNameError, match="no application, ask, allocation or pod is named 'other'"):
        why(home, "other")


def test_a_pod_that_no_node_takes_is_told_so_though_a_node_is_reserved_for_it() -> None:
    places = Places()
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    labels = {"app": "web"}
    places.node("n0", labels={"zone": "a"}, allocatable={"cpu": "1"})
    places.node("n1", labels={"zone": "b"})
    for name in ("first", "second", "third", "waits"):
        constraint = {**spread, "labelSelector": {"matchLabels": labels}}
        places.pod(name, labels=labels, containers=ONE_CORE, topologySpreadConstraints=[constraint])
        places.run()
    places.now_ns += 5_000_000_000
    said = "No node takes the ask now: lack of vcore (1 node); topology spread (1 node)."
    answer = asked(places, "waits")
    assert answer.chain is not None
    assert [answer.sentence, *(reason.kind for reason in answer.chain.reasons)] == [said, "nodes", "reserved"]
    overview = explain(places.api)
    assert isinstance(overview, Overview)
    assert [group.summary for group in overview.groups] == ["no node will do (lack of vcore; topology spread)"]
    places.manager.outbox.now_s = lambda: 1e10  # the pod has waited long enough to be told
    places.manager.lifecycle.waiting.review(1)
    [condition] = [each for each in places.manager.flush() if isinstance(each, SetCondition)]
    assert (condition.reason, condition.message) == ("Unschedulable", said)
