"""A node order: the cheapest node first, by an attribute of nodes; of equally dear ones the one with the least room left."""

from __future__ import annotations

from licorne import Policy
from licorne.sim.policies import Node, Pod


class CheapNodes(Policy):
    """A node without the attribute `price` costs nothing."""

    def node_key(self, pod: Pod, node: Node) -> tuple[float, float]:
        """Return the price of a node, and what is left of its cores."""
        return float(node.attributes.get("price", "0")), node.free.get("vcore", 0)
