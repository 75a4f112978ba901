"""Checks guarantees and maxima of queues against each other, root first (docs/spec/config.md, sections 4 and 5.4).

A type that one side does not name is never compared: a missing maximum is no limit, and a missing guarantee
guarantees nothing. A queue without a maximum of its own has its parent's, so maxima also bind below queues that name
none. Sums saturate at 2**63 - 1, as in the original.
"""

from __future__ import annotations

from typing import Final

from licorne.config.problems import Notes, Spot
from licorne.config.quantity import MAX_QUANTITY, QueueQuantityError, parse_queue_quantity, spoken
from licorne.config.raw import RawQueue, ResourceMap

Amounts = dict[str, int]

TYPES_MAX: Final = 1024
"""The most resource types that a configuration may name: each makes the core's vectors longer."""


class Quantities:
    """The amounts of resource maps. Each map is parsed once, so that an invalid quantity is noted at its first use."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._types: dict[str, None] = {}
        self._known: dict[int, tuple[ResourceMap, Amounts]] = {}

    def of(self, resources: ResourceMap | None) -> Amounts:
        """Return the amounts of a map, without the types whose quantity is faulty."""
        if not resources:
            return {}
        known = self._known.get(id(resources))
        if known is None:
            known = self._known[id(resources)] = (resources, self._parse(resources))
        return known[1]

    def meet(self, resource_type: str, spot: Spot) -> None:
        """Count a resource type that the configuration names at `spot`; one type too many is a fault."""
        self._types[resource_type] = None
        if len(self._types) == TYPES_MAX + 1:
            self._notes.fault("resource-types", spot, f"this is one more than the {TYPES_MAX} resource types allowed")

    def _parse(self, resources: ResourceMap) -> Amounts:
        amounts: Amounts = {}
        for resource_type, value in resources.items():
            self.meet(resource_type, value.spot)
            try:
                amounts[resource_type] = parse_queue_quantity(value.text, resource_type)
            except QueueQuantityError as error:
                self._notes.fault(error.rule, value.spot, str(error))
        return amounts

    def guaranteed(self, queue: RawQueue) -> Amounts:
        """Return the guarantee of a queue itself."""
        return self.of(queue.resources.guaranteed) if queue.resources else {}

    def maximum(self, queue: RawQueue) -> Amounts:
        """Return the maximum of a queue itself."""
        return self.of(queue.resources.max) if queue.resources else {}


def stored(amounts: Amounts) -> Amounts | None:
    """Return the amounts that a queue keeps: None unless one is above zero (docs/spec/config.md, section 4.1)."""
    return dict(amounts) if any(amount > 0 for amount in amounts.values()) else None


def beyond(larger: Amounts, smaller: Amounts) -> str:
    """Describe all types in which `smaller` is above `larger`, by name, of those that both name; '' if none."""
    above = [name for name in sorted(smaller) if name in larger and smaller[name] > larger[name]]
    return ", ".join(f"{name} {spoken(name, smaller[name])} > {spoken(name, larger[name])}" for name in above)


def tighter(one: Amounts, other: Amounts) -> Amounts:
    """Return for each type the lower amount; a type that only one side names keeps its amount."""
    merged = dict(one)
    for resource_type, amount in other.items():
        merged[resource_type] = min(amount, merged.get(resource_type, amount))
    return merged


def check_resources(root: RawQueue, quantities: Quantities, notes: Notes) -> None:
    """Check guarantees and maxima in the whole tree. Root has none of its own: `check_partition` refuses them."""
    _check_queue(root, None, quantities, notes)


def _check_queue(queue: RawQueue, parent_max: Amounts | None, quantities: Quantities, notes: Notes) -> Amounts:
    """Check a queue and all below it; return the amounts that its parent's guarantee must cover."""
    if parent_max is None:  # root, where resources are a fault of their own
        guaranteed: Amounts = {}
        maximum: Amounts = {}
    else:
        guaranteed, maximum = quantities.guaranteed(queue), quantities.maximum(queue)
        _check_own(queue, guaranteed, maximum, parent_max, notes)
        maximum = tighter(maximum, parent_max)
    total: Amounts = {}
    for child in queue.queues or ():
        for resource_type, amount in _check_queue(child, maximum, quantities, notes).items():
            total[resource_type] = min(MAX_QUANTITY, total.get(resource_type, 0) + amount)
    _check_sum(queue, guaranteed, maximum, total, notes)
    return guaranteed if any(guaranteed.values()) else total


def _check_own(queue: RawQueue, guaranteed: Amounts, maximum: Amounts, parent_max: Amounts, notes: Notes) -> None:
    over = beyond(maximum, guaranteed)
    if over:
        message = f"queue '{queue.name}' is guaranteed more than its max: {over}"
        notes.fault("guaranteed-above-max", _spot(queue, "guaranteed"), message)
    over = beyond(parent_max, maximum)
    if over:
        message = f"the max of queue '{queue.name}' is above an ancestor's: {over}"
        notes.fault("max-above-parent", _spot(queue, "max"), message)


def _check_sum(queue: RawQueue, guaranteed: Amounts, maximum: Amounts, total: Amounts, notes: Notes) -> None:
    over = beyond(guaranteed, total)
    if over:
        message = f"the children of queue '{queue.name}' are guaranteed more than it is itself: {over}"
        notes.fault("guaranteed-sum-above-parent", _spot(queue, "guaranteed"), message)
    over = beyond(maximum, total)
    if over:
        message = f"the children of queue '{queue.name}' are guaranteed more than its max, or an ancestor's: {over}"
        notes.fault("guaranteed-sum-above-max", _spot(queue, "max"), message)
    lost = sorted(total.keys() - guaranteed.keys()) if any(guaranteed.values()) else []
    if lost:
        message = (
            f"the children of queue '{queue.name}' are guaranteed {', '.join(lost)}, of which its own guarantee says "
            "nothing: no ancestor's guarantee or max is compared with that sum"
        )
        notes.warn("guaranteed-sum-lost", _spot(queue, "guaranteed"), message)


def _spot(queue: RawQueue, key: str) -> Spot:
    return queue.spot() if queue.resources is None else queue.resources.spot(key)
