"""What happens because time has come: one row for each kind of deadline (design: a deadline is an event like any other).

Who sets a deadline names its kind and its subject (`Timers.add`); what is done then stands here. A subject may have
ended by then: a row whose rule asks for more than that it is due looks first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from licorne.core.gangs import timeout

if TYPE_CHECKING:
    from licorne.core.gangs.backfill import Hold
    from licorne.core.partition import Partition
    from licorne.core.preemption.watches import LeafRetry
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask


def due(partition: Partition, kind: str, subject: object) -> None:
    """Do what a deadline of this kind was set for."""
    partition.generation += 1
    if kind not in UNSEEN:
        partition.dirty = True
    ACTIONS[kind](partition, subject)


def _clean(partition: Partition, _: Partition) -> None:
    partition.cleaner.run()


def _state(partition: Partition, app: Application) -> None:
    partition.lifecycle.timer_due(app)


def _running(partition: Partition, app: Application) -> None:
    partition.lifecycle.running_time_over(app)


def _backoff(partition: Partition, app: Application) -> None:
    app.backoff_timer = None
    partition.parking.wake(app)


def _aged(partition: Partition, ask: Ask) -> None:
    partition.parking.aged(ask)


def _reservation(partition: Partition, ask: Ask) -> None:
    partition.reservations.too_old(ask)


def _preemption(partition: Partition, watch: LeafRetry) -> None:
    partition.guaranteed.due(watch)


def _placeholder(partition: Partition, app: Application) -> None:
    timeout.time_over(partition, app)


def _timeout(partition: Partition, alloc: Ask) -> None:
    alloc.deadline = None
    if alloc.node is not None and alloc in alloc.node.allocations:
        partition.lifecycle.time_out(alloc)


def _quota(partition: Partition, _: object) -> None:
    partition.quotas.due()


def _hold(partition: Partition, hold: Hold) -> None:
    partition.atomic.backfill.due(hold)


ACTIONS: Mapping[str, Callable[[Partition, Any], None]] = {
    "clean": _clean,  # dynamic and draining queues that are empty go
    "state": _state,  # it has lasted its time
    "running": _running,  # the execution timeout of an application
    "backoff": _backoff,  # is over
    "aged": _aged,  # an ask may reserve a node
    "reservation": _reservation,  # is too old
    "preemption": _preemption,  # an ask below the guarantee of its queue is old enough, or may try again
    "quota": _quota,  # a queue that uses more than its lowered max gives it back
    "placeholder": _placeholder,  # the placeholders of an application have waited for their time
    "hold": _hold,  # of nodes for a gang is too old, or the gang may hold some again
    "timeout": _timeout,  # the execution timeout of an allocation
}

UNSEEN = frozenset({"aged", "preemption"})
"""These say when to try again, and show in nothing else."""
