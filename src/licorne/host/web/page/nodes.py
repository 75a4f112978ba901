"""The views of *nodes*: how densely they are packed, as a picture and as a table, and one with what runs on it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects
from licorne.workload.quantities import amount, bounded

from .applications import pod
from .bars import Bar, Segment, bar, ordered, strip
from .source import Nodes
from .view import Query, Row, Source, View, chosen, columns, needs, table

COLUMNS = (
    "node=node.node_id, bar- Use, share%, used$=node.allocated, others$=node.occupied Used by others, free$=node.available, "
    "pods#=running, state"
)
PODS = "pod, application=application_id, priority#, used$=resource, since#=allocation_time"


def _context(query: Query, nodes: Nodes) -> dict[str, Any]:
    nodes = [each._replace(node=_limited(each.node)) for each in nodes]
    types, name = chosen((key for each in nodes for key in each.node.capacity), query)
    state = query["state"]
    rows = [each for each in nodes if not state or state in _states(each.node)]
    by = {"share": lambda row: _share(row.node, name), "state": lambda row: _states(row.node)}
    return {
        "types": types,
        "resource": name,
        "packing": [_packing(each, nodes) for each in types],
        "table": table(rows, columns(COLUMNS, name, **by), query, "node"),
        "bar": lambda node: node_bar(node, name),
        "share": lambda node: _share(node, name),
        "states": _states,
        "all_states": ("unschedulable", "reserved", "empty"),
    }


def _limited(node: objects.Node) -> objects.Node:
    """Return a node without the types that it is said not to limit."""
    capacity = bounded(node.capacity)
    if len(capacity) == len(node.capacity):
        return node
    return replace(node, capacity=capacity, available={key: node.available.get(key, 0) for key in capacity})


def _share(node: objects.Node, name: str) -> float:
    """Return how much of a type is used, also by others, as a part of 1; 0 where there is none of it."""
    used, full = node.allocated.get(name, 0) + node.occupied.get(name, 0), node.capacity.get(name, 0)
    return used / full if full else 0.0


def _states(node: objects.Node) -> list[str]:
    empty = not any(node.allocated.values())
    states = {"unschedulable": not node.schedulable, "reserved": node.is_reserved, "empty": empty}
    return [name for name, is_so in states.items() if is_so]


def node_bar(node: objects.Node, name: str) -> Bar:
    """Return what is used of a node of one type, with what others use of it."""
    full, used, others = (amounts.get(name, 0) for amounts in (node.capacity, node.allocated, node.occupied))
    drawn = bar(name, used, None, full)
    if not others or not full:
        return drawn
    start = used * 100 / full
    more = Segment("others", f"{start:.2f}%", f"{max(min(others * 100 / full, 100 - start), 0):.2f}%")
    return drawn._replace(
        segments=(*drawn.segments, more), text=f"{drawn.text}, {amount(name, others)} used by other schedulers"
    )


def _packing(name: str, found: Nodes) -> Row:
    """Return how nodes are packed by one type of resource: a picture, fullest first, sums, and how many are empty or full."""
    having = [each.node for each in found if each.node.capacity.get(name)]
    shares = [_share(node, name) for node in having]
    return Row(
        name=name,
        picture=strip(shares),
        used=sum(node.allocated.get(name, 0) + node.occupied.get(name, 0) for node in having),
        full=sum(node.capacity[name] for node in having),
        nodes=len(having),
        empty=sum(each <= 0 for each in shares),
        packed=sum(each >= 0.95 for each in shares),
    )


# -- one node ------------------------------------------------------------------------------------------------


async def _fetch_one(source: Source, partition: str, query: Query) -> tuple[objects.Node]:
    return (await source.node(partition, query["name"]) or refuse(404, f"There is no node {query['name']}"),)


def _context_one(query: Query, node: objects.Node) -> dict[str, Any]:
    node = _limited(node)
    types, name = chosen(node.capacity, query)
    return {
        "node": node,
        "types": types,
        "resource": name,
        "bars": [(each, node_bar(node, each)) for each in ordered(node.capacity)],
        "table": table(node.allocations, columns(PODS, name, pod=pod), query, "pod"),
        "pod": pod,
    }


VIEW = View("nodes", "Nodes", "/nodes", needs("nodes"), _context, compared=True)
ONE = View("node", "Node", "/node", _fetch_one, _context_one, nav=False, parent="nodes")
