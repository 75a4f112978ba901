"""What a program keeps over a restart that its own objects do not say: since when asks wait, and until when they back off.

A program that embeds the scheduler reports its nodes, applications, allocations and asks again when it has restarted, and
to a new scheduler all of them are new. The order of asks and applications, reservations and preemption depend on their
age. The tags with a creation time (docs/spec/scheduler-interface.md, section 7.1) restore it to the second, one object at
a time; here it is whole, and carries the back-off too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import msgspec

from licorne.core.base.states import TIME_MAX_NS
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask

if TYPE_CHECKING:
    from licorne.core.partition import Partition

TimeNs = Annotated[int, msgspec.Meta(ge=0, le=TIME_MAX_NS)]


class ApplicationAge(msgspec.Struct, forbid_unknown_fields=True):
    """The times of an application, in nanoseconds: submission, end of its back-off, creation of asks and allocations by key.

    The keys are in the order of arrival, which decides between asks of the same time.
    """

    submitted_ns: TimeNs
    backoff_until_ns: TimeNs
    created_ns: dict[str, TimeNs]


def ages_of(applications: Iterable[Application]) -> dict[str, ApplicationAge]:
    """Return the ages of applications, by id."""
    found = {}
    for app in applications:
        asks: list[Ask] = sorted([*app.asks.values(), *app.allocations.values()], key=lambda ask: ask.seq)
        created = {ask.key: ask.created for ask in asks}
        found[app.id] = ApplicationAge(app.submitted, app.backoff_until, created)
    return found


def restore_ages(partition: Partition, ages: Mapping[str, ApplicationAge]) -> None:
    """Give applications, asks and allocations the ages that they had; what is not there is passed over.

    A time after the present counts as the present, and a back-off lasts no longer than one that begins now.
    """
    for app_id, age in ages.items():
        app = partition.applications.get(app_id)
        if app is not None:
            _restore(partition, app, age)
    partition.changed()


def _restore(partition: Partition, app: Application, age: ApplicationAge) -> None:
    now = partition.now
    partition.parking.sleep(app)  # out of the kept order while its key changes
    app.submitted = min(age.submitted_ns, now)
    pending = [app.asks[key] for key in age.created_ns if key in app.asks]
    numbers = sorted(ask.seq for ask in pending)
    for ask in pending:
        partition.accounting.unpend(app, ask)
    for ask, number in zip(pending, numbers, strict=True):
        ask.created = min(age.created_ns[ask.key], now)
        ask.seq = number
        partition.accounting.pend(app, ask)
    for alloc in app.allocations.values():
        alloc.created = min(age.created_ns.get(alloc.key, alloc.created), now)
    if age.backoff_until_ns > now:
        partition.timers.cancel(app.backoff_timer)
        partition.back_off(app, age.backoff_until_ns)
    partition.wakeups.may_run(app)
    partition.wakeups.slot_freed(app.queue)  # in a stateaware queue the oldest application runs first
