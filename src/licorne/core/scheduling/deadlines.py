"""What is done when a timer is due: one row for each kind of deadline.

The code that sets a deadline names its kind and its subject (`Timers.add`), and the table here says which function then
handles it. The subject may have ended when the deadline comes, so a handler whose rule needs more than that the time
has come checks its subject first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from licorne.core.gangs import timeout
from licorne.core.preemption import evictions

if TYPE_CHECKING:
    from licorne.core.gangs.backfill import Hold
    from licorne.core.partition import Partition
    from licorne.core.preemption.retries import LeafRetry
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask


def due(partition: Partition, kind: str, subject: object) -> None:
    """Handle a deadline of this kind for its subject."""
    if kind in UNSEEN:
        partition.generation += 1
    else:
        partition.changed()
    ACTIONS[kind](partition, subject)


def _clean(partition: Partition, _: Partition) -> None:
    partition.cleaner.run()


def _state(partition: Partition, app: Application) -> None:
    partition.lifecycle.timer_due(app)


def _running(partition: Partition, app: Application) -> None:
    partition.lifecycle.running_time_over(app)


def _backoff(partition: Partition, app: Application) -> None:
    app.backoff_timer = None
    partition.wakeups.backoff_over(app)


def _aged(partition: Partition, ask: Ask) -> None:
    partition.wakeups.aged(ask)


def _reservation(partition: Partition, ask: Ask) -> None:
    partition.reservations.too_old(ask)


def _preemption(partition: Partition, watch: LeafRetry) -> None:
    partition.guarantee_preemption.due(watch)


def _placeholder(partition: Partition, app: Application) -> None:
    timeout.time_over(partition, app)


def _timeout(partition: Partition, alloc: Ask) -> None:
    alloc.deadline = None
    if alloc.node is not None and alloc in alloc.node.allocations:
        partition.lifecycle.time_out(alloc)


def _eviction(partition: Partition, victim: Ask) -> None:
    evictions.overdue(partition, victim)


def _quota(partition: Partition, _: object) -> None:
    partition.quotas.due()


def _hold(partition: Partition, hold: Hold) -> None:
    partition.atomic.backfill.due(hold)


ACTIONS: Mapping[str, Callable[[Partition, Any], None]] = {
    "clean": _clean,  # empty dynamic and draining queues are removed
    "state": _state,  # an application has been in a state for as long as it may
    "running": _running,  # execution timeout of an application
    "backoff": _backoff,  # the back-off of an application is over
    "aged": _aged,  # an ask is old enough to reserve a node
    "reservation": _reservation,  # a reservation is too old
    "preemption": _preemption,  # an ask below its queue's guarantee is old enough to preempt, or may retry
    "eviction": _eviction,  # a victim has not ended, long after its grace period
    "quota": _quota,  # a queue that uses more than its lowered max must give the excess back
    "placeholder": _placeholder,  # timeout of an application's placeholders
    "hold": _hold,  # a gang has held nodes for too long, or may hold some again
    "timeout": _timeout,  # execution timeout of an allocation
}

UNSEEN = frozenset({"aged", "preemption"})
"""Kinds that only say when to try again: nothing that an observer sees changes, so the partition is not made dirty."""
