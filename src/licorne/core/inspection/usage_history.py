"""What applications have used until now, for those who watch: their maximum, and amounts times seconds.

Source: docs/spec/rest-api.md, "Application" (`maxUsedResource`, `resourceHistory`). All of it is noted when an
allocation ends, so decisions do nothing for it, and nothing is done at all where nobody watches. What an application
uses is most just before it uses less: the maximum so far is the larger of what was noted and what it uses now.

An allocation that was resized counts with each of its sizes for as long as it had it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS
from licorne.si.constants import INSTANCE_TYPE

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

UNKNOWN_TYPE = "UNKNOWN"
"""The instance type of a node that has none."""
Amounts = dict[str, int]
Usage = dict[str, Amounts]
"""By instance type, then by resource type: amount times whole seconds."""


class PastUsage:
    """What one application has used.

    `since`: from when on allocations that were resized have their size (ns). `left`: how many allocations there were
    after the last one ended; if it is as many now, nothing can have been more in the meantime.
    """

    def __init__(self) -> None:
        self.left = -1
        self.most: Amounts = {}
        self.used: Usage = {}
        self.preempted: Usage = {}
        self.placeholders: Usage = {}
        self.since: dict[str, int] = {}

    def forget_usage(self) -> None:
        """It has completed or failed: as in the original, only the maximum is kept."""
        self.used, self.preempted, self.placeholders, self.since = {}, {}, {}, {}


class UsageHistory:
    """Notes what the applications of a partition have used."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def ending(self, app: Application, alloc: Ask) -> None:
        """The allocation is about to end, or to have another size."""
        past = app.past
        if past is None:
            past = app.past = PastUsage()
        there = len(app.allocations)
        if there != past.left:
            raise_to_used(past.most, app)
        past.left = there - 1
        if alloc.preempted:
            usages = past.preempted
        else:
            usages = past.placeholders if alloc.placeholder else past.used
        since = past.since.pop(alloc.id, alloc.bound_ns) if past.since else alloc.bound_ns
        seconds = (self._partition.now - since) // SECOND_NS
        if seconds < 0 or alloc.node is None:
            return
        usage = usages.setdefault(alloc.node.attributes.get(INSTANCE_TYPE) or UNKNOWN_TYPE, {})
        for name, amount in alloc.shape.resource.items():
            if amount:
                usage[name] = usage.get(name, 0) + amount * seconds

    def resized(self, app: Application, alloc: Ask) -> None:
        """The allocation has another size from now on."""
        assert app.past is not None, "`ending` was called first"
        app.past.since[alloc.id] = self._partition.now


def most_used(app: Application) -> Amounts:
    """The most that the application's real allocations, or its placeholders, have used at a time, of each type.

    As in the original the two are not added up: a placeholder stands for a real allocation to come.
    """
    most: Amounts = {}
    raise_to_used(most, app)
    if app.past is not None:
        raise_to(most, app.past.most)
    return dict(sorted(most.items()))


def raise_to_used(most: Amounts, app: Application) -> None:
    """Raise each amount to at least what the application uses now."""
    raise_to(most, app.allocated_resource())
    if not app.placeholders.zero():
        raise_to(most, app.placeholders.named(app.queue.types))


def raise_to(most: Amounts, amounts: Amounts) -> None:
    """Raise each amount to at least the other."""
    for name, amount in amounts.items():
        if amount > most.get(name, 0):
            most[name] = amount
