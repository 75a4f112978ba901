"""Asks that wait for room on nodes and for nothing else: the hint for autoscaling.

Source: docs/spec/scheduling.md, section 13.
An autoscaler should add nodes only for asks that would run on them. So asks are walked in the order of decisions, and
each is counted against its quotas and limits as if it had been placed; one that would exceed them is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import SECOND_NS
from licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
from licorne.core.queues.bounds import Bound, queue_bounds, user_bounds

if TYPE_CHECKING:
    from licorne.core.contents import PartitionContents
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue
    from licorne.core.queues.usage import Tracker

INTERVAL_NS = SECOND_NS
"""How often pending asks are inspected (ns)."""


def outstanding_asks(partition: PartitionContents) -> Iterator[tuple[Application, Ask]]:
    """Yield the asks that were tried and fit their quotas together with the asks before them.

    The max of the root queue, which is the size of the cluster, does not count: the cluster may grow.
    """
    used: dict[Queue | Tracker, Vec] = {}
    yield from _walk(partition, partition.tree.root, used)


def _walk(
    partition: PartitionContents, queue: Queue, used: dict[Queue | Tracker, Vec]
) -> Iterator[tuple[Application, Ask]]:
    if not queue.is_leaf:
        for child in queue.in_order(None):
            yield from _walk(partition, child, used)
        return
    for app in sorted(queue.apps.values(), key=lambda a: a.seq):
        bounds = _bounds(app)
        for ask in app.requests.in_order():
            if ask.parked == AWAITS_PLACEHOLDER:
                continue  # its placeholder already holds what it will use
            attempted = ask.attempted or ask.seq <= app.visited_seq
            if not attempted or not _fits(bounds, ask, used):
                continue
            for level, _, _ in bounds:
                used.setdefault(level, Vec()).plus(ask.shape.amounts)
            if not ask.required:
                yield app, ask


def _fits(bounds: list[Bound], ask: Ask, used: dict[Queue | Tracker, Vec]) -> bool:
    amounts = ask.shape.amounts.values()
    for level, limit, taken in bounds:
        also = used.get(level)
        for d, amount in enumerate(amounts):
            left = limit.at(d)
            if left == UNLIMITED or amount == 0:
                continue
            if amount > left - taken.at(d) - (also.at(d) if also else 0):
                return False
    return True


def _bounds(app: Application) -> list[Bound]:
    """All that bounds the application but the max of the root queue."""
    return [*queue_bounds(app, cluster=False), *user_bounds(app)]
