"""The needs of a partition: which node meets which set of constraints, as one bit for each different set.

A need is evaluated once for each different set of node labels, not for each node or ask. All nodes with equal labels
share one constraint bitmap, so that a new need costs one evaluation a label set, and a search compares bits. There are
bits for about a thousand needs (`licorne.core.nodes.node`); needs without pending asks give theirs back first.

In a cluster where each node has a label of its own, such as its name, there are as many label sets as nodes. Asks that are
each made for another node, by its name, then must not be evaluated for all of them: label sets are looked up by a label that
the need demands, and the others are passed over. So the bits of a need that is forgotten are cleared, all in one go.

The host ports that allocations take on a node count as a part of its labels, so they change with each allocation that
takes some. Only the needs that want one of these ports are evaluated again then. An ask without host ports costs nothing.
So does what is left on the devices of the node (`licorne.core.nodes.devices`); then only needs with a demand for devices are
evaluated again. Such a need comes with a second one, of the same constraints without the demand: a node that meets this one
may be reserved, or cleared by evictions, for the ask.

Likewise a node whose labels change has only those needs evaluated again that are about a label that differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec

from .constraints import (
    DEVICE_POLICY_ATTRIBUTE,
    FEATURE,
    NO_CONSTRAINTS,
    HostPort,
    NodeConstraints,
    NodeLabels,
    parse_constraints,
)
from .devices import DEFAULT_CHOICE, DeviceChoice, HostChoice, NodeDevices
from .index import NodeIndex
from .node import SHARED, WORD, Need, Node, first_need
from .preferences import OFF, WEIGHED
from .reading import TextCache
from .topology import Topology

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask

Label = tuple[str, str]


class LabelSet:
    """All nodes with the same labels, taints and taken ports, and the constraint bitmap that they share."""

    def __init__(self) -> None:
        self.bitmap: Vec = Vec()
        self.nodes: dict[Node, None] = {}


class Needs:
    """The needs of a partition, and the constraint bitmaps of its nodes.

    `choose_device`: the host's choice of the device for a share, in place of the nodes' policies; None: there is none.
    """

    # Two caches, what the host sets, and what is built anew of the allocations.
    TRANSIENT = ("_by_text", "_by_label", "choose_device", "topology")

    def __init__(self, index: NodeIndex, preferences: str = WEIGHED) -> None:
        self._index: NodeIndex = index
        self.plain: Need = first_need()
        self._needs: dict[NodeConstraints, Need] = {NO_CONSTRAINTS: self.plain}
        self._by_text: TextCache[str, Need] = TextCache()
        self._kinds: dict[NodeLabels, LabelSet] = {}
        self._by_label: dict[Label, list[tuple[NodeLabels, LabelSet]]] | None = None  # None: not up to date
        self._by_port: dict[tuple[str, int], dict[Need, None]] = {}  # needs by each protocol and port that they want
        self._by_key: dict[str, dict[Need, None]] = {}  # needs by each label that they are about
        self._of_devices: dict[Need, None] = {}  # needs that depend on the devices of nodes
        self.choose_device: HostChoice | None = None
        self.topology: Topology = Topology(preferences, self.get)
        self._free_numbers: list[int] = []
        self._next_number: int = 1
        self._many: int = SHARED  # at this number of needs the unused ones are forgotten

    def of_text(self, text: str) -> Need:
        """Return the need for the text of an ask's constraints tag.

        Raises:
            ConstraintError: the text cannot be parsed.
        """
        need = self._by_text.get(text)
        if need is None:
            need = self.get(parse_constraints(text))
            self._by_text.add(text, len(text), need)
        return need

    def get(self, constraints: NodeConstraints) -> Need:
        """Return the need for these constraints; a new one is evaluated for every label set at once."""
        known = self._needs.get(constraints)
        if known is not None:
            return known
        empty = None
        if constraints.demand is not None:
            empty = self.get(replace(constraints, demand=None))
            empty.waiting += 1  # so that it is not forgotten while a number is found
        need = self._needs[constraints] = Need(constraints, self._number())
        if empty is not None:
            empty.waiting -= 1
            need.empty = empty
        self.topology.set_prefers(need)
        for port in need.ports:
            self._by_port.setdefault(port[:2], {})[need] = None
        if constraints.devices:
            self._of_devices[need] = None
        for key in _keys(constraints):
            self._by_key.setdefault(key, {})[need] = None
        self._index.widen(need.word + 1)
        for labels, kind in self._may_meet(constraints):
            before = kind.bitmap.at(need.word)
            self._answer(labels, kind, need)
            if kind.bitmap.at(need.word) != before:
                for node in kind.nodes:
                    self._index.set_constraint_bit(node)
        return need

    def _may_meet(self, constraints: NodeConstraints) -> Iterable[tuple[NodeLabels, LabelSet]]:
        """Return the label sets that may meet constraints: those with the labels that are demanded, or all."""
        alternatives = _alternatives(constraints)
        if not all(alternatives):  # one that asks for no label may be met by any
            return self._kinds.items()
        if self._by_label is None:
            self._by_label = {}
            for labels, kind in self._kinds.items():
                for label in labels.pairs:
                    self._by_label.setdefault(label, []).append((labels, kind))
        found: dict[NodeLabels, LabelSet] = {}
        for conditions in alternatives:
            for label in min(conditions, key=self._count_of):  # the condition that the fewest label sets meet
                found.update(self._by_label.get(label, ()))
        return found.items()

    def _count_of(self, labels: list[Label]) -> int:
        assert self._by_label is not None
        return sum(len(self._by_label.get(label, ())) for label in labels)

    def enter(self, node: Node) -> None:
        """Give a node that is new its constraint bitmap, domains and devices; the caller updates the index."""
        self.topology.enter(node)
        self.set_prefers()
        if node.labels.devices.number:
            policy = node.attributes.get(DEVICE_POLICY_ATTRIBUTE, DEFAULT_CHOICE)
            node.devices = NodeDevices(node.labels.devices.number, policy)
        kind = self._kinds.get(node.labels)
        if kind is None:
            kind = self._kinds[node.labels] = LabelSet()
            self._by_label = None
            for need in self._needs.values():
                self._answer(node.labels, kind, need)
        kind.nodes[node] = None
        node.constraint_bitmap = kind.bitmap

    def leave(self, node: Node) -> None:
        """Take the node out of its label set."""
        kind = self._kinds[node.labels]
        del kind.nodes[node]
        if not kind.nodes:
            del self._kinds[node.labels]
            self._by_label = None

    def remove(self, node: Node) -> None:
        """Forget a node that is removed."""
        self.leave(node)
        self.topology.leave(node)
        self.set_prefers()

    def set_prefers(self) -> None:
        """Note in all needs whether some preference may order nodes for them, where this differs since nodes have changed."""
        if self.plain.prefers != (self.topology.soft > 0 and self.topology.mode != OFF):
            for need in self._needs.values():
                self.topology.set_prefers(need)
            for pods in self.topology.classes.values():
                self.topology.set_prefers_of(pods)

    def relabel(self, node: Node, labels: NodeLabels) -> None:
        """Give a node other labels, taints or taken ports, and the bitmap for them; the caller updates the index."""
        before, bitmap = node.labels, node.constraint_bitmap
        self.leave(node)
        node.labels = labels
        kind = self._kinds.get(labels)
        if kind is None:
            kind = self._kinds[labels] = LabelSet()
            self._by_label = None
            kind.bitmap = bitmap.clone()
            for need in self._told_apart(before, labels):
                self._answer(labels, kind, need)
        kind.nodes[node] = None
        node.constraint_bitmap = kind.bitmap

    def _told_apart(self, before: NodeLabels, labels: NodeLabels) -> Collection[Need]:
        """Return the needs that one of two label sets may meet and the other may not."""
        if before.taints != labels.taints:
            return self._needs.values()
        found: dict[Need, None] = {}
        if before.pairs is not labels.pairs:
            for key, _ in {*before.pairs} ^ {*labels.pairs}:
                found |= self._by_key.get(key, {})
        for port in {*before.ports} ^ {*labels.ports}:
            found |= self._by_port.get(port[:2], {})
        if before.devices != labels.devices:
            found |= self._of_devices
        return found

    def reattribute(self, node: Node, labels: NodeLabels) -> None:
        """Give a node the labels that its new attributes say, and as many devices; what is in use stays so."""
        number = labels.devices.number
        policy = node.attributes.get(DEVICE_POLICY_ATTRIBUTE, DEFAULT_CHOICE)
        if node.devices is None and number:
            node.devices = NodeDevices(number, policy)
        if node.devices is not None:
            node.devices.policy = policy
            node.devices.resize(number)
            labels = replace(labels, devices=node.devices.left())
        labels = replace(labels, ports=node.labels.ports)
        self.topology.relabel(node, labels)
        self.topology.images.renew(node)
        self.set_prefers()
        self.relabel(node, labels)

    @property
    def counts(self) -> bool:
        """Whether any need wants host ports or devices; if none does, no ask need be looked at for them."""
        return bool(self._by_port or self._of_devices)

    # -- what is in use on a node; callers update the index ------------------------------------------------------

    def take(self, node: Node, alloc: Ask) -> None:
        """Count the host ports and devices that an allocation takes on its node."""
        need = alloc.shape.need
        if need.ports:
            self.take_ports(node, need.ports)
        if need.demand is not None and node.devices is not None:
            node.devices.take(alloc, need.demand, self._choice(node, alloc))
            self._devices_changed(node)

    def give_back(self, node: Node, alloc: Ask) -> None:
        """Undo `take`. The caller also tells `WakeUps.node_opened`: who wants the ports may reserve the node now."""
        if alloc.shape.need.ports:
            self.give_back_ports(node, alloc.shape.need.ports)
        if node.devices is not None:
            node.devices.give_back(alloc)
            self._devices_changed(node)

    def try_take(self, node: Node, ask: Ask) -> None:
        """Count the host ports and devices that an ask takes in a trial."""
        need = ask.shape.need
        if need.ports:
            self.take_ports(node, need.ports)
        if need.demand is not None and node.devices is not None:
            node.devices.try_take(ask, need.demand, self._choice(node, ask))
            self._devices_changed(node)

    def _choice(self, node: Node, ask: Ask) -> DeviceChoice | None:
        """Return the host's choice of the device for a share of this ask on this node; None: the policy of the node decides."""
        return None if self.choose_device is None else partial(self.choose_device, ask, node)

    def undo_try(self, node: Node, ask: Ask) -> None:
        """Undo the last `try_take` of this ask on the node."""
        need = ask.shape.need
        if need.ports:
            self.give_back_ports(node, need.ports)
        if need.demand is not None and node.devices is not None:
            node.devices.undo_try(ask)
            self._devices_changed(node)

    def hand_over(self, node: Node, place: Ask, real: Ask) -> None:
        """Let an allocation take the devices of the placeholder that it replaces on the node."""
        if node.devices is not None and real.shape.need.demand is not None:
            node.devices.hand_over(place, real, real.shape.need.demand)
            self._devices_changed(node)

    def may_succeed(self, node: Node, place: Ask, ask: Ask) -> bool:
        """Return whether an ask may run in the place of a placeholder on the node: it gets the devices of that one."""
        need: Need = ask.shape.need
        if need.demand is None:
            return need.matches(node)
        if node.devices is None or not node.devices.suffices_of(place, need.demand):
            return False
        return need.of_empty().matches(node)

    def lift(self, node: Node, alloc: Ask) -> None:
        """Count the devices of an allocation as left, in a trial in which it has ended."""
        if node.devices is not None:
            node.devices.lift(alloc)
            self._devices_changed(node)

    def lower(self, node: Node, alloc: Ask) -> None:
        """Undo `lift`."""
        if node.devices is not None:
            node.devices.lower(alloc)
            self._devices_changed(node)

    def _devices_changed(self, node: Node) -> None:
        assert node.devices is not None, f"node {node.id} has no devices"
        left = node.devices.left()
        if left != node.labels.devices and node.block is not None:
            self.relabel(node, replace(node.labels, devices=left))

    def take_ports(self, node: Node, ports: Collection[HostPort]) -> None:
        """Count host ports of the node as taken by one more allocation; the caller updates the index."""
        self._count_ports(node, ports, 1)

    def give_back_ports(self, node: Node, ports: Collection[HostPort]) -> None:
        """Undo `take_ports`. The caller also tells `WakeUps.node_opened`: who wants the ports may reserve the node now."""
        self._count_ports(node, ports, -1)

    def _count_ports(self, node: Node, ports: Collection[HostPort], change: int) -> None:
        if node.block is None:  # removed, so that nothing can be placed there any more
            return
        for port in ports:
            count = node.ports.get(port, 0) + change
            if count:
                node.ports[port] = count
            else:
                del node.ports[port]
        labels = replace(node.labels, ports=tuple(sorted(node.ports)))
        if labels != node.labels:
            self.relabel(node, labels)

    def kinds(self) -> Iterator[tuple[NodeLabels, Collection[Node]]]:
        """Iterate over the label sets: labels and taints, with the nodes that have them."""
        for labels, kind in self._kinds.items():
            yield labels, kind.nodes

    @staticmethod
    def _answer(labels: NodeLabels, kind: LabelSet, need: Need) -> None:
        matches = need.constraints.matches(labels)
        if need.exact or matches:  # a shared bit is set if any of its needs is met, so a no clears nothing
            kind.bitmap.set_bit(need.word, need.mask, matches)

    def _number(self) -> int:
        """Return the number of a bit for a new need; `SHARED` if all others are used."""
        full = self._next_number % WORD == 0  # one more would widen every block of the index, so free some first
        if not self._free_numbers and (full or len(self._needs) >= self._many):
            self._forget_unused()
            # Twice what is in use now: else each new need would look at all of them again.
            self._many = max(SHARED, 2 * len(self._needs))
        if self._free_numbers:
            return self._free_numbers.pop()
        if self._next_number < SHARED:
            self._next_number += 1
            return self._next_number - 1
        return SHARED

    def _forget_unused(self) -> None:
        """Forget the needs that no pending ask has, and free their bits."""
        freed: dict[int, int] = {}  # bits by word
        empty = {need.empty for need in self._needs.values() if need.waiting and need.empty is not None}
        for constraints, need in list(self._needs.items()):
            if not need.waiting and constraints != NO_CONSTRAINTS and need not in empty:
                del self._needs[constraints]
                self._of_devices.pop(need, None)
                for port in dict.fromkeys(port[:2] for port in need.ports):
                    del self._by_port[port][need]
                    if not self._by_port[port]:
                        del self._by_port[port]
                for key in _keys(constraints):
                    del self._by_key[key][need]
                    if not self._by_key[key]:
                        del self._by_key[key]
                if need.exact:
                    self._free_numbers.append(need.number)
                    freed[need.word] = freed.get(need.word, 0) | need.mask
        self._clear(freed)
        known, self._by_text = self._by_text, TextCache()
        for text, need in known.items():
            if need.constraints in self._needs:
                self._by_text.add(text, len(text), need)

    def _clear(self, freed: dict[int, int]) -> None:
        """Clear these bits, given by word, in all bitmaps."""
        for kind in self._kinds.values():
            words = [word for word, bits in freed.items() if kind.bitmap.at(word) & bits]
            for word in words:
                kind.bitmap.set_bit(word, freed[word], on=False)
            if words:
                for node in kind.nodes:
                    self._index.set_constraint_bit(node)

    def knows(self, need: Need) -> bool:
        """Return whether this need is known.

        One that was forgotten must not be used: its bit may belong to another need by now.
        """
        return self._needs.get(need.constraints) is (need if need.base is None else need.base)

    def find_empty(self) -> None:
        """Find the second need of each need with a demand for devices, after a restore."""
        for constraints, need in self._needs.items():
            if constraints.demand is not None:
                need.empty = self._needs[replace(constraints, demand=None)]

    def attach(self, need: Need) -> None:
        """Give a need with a class of pods its place in the topology, after a restore."""
        need.topology = self.topology
        need.base = self._needs.get(need.constraints) or Need(need.constraints, need.number)
        assert need.pods is not None, "a need without a class of pods has no place in the topology"
        if need.base.empty is not None:
            need.empty = self.topology.need_for(need.base.empty, need.pods)

    def waiting(self) -> list[int]:
        """Return how many asks each need is in use for."""
        return [need.waiting for need in self._needs.values()]

    def set_waiting(self, numbers: list[int]) -> None:
        """Set what `waiting` has returned."""
        for need, number in zip(self._needs.values(), numbers, strict=True):
            need.waiting = number

    def validate(self) -> None:
        """Prove that every bit agrees with its need; raises AssertionError."""
        for labels, kind in self._kinds.items():
            for node in kind.nodes:
                assert node.labels == labels and node.constraint_bitmap is kind.bitmap, f"kind of node {node.id}"
            for need in self._needs.values():
                matches = need.constraints.matches(labels)
                marked = bool(kind.bitmap.at(need.word) & need.mask)
                assert marked == matches or (not need.exact and not matches), f"marks of {labels}"
            for number in self._free_numbers:
                assert not kind.bitmap.at(number // WORD) & 1 << number % WORD, f"a mark of {labels} is left"


def _keys(constraints: NodeConstraints) -> set[str]:
    """Return the labels that constraints are about."""
    conditions = {one.key for term in constraints.affinity or () for one in term}
    conditions |= {one.key for demand in constraints.volumes for term in demand.terms for one in term}
    return {key for key, _ in constraints.selector} | conditions | {FEATURE + name for name in constraints.features}


def _alternatives(constraints: NodeConstraints) -> list[list[list[Label]]]:
    """Return what a node must have at least, as alternatives: of each, the conditions that ask for one of some labels."""
    if constraints.selector:
        return [[[label] for label in constraints.selector]]
    demands = [demand.terms for demand in constraints.volumes]
    found = []
    for terms in demands if constraints.affinity is None else [constraints.affinity, *demands]:
        asked = [[[(one.key, value) for value in one.values] for one in term if one.operator == "In"] for term in terms]
        if all(asked):
            found.append(asked)
    return min(found, key=len, default=[[]])
