"""Applications, asks and allocations as objects of the REST interface."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from licorne.core import explain
from licorne.core.states import ApplicationState

from . import objects

if TYPE_CHECKING:
    from licorne.core.application import Application
    from licorne.core.asks import Ask
    from licorne.core.partition import Partition

NEVER_STARTED_MS = -62_135_596_800_000
"""The start of an application that never started, as the original has it: the year 1."""
LOGGED_ASKS = 100
"""Of so many asks of an application it is said why they wait; of further ones not, for that would take long."""


def allocation(alloc: Ask) -> objects.Allocation:
    """An allocation."""
    return objects.Allocation(
        allocation_key=alloc.id,
        allocation_tags=dict(sorted((alloc.tags or {}).items())),
        request_time=alloc.created,
        allocation_time=alloc.bound_ns,
        allocation_delay=max(0, alloc.bound_ns - alloc.created),
        resource=_resource(alloc),
        priority=str(alloc.priority),
        node_id="" if alloc.node is None else alloc.node.id,
        application_id=alloc.app.id,
        placeholder=bool(alloc.placeholder),
        task_group_name=alloc.task_group,
        preempted=bool(alloc.preempted),
        originator=bool(alloc.originator),
    )


def ask(found: Ask, log: list[objects.LogEntry]) -> objects.Ask:
    """A pending ask, with why it waits."""
    return objects.Ask(
        allocation_key=found.key,
        allocation_tags=dict(sorted((found.tags or {}).items())),
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
        scheduling_attempted=bool(found.attempted or found.parked),
        triggered_scale_up=bool(found.reported),
    )


def _resource(found: Ask) -> dict[str, int]:
    return {name: amount for name, amount in sorted(found.shape.resource.items()) if amount}


def application(app: Application, home: Partition, name: str) -> objects.Application:
    """An application without its asks and allocations; `name` is that of its partition."""
    waiting = app.state is ApplicationState.REJECTED
    return objects.Application(
        application_id=app.id,
        used_resource=dict(sorted(app.allocated_resource().items())),
        pending_resource=dict(sorted(app.pending_resource().items())),
        partition=name,
        queue_name=app.queue.path,
        submission_time=app.submitted,
        finished_time=app.finished_ns,
        application_state=str(app.state),
        user=app.user,
        groups=list(app.groups),
        rejected_message=app.message if waiting else "",
        state_log=[objects.StateChange(time=at, application_state=state) for at, state in app.state_log],
        placeholder_data=_placeholders(app),
        has_reserved=bool(app.reservations),
        reservations=list(app.reservations),
        max_request_priority=max((a.priority for a in app.asks.values()), default=objects.NO_PRIORITY),
        start_time=app.started_ns // 1_000_000 if app.started_ns else NEVER_STARTED_MS,
        resource_history=objects.ResourceHistory(),
        backoff_deadline=_moment(app.backoff_until) if app.backoff_until > home.now else "",
    )


def _moment(at_ns: int) -> str:
    """RFC 3339, to the nanosecond."""
    seconds, rest = divmod(at_ns, 10**9)
    try:
        moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _placeholders(app: Application) -> list[objects.Placeholders]:
    """Placeholders by task group, those that wait and those that hold a place."""
    groups: dict[str, objects.Placeholders] = {}
    for found in (*app.allocations.values(), *app.asks.values()):
        if found.placeholder:
            name = found.task_group
            group = groups.get(name)
            if group is None:
                group = groups[name] = objects.Placeholders(task_group_name=name, min_resource=_resource(found))
            group.count += 1 if found.node is not None else found.repeats
    return [groups[name] for name in sorted(groups)]


def asks(app: Application, home: Partition, *, nodes: bool) -> Iterator[objects.Ask]:
    """Its pending asks in the order in which they are tried. `nodes`: say also what the nodes say to those that wait."""
    counted: explain.Counted = {}
    for number, found in enumerate(app.requests.in_order()):
        log = log_of(home, found, counted, nodes=nodes) if number < LOGGED_ASKS else []
        yield ask(found, log)


def allocations(app: Application) -> Iterator[objects.Allocation]:
    """Its allocations by arrival."""
    for found in sorted(app.allocations.values(), key=attrgetter("seq")):
        yield allocation(found)


# -- why an ask waits ------------------------------------------------------------------------------------


def log_of(home: Partition, found: Ask, counted: explain.Counted, *, nodes: bool) -> list[objects.LogEntry]:
    """Why the ask waits, in the words of the original where it has some."""
    if nodes:
        reasons = explain.reasons(home, found.app, found, counted)
    else:
        reasons = explain.quota_reasons(home, found.app, found)
    entries: dict[str, None] = {}
    for reason in reasons:
        text = _said(reason)
        if text:
            entries[text] = None
    return [objects.LogEntry(message=text, last_occurrence=home.now, count=1) for text in entries]


def _said(reason: explain.Reason) -> str:
    match reason:
        case explain.QueueQuota():
            return "Not enough queue quota"
        case explain.UserLimit():
            return "Not enough user quota"
        case explain.MaxApplications():
            return f"Maximum of running applications reached in queue {reason.queue}"
        case explain.StateOrder():
            return f"Another application of queue {reason.queue} starts first"
        case explain.Backoff():
            return f"Application backs off until {_moment(reason.until_ns)}"
        case explain.Nodes():
            counts = "; ".join(f"{why} ({number}x)" for why, number in reason.failed.items())
            return f"No node fits: {counts}" if counts else "No node fits: there are none"
        case explain.RequiredNode():
            lacking = f", lack of {', '.join(reason.missing)}" if reason.missing else ""
            return f"Required node {reason.node}: {reason.state}{lacking}"
        case explain.Reserved():
            return f"Node {reason.node} is reserved for it"
    return ""
