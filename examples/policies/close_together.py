"""A choice of node: a node on which the application runs already, among the first that fit."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from licorne import Policy
from licorne.sim.policies import Node, Pod

LOOKED_AT = 20


class CloseTogether(Policy):
    """Where the application runs on none of the first 20 nodes, the first one is taken."""

    def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | None:
        """Return a node with another pod of the application, or else the first."""
        looked_at = list(islice(nodes, LOOKED_AT))
        beside = (node for node in looked_at if any(other.application.id == pod.application.id for other in node.pods))
        return next(beside, looked_at[0] if looked_at else None)
