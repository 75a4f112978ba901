"""Changes with which it is certain that an ask is not placed, so that no trial is needed.

This holds where nothing but a message gives room back (`licorne.answers.trials.is_steady`), and for changes that give none
back either: what runs then goes on running, and other asks only take more. So a quota or limit that lacks an amount now has to
be raised by at least that, and a node has to have room for the ask already, or to be new. Nothing is said of the
constraints of nodes, nor of what others take: that is for the trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from licorne.answers.changes import (
    BiggerNode,
    Change,
    LessAsked,
    LimitMax,
    MaxApplications,
    MoreNodes,
    NoTaint,
    OtherQueue,
    OwnNode,
    Priority,
    QueueMax,
    Schedulable,
    Tolerates,
    Unconstrained,
)
from licorne.core.inspection import explain

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.ask import Ask

_GIVES_NOTHING_BACK: Final = (
    QueueMax,
    LimitMax,
    MaxApplications,
    MoreNodes,
    OwnNode,
    BiggerNode,
    NoTaint,
    Schedulable,
    LessAsked,
    Tolerates,
    Unconstrained,
    Priority,
    OtherQueue,
)
Amounts = tuple[int, ...]


class Refuted:
    """The changes that are too little for one ask, which waits for `reasons`."""

    def __init__(self, partition: Partition, ask: Ask, reasons: Sequence[explain.Reason]) -> None:
        self._nodes = partition.nodes
        self._lacking = [each for each in reasons if isinstance(each, explain.QueueQuota | explain.UserLimit)]
        wanted = [(d, amount) for d, amount in enumerate(ask.shape.amounts.values()) if amount > 0]
        self._at = [d for d, _ in wanted]
        self._names = [partition.types.names[d] for d in self._at]
        self._wanted = [amount for _, amount in wanted]
        self._types = partition.types
        self._room = _largest({tuple(node.free.at(d) for d in self._at) for node in partition.nodes.values()})
        """The room of the nodes, without those that have no more of any type than another one."""

    def covers(self, changes: Sequence[Change]) -> bool:
        """Return whether the ask is certainly not placed with these changes."""
        if not all(isinstance(change, _GIVES_NOTHING_BACK) for change in changes):
            return False
        return self._lacks_quota(changes) or self._lacks_room(changes)

    def _lacks_quota(self, changes: Sequence[Change]) -> bool:
        if any(isinstance(change, OtherQueue) for change in changes):
            return False  # there it has others
        less = _less(changes)
        for reason in self._lacking:
            raised: dict[str, int] = {}
            for change in changes:
                if _is_about(change, reason):
                    assert isinstance(change, QueueMax | LimitMax)
                    raised = {name: raised.get(name, 0) + more for name, more in change.more.items()}
            if any(raised.get(name, 0) + less.get(name, 0) < amount for name, amount in reason.missing.items()):
                return True
        return False

    def _lacks_room(self, changes: Sequence[Change]) -> bool:
        less = _less(changes)
        wanted = tuple(amount - less.get(name, 0) for name, amount in zip(self._names, self._wanted, strict=True))
        bigger = {change.node: change.more for change in changes if isinstance(change, BiggerNode)}
        rooms = [*self._room, *(room for change in changes if (room := self._room_of(change, bigger)) is not None)]
        return not any(_is_enough(room, wanted) for room in rooms)

    def _room_of(self, change: Change, bigger: Mapping[str, Mapping[str, int]]) -> Amounts | None:
        """Return the room of a node that a change makes larger, or adds; None for other changes.

        `bigger`: what nodes get; a new one that is like one of these has it too.
        """
        match change:
            case BiggerNode():
                node = self._nodes[change.node]
                return self._with([node.free.at(d) for d in self._at], change.more)
            case MoreNodes() | OwnNode() if change.like:
                node = self._nodes[change.like]
                empty = [node.capacity.at(d) - node.occupied.at(d) for d in self._at]
                return self._with(empty, bigger.get(change.like, {}))
            case MoreNodes() | OwnNode():
                return self._with([0] * len(self._at), change.capacity)
        return None

    def _with(self, room: Sequence[int], more: Mapping[str, int]) -> Amounts:
        return tuple(amount + more.get(name, 0) for amount, name in zip(room, self._names, strict=True))


def _largest(rooms: set[Amounts]) -> list[Amounts]:
    found: list[Amounts] = []
    for room in sorted(rooms, key=lambda room: (sum(room), room), reverse=True):  # none is covered by one behind it
        if not any(_is_enough(other, room) for other in found):
            found.append(room)
    return found


def _is_enough(room: Amounts, wanted: Amounts) -> bool:
    return all(left >= amount for left, amount in zip(room, wanted, strict=True))


def _less(changes: Sequence[Change]) -> dict[str, int]:
    return next((change.less for change in changes if isinstance(change, LessAsked)), {})


def _is_about(change: Change, reason: explain.QueueQuota | explain.UserLimit) -> bool:
    match change, reason:
        case QueueMax(), explain.QueueQuota():
            return change.queue == reason.queue
        case LimitMax(), explain.UserLimit():
            named = change.wildcard or change.name == reason.name  # that of `*` may be the limit of several
            return named and (change.kind, change.queue) == (reason.kind, reason.queue)
    return False


__all__ = ["Refuted"]
