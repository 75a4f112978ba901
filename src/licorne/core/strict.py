"""Strict mode: refuse messages that change nothing because the object that they name does not exist.

The 1.9 interface ignores such messages silently. While a resource manager is being written, they come from a mistake: a
misspelt key, a node that was refused. In operation they are normal, because the scheduler and the resource manager may
end the same allocation at the same time; so strict mode is off unless a host asks for it.

A request is checked as a whole, before anything of it is taken in. Objects that the request itself adds count as
existing, even if they come after the message that names them.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class NoEffectError(LookupError):
    """In strict mode, a message of a request would change nothing, because the object that it names does not exist.

    Nothing of the request was taken in.
    """


class _Begun:
    """The objects that a request adds, anywhere in it: their names, each with its partition."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self.nodes: set[tuple[str, str]] = set()
        self.applications: set[tuple[str, str]] = set()
        self.keys: set[tuple[str, str, str]] = set()
        for message in inputs:
            if isinstance(message, AddApplication):
                self.applications.add((message.partition, message.application_id))
            elif isinstance(message, NodeUpdate) and message.action in NEW_NODE:
                self.nodes.add((message.partition, message.node_id))
                for there in message.existing:
                    self._add(there)
            elif isinstance(message, Allocation):
                self._add(message)

    def _add(self, message: Allocation) -> None:
        foreign = message.tags is not None and TAG_FOREIGN in message.tags
        self.keys.add((message.partition, "" if foreign else message.application_id, message.key))
        if message.independent:
            self.applications.add((message.partition, message.application_id))


def refuse_unknown(manager: RegisteredManager, inputs: Sequence[Input]) -> None:
    """Refuse messages of which one names an object that does not exist.

    Raises:
        NoEffectError: the text names the first such object, and how many more there are.
    """
    found: list[str] = []
    begun: _Begun | None = None
    for message in inputs:
        if isinstance(message, AddApplication | Allocation | DisruptionBudgetUpdate):
            continue
        begun = _Begun(inputs) if begun is None else begun  # not made for a request that only adds
        why = _unknown(manager, message, begun)
        if why:
            found.append(why)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NoEffectError(f"{found[0]}{more}; nothing of the request was taken in")


def _unknown(
    manager: RegisteredManager, message: ChangeApplication | NodeUpdate | Release | RemoveApplication, begun: _Begun
) -> str:
    """Return why a message would have no effect; an empty text if the object that it names exists."""
    name = message.partition
    if isinstance(message, NodeUpdate):
        if message.action in NEW_NODE:
            return ""
        what = f"node {message.node_id!r}"
    elif isinstance(message, Release):
        what = _released(message)
    else:
        what = f"application {message.application_id!r}"
    partition = manager.partitions.get(name)
    if partition is None:
        return f"{what}: there is no partition {name!r}"
    if isinstance(message, NodeUpdate):
        known = message.node_id in partition.nodes or (name, message.node_id) in begun.nodes
        if known and (fault := amounts_fault(message.capacity)):
            return f"{what}: {fault}"
    elif isinstance(message, Release):
        known = _is_there(partition, message, begun)
    else:
        app = partition.applications.get(message.application_id)
        known = app is not None or (name, message.application_id) in begun.applications
        if app is not None and isinstance(message, ChangeApplication):
            if fault := lasting_fault({**app.tags, **message.tags}):
                return f"{what}: {fault}"
    return "" if known else f"{what}: there is no such thing in partition {name!r}"


def _released(message: Release) -> str:
    """Return the object that a release names, in words."""
    key = message.key or message.uuid
    if message.application_id:
        application = f"application {message.application_id!r}"
        return f"allocation {key!r} of {application}" if key else application
    return f"foreign allocation {key!r}" if message.what == "both" else f"{message.what} {key!r}"


def _is_there(partition: Partition, message: Release, begun: _Begun) -> bool:
    name, app_id, key = message.partition, message.application_id, message.key or message.uuid
    if (name, app_id, key) in begun.keys:
        return True
    if app_id:
        app = partition.applications.get(app_id)
        if app is None:
            return not key and (name, app_id) in begun.applications
        return not key or holds(app, key)
    if message.what == "both":
        return key in partition.foreign
    return any(holds(app, key) for app in partition.applications.values())


def holds(app: Application, key: str) -> bool:
    """Tell whether an application has an ask or allocation of this name, or one that is replacing a placeholder."""
    return key in app.asks or key in app.allocations or (app.gang is not None and key in app.gang.arriving)


__all__ = ["NoEffectError", "holds", "refuse_unknown"]
