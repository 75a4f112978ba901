"""Records that are kept from events alone, and must agree with the state: an object that was added and not removed exists.

Each allocation has one event that adds it, and one that removes it when it is gone; the same holds of asks, of nodes,
queues, reservations, and of applications in their queues. Usage of users and groups is the sum of the events about it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from licorne.core.events.runs import Record, expand
from licorne.si.events import Event
from licorne.si.v19 import ChangeDetail, ChangeType, EventType

_ENDS = (
    ChangeDetail.ALLOC_CANCEL,
    ChangeDetail.ALLOC_PREEMPT,
    ChangeDetail.ALLOC_TIMEOUT,
    ChangeDetail.ALLOC_REPLACED,
    ChangeDetail.ALLOC_NODEREMOVED,
)
_KINDS: dict[tuple[EventType, ChangeDetail], str] = {
    (EventType.NODE, ChangeDetail.NODE_ALLOC): "on node",
    (EventType.NODE, ChangeDetail.NODE_RESERVATION): "reserved",
    (EventType.NODE, ChangeDetail.DETAILS_NONE): "node",
    (EventType.NODE, ChangeDetail.NODE_DECOMISSION): "node",
    (EventType.QUEUE, ChangeDetail.DETAILS_NONE): "queue",
    (EventType.QUEUE, ChangeDetail.QUEUE_DYNAMIC): "queue",
    (EventType.QUEUE, ChangeDetail.QUEUE_APP): "in queue",
    (EventType.APP, ChangeDetail.APP_ALLOC): "allocation",
    **{(EventType.APP, detail): "allocation" for detail in _ENDS},
}
_USAGE = (ChangeDetail.UG_USER_RESOURCE, ChangeDetail.UG_GROUP_RESOURCE)
Balance = Counter[tuple[str, ...]]


class EventBalances:
    """The objects that exist according to one scheduler's events, by resource manager."""

    def __init__(self) -> None:
        self.balances: dict[str, Balance] = {}
        self.events = 0

    def record(self, rm_id: str, happened: Record) -> None:
        """The recorder of a cluster."""
        made = list(expand([happened]))
        assert len(made) == happened.count, f"{happened} says that it stands for {happened.count} events"
        for event in made:
            self._enter(self.balances.setdefault(rm_id, Counter()), event)
        self.events += len(made)

    def forget(self, rm_id: str) -> None:
        """Forget all objects of a resource manager that registers."""
        self.balances.pop(rm_id, None)

    def _enter(self, balance: Balance, event: Event) -> None:
        sign = {ChangeType.ADD: 1, ChangeType.REMOVE: -1}.get(event.change, 0)
        if event.detail in _USAGE:
            for name, amount in (event.resource or {}).items():
                balance[event.detail.name, event.object_id, event.reference_id, name] += sign * amount
            return
        if event.detail is ChangeDetail.UG_APP_LINK:
            sign = 1 if event.change is ChangeType.SET else -1
            balance["group", event.object_id, event.reference_id] += sign
            return
        kind = _KINDS.get((event.type, event.detail))
        if kind is not None:
            # A real ask that takes its placeholder's place on the node takes it over without an event of the node.
            thing = (kind, event.object_id, "" if kind == "on node" else event.reference_id)
            balance[thing] += sign
            assert balance[thing] >= 0, f"{event} removes what no event has added"

    def check(self, rm_id: str, partitions: list[Any]) -> None:
        """Check that the objects of the events exist, and no others."""
        state: Balance = Counter()
        for partition in partitions:
            _count(partition, state)
        said = +self.balances.get(rm_id, Counter())
        assert said == +state, f"events say {said - state} too much, and {state - said} too little"
        assert all(amount >= 0 for amount in self.balances.get(rm_id, Counter()).values())


def _count(partition: Any, state: Balance) -> None:
    for queue in partition.tree.queues():
        state["queue", queue.path, ""] += 1
    for node in partition.nodes.values():
        state["node", node.id, ""] += 1
        state["on node", node.id, ""] += len(node.foreign)
        state.update(("reserved", node.id, ask.key) for ask in node.reservations)
    for app in partition.applications.values():
        state["in queue", app.queue.path, app.id] += 1
        if app.group is not None:
            state["group", app.group, app.id] += 1
        for alloc in app.allocations.values():
            state["allocation", app.id, alloc.key] += 1
            state["on node", alloc.node.id, ""] += 1
            for name, amount in alloc.shape.resource.items():
                state["UG_USER_RESOURCE", app.user, app.queue.path, name] += amount
                if app.group is not None:
                    state["UG_GROUP_RESOURCE", app.group, app.queue.path, name] += amount
