"""Proof that a node index agrees with its nodes: order, columns and bounds (design, rule 1)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .nodeindex import NodeIndex

NEGATIVE = 1 << 63
MODULUS = 1 << 64


def validate_index(index: NodeIndex) -> None:
    """Look at everything; raises AssertionError for what does not agree."""
    assert [n.id for n in index.by_id] == sorted(n.id for n in index.by_id), "nodes by id"
    in_order = index.ordered()
    places = [(node.score, node.rank) for node in in_order]
    assert all(before < after for before, after in pairwise(places)), "order of nodes"
    assert len(in_order) == len(index.by_id), "nodes in the index"
    for g, group in enumerate(index.groups):
        assert group.place == g and group.count == len(group.blocks) > 0, "place of a group"
        for i, block in enumerate(group.blocks):
            assert block.place == i and block.group is group, "place of a block"
            assert block.count == len(block.nodes), "nodes of a block"
            for row, node in enumerate(block.nodes):
                _row(index, node, block, row, ((block, row), (group, i), (index.tops[g >> 6], g & 63)))


def _row(index: NodeIndex, node: Any, block: Any, row: int, bounds: tuple[tuple[Any, int], ...]) -> None:
    """One node: its own row, and the rows of its block and its group, which must not promise less."""
    assert node.block is block, f"block of node {node.id}"
    assert node.score == index.policy.score_of(node), f"score of node {node.id}"
    assert block.where_of(node) == row, f"place of node {node.id}"
    marks = node.marks.values() if node.open else []
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
