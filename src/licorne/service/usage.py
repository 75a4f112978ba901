"""What applications have used, for those who charge for it: resource times seconds, of allocations that have ended.

Spec events.md, section 6. When an application that ever ran is Completed or Failed, one line with its usage goes to the
log, in the original's words. Usage is summed by the instance type of the node, apart for allocations that were
preempted and for placeholders. Nothing is kept of applications that have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from .log import Log

if TYPE_CHECKING:
    from licorne.core.application import Application
    from licorne.core.asks import Ask
    from licorne.core.partition import Partition

LOGGER = "core.scheduler.application.usage"
INSTANCE_TYPE = "si/instance-type"
UNKNOWN = "UNKNOWN"
SECOND_NS = 10**9

ByType = Mapping[str, Mapping[str, int]]
"""Amount times seconds by instance type and resource type."""
_Sums = dict[str, dict[str, int]]  # the same, times nanoseconds


class Spent:
    """What the allocations of one application have used that have ended."""

    def __init__(self) -> None:
        self._used: _Sums = {}
        self._preempted: _Sums = {}
        self._placeholder: _Sums = {}

    def add(self, alloc: Ask, instance_type: str, amounts: Mapping[str, int], lasted_ns: int) -> None:
        """One more has ended."""
        kind = self._preempted if alloc.preempted else self._placeholder if alloc.placeholder else self._used
        sums = kind.setdefault(instance_type, {})
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + amount * lasted_ns

    @property
    def used(self) -> ByType:
        """Of ordinary allocations that ended otherwise than by preemption."""
        return _seconds(self._used)

    @property
    def preempted(self) -> ByType:
        """Of allocations that were preempted, placeholders too."""
        return _seconds(self._preempted)

    @property
    def placeholder(self) -> ByType:
        """Of placeholders."""
        return _seconds(self._placeholder)


class Usage:
    """Adds up, for all applications that there are.

    Parameters:
        log: where the line about an application goes that has ended.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._spent: dict[Application, tuple[Partition, Spent]] = {}

    def watch(self, partition: Partition) -> None:
        """Add up what ends in this partition."""
        partition.books.spent = partial(self._add, partition)

    def of(self, app: Application) -> Spent:
        """What an application has used so far."""
        found = self._spent.get(app)
        return Spent() if found is None else found[1]

    def _add(self, partition: Partition, app: Application, alloc: Ask) -> None:
        found = self._spent.get(app)
        if found is None:
            found = self._spent[app] = (partition, Spent())
        instance_type = "" if alloc.node is None else alloc.node.attributes.get(INSTANCE_TYPE, "")
        amounts = alloc.shape.amounts.named(partition.types)
        found[1].add(alloc, instance_type or UNKNOWN, amounts, max(0, partition.now - alloc.bound_ns))

    def ended(self, partition: Partition, app: Application) -> None:
        """An application is Completed or Failed: say what it has used, and forget it."""
        spent = self.of(app)
        self._spent.pop(app, None)
        if app.started_ns:
            self._log.info(summary(partition.owner, app, spent), logger=LOGGER)

    def forget_removed(self, partitions: Collection[Partition]) -> None:
        """Forget those who have gone otherwise: their resource manager has removed them, or has gone itself.

        `partitions`: all that there are.
        """
        gone = [
            app
            for app, (home, _) in self._spent.items()
            if home.applications.get(app.id) is not app or home not in partitions
        ]
        for app in gone:
            del self._spent[app]


def summary(rm_id: str, app: Application, spent: Spent) -> str:
    """The original's line about an application that has ended; times in milliseconds since 1970."""
    fields = {
        "ApplicationID": _printable(app.id),
        "SubmissionTime": app.submitted // 1_000_000,
        "StartTime": app.started_ns // 1_000_000,
        "FinishTime": app.finished_ns // 1_000_000,
        "User": _printable(app.user),
        "Queue": app.queue.path,
        "State": app.state,
        "RmID": rm_id,
        "ResourceUsage": _text(spent.used),
        "PreemptedResource": _text(spent.preempted),
        "PlaceholderResource": _text(spent.placeholder),
    }
    return f"YK_APP_SUMMARY: {{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}"


def _printable(text: str) -> str:
    """In one line, whatever a resource manager put into it."""
    return text if text.isprintable() else ascii(text)


def _text(usage: ByType) -> str:
    items = [
        f"{_printable(kind)}:{_printable(name)}={number}"
        for kind, of in sorted(usage.items())
        for name, number in sorted(of.items())
    ]
    return f"TrackedResource{{{','.join(items)}}}"


def _seconds(sums: _Sums) -> ByType:
    return {kind: {name: total // SECOND_NS for name, total in of.items()} for kind, of in sums.items()}


__all__ = ["Spent", "Usage", "summary"]
