"""Which node meets which constraints: one mark for each different set of constraints (see `licorne.core.nodes.node`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from licorne.core.amounts.vectors import Vec

from .constraints import NO_CONSTRAINTS, NodeConstraints, NodeLabels, parse_constraints
from .index import NodeIndex
from .node import SHARED, WORD, Need, Node, first_need

TEXTS_MAX = 4096
CHARACTERS_MAX = 1 << 20
"""How many different texts of constraints are remembered with what they mean, and how long they are together at most."""


class LabelSet:
    """All nodes with the same labels. Their marks are one object, so that a need is answered once for all of them."""

    def __init__(self) -> None:
        self.bitmap = Vec()
        self.nodes: dict[Node, None] = {}


class Needs:
    """The needs of a partition that asks have, and the answers of its nodes as marks."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self.plain = first_need()
        self._needs: dict[NodeConstraints, Need] = {NO_CONSTRAINTS: self.plain}
        self._by_text: dict[str, Need] = {}
        self._characters = 0  # of these texts
        self._kinds: dict[NodeLabels, LabelSet] = {}
        self._free_numbers: list[int] = []
        self._next_number = 1
        self._many = SHARED  # with so many needs those are forgotten that nobody waits with

    def of_text(self, text: str) -> Need:
        """The need that an ask names in its tag.

        Raises:
            ConstraintError: the text cannot be read.
        """
        need = self._by_text.get(text)
        if need is None:
            need = self.get(parse_constraints(text))
            self._characters += len(text)
            if len(self._by_text) >= TEXTS_MAX or self._characters > CHARACTERS_MAX:
                self._by_text.clear()
                self._characters = len(text)
            self._by_text[text] = need
        return need

    def get(self, constraints: NodeConstraints) -> Need:
        """The need for these constraints; a new one is put to every kind of node."""
        known = self._needs.get(constraints)
        if known is not None:
            return known
        need = self._needs[constraints] = Need(constraints, self._number())
        self._index.widen(need.word + 1)
        for labels, kind in self._kinds.items():
            before = kind.bitmap.at(need.word)
            self._answer(labels, kind, need)
            if kind.bitmap.at(need.word) != before:
                for node in kind.nodes:
                    self._index.set_constraint_bit(node)
        return need

    def enter(self, node: Node) -> None:
        """The node is new or has other labels: give it its marks. The index is told by the caller."""
        kind = self._kinds.get(node.labels)
        if kind is None:
            kind = self._kinds[node.labels] = LabelSet()
            for need in self._needs.values():
                self._answer(node.labels, kind, need)
        kind.nodes[node] = None
        node.constraint_bitmap = kind.bitmap

    def leave(self, node: Node) -> None:
        """The node goes, or will have other labels."""
        kind = self._kinds[node.labels]
        del kind.nodes[node]
        if not kind.nodes:
            del self._kinds[node.labels]

    def kinds(self) -> Iterator[tuple[NodeLabels, Collection[Node]]]:
        """The nodes by their labels and taints."""
        for labels, kind in self._kinds.items():
            yield labels, kind.nodes

    @staticmethod
    def _answer(labels: NodeLabels, kind: LabelSet, need: Need) -> None:
        matches = need.constraints.matches(labels)
        if need.exact or matches:  # a shared mark is set if any need that shares it is met
            kind.bitmap.set_bit(need.word, need.mask, matches)

    def _number(self) -> int:
        """The number of a mark for a new need."""
        full = self._next_number % WORD == 0  # another one would widen the index
        if not self._free_numbers and (full or len(self._needs) >= self._many):
            self._forget_unused()
            self._many = max(SHARED, 2 * len(self._needs))
        if self._free_numbers:
            return self._free_numbers.pop()
        if self._next_number < SHARED:
            self._next_number += 1
            return self._next_number - 1
        return SHARED

    def _forget_unused(self) -> None:
        for constraints, need in list(self._needs.items()):
            if not need.waiting and constraints != NO_CONSTRAINTS:
                del self._needs[constraints]
                if need.exact:
                    self._free_numbers.append(need.number)
        self._by_text = {text: need for text, need in self._by_text.items() if need.constraints in self._needs}
        self._characters = sum(map(len, self._by_text))

    def knows(self, need: Need) -> bool:
        """Is this one of them? One that was forgotten must not be asked: its mark may be another's by now."""
        return self._needs.get(need.constraints) is need

    def validate(self) -> None:
        """Prove that every mark says what its need says."""
        for labels, kind in self._kinds.items():
            for node in kind.nodes:
                assert node.labels == labels and node.constraint_bitmap is kind.bitmap, f"kind of node {node.id}"
            for need in self._needs.values():
                matches = need.constraints.matches(labels)
                marked = bool(kind.bitmap.at(need.word) & need.mask)
                assert marked == matches or (not need.exact and not matches), f"marks of {labels}"
