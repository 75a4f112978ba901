"""Nodes on which room was freed since it was found that no node has room for what waits (`licorne.core.waiting.parking`)."""

from __future__ import annotations

from operator import attrgetter

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.nodes.node import Node
    from cython.cimports.licorne.core.queues.ask import Shape
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec
    from licorne.core.nodes.node import Node

    from .ask import Shape


@cython.cclass
class FreedNodes:
    """A few nodes; what waits for a node need be compared with no others. `most` is at least what is free on any.

    `partly_parked` are shapes that have failed although not all of their asks are parked for want of a node: some may run but for
    a quota, or wait for something else. Nobody tries those on the candidates, so they are compared when these are given up.
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
        """Room was freed on the node."""
        if node not in self.nodes:
            self.nodes.append(node)
        self.measure()

    def drop(self, node: Node) -> None:
        """The node has gone."""
        if node in self.nodes:
            self.nodes.remove(node)
            self.measure()

    @cython.cfunc
    def clear(self) -> cython.void:
        """There are none."""
        self.nodes.clear()

    @cython.cfunc
    def measure(self) -> cython.void:
        """Make `most` exact: what is free on these nodes has changed."""
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.nodes)
        if count:
            self.most.cut(0)
            self.most.copy_from(cython.cast(Node, self.nodes[0]).free)
            for i in range(1, count):
                self.most.raise_to(cython.cast(Node, self.nodes[i]).free)

    @cython.cfunc
    def fit(self, shape: Shape) -> cython.bint:
        """Has one of them room for the shape, and meets its constraints?"""
        i: cython.Py_ssize_t
        for i in range(len(self.nodes)):
            if cython.cast(Node, self.nodes[i]).fits(shape.amounts, shape.need):
                return True
        return False

    @cython.cfunc
    def in_order(self) -> list[Node]:
        """All of them in node order."""
        if len(self.nodes) > 1:
            self.nodes.sort(key=attrgetter("score", "rank"))
        return self.nodes
