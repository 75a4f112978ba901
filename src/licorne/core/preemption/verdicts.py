"""What the verdict of a node about an ask would be without some of what runs, besides amounts.

Victims may free devices, host ports, and what terms of pods shut (`licorne.core.nodes.topology`). A search for victims lets
candidates end in a `NodeVerdict`, and asks it what the node would say then. Affinity is never brought about by evictions, and
a victim may be one that the ask wants near. Devices of claims that nobody else can use are counted as free. Terms are about what runs elsewhere too, so the counts of the topology are changed,
and changed back, as in the trial of a gang; a search begins with those that there will be (`Claims.as_planned`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from licorne.core.constants import IS_APART
from licorne.core.nodes.claimed import ClaimCheck, ClaimCount
from licorne.core.nodes.counted import CLAIMS
from licorne.core.nodes.devices import DeviceRoom

if TYPE_CHECKING:
    from licorne.core.nodes.constraints import HostPort
    from licorne.core.nodes.domains import DomainCheck, DomainCount, PodClass
    from licorne.core.nodes.node import Need, Node
    from licorne.core.nodes.topology import Topology
    from licorne.core.queues.ask import Ask

T = TypeVar("T")


class NodeVerdict:
    """The verdict of one node about one ask, while allocations end (`add`) and are put back (`remove`)."""

    def __init__(self, node: Node, need: Need, devices: DeviceRoom | None, ports: dict[HostPort, int]) -> None:
        self._node = node
        self._need = need
        self._devices = devices
        self._taken = ports  # host ports that the ask cannot have, with how many allocations hold each
        self._in_use = len(ports)
        self._lifts: bool = claims_devices(need)

    def add(self, alloc: Ask) -> None:
        """Let an allocation end."""
        self._change(alloc, 1)

    def remove(self, alloc: Ask) -> None:
        """Undo `add`."""
        self._change(alloc, -1)

    def _change(self, alloc: Ask, ends: int) -> None:
        need: Need = alloc.shape.need
        topology = self._need.topology
        if topology is not None and self._lifts:
            lift(topology, alloc.key, ends)
        if need.pods is not None and alloc.node is not None and self._counts(need.pods):
            assert topology is not None, "a need with checks has a topology"
            try:
                topology.attempt(alloc.node.slot, need.pods, -ends)
            except BaseException:
                if self._lifts and ends > 0:
                    lift(topology, alloc.key, -ends)
                raise
        if self._devices is not None:
            (self._devices.add if ends > 0 else self._devices.remove)(alloc)
        if self._taken and alloc.node is self._node:
            for port in need.ports:
                if port in self._taken:
                    self._taken[port] -= ends
                    self._in_use -= ends * (self._taken[port] == (0 if ends > 0 else 1))

    def _counts(self, pods: PodClass) -> bool:
        return any(check.is_about(pods) for check in self._need.checks or ())

    def frees_devices(self, alloc: Ask) -> bool:
        """Return whether devices are searched for anew when it ends, which takes long."""
        topology = self._need.topology
        return self._lifts and topology is not None and _holds_devices(topology.counts.get(CLAIMS), alloc)

    def helps(self, alloc: Ask) -> bool:
        """Return whether an allocation holds something, here or in a domain of the node, that keeps the ask off now."""
        if alloc.node is self._node and (
            (self._devices is not None and self._devices.helps(alloc))
            or (self._in_use and any(self._taken.get(port) for port in alloc.shape.need.ports))
        ):
            return True
        return any(in_the_way(check, alloc, self._node) for check in self.shut())

    def shut(self) -> list[DomainCheck]:
        """Return the checks that shut the ask out of the node now."""
        return [check for check in self._need.checks or () if check.shut[check.key.domain_of[self._node.slot]]]

    def neighbours(self) -> Iterator[Node]:
        """Yield the nodes with allocations that shut the ask out of a domain of the node."""
        found: dict[int, None] = {}
        for check in self.shut():
            domain = check.key.domain_of[self._node.slot]
            running = (slot for pods in check.count.members for slot in pods.on)
            found |= dict.fromkeys(slot for slot in running if domain and check.key.domain_of[slot] == domain)
        nodes: list[Node | None] = self._need.topology.nodes if self._need.topology is not None else []
        return (node for slot in found if (node := nodes[slot]) is not None)

    def must_go(self, allocations: Iterable[Ask]) -> dict[Ask, None]:
        """Return those allocations without whose end the ask cannot run on the node: they have its host port, or are kept apart from it."""
        kinds = [(check, check.count.counted) for check in self.shut()]
        apart = [check for check, of in kinds if check.kind == IS_APART and not (of.driver or of.claims)]
        return {
            alloc: None
            for alloc in allocations
            if any(in_the_way(check, alloc, self._node) for check in apart)
            or (alloc.node is self._node and any(port in self._taken for port in alloc.shape.need.ports))
        }

    def suffices(self) -> bool:
        """Return whether nothing but amounts keeps the ask off the node now."""
        return self.suffices_on_node() and not self.shut()

    def suffices_on_node(self) -> bool:
        """Return whether there are the devices and host ports that the ask wants."""
        return not self._in_use and (self._devices is None or self._devices.suffices())

    def suffices_without(self, allocations: list[Ask]) -> bool:
        """Return whether nothing but amounts would keep the ask off if these ended too; nothing is changed."""
        return self._without(allocations, self.suffices)

    def may_suffice_without(self, allocations: list[Ask]) -> bool:
        """Return False if the end of no part of these is enough; nothing is changed.

        Each check is opened on its own: what the ask wants near may be among them, and a spread tells a domain by the others.
        """
        if not self._without(allocations, self.suffices_on_node):
            return False
        for check in self.shut():
            helping = [alloc for alloc in allocations if in_the_way(check, alloc, self._node)]
            if check in self._without(helping, self.shut):
                return False
        return True

    def _without(self, allocations: list[Ask], test: Callable[[], T]) -> T:
        """Return what a test says when these have ended."""
        ended: list[Ask] = []
        try:
            for alloc in allocations:
                self.add(alloc)
                ended.append(alloc)
            return test()
        finally:
            for alloc in ended:
                self.remove(alloc)


class Verdicts:
    """The verdicts of nodes about one ask, each made once: for one search, while which nothing else changes."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[Node, NodeVerdict | None] = {}

    def of(self, node: Node) -> NodeVerdict | None:
        """Return the verdict of a node; None if amounts alone count."""
        if node not in self._known:
            self._known[node] = verdict_of(node, self._ask)
        return self._known[node]


def in_the_way(check: DomainCheck, alloc: Ask, node: Node) -> bool:
    """Return whether the check counts an allocation in the domain of a node, which it would shut for that."""
    if isinstance(check, ClaimCheck):
        return alloc.node is node and _holds_devices(check.of, alloc)
    pods = alloc.shape.need.pods
    return alloc.node is not None and check.is_about(pods) and check.same_domain(alloc.node, node)


def _holds_devices(count: DomainCount | None, alloc: Ask) -> bool:
    allocator = count.allocator() if isinstance(count, ClaimCount) else None
    return allocator is not None and allocator.holds(alloc.key)


def claims_devices(need: Need) -> bool:
    """Return whether asks with this need have claims of devices."""
    return need.pods is not None and need.pods.terms.claims is not None


def lift(topology: Topology, key: str, change: int) -> None:
    """Let the devices of an allocation be free in a trial (1), or end that (-1), which wakes nothing."""
    if isinstance(count := topology.counts.get(CLAIMS), ClaimCount):
        count.lift(key, change, topology.eased)


def passes_without(node: Node, ask: Ask, victims: list[Ask]) -> bool:
    """Will amounts alone count for the ask on the node when these, and evicted allocations, have ended?"""
    verdict = verdict_of(node, ask)
    return verdict is None or verdict.suffices_without(victims)


def verdict_of(node: Node, ask: Ask) -> NodeVerdict | None:
    """Return the verdict of a node, when all allocations there that were evicted have ended; None if amounts alone count for the ask."""
    need: Need = ask.shape.need
    if not need.judged:
        return None
    devices = None
    leaving: list[Ask] = []
    if need.ports or (need.demand is not None and node.devices is not None):
        leaving = [alloc for alloc in node.allocations if alloc.preempted]
    if need.demand is not None and node.devices is not None:
        devices = DeviceRoom(node.devices, need.demand, leaving)
    gone = [port for alloc in leaving for port in alloc.shape.need.ports]
    taken = {port: number - gone.count(port) for port, number in node.ports.items()} if need.ports else {}
    ports = {port: n for port, n in taken.items() if n and any(port.conflicts(mine) for mine in need.ports)}
    return NodeVerdict(node, need, devices, ports)
