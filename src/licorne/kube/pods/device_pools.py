"""The devices that drivers publish, as a node sees them, and which of them claims hold.

Of a pool only the slices of its highest generation count, and only when all of them are there: those of the node, or else those of
the whole pool. A pool that is not whole, or whose devices or counters are ambiguous, gives none (docs/spec/kube-scheduler.md, section 7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from licorne.config.kubernetes import QuantityError, parse_nano
from licorne.kube.objects.devices import AllocatedDevice, Device, ResourceSlice
from licorne.kube.objects.pods import NodeSelector

from .constraints import Terms, terms_of
from .device_selectors import SelectorError, is_met, variables
from .storage import ClaimKey, drop_from

PoolId = tuple[str, str]
"""The identity of a pool of devices: the names of its driver and of itself."""
DeviceId = tuple[str, str, str]
"""The identity of a device: the names of its driver, its pool and itself."""
Nodes = frozenset[str] | None
"""Names of nodes; None: all."""
NOWHERE: Final[Nodes] = frozenset()
REMEMBERED_MAX: Final = 64
"""Expressions whose answer is remembered for a device, at most."""


def nano(value: object) -> int:
    """Return a quantity in billionths; 0 if it cannot be read."""
    try:
        return parse_nano(str(value))
    except QuantityError:
        return 0


def both(one: Nodes, other: Nodes) -> Nodes:
    """Return the nodes of either."""
    return None if one is None or other is None else one | other


class OfferedDevice:
    """A device that a ResourceSlice publishes, and what it has said to selectors so far."""

    __slots__ = ("_met", "_variables", "device", "id", "slice")

    def __init__(self, device: Device, of: ResourceSlice) -> None:
        self.device = device
        self.slice = of
        self.id: DeviceId = (of.spec.driver, of.spec.pool.name, device.name)
        self._variables: dict[str, Any] | None = None
        self._met: dict[str, bool | str] = {}

    def meets(self, expression: str) -> bool:
        """Return whether the device meets a selector. Raises SelectorError as `is_met`."""
        known = self._met.get(expression)
        if known is None:
            if self._variables is None:
                self._variables = variables(self.device, self.id[0])
            try:
                known = is_met(expression, self._variables)
            except SelectorError as error:
                known = str(error)
            if len(self._met) >= REMEMBERED_MAX:
                self._met.clear()
            self._met[expression] = known
        if isinstance(known, str):
            raise SelectorError(known)
        return known

    def remembers(self, expression: str) -> bool:
        """Return whether it is known what the device says to a selector."""
        return expression in self._met

    def consumes(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the shared counters, by set and name, that the device takes when it is in use."""
        for one in self.device.consumes_counters or ():
            for name, counter in (one.counters or {}).items():
                yield (one.counter_set, name), nano(counter.get("value"))


class Slice:
    """A ResourceSlice with its devices."""

    __slots__ = ("devices", "object", "pool")

    def __init__(self, of: ResourceSlice) -> None:
        self.object = of
        self.pool: PoolId = (of.spec.driver, of.spec.pool.name)
        self.devices = tuple(OfferedDevice(one, of) for one in of.spec.devices or ())


class Pool(msgspec.Struct, frozen=True):
    """A pool as one node sees it: the devices for the node, and all `slices`; with `updating` it gives no device."""

    id: PoolId
    devices: tuple[OfferedDevice, ...] = ()
    slices: tuple[Slice, ...] = ()
    updating: bool = False

    def counters(self) -> dict[tuple[str, str], int]:
        """Return the shared counters, in billionths."""
        sets = [one for each in self.slices for one in each.object.spec.shared_counters or ()]
        return {
            (one.name, name): nano(value.get("value")) for one in sets for name, value in (one.counters or {}).items()
        }


class Pools:
    """The slices of a cluster. `where` returns the nodes for which terms hold."""

    def __init__(self, where: Callable[[Terms], Nodes]) -> None:
        self._where = where
        self._slices: dict[str, Slice] = {}
        self._of_pool: dict[PoolId, dict[str, Slice]] = {}
        self._of_node: dict[str, dict[str, Slice]] = {}
        self._shared: dict[str, Slice] = {}
        self._seen: dict[str, tuple[Pool, ...]] = {}

    def put(self, of: ResourceSlice) -> Nodes:
        """Take in a ResourceSlice that is new or has changed; return the nodes that see other devices now."""
        was = self._drop(of.metadata.name)
        made = Slice(of)
        self._slices[of.metadata.name] = made
        self._of_pool.setdefault(made.pool, {})[of.metadata.name] = made
        near = self._of_node.setdefault(of.spec.node_name, {}) if of.spec.node_name else self._shared
        near[of.metadata.name] = made
        return self._changed(both(was, self.nodes_of(made.pool)))

    def drop(self, name: str) -> Nodes:
        """Forget the ResourceSlice of a name; return the nodes that see other devices now."""
        return self._changed(self._drop(name))

    def _drop(self, name: str) -> Nodes:
        was = self._slices.pop(name, None)
        if was is None:
            return NOWHERE
        nodes = self.nodes_of(was.pool)
        node = was.object.spec.node_name
        drop_from(self._of_pool, was.pool, name)
        if node:
            drop_from(self._of_node, node, name)
        else:
            del self._shared[name]
        return nodes

    def _changed(self, nodes: Nodes) -> Nodes:
        if nodes is None:
            self._seen.clear()
        for node in nodes or ():
            self._seen.pop(node, None)
        return nodes

    def nodes_changed(self) -> None:
        """Forget what nodes see: nodes are new, or have other labels."""
        self._seen.clear()

    def nodes_of(self, pool: PoolId) -> Nodes:
        """Return the nodes that a pool is for."""
        names = {one.object.spec.node_name or "" for one in self._of_pool.get(pool, {}).values()}
        return None if "" in names else frozenset(names)

    def seen_by(self, node: str) -> tuple[Pool, ...]:
        """Return the pools with devices for a node, in the order in which they are looked through."""
        known = self._seen.get(node)
        if known is None:
            near = [one for one in self._shared.values() if self._is_for(one, node)]
            pools: dict[PoolId, list[Slice]] = {}
            for one in (*self._of_node.get(node, {}).values(), *near):
                pools.setdefault(one.pool, []).append(one)
            found = (self._pool(pool, slices, node) for pool, slices in sorted(pools.items()))
            known = self._seen[node] = tuple(one for one in found if one is not None)
        return known

    def _pool(self, pool: PoolId, near: list[Slice], node: str) -> Pool | None:
        """Return a pool as a node sees it; None if another node has it in a newer generation."""
        newest = max(one.object.spec.pool.generation for one in near)
        near = [one for one in near if one.object.spec.pool.generation == newest]
        wanted = near[0].object.spec.pool.resource_slice_count
        every = self._of_pool[pool].values()
        slices = [one for one in every if one.object.spec.pool.generation == newest]
        if len(near) != wanted:
            if any(one.object.spec.pool.generation > newest for one in every):
                return None
            if len(slices) != wanted:
                return Pool(pool, updating=True)
        else:
            slices = near
        slices.sort(key=lambda one: one.object.metadata.name)
        near.sort(key=lambda one: one.object.metadata.name)
        devices = tuple(one for each in near for one in each.devices if self._is_device_for(one, node))
        made = Pool(pool, devices, tuple(slices))
        return made if _is_valid(made) else Pool(pool, updating=True)

    def _is_for(self, one: Slice, node: str) -> bool:
        spec = one.object.spec
        if spec.per_device_node_selection:
            return any(self._is_device_for(device, node) for device in one.devices)
        return self._matches(node, spec.all_nodes, spec.node_selector)

    def _is_device_for(self, one: OfferedDevice, node: str) -> bool:
        if one.device.binding_conditions:
            return False
        if not one.slice.spec.per_device_node_selection:
            return True
        device = one.device
        if device.node_name:
            return device.node_name == node
        return self._matches(node, device.all_nodes, device.node_selector)

    def _matches(self, node: str, every: bool | None, selector: NodeSelector | None) -> bool:
        if every or selector is None:
            return bool(every)
        nodes = self._where(terms_of(selector))
        return nodes is None or node in nodes


def _is_valid(pool: Pool) -> bool:
    """Return whether each device has a name of its own, and only counters that there are."""
    devices = [one for each in pool.slices for one in each.devices]
    counters = pool.counters()
    known = all(key in counters for one in devices for key, _ in one.consumes())
    return known and len({one.id for one in devices}) == len(devices)


class Held:
    """Which devices claims hold: as a whole, or of those that several may share so much of their capacity."""

    def __init__(self) -> None:
        self._by_claim: dict[ClaimKey, tuple[AllocatedDevice, ...]] = {}
        self.whole: Counter[DeviceId] = Counter()
        self.shares: Counter[DeviceId] = Counter()
        self.capacity: dict[DeviceId, Counter[str]] = {}

    def of(self, claim: ClaimKey) -> tuple[AllocatedDevice, ...]:
        """Return the devices that a claim holds."""
        return self._by_claim.get(claim, ())

    def put(self, claim: ClaimKey, devices: Iterable[AllocatedDevice]) -> None:
        """Note what a claim holds from now on."""
        self._count(self._by_claim.pop(claim, ()), -1)
        if held := tuple(devices):
            self._by_claim[claim] = held
            self._count(held, 1)

    def _count(self, devices: Iterable[AllocatedDevice], change: int) -> None:
        for one in devices:
            key = (one.driver, one.pool, one.device)
            if one.admin_access:
                continue
            kind = self.whole if one.share_id is None else self.shares
            kind[key] += change
            if not kind[key]:
                del kind[key]
            for name, amount in (one.consumed_capacity or {}).items():
                self.capacity.setdefault(key, Counter())[name] += change * nano(amount)
            if key in self.capacity and not self.shares[key]:
                del self.capacity[key]
