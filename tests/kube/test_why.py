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
