"""Names full of markup, of text that runs from right to left, and of 10,000 characters do no harm on any view."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from licorne.host.web.page import applications, configuration, nodes, now, people, queues
from licorne.host.web.page.frame import render
from licorne.host.web.page.source import DumpSource
from licorne.host.web.page.view import Query, View
from licorne.si import rest_objects as objects
from page.clients import without_own_scripts
from rest.world import run

NAMES = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;",
    "template": "{{ 7 * 7777 }}{% include 'base.html.j2' %}",
    "right to left": "\u202egnol \u05e9\u05dc\u05d5\u05dd",
    "long": "x" * 10_000,
    "spaces and controls": "a\x00b\r\nSet-Cookie: x=1\t",
    "empty": "",
}


def dump(name: str) -> objects.FullState:
    """A cluster of which everything that has a name has this one."""
    amounts = {"vcore": 1_000, name: 3}
    queue = objects.Queue(
        queuename=name, partition=name, is_leaf=True, is_managed=True, current_priority=0, priority_sorting=True,
        preemption_enabled=True, is_preemption_fence=False, is_priority_fence=False, allocated_resource=amounts,
        pending_resource=amounts, max_resource=amounts, guaranteed_resource={"vcore": 1}, properties={name: name},
    )  # fmt: skip
    app = objects.Application(
        application_id=name, partition=name, queue_name=name, user=name, groups=[name], start_time=1, used_resource=amounts,
        resource_history=objects.ResourceHistory(), application_state=name, rejected_message=name, submission_time=1,
        requests=[objects.Ask(allocation_key=name, resource=amounts, allocation_log=[objects.LogEntry(message=name)])],
        allocations=[objects.Allocation(allocation_key=name, resource=amounts, node_id=name)],
        state_log=[objects.StateChange(time=1, application_state=name)],
        placeholder_data=[objects.Placeholders(task_group_name=name, count=2)],
    )  # fmt: skip
    node = objects.Node(
        node_id=name, capacity=amounts, allocated=amounts, attributes={name: name}, schedulable=False, is_reserved=True,
        reservations=[name], allocations=app.allocations,
    )  # fmt: skip
    home = objects.Partition(
        cluster_id=name, name=name, capacity=objects.Capacity(capacity=amounts), preemption_enabled=True,
        node_sorting_policy=objects.NodeSortingPolicy(type=name), quota_preemption_enabled=False, state=name,
    )  # fmt: skip
    rule = objects.Rule(name=name, parameters={name: name}, filter=objects.RuleFilter(type=name, user_exp=name))
    return objects.FullState(
        timestamp=10**18, partitions=[home], applications=[app], queues=[queue], config={"Checksum": name, "Extra": {name: name}},
        nodes=[objects.PartitionNodes(partition_name=name, nodes_info=[node])],
        placement_rules=[objects.PartitionRules(partition=name, rules=[rule])],
    )  # fmt: skip


VIEWS = {
    now.VIEW: {}, queues.VIEW: {}, applications.VIEW: {"sort": "queue"}, applications.ONE: {"name": ""}, nodes.VIEW: {},
    nodes.ONE: {"name": ""}, people.VIEW: {}, configuration.VIEW: {},
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_name_is_only_text(view: View, kind: str) -> None:
    name = NAMES[kind]
    source = DumpSource(dump(name), name)
    query = Query(view.path, dict.fromkeys(VIEWS[view], name) | {"filter": name, "partition": name})
    context = view.context(query, *run(view.fetch(source, name, query)))
    around = {
        "title": name, "query": query, "views": [view], "active": view.name, "path": view.path, "source": name, "at_ns": 10**18, "span": (1, 10**18), "changes": True, "live": True,
        "partitions": [name, "other"], "partition_name": name, "logged_in": True, "version": "0",
    }  # fmt: skip
    text = render(view.name, around | context)
    assert "<script" not in without_own_scripts(text) and "onerror=alert" not in text.replace(
        "onerror=alert(1)&gt;", ""
    )
    assert "54439" not in text
    assert text.count("<h1") == 1 and text.rstrip().endswith("</html>")
    assert "x" * 200 not in re.sub("<[^>]*>", "", text), "a name is longer than people read"
    if name and kind != "spaces and controls":
        assert quote(name, safe="")[:20] in text.replace("+", "%20")
