"""Strict mode: refuse messages that change nothing because the object that they name does not exist.

The 1.9 interface ignores such messages silently. While a resource manager is being written, they come from a mistake: a
misspelt key, a node that was refused. In operation they are normal, because the scheduler and the resource manager may
end the same allocation at the same time; so strict mode is off unless a host asks for it.

A request is checked as a whole, before anything of it is taken in. Objects that the request itself adds count as
existing, even if they come after the message that names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from licorne.core.amounts.faults import amounts_fault
from licorne.core.gangs.atomic import lasting_fault
from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import (
    AddApplication,
    Allocation,
    ChangeApplication,
    DisruptionBudgetUpdate,
    Input,
    NodeAction,
    NodeUpdate,
    Release,
    RemoveApplication,
)

if TYPE_CHECKING:
    from licorne.core.queues.application import Application

    from .manager import RegisteredManager
    from .partition import Partition

NEW_NODE = (NodeAction.CREATE, NodeAction.CREATE_DRAIN)
Changing = ChangeApplication | NodeUpdate | Release | RemoveApplication
"""The messages that change or end something."""
Name = tuple[str, ...]
"""The name of an object: its partition, what it is, and its id, of an allocation behind that of its application."""


class NoEffectError(LookupError):
    """In strict mode, a message of a request would change nothing, because the object that it names does not exist.

    Nothing of the request was taken in.
    """


def refuse_unknown(manager: RegisteredManager, inputs: Sequence[Input]) -> None:
    """Refuse messages of which one names an object that does not exist.

    Raises:
        NoEffectError: the text names the first such object, and how many more there are.
    """
    begun = {name for message in inputs for name in _begun(message)}
    found = [why for message in inputs if (why := _no_effect(manager, message, begun))]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NoEffectError(f"{found[0]}{more}; nothing of the request was taken in")


def _begun(message: Input) -> Iterator[Name]:
    """Yield the names of the objects that a message adds."""
    if isinstance(message, AddApplication):
        yield message.partition, "application", message.application_id
    elif isinstance(message, NodeUpdate) and message.action in NEW_NODE:
        yield message.partition, "node", message.node_id
        for there in message.existing:
            yield from _begun(there)
    elif isinstance(message, Allocation):
        foreign = message.tags is not None and TAG_FOREIGN in message.tags
        yield message.partition, "allocation", "" if foreign else message.application_id, message.key
        if message.independent:
            yield message.partition, "application", message.application_id


def _no_effect(manager: RegisteredManager, message: Input, begun: set[Name]) -> str:
    """Return why a message would have no effect; an empty text if the object that it names exists, or is added."""
    if isinstance(message, AddApplication | Allocation | DisruptionBudgetUpdate):
        return ""
    if isinstance(message, NodeUpdate) and message.action in NEW_NODE:
        return ""
    what, name = _named(message)
    partition = manager.partitions.get(message.partition)
    if partition is None:
        return f"{what}: there is no partition {message.partition!r}"
    if name not in begun and not _is_there(partition, message):
        return f"{what}: there is no such thing in partition {message.partition!r}"
    fault = None
    if isinstance(message, NodeUpdate):
        fault = amounts_fault(message.capacity)
    elif isinstance(message, ChangeApplication) and message.application_id in partition.applications:
        fault = lasting_fault({**partition.applications[message.application_id].tags, **message.tags})
    return f"{what}: {fault}" if fault else ""


def _named(message: Changing) -> tuple[str, Name]:
    """Return the object that a message changes or ends: in words, and its name."""
    where = message.partition
    if isinstance(message, NodeUpdate):
        return f"node {message.node_id!r}", (where, "node", message.node_id)
    application = f"application {message.application_id!r}"
    if isinstance(message, Release) and ((key := message.key or message.uuid) or not message.application_id):
        kind = "foreign allocation" if message.what == "both" else message.what
        what = f"allocation {key!r} of {application}" if message.application_id else f"{kind} {key!r}"
        return what, (where, "allocation", message.application_id, key)
    return application, (where, "application", message.application_id)


def _is_there(partition: Partition, message: Changing) -> bool:
    if isinstance(message, NodeUpdate):
        return message.node_id in partition.nodes
    app = partition.applications.get(message.application_id)
    key = (message.key or message.uuid) if isinstance(message, Release) else ""
    if message.application_id or not isinstance(message, Release):
        return app is not None and (not key or holds(app, key))
    if message.what == "both":
        return key in partition.foreign
    return any(holds(each, key) for each in partition.applications.values())


def holds(app: Application, key: str) -> bool:
    """Tell whether an application has an ask or allocation of this name, or one that is replacing a placeholder."""
    return key in app.asks or key in app.allocations or (app.gang is not None and key in app.gang.arriving)
