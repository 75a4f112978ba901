"""What preferences weigh for a pod that runs: the points of its node, and of the best other one that would take it.

They are those of the moment that is asked about, as if the pod were to be placed now: what the decision weighed is told by the
moment of a recording just after it.
"""

from __future__ import annotations

from math import floor

import msgspec

from licorne.core.nodes.node import Need, Node
from licorne.core.nodes.preferences import CANDIDATES_MAX, WEIGHED, WEIGHTS, scores
from licorne.core.partition import Partition
from licorne.core.queues.ask import Ask


class Points(msgspec.Struct, frozen=True):
    """The points of a node: those of each plugin of kube-scheduler, times its weight, those of the node order, and their sum."""

    node: str
    points: int
    of: dict[str, int]


class Weighed(msgspec.Struct, frozen=True):
    """`chosen`: the node on which the pod runs. `next`: the best of the others, None if no other takes the pod. `compared`: how many."""

    chosen: Points
    next: Points | None
    compared: int


def weighed(partition: Partition, alloc: Ask) -> Weighed | None:
    """Return what preferences weigh for an allocation; None if there are none. The partition stays as it is."""
    node, known = alloc.node, alloc.shape.need
    if node is None or node.slot < 0:
        return None
    topology, accounting = partition.needs.topology, partition.accounting
    need: Need = partition.needs.get(known.constraints)  # that of what runs may have been forgotten
    if known.pods is not None:
        need = topology.need_for(need, known.pods)
    accounting.retain_need(need)
    try:
        return _compare(partition, alloc, node, need) if need.prefers else None
    finally:
        accounting.release_need(need)


def _compare(partition: Partition, alloc: Ask, node: Node, need: Need) -> Weighed:
    topology, amounts = partition.needs.topology, alloc.shape.amounts
    if need.pods is not None:
        topology.attempt(node.slot, need.pods, -1)
    node.free.plus(amounts)
    try:
        others = partition.index.first_fitting(amounts, need, CANDIDATES_MAX)
        nodes = [node, *(other for other in others if other is not node)][:CANDIDATES_MAX]
        points: list[dict[str, int]] = [{} for _ in nodes]
        for plugin, (_, normalized) in scores(topology, need, nodes).items():
            for of, score in zip(points, normalized, strict=True):
                of[plugin] = WEIGHTS[plugin] * score
        if topology.mode == WEIGHED:
            for of, each in zip(points, nodes, strict=True):
                use = partition.index.policy.score_of(node) if each is node else each.score
                of["node order"] = floor(100.0 * (1.0 - use))
    finally:
        node.free.minus(amounts)
        if need.pods is not None:
            topology.attempt(node.slot, need.pods, 1)
    found = [Points(each.id, sum(of.values()), of) for each, of in zip(nodes, points, strict=True)]
    return Weighed(found[0], max(found[1:], key=lambda each: each.points, default=None), len(found))
