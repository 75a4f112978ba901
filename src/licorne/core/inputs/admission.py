"""Admission and removal of applications.

Source: docs/spec/scheduler-interface.md, section 7.1; docs/spec/placement.md, section 5.

A new application is checked, placed in a queue by the placement rules, checked against that queue, and only then added.
One that completes or fails leaves its queue at once, and is kept for a while among the terminated ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from licorne.config.limits import USER_NAME
from licorne.core.amounts.faults import amounts_fault
from licorne.core.base.rejections import Fault, Reason, naming, refused_application, rejection
from licorne.core.base.states import TIME_MAX_NS, ApplicationEvent, ObjectState, application_table
from licorne.core.base.tags import seconds_tag, tag
from licorne.core.gangs.atomic import gang_of, is_lasting, lasting_fault, own_fault
from licorne.core.placement.placer import RECOVERY_PATH, PlacementRequest, is_forced
from licorne.core.preemption.together import goes_together
from licorne.core.queues.application import Application
from licorne.si.constants import NOBODY_GROUP, NOBODY_USER, TAG_APPLICATION_CREATION_TIME
from licorne.si.messages import (
    AcceptedApplication,
    AddApplication,
    ChangeApplication,
    RemoveApplication,
    Termination,
)

from .node_changes import full_name

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.queue import Queue

MILLISECOND_NS = 1_000_000
TERMINATED_MAX = 10_000
"""Most completed and failed applications that are kept; the oldest is dropped first."""


def add_application(partition: Partition, message: AddApplication) -> bool:
    """Place a new application in a queue, or reject it, and announce either; return whether it was accepted."""
    forced = is_forced(message.tags)
    user, groups, nobody = identity(
        message.user, message.groups, forced=forced, found=message.groups_found, not_found=message.groups_fault
    )
    fault: Fault = nobody or _fault(partition, message)
    refused = partial(_reject, partition, message, user, groups)
    if fault:
        refused(message.queue, fault)
        return False
    request = PlacementRequest(message.application_id, message.queue, user, groups, message.tags, forced)
    placed = partition.placer.place(request, partition.tree)
    if placed.queue is None:
        refused("", Reason(placed.reason, placed.template))
        return False
    queue = partition.tree.find(placed.queue)
    if queue is None:
        queue = partition.tree.create_dynamic(placed.queue)
    if not queue.is_leaf:
        refused(queue.path, naming(f"failed to find queue {placed.queue} for application ", message.application_id))
        return False
    # From here on a refusal may leave a queue that was made for this application alone.
    # A forced application has allocations that run: they must count, even if its gang is larger than a max by now.
    gang, fault = gang_of(message, queue, forced=forced) if message.tags else (None, "")
    if fault:
        _left_empty(partition, queue)
        refused(queue.path, fault)
        return False
    if gang is not None:
        message.placeholder_ask = {}
    apply_namespace_tags(partition, queue, message.tags)
    if message.placeholder_ask and not forced:
        wanted = partition.numbering.of_ask(message.placeholder_ask, message.application_id)
        fault = partition.gangs.fault(queue, message, wanted)
        if fault:
            _left_empty(partition, queue)
            refused(queue.path, fault)
            return False
    app = _new(partition, message, queue, user, groups)
    app.forced = forced
    app.atomic = gang
    queue.apps[app.id] = app
    partition.applications[app.id] = app
    partition.out.append(AcceptedApplication(app.id))
    return True


def apply_namespace_tags(partition: Partition, queue: Queue, tags: Mapping[str, str]) -> None:
    """Let an application's tags set the quota of its dynamic leaf queue, and wake what waits for that."""
    if not queue.managed and queue.path != RECOVERY_PATH and partition.tree.apply_namespace_tags(queue, tags):
        partition.wakeups.quota_changed(queue)  # the tags have set another quota, or another guarantee
        partition.guarantee_preemption.quota_changed(queue)
        partition.claims.configured()


def identity(
    user: str, groups: tuple[str, ...], *, forced: bool, found: bool = False, not_found: str = ""
) -> tuple[str, tuple[str, ...], str]:
    """Return the owner of an application: (user, groups, why they are refused), docs/spec/config.md, section 12.1.

    Groups that the message names are taken as they are. Without any, and without a resolver, the user's only group has
    the user's name. `found`: the resolver found these groups. `not_found`: why it found none, if there is one.
    """
    if not user and not forced:
        return user, groups, "empty user cannot resolve"
    if not user:
        return NOBODY_USER, groups or (NOBODY_GROUP,), ""
    if groups and not found and not USER_NAME.fullmatch(user):
        return user, groups, "invalid username, it contains invalid characters"
    if not_found and not groups:
        return (user, (NOBODY_GROUP,), "") if forced else (user, groups, not_found)
    return user, groups or (user,), ""


def _fault(partition: Partition, message: AddApplication) -> Fault:
    """Return why an application is refused whatever its queue, in the order of the specification; empty if it is not.

    Source: docs/spec/scheduler-interface.md, section 7.1.
    """
    app_id = message.application_id
    if not app_id:
        return "application without an applicationID"
    if partition.state is not ObjectState.ACTIVE:
        return naming(f"partition {full_name(partition)} is stopped cannot add a new application ", app_id)
    if app_id in partition.applications:
        where = f" to partition {full_name(partition)}, but application already existed"
        return naming("adding application ", app_id, where)
    wrong = amounts_fault(message.placeholder_ask)
    return f"placeholderAsk: {wrong}" if wrong else own_fault(message) if message.tags else ""


def _new(
    partition: Partition, message: AddApplication, queue: Queue, user: str, groups: tuple[str, ...]
) -> Application:
    number = partition.next_application_number()
    created = seconds_tag(tag(message.tags, TAG_APPLICATION_CREATION_TIME))
    submitted = partition.moment() if created is None else created
    app = Application(message.application_id, number, submitted, queue, user)
    app.groups = groups
    app.tags = message.tags
    app.starting = partition.starting
    app.table = application_table(first_interface=partition.first_interface, starting=partition.starting)
    app.placeholder_resource = message.placeholder_ask
    app.placeholder_ask = partition.types.amounts(message.placeholder_ask)
    timeout = timeout_ns(message.execution_timeout_ms)
    if message.timeout_is_running_time and app.placeholder_ask.zero():
        app.running_timeout_ns = timeout
    elif message.placeholder_ask or timeout > 0:
        partition.gangs.admitted(app, message, timeout)
    return app


def timeout_ns(timeout_ms: int) -> int:
    """Convert a timeout of a message to nanoseconds; 0, also the result for negative ones, means no timeout."""
    return min(max(0, timeout_ms) * MILLISECOND_NS, TIME_MAX_NS)


def _left_empty(partition: Partition, queue: Queue) -> None:
    """Let the cleaner remove an empty queue that may have been made for an application that is now rejected."""
    if partition.events is not None:
        partition.events.queues.look_at_path(queue)
    partition.cleaner.watch()


def _reject(
    partition: Partition, message: AddApplication, user: str, groups: tuple[str, ...], queue: str, reason: Fault
) -> None:
    partition.rejected.append(rejection(message, user, groups, queue, str(reason), partition.now))
    partition.out.append(refused_application(message, reason))


def change_application(partition: Partition, message: ChangeApplication) -> None:
    """Give an application other values of some tags, and have its lasting gang and the choice of victims follow them.

    An unknown application is ignored, and so are tags that make a lasting gang of malformed task groups.
    """
    app = partition.applications.get(message.application_id)
    if app is None or lasting_fault({**app.tags, **message.tags}):
        return
    lasted, together = is_lasting(app.tags), goes_together(app)
    app.tags = {**app.tags, **message.tags}
    if lasted or is_lasting(app.tags):
        partition.atomic.regroup(app)
    if together != goes_together(app):
        partition.wakeups.victims_changed()


def remove_application(partition: Partition, message: RemoveApplication) -> None:
    """Remove an application at once, with all its asks and allocations; an unknown one is ignored."""
    app = partition.applications.get(message.application_id)
    if app is not None:
        end_application(partition, app, f"Application {app.id} Removed")


def end_application(partition: Partition, app: Application, message: str) -> None:
    """Drop its asks, release its allocations, and take it out of its queue and the partition."""
    if app.gang is not None:
        partition.gangs.forget(app)
        partition.replacement.abandon(app)  # asks in flight are neither among the asks nor the allocations below
    for ask in list(app.asks.values()):
        partition.drop_ask(app, ask)
    allocations = list(app.allocations.values())
    for alloc in allocations:
        partition.accounting.remove_allocation(app, alloc)
        partition.notify_released(alloc, Termination.STOPPED_BY_RM, message)
    if allocations:
        partition.lifecycle.fire(app, ApplicationEvent.COMPLETE)
    partition.lifecycle.removed(app)
    partition.remove_application(app)
    if partition.events is not None:
        partition.events.removed(app)


def retire(partition: Partition, app: Application) -> None:
    """Take a completed or failed application out of its queue, and keep it among at most `TERMINATED_MAX`."""
    partition.applications.pop(app.id, None)
    partition.terminated[app] = None
    if partition.events is not None:
        partition.events.changes.retired[app.id] = app
    if app.past is not None:
        app.past.forget_usage()
    if len(partition.terminated) > TERMINATED_MAX:
        forget(partition, next(iter(partition.terminated)))
    leave_queue(partition, app)


def leave_queue(partition: Partition, app: Application) -> None:
    """Take an application with no asks and allocations left out of its queue, all waiting lists and all timers."""
    app.queue.apps.pop(app.id, None)
    for queue in app.queue.lineage():
        queue.accepted.pop(app, None)
    partition.parking.forget(app)
    partition.guarantee_preemption.forget(app)
    partition.atomic.forget(app)
    if app.gang is not None:
        partition.gangs.forget(app)
    partition.timers.cancel(app.running_timer)
    partition.timers.cancel(app.backoff_timer)
    if not app.queue.apps:  # a dynamic or draining queue may have become empty, and then the cleaner removes it
        partition.cleaner.watch()


def forget(partition: Partition, app: Application) -> None:
    """Expire a terminated application: it is dropped for good."""
    if partition.events is not None:
        partition.events.changes.expired.append(app)
    partition.terminated.pop(app, None)
    partition.timers.cancel(app.timer)
