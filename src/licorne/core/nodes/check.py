"""The proof that a node index agrees with its nodes: order, columns and bounds (docs/spec/design.md, rule 1); that of domains.

Rows repeat what the nodes say, and bounds summarise rows; a search trusts both without looking at a node. So both are
compared with the nodes here: a row must be equal, a bound must not be lower.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from .attached import AttachCount
from .claimed import ClaimCount
from .counted import held_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .block import NodeBlock
    from .domains import PodClass
    from .index import NodeIndex
    from .node import Node
    from .topology import Topology

NEGATIVE = 1 << 63
MODULUS = 1 << 64


def validate_index(index: NodeIndex) -> None:
    """Check the whole index; raises AssertionError with what does not agree."""
    for _ in index_steps(index):
        pass


def index_steps(index: NodeIndex) -> Iterator[None]:
    """Check the index in steps: the order first, then node by node.

    Between steps nodes may be added, changed and removed.
    """
    assert [n.id for n in index.by_id] == sorted(n.id for n in index.by_id), "nodes by id"
    in_order = index.ordered()
    places = [(node.score, node.rank) for node in in_order]
    assert all(before < after for before, after in pairwise(places)), "order of nodes"
    assert len(in_order) == len(index.by_id), "nodes in the index"
    for g, group in enumerate(index.groups):
        assert group.position == g and group.count == len(group.blocks) > 0, "place of a group"
        assert index.tops[g >> 6].start_of(g & 63) == group.start_of(0), "start of a group"
        for i, block in enumerate(group.blocks):
            assert block.position == i and block.group is group, "place of a block"
            assert block.count == len(block.nodes), "nodes of a block"
            for row, node in enumerate(reversed(block.nodes)):
                assert node.block is block, f"block of node {node.id}"
                assert block.where_of(node) == row, f"place of node {node.id}"
    for node in in_order:
        yield
        if node.block is not None:  # it has not been removed since the order was read
            _row(index, node, node.block)


def _row(index: NodeIndex, node: Node, block: NodeBlock) -> None:
    """Compare a node with its own row, which must be equal, and with those of its block and group, which are bounds."""
    group = block.group
    assert group is not None, f"group of the block of node {node.id}"
    top = (index.tops[group.position >> 6], group.position & 63)
    bounds = ((block, block.where_of(node)), (group, block.position), top)
    assert node.score == index.policy.score_of(node), f"score of node {node.id}"
    marks = node.constraint_bitmap.values() if node.open else []
    marks += [0] * (index.words - len(marks))
    cells = index.grid.cells_of(node.free)
    for level, (columns, at) in enumerate(bounds):
        for d in range(index.width):
            free = _signed(columns.entry(d, at))
            assert free == node.free.at(d) if level == 0 else free >= node.free.at(d), f"free on node {node.id}"
        for w in range(index.words):
            mark = columns.entry(index.width + w, at)
            assert mark == marks[w] if level == 0 else mark & marks[w] == marks[w], f"marks of node {node.id}"
        found = columns.entry(index.width + index.words, at)
        assert found == cells if level == 0 else found & cells == cells, f"cells of node {node.id}"


def _signed(entry: int) -> int:
    return entry - MODULUS if entry & NEGATIVE else entry


def validate_topology(topology: Topology, running: Mapping[str, Mapping[PodClass, int]]) -> None:
    """Count the pods of all domains anew; raises AssertionError. `running`: classes by node, with how many pods run there."""
    named = {node.id: topology.on[node.slot] for node in topology.nodes if node is not None}
    assert {name: on for name, on in named.items() if on} == {name: on for name, on in running.items() if on}, (
        "pods on nodes"
    )
    for counted, count in topology.counts.items():
        if isinstance(count, AttachCount):
            _validate_attached(topology, count)
            continue
        if isinstance(count, ClaimCount):
            assert [*count.by_demand.values()] == count.checks, "checks by demand"
            indexed = {(name, check) for name, checks in count.by_name.items() for check in checks}
            assert indexed == {(n, one) for one in count.by_demand.values() for n in one.names}, "checks by name"
            for check in count.checks:
                assert [*check.shut] == [*map(check.shuts, range(len(count.key.members)))], (
                    "nodes with devices for claims"
                )
            continue
        found: dict[int, int] = {}
        part: dict[int, int] = {}
        for node in topology.nodes:
            domain = 0 if node is None else count.key.domain_of[node.slot]
            if node is None or not domain or not counted.takes_part(node.labels):
                continue
            value = dict(node.labels.pairs).get(counted.key, "")
            assert count.key.number_of[value] == domain, f"domain of node {node.id}"
            part[domain] = part.get(domain, 0) + 1
            for pods, number in topology.on[node.slot].items():
                if (
                    counted in held_by(pods.terms)
                    if counted.held
                    else (counted.key, counted.mark) in pods.terms.holds
                    if counted.mark
                    else counted.includes(pods.pod)
                ):
                    found[domain] = found.get(domain, 0) + number
        assert count.counts == found, f"pods that {counted} counts"
        assert not count.spread or count.taking_part == part, f"nodes that take part in {counted}"
        assert not count.spread or count.least == min((found.get(one, 0) for one in part), default=0), (
            f"least of {counted}"
        )
        for check in count.checks:
            assert [*check.shut] == [*map(check.shuts, range(len(count.key.members)))], f"checks of {counted}"


def _validate_attached(topology: Topology, count: AttachCount) -> None:
    """Count the volumes that are attached to all nodes anew; raises AssertionError."""
    found: dict[int, dict[str, int]] = {}
    for node in topology.nodes:
        domain = 0 if node is None else count.key.domain_of[node.slot]
        for pods, number in topology.on[node.slot].items() if node is not None and domain else ():
            for attached in pods.terms.attached:
                for name in attached.names if attached.driver == count.counted.driver else ():
                    used = found.setdefault(domain, {})
                    used[name] = used.get(name, 0) + number
    assert count.used == found, f"volumes of {count.counted.driver}"
    for check in count.checks:
        assert [*check.shut] == [*map(check.shuts, range(len(count.key.members)))], f"checks of {count.counted.driver}"
