"""When a lowered quota is enforced: the start times of queues (docs/spec/preemption.md, sections 4.1 and 4.2).

A queue that uses more than its max after a reload, or because usage was forced upon it, gets a start time: now and its
delay (`quota.preemption.delay`). When that has come and it still uses too much, allocations below it are evicted
(`licorne.core.preemption.quota_cut`), once. Until then it shrinks by itself, as what ends is not replaced.

The original looks at every queue each second; here the earliest start time is a deadline. It drops a start time at the
first look that finds the queue within its max. Nobody looks here, but nothing is lost: a queue within its max comes to
use more only by a forced increase or a reload, and these ask first whether it was within its max until then.

Root is left out: its max is the size of the cluster, which nobody lowers by a configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from licorne.core.base.states import SECOND_NS, TIME_MAX_NS, ObjectState
from licorne.core.constants import UNLIMITED

from .quota_cut import enforce

if TYPE_CHECKING:
    from licorne.config.model import QueueConfig
    from licorne.core.amounts.vectors import Vec
    from licorne.core.base.timers import Timer
    from licorne.core.partition import Partition
    from licorne.core.queues.queue import Queue

AGAIN_NS = SECOND_NS
"""A start time that has passed and was not acted on is moved so far from now: to the original's next look."""


class LoweredQuota(msgspec.Struct, frozen=True):
    """What a queue's configuration said: its max, by type, None if it had none; its delay (ns); was it within its max?"""

    maximum: dict[str, int] | None
    delay_ns: int
    within_max: bool


class QuotaChanges:
    """The start times of one partition's queues. `starts` may hold some that are out of date, see `start_ns`."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._timer: Timer | None = None
        self.starts: dict[Queue, int] = {}

    @property
    def enabled(self) -> bool:
        """Does the partition want this (`preemption.quotapreemptionenabled`)? Start times are kept without it, too."""
        return self._partition.config.quota_preemption_enabled

    def start_ns(self, queue: Queue) -> int | None:
        """From when on the queue's max is enforced; None: it uses no more than that, or what it uses is left to it."""
        return self.starts.get(queue) if over(queue) else None

    # -- configuration ---------------------------------------------------------------------------------

    def reload(self, config: QueueConfig) -> None:
        """Apply a configuration to the tree, and set, move or drop start times (the table of section 4.1)."""
        tree = self._partition.tree
        before = {
            queue: LoweredQuota(queue.max_config, delay_ns(queue), not over(queue))
            for queue in tree.queues()
            if queue.parent is not None
        }
        tree.reload(config)
        for queue, old in before.items():
            if not queue.managed:
                continue
            if old.within_max:
                self.starts.pop(queue, None)
            start = self._start_after(queue, old)
            if start is None:
                self.starts.pop(queue, None)
            else:
                self.starts[queue] = start
        self._arm()

    def _start_after(self, queue: Queue, old: LoweredQuota) -> int | None:
        start = self.starts.get(queue)
        delay = delay_ns(queue)
        maximum = queue.max_config
        if delay == 0 or not maximum or not any(maximum.values()) or not over(queue):
            return None
        steps = _compared(old.maximum, maximum)
        if steps == {"same"}:
            if start is None:
                return self._partition.now + delay if old.delay_ns == 0 else None
            return start + delay - old.delay_ns
        if steps == {"lowered"}:
            return self._partition.now + delay if start is None else start + delay - old.delay_ns
        if steps == {"raised"} and start is not None:
            return start + delay - old.delay_ns
        return start  # raised without a start time; or raised here and lowered there: nothing changes

    def removed(self) -> None:
        """The cleaner has removed queues."""
        if self.starts:
            find = self._partition.tree.find
            self.starts = {queue: start for queue, start in self.starts.items() if find(queue.path) is queue}
            self._arm()

    # -- usage -----------------------------------------------------------------------------------------

    def usage_forced(self, leaf: Queue, more: Vec) -> None:
        """So much more is used in this queue, without a look at its max (recovery, placed elsewhere, resized).

        `more` may be negative in some types; if no type has grown this is no increase.
        """
        if not any(amount > 0 for amount in more.values()):
            return
        for queue in leaf.lineage():
            maximum = queue.max_config
            delay = delay_ns(queue)
            if not queue.managed or queue.parent is None or delay == 0 or not maximum or not any(maximum.values()):
                continue
            if over(queue) and (queue not in self.starts or not over(queue, more)):
                self.starts[queue] = self._partition.now + delay
        self._arm()

    # -- time ------------------------------------------------------------------------------------------

    def due(self) -> None:
        """A start time has come: enforce the quotas whose turn it is, parents before children.

        Below a queue that is enforced nothing else is: it is looked at again when that has had a second to show.
        """
        self._timer = None
        partition = self._partition
        if not self.enabled or partition.state is ObjectState.STOPPED:
            return
        if partition.paused():
            self._arm()  # again in a second
            return
        enforced: dict[Queue, None] = {}
        mine = [queue for queue, start in self.starts.items() if start <= partition.now]
        for queue in sorted(mine, key=_walk_order):
            if any(upper in enforced for upper in queue.lineage()):
                continue  # it keeps a start time that has passed
            del self.starts[queue]
            if over(queue):
                enforced[queue] = None
                enforce(partition, queue)
        self._arm()

    def _arm(self) -> None:
        """Set the deadline of the earliest start time; one that has passed is moved, so that time can come to it."""
        timers, now = self._partition.timers, self._partition.now
        timers.cancel(self._timer)
        self._timer = None
        if self.starts and self.enabled:
            for queue, start in self.starts.items():
                if start <= now:
                    self.starts[queue] = now + AGAIN_NS
            self._timer = timers.add(min(self.starts.values()), "quota", self)

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Prove that start times belong to queues that may have one, and that time will bring them to notice."""
        for queue in self.starts:
            assert self._partition.tree.find(queue.path) is queue, f"{queue.path}: a start time, but the queue is gone"
            ripe = queue.managed and queue.parent is not None and delay_ns(queue) > 0
            assert ripe and queue.max_config, f"{queue.path}: a start time without a delay, or without a max"
        wanted = bool(self.starts) and self.enabled and self._partition.state is not ObjectState.STOPPED
        assert not wanted or self._timer is not None, "start times, but no deadline"
        if self._timer is not None:
            assert self._timer[0] == min(self.starts.values()), "the deadline is not that of the first start time"


def delay_ns(queue: Queue) -> int:
    """How long after its max was lowered it is enforced; 0: never."""
    return min(queue.settings.quota_preemption_delay_ns, TIME_MAX_NS)


def over(queue: Queue, without: Vec | None = None) -> bool:
    """Does the queue use more than its own max in any type; or would it without these amounts?"""
    for d, most in enumerate(queue.limit.values()):
        if most != UNLIMITED and queue.allocated.at(d) - (0 if without is None else without.at(d)) > most:
            return True
    return False


def _compared(old: dict[str, int] | None, new: dict[str, int]) -> set[str]:
    """What the new max is to the old one, over all types, a missing one being 0: raised, lowered, or both, or the same.

    So a max that is set for the first time is not lowered, and one of which a type is taken away is.
    """
    if old is None:
        return {"raised"}
    found = set()
    for name in old.keys() | new.keys():
        step = new.get(name, 0) - old.get(name, 0)
        if step:
            found.add("raised" if step > 0 else "lowered")
    return found or {"same"}


def _walk_order(queue: Queue) -> list[str]:
    """Parents first, siblings by name."""
    return queue.path.split(".")
