"""Make REST objects from the scheduler's: applications, asks and allocations, with the reasons why asks wait."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from licorne.answers.chain import waiting_reason
from licorne.core.base.states import ApplicationState
from licorne.core.constants import NO_PRIORITY
from licorne.core.inspection import explain
from licorne.core.inspection.sentences import sentence
from licorne.core.preemption import eviction_plans
from licorne.core.queues.usage_history import most_used
from licorne.si import rest_objects as objects

from .amounts import by_name

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.usage_history import PastUsage, Usage

NEVER_STARTED_MS = -62_135_596_800_000
"""The start time of an application that never started, in milliseconds, as in the original: the year 1."""
NO_QUOTA, NO_USER_QUOTA = "Not enough queue quota", "Not enough user quota"
LOGGED_ASKS = 100
"""The reasons for waiting are given for this many asks of an application; finding them for all would take long."""


def allocation(alloc: Ask) -> objects.Allocation:
    """Return an allocation; one that replaced a placeholder has the request time of that placeholder."""
    requested, bound = alloc.replaced_ns or alloc.created, alloc.bound_ns
    return objects.Allocation(
        allocation_key=alloc.id,
        allocation_tags=dict(sorted(alloc.tags.items())) if alloc.tags else {},
        request_time=requested,
        allocation_time=bound,
        allocation_delay=bound - requested if bound > requested else 0,
        resource=_resource(alloc),
        priority=str(alloc.priority),
        node_id="" if alloc.node is None else alloc.node.id,
        application_id=alloc.app.id,
        placeholder=bool(alloc.placeholder),
        placeholder_used=alloc.replaced_ns > 0,
        task_group_name=alloc.task_group,
        preempted=bool(alloc.preempted),
        originator=bool(alloc.originator),
    )


def ask(found: Ask, home: Partition, reasons: Sequence[explain.Reason]) -> objects.Ask:
    """Return a pending ask, with the reasons why it waits: in the original's words as its log, and in licorne's own."""
    log = _log(home, reasons)
    return objects.Ask(
        allocation_key=found.key,
        allocation_tags=dict(sorted(found.tags.items())) if found.tags else {},
        request_time=found.created,
        resource=_resource(found),
        priority=str(found.priority),
        required_node_id=found.required,
        application_id=found.app.id,
        placeholder=bool(found.placeholder),
        task_group_name=found.task_group,
        allocation_log=log,
        triggered_preemption=bool(found.triggered),
        originator=bool(found.originator),
        scheduling_attempted=bool(found.attempted or found.parked or _stopped_by_queue(log)),
        triggered_scale_up=bool(found.reported),
        waiting_reasons=[waiting_reason(reason) for reason in reasons],
    )


def _stopped_by_queue(log: list[objects.LogEntry]) -> bool:
    """Whether the quota of a queue, and no user limit, keeps the ask out.

    The original checks the user's limit first, marks the ask as attempted, and then checks the queue's quota.
    """
    said = {entry.message for entry in log}
    return NO_QUOTA in said and NO_USER_QUOTA not in said


def _resource(found: Ask) -> dict[str, int]:
    amounts = by_name(found.shape.resource)
    return {name: amount for name, amount in amounts.items() if amount} if 0 in amounts.values() else amounts


def application(app: Application, home: Partition, name: str, *, whole: bool = True) -> objects.Application:
    """Return an application of the partition `name`, without its asks and allocations.

    Not `whole`: without its state log and what is computed from all of its asks, which lists of the page do not show.
    """
    waiting = app.state is ApplicationState.REJECTED
    return objects.Application(
        application_id=app.id,
        used_resource=app.allocated_resource(),
        max_used_resource=most_used(app) if whole else {},
        pending_resource=app.pending_resource(),
        partition=name,
        queue_name=app.queue.path,
        submission_time=app.submitted,
        finished_time=app.finished_ns,
        application_state=str(app.state),
        user=app.user,
        groups=list(app.groups),
        rejected_message=app.message if waiting else "",
        state_log=[objects.StateChange(time=at, application_state=state) for at, state in app.state_log if whole],
        placeholder_data=_placeholders(app) if whole else [],
        has_reserved=bool(app.reservations),
        reservations=list(app.reservations),
        max_request_priority=max(a.priority for a in app.asks.values()) if whole and app.asks else NO_PRIORITY,
        start_time=app.started_ns // 1_000_000 if app.started_ns else NEVER_STARTED_MS,
        resource_history=_resource_history(app.past if whole else None),
        backoff_deadline=_moment(app.backoff_until) if app.backoff_until > home.now else "",
    )


def _moment(at_ns: int) -> str:
    """Format a time by RFC 3339, to the nanosecond; empty if it is beyond the calendar."""
    seconds, rest = divmod(at_ns, 10**9)
    try:
        moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _resource_history(past: PastUsage | None) -> objects.ResourceHistory:
    if past is None:
        return objects.ResourceHistory()
    return objects.ResourceHistory(
        resource_usage=_usage(past.used),
        preempted_resource=_usage(past.preempted),
        placeholder_resource=_usage(past.placeholders),
    )


def _usage(usage: Usage) -> dict[str, objects.Resources]:
    return {kind: dict(sorted(amounts.items())) for kind, amounts in sorted(usage.items())}


def _placeholders(app: Application) -> list[objects.Placeholders]:
    """Return the placeholders by task group: how many were asked for, replaced and timed out; the others are live."""
    if app.gang is None:
        return []
    return [
        objects.Placeholders(
            task_group_name=name,
            count=group.created,
            min_resource={name: amount for name, amount in sorted(group.resource.items()) if amount},
            replaced=group.replaced,
            timedout=group.timed_out,
        )
        for name, group in sorted(app.gang.groups.items())
    ]


def asks(app: Application, home: Partition, *, nodes: bool) -> Iterator[objects.Ask]:
    """Yield the pending asks in the order in which they are tried. `nodes`: include why the nodes do not fit them."""
    counted: explain.Counted = {}
    whole = None if app.atomic is None else explain.gang_reasons(home, app)
    for number, found in enumerate(app.requests.in_order()):
        reasons = whole
        if reasons is None:
            reasons = _reasons(home, found, counted, nodes=nodes) if number < LOGGED_ASKS else []
        yield ask(found, home, reasons)


def allocations(app: Application) -> Iterator[objects.Allocation]:
    """Yield the allocations of an application in the order of their arrival."""
    for found in sorted(app.allocations.values(), key=attrgetter("seq")):
        yield allocation(found)


# -- why an ask waits ------------------------------------------------------------------------------------


def _reasons(home: Partition, found: Ask, counted: explain.Counted, *, nodes: bool) -> list[explain.Reason]:
    if nodes:
        return explain.reasons(home, found.app, found, counted)
    return explain.quick_reasons(home, found.app, found)


def _log(home: Partition, reasons: Iterable[explain.Reason]) -> list[objects.LogEntry]:
    """Return the reasons in the original's wording where it has one."""
    entries = dict.fromkeys(text for reason in reasons if (text := _said(reason)))
    return [objects.LogEntry(message=text, last_occurrence=home.now, count=1) for text in entries]


def _said(reason: explain.Reason) -> str:
    """Return a reason in the original's wording, or in licorne's where the original has none."""
    match reason:
        case explain.QueueQuota() | explain.ClusterFull():
            return NO_QUOTA
        case explain.UserLimit():
            return NO_USER_QUOTA
        case explain.Backoff():
            return f"Application backs off until {_moment(reason.until_ns)}"
        case explain.Preemption():
            return _of_preemption(reason)
        case explain.Gang(ready=True, fits_quota=True, start_ns=int(start)):
            return f"{sentence(reason)} It may start at {_moment(start)}."
        case explain.NotTried():
            return ""
        case _:
            return sentence(reason)


def _of_preemption(reason: explain.Preemption) -> str:
    """Return the text for preemption, in the original's wording where it has one."""
    match reason.state, reason.detail:
        case "too young", _:
            return "Preemption preconditions failed"
        case "attempted", eviction_plans.NOT_ENTITLED:
            return "Preemption queue guarantees check failed"
        case "attempted", eviction_plans.NO_VICTIMS:
            return "Preemption does not help"
        case "attempted", why:
            return f"Preemption is not needed: {why}"
        case "victims are going" | "victims have gone", node:
            return f"Preemption makes room on node {node}"
        case "gave up", why:
            return f"Preemption was given up: {why}"
    return ""
