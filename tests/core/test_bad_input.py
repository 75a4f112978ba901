"""Bad input: each refusal with its reason, and nothing else changes.

Source: docs/spec/scheduler-interface.md, sections 7.2 and 7.3.
"""

from __future__ import annotations

import pytest

from core.bench import SECOND_NS, Bench, cluster, config
from licorne.si.messages import Allocation, NodeAction, NodeUpdate


def bench(*nodes: int, first_interface: bool = False) -> Bench:
    return cluster(config("a"), *nodes, apps="x", first_interface=first_interface)


BAD_ASKS = [
    ({"application_id": "y"}, "failed to find application y"),
    ({"resource": None}, "allocation contains no resources"),
    ({"resource": {}}, "allocation contains no resources"),
    ({"resource": {"vcore": 0}}, "allocation contains no resources"),
    ({"resource": {"vcore": 1, "memory": -1}}, "allocation contains negative resources"),
    ({"key": ""}, "allocation without an allocationKey"),
    ({"node_id": "n9"}, "failed to find node n9"),
    ({"max_allocations": 0}, "maxAllocations: 0: must be at least 1"),
    ({"max_allocations": 1 << 40}, f"maxAllocations: {1 << 40}: must be"),
    ({"priority": 1 << 31}, f"priority: {1 << 31}: must be an integer of 32 bits"),
    ({"priority_class": "none"}, "priorityClassName: 'none': no such priority class is set"),
    ({"resource": {"vcore": 1 << 62}}, "resourcePerAlloc: a quantity is larger than"),
    ({"tags": {"licorne/node-constraints": "{"}}, "licorne/node-constraints"),
    ({"tags": {"licorne/node-constraints": '{"x": 1}'}}, "licorne/node-constraints"),
    ({"partition": "p"}, "Failed to find partition [rm]p, for application x and allocation k"),
    ({"partition": "[other]p"}, "Failed to find partition [other]p, for application x and allocation k"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD_ASKS)
def test_asks_that_are_refused(fields: dict[str, object], reason: str) -> None:
    b = bench(10)
    b.ask("x", "present", vcore=11)
    before = (b.pending(), b.states(), len(b.said))
    fields = {"key": "k", "application_id": "x", "resource": {"vcore": 1}, **fields}
    (said,) = b.send(Allocation(**fields))  # type: ignore[arg-type]
    assert said.startswith(f"rejected {fields['key']} of {fields['application_id']}: ") and reason in said
    assert (b.pending(), b.states(), len(b.said) - 1) == before
    assert b.run() == ""


BAD_NODES = [
    ({"capacity": {"vcore": -1}}, "negative quantity -1 of vcore"),
    ({"capacity": {"vcore": 1 << 62}}, f"quantity {1 << 62} of vcore is larger than"),
    ({"attributes": {"taints": "["}}, "taints"),
    ({"node_id": ""}, "node without a nodeID"),
    (
        {"node_id": "n1"},
        "node n1 to partition [rm]default, error: partition [rm]default has an existing node n1, node name must be unique",
    ),
    ({"partition": "p"}, "failed to find partition [rm]p for new node n2"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD_NODES)
def test_nodes_that_are_refused(fields: dict[str, object], reason: str) -> None:
    b = bench(10)
    fields = {"node_id": "n2", "action": NodeAction.CREATE, "capacity": {"vcore": 1}, **fields}
    (said,) = b.send(NodeUpdate(**fields))  # type: ignore[arg-type]
    assert said.startswith(f"rejected {fields['node_id']}: ") and reason in said
    assert list(b.partition.nodes) == ["n1"]
    assert b.partition.tree.root.max_resource() == {"vcore": 10}


@pytest.mark.parametrize("action", [a for a in NodeAction if a not in (NodeAction.CREATE, NodeAction.CREATE_DRAIN)])
def test_an_impossible_action_on_a_node_is_ignored_in_1_9(action: NodeAction) -> None:
    b = bench(10)
    assert b.node("n9", action, vcore=1) == []
    assert b.send(NodeUpdate(node_id="n1", action=action, partition="p")) == []
    if action is NodeAction.UPDATE:
        assert b.node("n1", action, vcore=-1) == []
        assert b.free("n1") == {"vcore": 10}


# (action, fields) and the refusal in the first interface
STRICT = [
    ("n9", NodeAction.UPDATE, {}, "failed to find node n9"),
    ("n9", NodeAction.DRAIN_NODE, {}, "failed to find node n9"),
    ("n9", NodeAction.DECOMISSION, {}, "failed to find node n9"),
    ("n1", NodeAction.DRAIN_TO_SCHEDULABLE, {}, "node n1 is not draining"),
    ("n1", NodeAction.UPDATE, {"vcore": -1}, "negative quantity -1 of vcore"),
]


@pytest.mark.parametrize(("node", "action", "capacity", "reason"), STRICT)
def test_an_impossible_action_on_a_node_is_an_error_in_the_first_interface(
    node: str, action: NodeAction, capacity: dict[str, int], reason: str
) -> None:
    b = bench(10, first_interface=True)
    assert b.send(NodeUpdate(node_id=node, action=action, capacity=capacity or None, strict=True)) == [
        f"rejected {node}: {reason}"
    ]
    assert b.free("n1") == {"vcore": 10}


INT64_MAX = (1 << 63) - 1


@pytest.mark.parametrize("first_interface", [False, True])
def test_times_and_lengths_of_time_that_int64_cannot_hold(first_interface: bool) -> None:
    """The end of time is in the year 2116: a length is cut to it, a later moment is none."""
    far = "9" * 10
    delays = {"reservation.delay": "2540400h"}
    text = config(
        "a properties: {application.unschedasks.backoff: '1', application.unschedasks.backoff.delay: 2540400h}"
    )
    b = Bench(text, first_interface=first_interface, settings=delays)
    b.node("n1", vcore=10)
    b.app("x", timeout_ms=INT64_MAX)
    b.app("y", tags={"yunikorn.apache.org/creationTime": far})
    b.ask("x", "k1", timeout_ms=INT64_MAX, vcore=6)
    b.ask("y", "k2", tags={"creationTime": far}, vcore=3)
    b.ask("y", "k3", tags={"creationTime": "4611686018"}, vcore=5)
    b.ask("y", "k4", vcore=5)
    assert b.run() == "k1@n1 k2@n1"
    assert b.application("y").submitted == b.seconds * SECOND_NS + 1
    b.run(after=10**9)
    with pytest.raises(ValueError, match="now_ns: 9223372036854775807: no time is later than 4611686018427387903"):
        b.api.schedule(now_ns=INT64_MAX)
    b.api.schedule(now_ns=(1 << 62) - 1)
    b.api.validate()
