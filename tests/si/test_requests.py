"""The requests that a resource manager of 1.9 makes of the core's inputs mean these inputs, by the adapter that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from licorne.si import Translation, adapt_v19, v19
from licorne.si import messages as m
from licorne.si.requests_v19 import requests

INPUTS: dict[str, list[m.Input]] = {
    "nodes": [
        m.NodeUpdate(
            node_id="n1",
            action=m.NodeAction.CREATE,
            partition="gpu",
            attributes={"si/zone": "a", "si/node-partition": "[rm]gpu"},
            capacity={"vcore": 1},
        ),
        m.NodeUpdate(node_id="n1", action=m.NodeAction.DRAIN_NODE),
        m.NodeUpdate(node_id="n1", action=m.NodeAction.UPDATE, capacity={"vcore": 2}),
    ],
    "applications": [
        m.AddApplication(
            application_id="a",
            partition="gpu",
            queue="root.q",
            user="u",
            groups=("g", "h"),
            tags={"namespace": "x"},
            execution_timeout_ms=5,
            placeholder_ask={"vcore": 3},
            gang_style="Hard",
        ),
        m.AddApplication(application_id="b"),
        m.RemoveApplication(application_id="c", partition="gpu"),
    ],
    "releases": [
        m.Release(
            partition="gpu", application_id="a", key="k", termination=m.Termination.TIMEOUT, message="late", what="both"
        ),
        m.Release(application_id="a", what="both"),
    ],
    "asks": [
        m.Allocation(
            key="k",
            application_id="a",
            partition="gpu",
            resource={"vcore": 1},
            priority=-2,
            tags={"t": "1"},
            task_group="w",
            placeholder=True,
            originator=True,
            allow_preempt_self=True,
        ),
        m.Allocation(key="l", application_id="a", resource={}, node_id="n1", allow_preempt_other=True),
        m.Allocation(key="f", resource=None, node_id="n1", tags={"foreign": "default"}),
    ],
}
ADAPTERS: dict[str, Callable[[Any], Translation]] = {
    "update_node": adapt_v19.inputs_from_node_request,
    "update_application": adapt_v19.inputs_from_application_request,
    "update_allocation": adapt_v19.inputs_from_allocation_request,
}


@pytest.mark.parametrize("kind", INPUTS)
def test_what_is_read_is_what_was_said(kind: str) -> None:
    ((name, request),) = requests("rm", INPUTS[kind])
    translation = ADAPTERS[name](request)
    assert not translation.outputs
    assert translation.inputs == INPUTS[kind]


def test_releases_arrive_before_the_asks_that_take_their_keys() -> None:
    mixed = [messages[-1] for messages in reversed(INPUTS.values())]
    (_, nodes), (_, applications), (_, ended), (_, asked) = requests("rm", mixed)
    assert isinstance(nodes, v19.NodeRequest)
    assert isinstance(applications, v19.ApplicationRequest)
    assert isinstance(ended, v19.AllocationRequest)
    assert isinstance(asked, v19.AllocationRequest)
    assert ended.releases is not None
    assert (ended.allocations, asked.releases) == ([], None)
    assert {request.rm_id for request in (nodes, applications, ended, asked)} == {"rm"}
