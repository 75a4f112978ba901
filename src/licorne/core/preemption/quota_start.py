"""When a lowered quota is enforced: the start times of queues (docs/spec/preemption.md, sections 4.1 and 4.2).

A queue that uses more than its max after a reload, or because usage was forced upon it, gets a start time: the current
time plus its delay (`quota.preemption.delay`). If it still uses too much at that time, allocations below it are evicted
(`licorne.core.preemption.quota_cut`), once. Until then it shrinks by itself, as what ends is not replaced.

The original checks every queue each second, and drops a start time at the first check that finds the queue within its
max. Here each start time is a deadline, and no queue is checked in between. Nothing is lost by that: a queue within its
max comes to use more only by a forced increase or a reload, and both first check whether the queue was within its max
until then; if it was, an old start time does not count.

The root queue has no start time: its max is the size of the cluster, which no configuration lowers.
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
"""A start time that has passed without effect is moved to this long after now: to the original's next check."""


class LoweredQuota(msgspec.Struct, frozen=True):
    """A queue before a reload: its max by type as configured (None: none), its delay, and whether it kept its max.

    With a delay of 0 its quota was never enforced.
    """

    maximum: dict[str, int] | None
    delay_ns: int
    within_max: bool


class QuotaChanges:
    """The start times of one partition's queues, in ns.

    `starts` may still hold a queue that is within its max by now; `start_ns` leaves such queues out.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self._timers: dict[Queue, Timer] = {}
        self.starts: dict[Queue, int] = {}

    @property
    def enabled(self) -> bool:
        """Are lowered quotas enforced in this partition (`preemption.quotapreemptionenabled`)?

        Start times are kept in any case, so that they are right when it is switched on.
        """
        return self._partition.config.quota_preemption_enabled

    def start_ns(self, queue: Queue) -> int | None:
        """The time (ns) at which the queue's max will be enforced.

        None if the queue is within its max, or has no start time and keeps what it uses.
        """
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
        """Drop the start times of queues that the cleaner has removed; all other start times stay, even those that are due now."""
        find = self._partition.tree.find
        for queue in [queue for queue in self.starts if find(queue.path) is not queue]:
            del self.starts[queue]
            self._partition.timers.cancel(self._timers.pop(queue, None))

    # -- usage -----------------------------------------------------------------------------------------

    def usage_forced(self, leaf: Queue, more: Vec) -> None:
        """Set start times after usage of a leaf grew by `more` without a check of any max.

        That happens on recovery, for allocations that were placed elsewhere, and when one is resized. `more` may be
        negative in some types; it is an increase only if some type has grown.
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
        """Enforce the quotas whose start time has come, parents before children.

        While a queue's quota is enforced, none below it is: those queues are due again a second later, when the effect
        of the first evictions can be seen.
        """
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
                continue  # its start time has passed and stays, so `_arm` moves it by a second
            del self.starts[queue]
            if over(queue):
                enforced[queue] = None
                enforce(partition, queue)
        self._arm()

    def _arm(self) -> None:
        """Set a deadline for each start time; a start time that has passed is moved to `AGAIN_NS` from now.

        A deadline whose start time is unchanged stays as it is, and so keeps its place among equal deadlines.
        """
        timers, now = self._partition.timers, self._partition.now
        wanted = self.starts if self.enabled else {}
        for queue in [queue for queue in self._timers if queue not in wanted]:
            timers.cancel(self._timers.pop(queue))
        for queue, start in wanted.items():
            due = start if start > now else now + AGAIN_NS
            self.starts[queue] = due
            timer = self._timers.get(queue)
            if timer is None or timer[0] != due:
                timers.cancel(timer)
                self._timers[queue] = timers.add(due, "quota", self)

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Check that start times belong to queues that may have one, and that each has its deadline.

        Raises AssertionError.
        """
        armed = self.enabled and self._partition.state is not ObjectState.STOPPED
        for queue, start in self.starts.items():
            assert self._partition.tree.find(queue.path) is queue, f"{queue.path}: a start time, but the queue is gone"
            ripe = queue.managed and queue.parent is not None and delay_ns(queue) > 0
            assert ripe and queue.max_config, f"{queue.path}: a start time without a delay, or without a max"
            timer = self._timers.get(queue)
            assert not armed or (timer is not None and timer[0] == start), (
                f"{queue.path}: a start time, but no deadline"
            )


def delay_ns(queue: Queue) -> int:
    """How long (ns) after the max of a queue was lowered it is enforced; 0: never."""
    return min(queue.settings.quota_preemption_delay_ns, TIME_MAX_NS)


def over(queue: Queue, without: Vec | None = None) -> bool:
    """Does the queue use more than its own max in any type? With `without`: would it, without these amounts?"""
    for d, most in enumerate(queue.limit.values()):
        if most != UNLIMITED and queue.allocated.at(d) - (0 if without is None else without.at(d)) > most:
            return True
    return False


def _compared(old: dict[str, int] | None, new: dict[str, int]) -> set[str]:
    """Whether the new max was raised, lowered, both (in different types), or is the same; a missing type counts as 0.

    So a max that is set for the first time is raised, and one from which a type is removed is lowered.
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
    """Sort key: parents before children, siblings by name."""
    return queue.path.split(".")
