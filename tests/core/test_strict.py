"""With `strict` a request that would change nothing raises; items that exist, or begin in the same request, do not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from core.bench import config
from core.listener import Listener, apps, ask, node, releases
from licorne import NoEffectError, NotRegisteredError, SchedulerAPI
from licorne.si import first, v19
from licorne.si.messages import NodeAction, NodeUpdate, RemoveApplication

ACTIONS = [
    v19.ActionFromRM.UPDATE,
    v19.ActionFromRM.DRAIN_NODE,
    v19.ActionFromRM.DECOMISSION,
    v19.ActionFromRM.DRAIN_TO_SCHEDULABLE,
]


def scheduler(*, strict: bool = True) -> tuple[SchedulerAPI, Listener]:
    """With node n1, application x, whose pod `runs` runs and `waits` waits, and another scheduler's `f`."""
    listener = Listener()
    api = SchedulerAPI(strict=strict)
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=config("a")), listener)
    node(api)
    apps(api, "x")
    ask(api, "f", allocation_tags={"foreign": "default"}, node_id="n1")
    ask(api, "runs")
    api.schedule()
    ask(api, "waits", vcore=100)
    listener.take()
    return api, listener


def change(name: str, action: v19.ActionFromRM, **fields: Any) -> v19.NodeRequest:
    return v19.NodeRequest(rm_id="rm", nodes=[v19.NodeInfo(node_id=name, action=action, **fields)])


def release(app: str, key: str, **fields: Any) -> v19.AllocationRequest:
    return releases(v19.AllocationRelease(application_id=app, allocation_key=key), **fields)


def remove(app: str, **fields: Any) -> v19.ApplicationRequest:
    return v19.ApplicationRequest(rm_id="rm", remove=[v19.RemoveApplicationRequest(application_id=app)], **fields)


NO_EFFECT: list[tuple[str, Any, str]] = [
    *[("update_node", change("n9", action), "node 'n9': there is no such thing in partition 'default'") for action in ACTIONS],
    ("update_node", change("n1", ACTIONS[1], attributes={"si/node-partition": "[rm]gpu"}), "there is no partition 'gpu'"),
    ("update_node", change("n1", ACTIONS[0], schedulable_resource={"vcore": -1}), "node 'n1': negative quantity -1 of vcore"),
    ("update_application", remove("y"), "application 'y': there is no such thing"),
    ("update_allocation", release("x", "k9"), "allocation 'k9' of application 'x': there is no such thing"),
    ("update_allocation", release("y", "runs"), "allocation 'runs' of application 'y': there is no such thing"),
    ("update_allocation", release("y", ""), "application 'y': there is no such thing"),
    ("update_allocation", release("", "runs"), "foreign allocation 'runs': there is no such thing"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "request_", "text"), NO_EFFECT, ids=[text for _, _, text in NO_EFFECT])
def test_a_request_that_changes_nothing_raises(method: str, request_: Any, text: str) -> None:
    api, listener = scheduler()
    before = api.state_dump()
    with pytest.raises(NoEffectError, match=re.escape(text)):
        getattr(api, method)(request_)
    assert (api.state_dump(), listener.take()) == (before, [])
    relaxed, heard = scheduler(strict=False)
    before = relaxed.state_dump()
    getattr(relaxed, method)(request_)
    assert (relaxed.state_dump(), heard.take()) == (before, [])  # it has no effect indeed


EFFECT: list[tuple[str, Any]] = [
    *[("update_node", change("n1", action)) for action in ACTIONS],
    ("update_application", remove("x")),
    ("update_allocation", release("x", "runs")),
    ("update_allocation", release("x", "waits")),
    ("update_allocation", release("x", "")),
    ("update_allocation", release("", "f")),
    ("update_allocation", release("x", "k", allocations=[v19.Allocation(allocation_key="k", application_id="x")])),
    ("update_application", remove("y", new=[v19.AddApplicationRequest(application_id="y")])),
]


@pytest.mark.parametrize(("method", "request_"), EFFECT)
def test_items_that_exist_or_begin_in_the_request_are_accepted(method: str, request_: Any) -> None:
    api, _ = scheduler()
    getattr(api, method)(request_)
    api.validate()


def test_a_request_is_taken_whole_or_not_at_all() -> None:
    api, _ = scheduler()
    new = v19.NodeInfo(node_id="n2", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 1})
    drain = v19.NodeInfo(node_id="n2", action=v19.ActionFromRM.DRAIN_NODE)
    lost = v19.NodeInfo(node_id="n9", action=v19.ActionFromRM.DRAIN_NODE)
    with pytest.raises(NoEffectError, match=r"node 'n9'.*\(and 1 more\); nothing of the request was taken in"):
        api.update_node(v19.NodeRequest(rm_id="rm", nodes=[new, drain, lost, lost]))
    assert list(api.cluster.partition("rm").nodes) == ["n1"]
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[new, drain]))
    assert not api.cluster.partition("rm").nodes["n2"].schedulable


def test_internal_messages_are_looked_at_too() -> None:
    api, _ = scheduler()
    with pytest.raises(NoEffectError):
        api.submit("rm", [RemoveApplication(application_id="y")])
    api.submit("rm", [NodeUpdate(node_id="n1", action=NodeAction.DRAIN_NODE)])
    assert not api.cluster.partition("rm").nodes["n1"].schedulable


def test_releases_of_the_first_interface_by_key_or_uuid_alone() -> None:
    listener = Listener()
    api = SchedulerAPI(strict=True)
    text = config("a", more="placementrules: [{name: fixed, value: root.a}]")
    api.policy_groups["group"] = (text, {})
    api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"), listener)
    info = first.NewNodeInfo(node_id="n1", schedulable_resource={"vcore": 1})
    wanted = [
        first.AllocationAsk(allocation_key=key, resource_ask={"vcore": 1}, max_allocations=1) for key in ("k1", "k2")
    ]
    api.update(first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[info], asks=wanted))
    api.schedule()
    uuid = next(one.uuid for _, said in listener.take() for one in said.new_allocations)

    def ends(**fields: Any) -> first.UpdateRequest:
        return first.UpdateRequest(rm_id="rm", releases=first.AllocationReleasesRequest(**fields))

    for wrong in (
        ends(allocations_to_release=[first.AllocationRelease(uuid="?")]),
        ends(allocation_asks_to_release=[first.AllocationAskRelease(allocation_key="k3")]),
    ):
        with pytest.raises(NoEffectError, match=r"(allocation '\?'|ask 'k3'): there is no such thing"):
            api.update(wrong)
    api.update(ends(allocations_to_release=[first.AllocationRelease(uuid=uuid)]))
    api.update(ends(allocation_asks_to_release=[first.AllocationAskRelease(allocation_key="k2")]))
    assert api.cluster.partition("rm").applications == {}


def test_time_passes_although_the_request_is_refused() -> None:
    api, _ = scheduler()
    with pytest.raises(NoEffectError):
        api.update_application(remove("y"), now_ns=7)
    assert api.cluster.now == 7


def test_an_unknown_resource_manager() -> None:
    api, _ = scheduler()
    for call in (api.stop, api.pause):
        with pytest.raises(NotRegisteredError, match="other"):
            call("other")
    api.stop("rm")
    relaxed, _ = scheduler(strict=False)
    relaxed.stop("other")
    relaxed.pause("other")
