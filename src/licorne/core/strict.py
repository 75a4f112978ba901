"""Strict mode: find messages that change nothing because what they name is not there; 1.9 ignores these silently.

A resource manager that is being written has such a message for a mistake: a misspelt key, a node that was refused. One
that runs sends them in good order, because ends cross on the way; so it is off unless a host asks for it.

A request is looked at as a whole, before anything of it is taken in. What it begins itself counts as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from licorne.core.amounts.faults import amounts_fault
from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Release,
)

if TYPE_CHECKING:
    from licorne.core.queues.application import Application

    from .manager import RegisteredManager
    from .partition import Partition

NEW_NODE = (NodeAction.CREATE, NodeAction.CREATE_DRAIN)


class NoEffectError(LookupError):
    """With `strict`: a part of a request would change nothing, as it names what is not there. Nothing of it was taken in."""


class _Begun:
    """What a request begins itself, in its own order or not: names, each with its partition."""

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
    """Raise `NoEffectError` if one of these messages names what is not there; it says which, and how many more."""
    found: list[str] = []
    begun: _Begun | None = None
    for message in inputs:
        if isinstance(message, AddApplication | Allocation):
            continue
        begun = _Begun(inputs) if begun is None else begun
        why = _unknown(manager, message, begun)
        if why:
            found.append(why)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise NoEffectError(f"{found[0]}{more}; nothing of the request was taken in")


def _unknown(manager: RegisteredManager, message: Input, begun: _Begun) -> str:
    """What a message names that is not there; empty if all of it is."""
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
        known = message.application_id in partition.applications or (name, message.application_id) in begun.applications
    return "" if known else f"{what}: there is no such thing in partition {name!r}"


def _released(message: Release) -> str:
    """What a release names, in words."""
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
        return not key or _holds(app, key)
    if message.what == "both":
        return key in partition.foreign
    return any(_holds(app, key) for app in partition.applications.values())


def _holds(app: Application, key: str) -> bool:
    """Has the application an ask or an allocation of this name, or one that takes a placeholder's place just now?"""
    return key in app.asks or key in app.allocations or (app.gang is not None and key in app.gang.arriving)


__all__ = ["NoEffectError", "refuse_unknown"]
