"""Preferences: which of the nodes that take an ask it is better placed on, as kube-scheduler's score plugins have it.

Each plugin gives every node a raw score, which is normalized to 0 to 100 over the nodes that are compared, and counts by the
weight that it has in kube-scheduler's default profile. The nodes that are compared are the first `CANDIDATES_MAX` in node
order that take the ask, so a decision costs no more than that many looks. Of nodes with as many points the first in order is
taken, where kube-scheduler draws one.

What a score needs is kept by others: the pods in each topology domain (`licorne.core.nodes.domains`), the conditions on
labels as needs of their own with a bit on each node (`licorne.core.nodes.needs`), images in `licorne.core.nodes.images`.

`mode`, the setting `scheduler.preferences`, says how preferences and node order go together:

* `weighed`: node order counts as one more plugin of weight 1, with 100 points for the best node that there can be. So it
  stands where kube-scheduler has NodeResourcesFit and NodeResourcesBalancedAllocation.
* `first`: node order decides between nodes of as many points, and nothing else.
* `off`: there are no preferences.

Source: docs/spec/kube-scheduler.md, section 5.
"""

from __future__ import annotations

from math import floor, log
from typing import TYPE_CHECKING, Any, Final

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec

from .constraints import NodeConstraints
from .counted import ANY_NODE, TOLERATES_ALL, Counted, counted_spread
from .domains import DomainCheck, DomainCount, PodClass
from .index import NodeIndex
from .node import Need, Node
from .terms import Preferred, SpreadConstraint

if TYPE_CHECKING:
    # for the type checker alone: it imports this module
    from .topology import Topology

CANDIDATES_MAX: Final = 500
"""How many nodes are compared. kube-scheduler compares as many of 5,000, and of 10,000 nodes."""
HOSTNAME: Final = "kubernetes.io/hostname"

TAINTS: Final = "TaintToleration"
NODES: Final = "NodeAffinity"
SPREAD: Final = "PodTopologySpread"
PODS: Final = "InterPodAffinity"
IMAGES: Final = "ImageLocality"
WEIGHTS: Final = {TAINTS: 3, NODES: 2, SPREAD: 2, PODS: 2, IMAGES: 1}
"""Plugins, with their weights in the default profile."""
WEIGHED: Final = "weighed"
OFF: Final = "off"


@cython.cclass
class Ranking:
    """The preferences of the asks of one need: the counts and needs by which they are looked up."""

    nodes: list[tuple[int, Need]]
    terms: list[tuple[int, DomainCount]]
    spread: list[tuple[SpreadConstraint, DomainCount]]
    all_keys: cython.bint  # a node without all labels of `spread` is worth nothing
    images: tuple[str, ...]

    def __init__(self, topology: Topology, need: Need, preferred: Preferred) -> None:
        pods: PodClass = cython.cast(PodClass, need.pods)
        self.nodes = []
        for weight, term in preferred.nodes:
            found = topology.need_of(NodeConstraints(affinity=(term,), tolerations=TOLERATES_ALL))
            found.waiting += 1
            self.nodes.append((weight, found))
        self.terms = [
            (weight, topology.own(pods, Counted(one.topology_key, (one,)))) for weight, one in preferred.terms
        ]
        self.all_keys = not preferred.spread_is_default
        keys = tuple(dict.fromkeys(one.topology_key for one in preferred.spread)) if self.all_keys else ()
        self.spread = []
        for one in preferred.spread:
            counted = counted_spread(one, keys, need.constraints)
            if one.topology_key == HOSTNAME:
                counted = counted._replace(keys=(), policy=ANY_NODE)
            self.spread.append((one, topology.own(pods, counted)))
        self.images = preferred.images


@cython.ccall
def ranked(topology: Topology, index: NodeIndex, amounts: Vec, need: Need) -> list[Node]:
    """Return the nodes that are compared for an ask, best first; none if no preference can tell them apart."""
    if not _tells_apart(topology, need):
        return []
    return in_order_of_points(topology, need, index.first_fitting(amounts, need, CANDIDATES_MAX))


@cython.ccall
def in_order_of_points(topology: Topology, need: Need, nodes: list[Node]) -> list[Node]:
    """Return nodes, which are in node order, best first."""
    i: cython.Py_ssize_t
    node: Node
    if len(nodes) < 2:
        return nodes
    points: list[int] = [0] * len(nodes)
    for plugin, (_, normalized) in scores(topology, need, nodes).items():
        weight = WEIGHTS[plugin]
        for i in range(len(nodes)):
            points[i] -= weight * normalized[i]
    if topology.mode == WEIGHED:
        for i in range(len(nodes)):
            node = nodes[i]
            points[i] -= floor(100.0 * (1.0 - node.score))
    return [nodes[i] for i in sorted(range(len(nodes)), key=points.__getitem__)]


@cython.cfunc
@cython.exceptval(-1)
def _tells_apart(topology: Topology, need: Need) -> cython.bint:
    """Return whether a preference may give two nodes that take the ask different points; cheap, for it is asked each time."""
    check: DomainCheck
    ranking: Ranking | None = need.ranking
    if topology.soft or (ranking is not None and (ranking.nodes or ranking.spread)):
        return True
    if ranking is not None and ranking.images and topology.images.matter(ranking.images):
        return True
    keys = {one.key: None for _, one in _liking(need) if one.counts}
    for check in need.checks or ():
        if check.key in keys and check.leaves_one_domain():
            del keys[check.key]
    return bool(keys)


@cython.cfunc
def _liking(need: Need) -> list[Any]:
    """Return the counts of all terms about pods that have a weight for a need, each with that weight."""
    pods: PodClass | None = need.pods
    ranking: Ranking | None = need.ranking
    found: list[Any] = [] if pods is None else [(one.counted.weight, one) for one in pods.liked]
    return found if ranking is None else found + list(ranking.terms)


# -- the plugins -------------------------------------------------------------------------------------------------


def scores(topology: Topology, need: Need, nodes: list[Node]) -> dict[str, tuple[list[int], list[int]]]:
    """Return, for each plugin that has to do with a need, the raw and the normalized score of each node."""
    found = {}
    ranking: Ranking | None = need.ranking
    liking: list[Any] = _liking(need)
    if topology.soft:
        bears = [one.bears for one in need.constraints.tolerations]
        raw = [sum(not any(bear(taint) for bear in bears) for taint in node.labels.soft) for node in nodes]
        found[TAINTS] = raw, [100 - one for one in _of_most(raw)]
    if ranking is not None and ranking.nodes:
        raw = [sum([weight for weight, wish in ranking.nodes if wish.labels_match(node)]) for node in nodes]
        found[NODES] = raw, _of_most(raw)
    if ranking is not None and ranking.spread:
        raw = _spread(ranking, nodes)
        found[SPREAD] = [max(one, 0) for one in raw], _the_fewer_the_better(raw)
    if liking:
        raw = _near(liking, nodes)
        found[PODS] = raw, _between(raw)
    if ranking is not None and ranking.images:
        raw = topology.images.points(ranking.images, nodes)
        found[IMAGES] = raw, raw
    return found


def _of_most(raw: list[int]) -> list[int]:
    most = max(raw)
    return [100 * one // most for one in raw] if most else raw


def _the_fewer_the_better(raw: list[int]) -> list[int]:
    known = [one for one in raw if one >= 0]
    most, least = max(known, default=0), min(known, default=0)
    return [0 if one < 0 else 100 * (most + least - one) // most if most else 100 for one in raw]


def _between(raw: list[int]) -> list[int]:
    """Return the places of scores between the least and the most, rounded down as kube-scheduler does."""
    least, most = min(raw), max(raw)
    return [int(100.0 * ((one - least) / (most - least))) if most > least else 0 for one in raw]


@cython.cfunc
def _near(liking: list[Any], nodes: list[Node]) -> list[Any]:
    """Return the sum of the weights of all pairs of a term and a pod that it means, in the domains of each node."""
    i: cython.Py_ssize_t
    domain: cython.Py_ssize_t
    weight: cython.longlong
    node: Node
    count: DomainCount
    raw: list[Any] = [0] * len(nodes)
    for weight, count in liking:
        if count.counts:
            for i in range(len(nodes)):
                node = nodes[i]
                domain = count.key.domain_of[node.slot]
                if domain:
                    raw[i] += weight * count.counts.get(domain, 0)
    return raw


@cython.cfunc
def _spread(ranking: Ranking, nodes: list[Node]) -> list[Any]:
    """Return how many pods there are in the domains of each node, more where there are many domains; -1 where a label is missing."""
    i: cython.Py_ssize_t
    domain: cython.Py_ssize_t
    weight: cython.double
    skew: cython.double
    node: Node
    count: DomainCount
    absent: set[Any] = set()
    if ranking.all_keys:
        for _, count in ranking.spread:
            absent |= {i for i in range(len(nodes)) if count.key.domain_of[nodes[i].slot] == 0}
    sums: list[Any] = [0.0] * len(nodes)
    for one, count in ranking.spread:
        domains = len(nodes) - len(absent)
        if one.topology_key != HOSTNAME:
            domains = len({count.key.domain_of[nodes[i].slot] for i in range(len(nodes)) if i not in absent})
        weight = round(log(domains + 2), 12)  # the last digits of a logarithm differ from machine to machine
        skew = one.max_skew - 1
        for i in range(len(nodes)):
            node = nodes[i]
            domain = count.key.domain_of[node.slot]
            if domain:
                sums[i] += count.counts.get(domain, 0) * weight + skew
    return [-1 if i in absent else floor(sums[i] + 0.5) for i in range(len(nodes))]
