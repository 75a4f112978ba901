"""Freed nodes: those on which room was freed since a search found no node for what waits.

Everything that waits for a node has failed on all others, so while there are only a few freed nodes it is tried on
these alone instead of being searched for in the whole node index. When nodes become freed nodes, and when they stop
being so, is decided in `licorne.core.waiting.parking`.
"""

from __future__ import annotations

from operator import attrgetter

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec
from licorne.core.nodes.node import Node

from .ask import Shape


@cython.cclass
class FreedNodes:
    """The freed nodes of a partition; what waits for a node need be compared with no others.

    `most` is at least what is free on any of them, for each resource type. `partly_parked` are shapes that have failed
    although not all of their asks are parked for want of a node: some may run but for a quota, or wait for something
    else. No descent tries those on the freed nodes, so they are compared once the freed nodes are given up.
    """

    nodes: list[Node]
    most: Vec
    partly_parked: dict[Shape, None]

    def __init__(self) -> None:
        self.nodes = []
        self.most = Vec()
        self.partly_parked = {}

    @cython.cfunc
    def add(self, node: Node) -> cython.void:
        """Add a node on which room was freed; `most` is recomputed also if it was one of them already."""
        if node not in self.nodes:
            self.nodes.append(node)
        self.measure()

    def drop(self, node: Node) -> None:
        """Remove a node that has left the partition."""
        if node in self.nodes:
            self.nodes.remove(node)
            self.measure()

    @cython.cfunc
    def clear(self) -> cython.void:
        """Give up all freed nodes; `most` stays and is not valid until a node is added."""
        self.nodes.clear()

    @cython.cfunc
    def measure(self) -> cython.void:
        """Recompute `most` exactly, after what is free on these nodes has changed."""
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.nodes)
        if count:
            self.most.cut(0)
            self.most.copy_from(cython.cast(Node, self.nodes[0]).free)
            for i in range(1, count):
                self.most.raise_to(cython.cast(Node, self.nodes[i]).free)

    @cython.cfunc
    def fit(self, shape: Shape) -> cython.bint:
        """Return whether one of the nodes is open, meets the shape's need, and has room for it."""
        i: cython.Py_ssize_t
        for i in range(len(self.nodes)):
            if cython.cast(Node, self.nodes[i]).fits(shape.amounts, shape.need):
                return True
        return False

    @cython.cfunc
    def in_order(self) -> list[Node]:
        """Return all of them in node order."""
        if len(self.nodes) > 1:
            self.nodes.sort(key=attrgetter("score", "rank"))
        return self.nodes
