"""The usage of applications until now, if a host wants it: their maximum, and amounts times seconds.

Source: docs/spec/rest-api.md, "Application" (`maxUsedResource`, `resourceHistory`).

Usage is recorded when an allocation ends, so it costs nothing in decisions, and nothing at all if no host wants it. The
usage of an application has a maximum just before it falls, so the maximum until now is the larger of the recorded one
and the present usage.

An allocation that was resized counts with each of its sizes for the time during which it had that size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from licorne.core.base.states import SECOND_NS
from licorne.si.constants import INSTANCE_TYPE

if TYPE_CHECKING:
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

UNKNOWN_TYPE = "UNKNOWN"
"""The instance type that stands for that of a node without one."""
Amounts = dict[str, int]
Usage = dict[str, Amounts]
"""Usage by instance type, then by resource type: amount times whole seconds."""


class PastUsage:
    """The past usage of one application.

    `since`: the time (ns) of the last change of size, by id, of allocations that were resized. `left`: the number of
    allocations after the last one ended; if there are as many when the next one ends, none was added in between, and
    the usage cannot have been higher.
    """

    def __init__(self) -> None:
        self.left: int = -1
        self.most: Amounts = {}
        self.used: Usage = {}
        self.preempted: Usage = {}
        self.placeholders: Usage = {}
        self.since: dict[str, int] = {}

    def forget_usage(self) -> None:
        """Drop all but the maximum, when the application has completed or failed; so does the original."""
        self.used, self.preempted, self.placeholders, self.since = {}, {}, {}, {}


class Clock(Protocol):
    """What has the time in nanoseconds: a partition."""

    now: int


class UsageHistory:
    """Records the usage of the applications of a partition."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def ending(self, app: Application, alloc: Ask) -> None:
        """Record the usage of an allocation that is about to end, or to change its size."""
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
        seconds = (self._clock.now - since) // SECOND_NS
        if seconds < 0 or alloc.node is None:
            return
        usage = usages.setdefault(alloc.node.attributes.get(INSTANCE_TYPE) or UNKNOWN_TYPE, {})
        for name, amount in alloc.shape.resource.items():
            if amount:
                usage[name] = usage.get(name, 0) + amount * seconds

    def resized(self, app: Application, alloc: Ask) -> None:
        """Record the time of an allocation's change of size; `ending` must have been called before the change."""
        assert app.past is not None, "`ending` was called first"
        app.past.since[alloc.id] = self._clock.now


def most_used(app: Application) -> Amounts:
    """Return the most of each type that the application's real allocations, or its placeholders, have used at a time.

    The two are not added up, as in the original, because a placeholder stands for a real allocation to come.
    """
    most: Amounts = {}
    raise_to_used(most, app)
    if app.past is not None:
        raise_to(most, app.past.most)
    return dict(sorted(most.items()))


def raise_to_used(most: Amounts, app: Application) -> None:
    """Raise each amount of `most` to at least the application's present usage."""
    raise_to(most, app.allocated_resource())
    if not app.placeholders.zero():
        raise_to(most, app.placeholders.named(app.queue.types))


def raise_to(most: Amounts, amounts: Amounts) -> None:
    """Raise each amount of `most` to at least that of `amounts`."""
    for name, amount in amounts.items():
        if amount > most.get(name, 0):
            most[name] = amount
