"""The numbers of resource types: a type with a number has an index of its own in every vector of a partition.

A type is only a name, and the sender of an ask, of a foreign allocation, or of a tag may invent one. Each number makes
vectors longer, so there are bounds; and the messages of one tenant must neither use up the numbers that others need
nor cause anything of others to be refused. Each partition has its own numbers, within these bounds:

| source of the type | most numbers | beyond that |
|---|---|---|
| nodes: capacity, and what is occupied from the start | `NODE_TYPES_MAX` | the node, or its change, is refused |
| the configuration: quotas, limits, weights | `NODE_TYPES_MAX` (`licorne.config`) | the configuration is refused |
| asks, allocations and placeholders | `ASKED_MAX`, of them `OWN_MAX` of one application | the types share one number |
| foreign allocations | `OWN_MAX`, as if they were one application | the type is not counted, see below |
| quotas in tags | none | the type is not counted, see below |

A type that is not counted is counted as soon as a node or the configuration brings it.

**The shared number.** No node has any amount of it, so an ask for it waits, as an ask for a type that no node has
would wait anyway; it is shown as an amount of `OTHER_TYPES`. When a node or the configuration brings a type that is
counted under the shared number, or that foreign allocations and quotas name, everything that names the type is counted
anew with its own number (`_reread`). That is not done when a type gets a number for an ask: earlier asks for it stay
under the shared number as long as no node has any of the type. So a tenant that invents a thousand names takes 16
numbers, and costs others nothing else.

**Freed numbers.** A number that nothing uses may be given to another type. Numbers in use are found by a sweep over
nodes, queues, users and applications, and not by counts at each ask: the sums of the root queue, which are exact, show
whether any ask or allocation uses a type. There is a sweep when the list of numbers would become longer than `_room`,
which is doubled if the sweep finds less than half of it free, so that many new types share the cost of a sweep; and
when the numbers of asks are used up, then at most once a minute. A type that only pending asks use, and that came with
a node before, becomes a type of asks, or moves to the shared number if there are too many of these; so asks cannot
keep numbers that nodes need.

A freed number reads 0 in every sum (`validate`). Bounds and minima that exist for speed (`Minima`, `Application.high`,
the node index) may still hold an amount there, as they may for asks that have gone. A larger value than the exact one
makes a search look once in vain, and has no other effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from licorne.config.model import PartitionConfig, resource_types
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import MINUTE_NS
from licorne.core.constants import SUM_MAX, UNLIMITED

from . import intake, node_changes

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application

NODE_TYPES_MAX = 1024
"""Most resource types that the nodes of a partition may have."""
ASKED_MAX = 64
"""Most types with a number that only asks name: neither a node nor the configuration does."""
OWN_MAX = 16
"""Most types that only asks name and that one application has brought."""
SWEEP_NS = MINUTE_NS
"""Least time (ns) between two sweeps that are made because the numbers of asks are used up."""
EVERYWHERE = ("memory", "vcore")
"""Types that have a number from the beginning."""
ROOM = 64
"""First value of `Numbering._room`: with a shorter list of numbers there is no sweep."""

Amounts = dict[str, int]


class Numbering:
    """The numbers of one partition's resource types.

    `asked`: the types that only asks use, with the id of the application that brought each. `sweeps` counts sweeps.
    """

    def __init__(self, partition: Partition, types: Types) -> None:
        self._partition: Partition = partition
        self.types: Types = types
        self.asked: dict[str, str] = {}
        self.configured: dict[str, None] = {}
        self.sweeps: int = 0
        self._held: dict[int, int] = {}  # how many nodes have a type, by its number
        self._own: dict[str, int] = {}  # how many of `asked` an application has brought
        self._room: int = ROOM
        for name in EVERYWHERE:
            types.slot(name)
        self._swept_ns: int = -SWEEP_NS

    # -- the configuration and nodes ---------------------------------------------------------------------

    def configure(self, config: PartitionConfig) -> None:
        """Give numbers to the types that the configuration names; those of the old configuration may be freed."""
        self.configured = dict.fromkeys(resource_types(config))
        self._register(self.configured)

    def node_fault(self, capacity: Amounts | None, occupied: Amounts | None) -> str:
        """Return why a node cannot have these types; empty if it can."""
        new = {
            n for amounts in (capacity, occupied) if amounts for n, x in amounts.items() if x and not self._on_nodes(n)
        }
        if len(self._held) + len(new) > NODE_TYPES_MAX:
            return f"no more than {NODE_TYPES_MAX} resource types can be on the nodes of a partition"
        return ""

    def _on_nodes(self, name: str) -> bool:
        return self.types.index.get(name) in self._held

    def register_node_types(self, capacity: Amounts | None, occupied: Amounts | None) -> None:
        """Give numbers to the types of a node that `node_fault` has accepted; `count_node` must follow."""
        self._register({n: None for amounts in (capacity, occupied) if amounts for n, x in amounts.items() if x})

    def count_node(self, node: Node, change: int) -> None:
        """Count the types of a node that is added (`change` 1) or removed (-1)."""
        for amounts in (node.capacity, node.base_occupied):
            for d in range(amounts.n):
                if amounts.at(d):
                    count = self._held.get(d, 0) + change
                    if count:
                        self._held[d] = count
                    else:
                        del self._held[d]

    def _register(self, names: dict[str, None]) -> None:
        """Give numbers to types of nodes or of the configuration, and count anew what names them."""
        more = sum(name not in self.types.index for name in names)
        if more:
            self._make_room(more)  # first, for a sweep may make types of asks of these names, too
        again = {name: None for name in names if name in self.asked}  # earlier asks may count under the shared number
        for name in again:
            self._no_longer_asked(name)
        for name in names:
            if name not in self.types.index:
                self.types.slot(name)
                again[name] = None
        if again:
            self._reread(again)

    # -- asks --------------------------------------------------------------------------------------------

    def of_ask(self, amounts: Amounts, app_id: str) -> Vec:
        """Return the vector of an ask's amounts; a type without a number gets one, or the shared number."""
        self.number(amounts, app_id)
        return self.types.amounts(amounts)

    def number(self, amounts: Amounts, app_id: str) -> None:
        """Give numbers to types that an application asks for, within its bound; `app_id` "": foreign allocations."""
        types = self.types
        named = [name for name, amount in amounts.items() if amount]
        if types.index.keys() >= set(named):
            return
        if len(self.asked) >= ASKED_MAX and self._partition.now - self._swept_ns >= SWEEP_NS:
            self._sweep()
        self._make_room(min(len(named), OWN_MAX))
        for name in named:
            own = self._own.get(app_id, 0)
            if own >= OWN_MAX or len(self.asked) >= ASKED_MAX:
                break
            if name not in types.index:
                types.slot(name)
                self.asked[name] = app_id
                self._own[app_id] = own + 1

    def _no_longer_asked(self, name: str) -> None:
        app_id = self.asked.pop(name, None)
        if app_id is not None:
            self._own[app_id] -= 1
            if not self._own[app_id]:
                del self._own[app_id]

    # -- amounts that were counted without a number --------------------------------------------------------

    def _reread(self, names: dict[str, None]) -> None:
        """Count everything anew that names these types, whose numbers have changed or are lost."""
        partition = self._partition
        other = self.types.other
        for key, foreign in list(partition.foreign.items()):
            if foreign.unread and not names.keys().isdisjoint(foreign.unread):
                node_changes.read_again(partition, key)
        for queue in partition.tree.queues():
            if not names.keys().isdisjoint({**(queue.max_config or {}), **(queue.guaranteed_config or {})}):
                queue.set_resources(queue.max_config, queue.guaranteed_config)
                partition.tree.stale = True
        if other >= 0:
            for app in list(partition.applications.values()):
                intake.read_again(partition, app, names)

    # -- numbers that nothing uses -----------------------------------------------------------------------

    def _make_room(self, more: int) -> None:
        """Sweep if `more` new types would make the list of numbers longer than `_room`."""
        types = self.types
        if more > len(types.free) and len(types.names) + more - len(types.free) > self._room:
            self._sweep()
            while len(types.names) + more - len(types.free) > self._room // 2:
                self._room *= 2

    def _sweep(self) -> None:
        """Free the numbers that nothing uses."""
        partition, types = self._partition, self.types
        self.sweeps += 1
        self._swept_ns = partition.now
        used = self._used()
        pending = _nonzero(partition.tree.root.pending)
        for name in [name for name in self.asked if types.index[name] not in used | pending]:
            self._no_longer_asked(name)
        # A type that only pending asks use becomes a type of asks, or moves to the shared number.
        over: dict[str, None] = {}
        for d in sorted(pending - used - {types.other}):
            name = types.names[d]
            if name not in self.asked:
                if len(self.asked) < ASKED_MAX:
                    self.asked[name] = ""
                    self._own[""] = self._own.get("", 0) + 1
                else:
                    over[name] = None
        unused = [name for name, d in types.index.items() if d not in used and (d not in pending or name in over)]
        numbers = [types.forget(name) for name in unused]
        if over:
            types.shared()
            self._reread(over)
        for app in partition.applications.values():
            app.last_shape = None  # or the next ask, for the type that gets a freed number, could be taken for equal
        types.set_free(numbers)

    def _used(self) -> set[int]:
        """Return the numbers of the types that are used by anything but pending asks.

        The set is only tested for membership, so its order has no influence on decisions.
        """
        partition, index = self._partition, self.types.index
        used = (
            {index[name] for name in self.configured if name in index}
            | self._held.keys()
            | {index[name] for name in EVERYWHERE}
        )
        used.add(self.types.other)
        used |= _nonzero(partition.tree.root.allocated)
        for node in partition.nodes.values():
            used |= _nonzero(node.occupied)
        for queue in partition.tree.queues():
            used |= {d for d, amount in enumerate(queue.limit.values()) if amount != UNLIMITED}
            used |= {d for d, amount in enumerate(queue.guaranteed.values()) if amount >= 0}
        for app in partition.applications.values():
            for amounts in _in_flight(app):
                used |= _nonzero(amounts)
        return used

    # -- the check of invariants -------------------------------------------------------------------------

    def validate(self) -> None:
        """Check that numbers and names agree, and that every vector has the amounts of its map.

        Raises:
            AssertionError: the first contradiction found.
        """
        partition, types = self._partition, self.types
        for name, d in types.index.items():
            assert types.names[d] == name, f"number {d} of type {name}"
        free = set(types.free)
        assert len(free) + len(types.index) + (types.other >= 0) == len(types.names), "numbers that were lost"
        root = partition.tree.root
        for d in sorted(free):
            for total in (root.pending, root.allocated, root.preempting, partition.total):
                assert total.exact(d) == 0, f"number {d} is free, but a sum holds {total.exact(d)}"
            for node in partition.nodes.values():
                for total in (node.free, node.occupied, node.allocated):
                    assert total.exact(d) == 0, f"number {d} is free, but node {node.id} holds {total.exact(d)}"
        held: dict[int, int] = {}
        for node in partition.nodes.values():
            for vec in (node.capacity, node.base_occupied):
                for d in _nonzero(vec):
                    held[d] = held.get(d, 0) + 1
        assert held == self._held, "types of nodes"
        assert len(self._held) <= NODE_TYPES_MAX and len(self.asked) <= ASKED_MAX, "bounds of types"
        own: dict[str, int] = {}
        for name, app_id in self.asked.items():
            assert name in types.index and types.index[name] not in self._held and name not in self.configured, name
            own[app_id] = own.get(app_id, 0) + 1
        assert own == self._own and all(n <= OWN_MAX for app_id, n in own.items() if app_id), "types of applications"
        for app in partition.applications.values():
            for ask in (*app.asks.values(), *app.allocations.values()):
                said, counted = types.amounts(ask.shape.resource), ask.shape.amounts
                assert said.same(counted) or self._folded(said) == self._folded(counted), f"amounts of {ask.key}"

    def _folded(self, amounts: Vec) -> dict[int, int]:
        """Return the amounts by number, with all types that only asks name added up under -1.

        An older ask may count some of these under the shared number, so only their sum can be compared.
        """
        found: dict[int, int] = {}
        folded = {self.types.index[name] for name in self.asked} | {self.types.other}
        for d, amount in enumerate(amounts.values()):
            at = -1 if d in folded else d
            found[at] = min(SUM_MAX, found.get(at, 0) + amount)
        return {d: amount for d, amount in found.items() if amount}


def _nonzero(amounts: Vec) -> set[int]:
    return {d for d, amount in enumerate(amounts.values()) if amount}


def _in_flight(app: Application) -> Iterator[Vec]:
    """Yield the amounts of an application that neither the pending nor the allocated sums contain."""
    yield app.placeholder_ask
    if app.gang is not None:
        yield app.gang.gained
        for real in app.gang.replacing.values():
            yield real.shape.amounts
