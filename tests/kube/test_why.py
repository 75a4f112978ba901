"""What `licorne why` says of pods that licorne kube schedules: its words, and changes that do in the cluster what they did in a trial."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.answers import AskAnswer
from licorne.answers.explained import explain

from .places import Places

ONE_CORE = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


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
    field = {"key": "metadata.name", "operator": operator, "values": [*names]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


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
    assert not any("64 nodes" in each for each in answer.proposals.untried)
