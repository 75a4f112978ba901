"""The cleaner: removes dynamic and draining queues that are empty (docs/spec/scheduling.md, section 12).

It runs every ten seconds of virtual time, and only while there is something to remove, so that an idle partition has no
deadline because of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS

if TYPE_CHECKING:
    from licorne.core.base.timers import Timer
    from licorne.core.partition import Partition

INTERVAL_NS = 10 * SECOND_NS
"""Time between two runs while there is something to remove; counted from the creation of the partition."""


class Cleaner:
    """The cleaner of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self._timer: Timer | None = None

    def watch(self) -> None:
        """Schedule the next run if there is something to remove and none is scheduled."""
        partition = self._partition
        if self._timer is None and partition.tree.has_removable():
            passed = partition.now - partition.started_ns
            due = partition.started_ns + (passed // INTERVAL_NS + 1) * INTERVAL_NS
            self._timer = partition.timers.add(due, "clean", partition)

    def run(self) -> None:
        """Remove the empty queues, and update what depends on which queues exist."""
        partition = self._partition
        self._timer = None
        removed = partition.tree.remove_empty()
        partition.quotas.removed()
        if removed:
            partition.guarantee_preemption.queues_removed()
        if partition.events is not None:
            partition.events.queues.removed(removed)
        self.watch()
