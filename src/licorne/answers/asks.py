"""Changes of an ask itself, and of the gang that it belongs to, as messages of its resource manager.

An ask that wants less, or other nodes, is changed in place: it keeps its age, as after an update by the resource manager.
Its priority, queue and task groups can only be changed by submitting it again, so then it is the youngest of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from licorne.answers.changes import (
    FewerMembers,
    LessAsked,
    MoreMembers,
    OtherQueue,
    Priority,
    Tolerates,
    Unconstrained,
)
from licorne.core.gangs.atomic import GROUPS_TAG
from licorne.core.inspection.reported import asked_again
from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.core.partition import Partition
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.si import messages

AskChange = LessAsked | Tolerates | Unconstrained | Priority | OtherQueue | MoreMembers | FewerMembers


class ChangeError(ValueError):
    """A change that cannot be applied; the text says why."""


class Wanted(msgspec.Struct, frozen=True):
    """The ask that is to run."""

    partition: str
    application: str
    key: str


def asked_otherwise(partition: Partition, app: Application, ask: Ask, change: AskChange) -> Iterator[messages.Input]:
    """Yield the messages that make a change of an ask.

    Raises:
        ChangeError: the change is not possible, such as one that leaves nothing of the ask.
    """
    match change:
        case LessAsked():
            yield asked_again(partition, ask, resource=_less(ask, change))
        case Tolerates() | Unconstrained():
            constraints = json.dumps(_constraints(ask, change), sort_keys=True)
            yield asked_again(partition, ask, tags={**(ask.tags or {}), CONSTRAINTS_TAG: constraints})
        case Priority():
            yield _withdrawn(partition, app, ask)
            yield asked_again(partition, ask, priority=change.priority)
        case OtherQueue():
            yield _withdrawn(partition, app, ask)
            yield _application(partition, app, elsewhere(app), change.queue, app.tags)
            yield asked_again(partition, ask, application_id=elsewhere(app))
        case MoreMembers():
            yield from _more_members(partition, app, ask, change)
        case FewerMembers():
            yield from _fewer_members(partition, app, change)


def elsewhere(app: Application) -> str:
    """Return the id of the application with which an ask of this one is submitted to another queue."""
    return f"{app.id}~1"


def _withdrawn(partition: Partition, app: Application, ask: Ask) -> messages.Release:
    return messages.Release(partition=partition.name, application_id=app.id, key=ask.key)


def _application(
    partition: Partition, app: Application, name: str, queue: str, tags: dict[str, str]
) -> messages.AddApplication:
    return messages.AddApplication(
        application_id=name,
        partition=partition.name,
        queue=queue,
        user=app.user,
        groups=app.groups,
        groups_found=True,
        tags=tags,
    )


def _less(ask: Ask, change: LessAsked) -> dict[str, int]:
    left = {name: amount - change.less.get(name, 0) for name, amount in ask.shape.resource.items()}
    if any(left[name] <= 0 for name in change.less):
        raise ChangeError("nothing would be left of what the ask wants")
    return left


def _constraints(ask: Ask, change: Tolerates | Unconstrained) -> dict[str, Any]:
    """Return the constraints of an ask as its resource manager writes them, after a change."""
    found: dict[str, Any] = json.loads((ask.tags or {}).get(CONSTRAINTS_TAG) or "{}")
    if isinstance(change, Tolerates):
        named, _, effect = change.taint.rpartition(":")
        key, _, value = named.partition("=")
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        return {**found, "tolerations": [*(found.get("tolerations") or ()), toleration]}
    if not change.label:
        return {name: value for name, value in found.items() if name != "nodeAffinity"}
    selector = {key: value for key, value in (found.get("nodeSelector") or {}).items() if key != change.label}
    return {**found, "nodeSelector": selector}


# -- gangs that start as a whole -----------------------------------------------------------------------------------


def _more_members(partition: Partition, app: Application, ask: Ask, change: MoreMembers) -> Iterator[messages.Input]:
    """Yield members like one of the group that waits, or else as the group announces them."""
    gang = app.atomic
    if gang is None:
        raise ChangeError("the gang has started")
    pending = gang.pending(app)
    announced = {group.name: group.resource for group in gang.groups}
    for name, number in change.more.items():
        like = pending[name][0] if pending[name] else None
        resource = announced[name] if like is None else dict(like.shape.resource)
        for index in range(1, number + 1):
            yield asked_again(
                partition,
                like or ask,
                key=f"{app.id}~{name}~{index}",
                resource=resource or dict(ask.shape.resource),
                task_group=name,
                max_allocations=1,
            )


def _fewer_members(partition: Partition, app: Application, change: FewerMembers) -> Iterator[messages.Input]:
    """Yield the messages that submit an application again, whose task groups need fewer members."""
    if app.allocations:
        raise ChangeError("some members of the gang run, so it cannot be submitted again")
    groups = json.loads(app.tags[GROUPS_TAG])
    for group in groups:
        group["minMember"] -= change.less.get(group["name"], 0)
        if group["minMember"] < 1:
            raise ChangeError(f"task group {group['name']} would need nothing")
    asks = [asked_again(partition, ask) for ask in app.requests.in_order()]
    yield messages.RemoveApplication(application_id=app.id, partition=partition.name)
    yield _application(partition, app, app.id, app.queue.path, {**app.tags, GROUPS_TAG: json.dumps(groups)})
    yield from asks
