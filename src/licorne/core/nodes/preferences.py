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

from math import log
from typing import TYPE_CHECKING, Any, Final

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_vec, vec_of
from licorne.core.constants import UNLIMITED

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
    if len(nodes) < 2:
        return nodes
    lacking = [-points for points in _points(topology, need, nodes).values()]
    return [nodes[i] for i in sorted(range(len(nodes)), key=lacking.__getitem__)]


@cython.cfunc
def _points(topology: Topology, need: Need, nodes: list[Node]) -> Vec:
    """Return the points of each node."""
    i: cython.Py_ssize_t
    weight: cython.longlong
    whole: cython.longlong
    share: cython.double
    node: Node
    normalized: Vec
    points: Vec = new_vec(len(nodes), 0)
    for plugin, _, found in _plugins(topology, need, nodes):
        weight = WEIGHTS[plugin]
        normalized = found
        for i in range(points.n):
            points.v[i] += weight * normalized.v[i]
    if topology.mode == WEIGHED:
        for i in range(points.n):
            node = nodes[i]
            share = 100.0 * (1.0 - node.score)
            whole = int(share)
            points.v[i] += whole - (1 if share < whole else 0)
    return points


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
    found = {plugin: (raw.values(), normal.values()) for plugin, raw, normal in _plugins(topology, need, nodes)}
    if SPREAD in found:
        found[SPREAD] = [max(one, 0) for one in found[SPREAD][0]], found[SPREAD][1]
    return found


@cython.cfunc
def _plugins(topology: Topology, need: Need, nodes: list[Node]) -> list[Any]:
    """Return each plugin that has to do with a need, with the raw and the normalized score of each node."""
    found: list[Any] = []
    ranking: Ranking | None = need.ranking
    liking: list[Any] = _liking(need)
    raw: Vec
    if topology.soft:
        bears = [one.bears for one in need.constraints.tolerations]
        raw = vec_of(
            [sum(not any(bear(taint) for bear in bears) for taint in node.labels.soft) for node in nodes], 0, False
        )
        found.append((TAINTS, raw, _of_most(raw, True)))
    if ranking is not None and ranking.nodes:
        raw = vec_of(
            [sum([weight for weight, wish in ranking.nodes if wish.labels_match(node)]) for node in nodes], 0, False
        )
        found.append((NODES, raw, _of_most(raw, False)))
    if ranking is not None and ranking.spread:
        raw = _spread(ranking, nodes)
        found.append((SPREAD, raw, _the_fewer_the_better(raw)))
    if liking:
        raw = _near(liking, nodes)
        found.append((PODS, raw, _between(raw)))
    if ranking is not None and ranking.images:
        raw = vec_of(topology.images.points(ranking.images, nodes), 0, False)
        found.append((IMAGES, raw, raw))
    return found


@cython.cfunc
def _of_most(raw: Vec, reverse: cython.bint) -> Vec:
    """Return scores in percent of the most; in `reverse`, what is missing to 100."""
    i: cython.Py_ssize_t
    share: cython.longlong
    most: cython.longlong = 0
    found: Vec = new_vec(raw.n, 0)
    for i in range(raw.n):
        most = max(most, raw.v[i])
    for i in range(raw.n):
        share = 100 * raw.v[i] // most if most else 0
        found.v[i] = 100 - share if reverse else share
    return found


@cython.cfunc
def _the_fewer_the_better(raw: Vec) -> Vec:
    """Return 100 points for the least of the scores; none where one is below zero."""
    i: cython.Py_ssize_t
    most: cython.longlong = 0
    least: cython.longlong = UNLIMITED
    found: Vec = new_vec(raw.n, 0)
    for i in range(raw.n):
        if raw.v[i] >= 0:
            most = max(most, raw.v[i])
            least = min(least, raw.v[i])
    for i in range(raw.n):
        if raw.v[i] >= 0:
            found.v[i] = 100 * (most + least - raw.v[i]) // most if most else 100
    return found


@cython.cfunc
def _between(raw: Vec) -> Vec:
    """Return the places of scores between the least and the most, rounded down as kube-scheduler does."""
    i: cython.Py_ssize_t
    place: cython.double
    most: cython.longlong = raw.v[0]
    least: cython.longlong = raw.v[0]
    found: Vec = new_vec(raw.n, 0)
    for i in range(raw.n):
        most = max(most, raw.v[i])
        least = min(least, raw.v[i])
    if most > least:
        for i in range(raw.n):
            place = 100.0 * (float(raw.v[i] - least) / float(most - least))
            found.v[i] = int(place)
    return found


@cython.cfunc
def _near(liking: list[Any], nodes: list[Node]) -> Vec:
    """Return the sum of the weights of all pairs of a term and a pod that it means, in the domains of each node."""
    i: cython.Py_ssize_t
    weight: cython.longlong
    pods: cython.longlong
    node: Node
    count: DomainCount
    raw: Vec = new_vec(len(nodes), 0)
    for weight, count in liking:
        counts: dict[int, int] = count.counts
        domain_of: list[int] = count.key.domain_of
        if counts:
            for i in range(raw.n):
                node = nodes[i]
                there = counts.get(domain_of[node.slot])  # nothing is counted where a label is missing
                if there is not None:
                    pods = there
                    raw.v[i] += weight * pods
    return raw


@cython.cfunc
def _spread(ranking: Ranking, nodes: list[Node]) -> Vec:
    """Return how many pods there are in the domains of each node, more where there are many domains; -1 where a label is missing."""
    i: cython.Py_ssize_t
    domains: cython.Py_ssize_t
    weight: cython.double
    skew: cython.double
    total: cython.double
    pods: cython.longlong
    node: Node
    count: DomainCount
    raw: Vec = new_vec(len(nodes), 0)
    domains = raw.n
    if ranking.all_keys:
        for _, count in ranking.spread:
            domain_of: list[int] = count.key.domain_of
            for i in range(raw.n):
                node = nodes[i]
                if not domain_of[node.slot] and raw.v[i] == 0:
                    raw.v[i] = -1
                    domains -= 1
    parts: list[Any] = []
    for one, count in ranking.spread:
        of: list[int] = count.key.domain_of
        number = domains
        if one.topology_key != HOSTNAME:
            seen: set[int] = set()
            for i in range(raw.n):
                if raw.v[i] >= 0:
                    node = nodes[i]
                    seen.add(of[node.slot])
            number = len(seen)
        # The last digits of a logarithm differ from machine to machine.
        parts.append((round(log(number + 2), 12), float(one.max_skew - 1), of, count.counts))
    for i in range(raw.n):
        if raw.v[i] >= 0:
            node = nodes[i]
            total = 0.0
            for part in parts:
                domain = cython.cast(list, part[2])[node.slot]
                if domain:
                    weight = part[0]
                    skew = part[1]
                    pods = cython.cast(dict, part[3]).get(domain, 0)
                    total += float(pods) * weight + skew
            raw.v[i] = int(total + 0.5)
    return raw
