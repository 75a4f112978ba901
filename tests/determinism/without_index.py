"""The command line on a core that looks at every node, in order, for each ask: run as a program by the tests.

Only for the interpreted core: a method of a compiled class cannot be replaced.
"""

from __future__ import annotations

from operator import attrgetter

from licorne import cli, core
from licorne.core.amounts.vectors import Vec
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Need, Node


def find(index: NodeIndex, ask: Vec, need: Need, after: Node | None) -> Node | None:
    """Find the node that `NodeIndex.find` has to find (docs/spec/scheduling.md, section 7.1)."""
    in_order = sorted(index.by_id, key=attrgetter("score", "id"))
    start = in_order.index(after) + 1 if after is not None else 0
    for node in in_order[start:]:
        if node.open and node.constraint_bitmap.at(need.word) & need.mask and node.free.covers(ask):
            return node
    return None


if __name__ == "__main__":
    assert not core.compiled
    NodeIndex.find = find  # type: ignore[method-assign, assignment]
    cli.main()
