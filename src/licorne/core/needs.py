"""Which node meets which constraints: one bit for each different set of constraints (see `licorne.core.nodes`)."""

from __future__ import annotations

from .constraints import NO_CONSTRAINTS, NodeConstraints
from .nodeindex import NodeIndex
from .nodes import SHARED_BIT, Need, Node, first_need


class Needs:
    """The needs of a partition that asks have, and the answers of its nodes as bits."""

    def __init__(self, nodes: dict[str, Node], index: NodeIndex) -> None:
        self._nodes = nodes
        self._index = index
        self.plain = first_need()
        self._needs: dict[NodeConstraints, Need] = {NO_CONSTRAINTS: self.plain}
        self._free_bits = list(range(SHARED_BIT - 1, 0, -1))

    def get(self, constraints: NodeConstraints) -> Need:
        """The need for these constraints; a new one is put to every node."""
        known = self._needs.get(constraints)
        if known is not None:
            return known
        if not self._free_bits or len(self._needs) >= 4 * SHARED_BIT:
            self._forget_unused()
        bit = self._free_bits.pop() if self._free_bits else SHARED_BIT
        need = self._needs[constraints] = Need(constraints, bit)
        for node in self._nodes.values():
            self._answer(node, need)
            self._index.mend(node)
        return need

    def answer_all(self, node: Node) -> None:
        """Set all bits of a node that is new or has other labels; the index is told by the caller."""
        node.set_bit(SHARED_BIT, False)
        for need in self._needs.values():
            self._answer(node, need)

    @staticmethod
    def _answer(node: Node, need: Need) -> None:
        matches = need.matches(node)
        if need.exact or matches:  # a shared bit is set if any need that shares it is met
            node.set_bit(need.bit, matches)

    def _forget_unused(self) -> None:
        for constraints, need in list(self._needs.items()):
            if not need.shapes and constraints != NO_CONSTRAINTS:
                del self._needs[constraints]
                if need.exact:
                    self._free_bits.append(need.bit)

    def validate(self) -> None:
        """Prove that every bit says what its need says."""
        for node in self._nodes.values():
            for need in self._needs.values():
                matches = need.constraints.matches(node.labels)
                assert node.has_bit(need.bit) == matches or (not need.exact and not matches), f"bits of node {node.id}"
