"""Limits on one item of a request: lengths of names, and numbers of tags, groups and types of resources.

An item beyond a limit is refused alone, with field, value and rule; the other items of the request are accepted. Asks
come by the hundred thousand, so compiled code (`licorne.si.reading.within`) first checks whether any of them is beyond
a limit; only then does this module search for it. Releases and removals need no limit: they only name what must exist
already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from licorne.host.pace import paced
from licorne.si._check import Fault
from licorne.si.adapt import Translation
from licorne.si.constants import NODE_PARTITION
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeUpdate,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
)
from licorne.si.reading import within

from .settings import ServiceSettings


async def enforce(translation: Translation, settings: ServiceSettings) -> None:
    """Remove the items beyond a limit from the inputs, in steps, and add a refusal of each to the outputs."""
    inputs = translation.inputs
    if not inputs:
        return
    others = type(inputs[0]) in (AddApplication, NodeUpdate)  # if there are any, both adapters put them first
    if within(inputs, settings.names, settings.tags) and not others:
        return
    kept: list[Input] = []
    async for item in paced(inputs):
        refusal = _refusal(item, settings)
        if refusal is None:
            kept.append(item)
        else:
            translation.outputs.append(refusal)
    translation.inputs = kept


def _refusal(item: Input, settings: ServiceSettings) -> Output | None:
    try:
        if type(item) is Allocation:
            _check_ask(item, settings)
        elif type(item) is AddApplication:
            _check_application(item, settings)
        elif type(item) is NodeUpdate:
            _check_node(item, settings)
    except Fault as fault:
        reason = str(fault)
        if isinstance(item, Allocation):
            return RejectedAllocation(item.key, item.application_id, reason)
        if isinstance(item, AddApplication):
            return RejectedApplication(item.application_id, reason)
        assert isinstance(item, NodeUpdate)
        return RejectedNode(item.node_id, reason)
    return None


def _check_ask(ask: Allocation, settings: ServiceSettings) -> None:
    if within((ask,), settings.names, settings.tags):
        return
    _names(settings, "allocationKey", (ask.key,))
    _names(settings, "applicationID", (ask.application_id,))
    _names(settings, "taskGroupName", (ask.task_group,))
    _entries(settings, "allocationTags", ask.tags)
    _entries(settings, "resourcePerAlloc", ask.resource)


def _check_application(app: AddApplication, settings: ServiceSettings) -> None:
    _names(settings, "applicationID", (app.application_id,))
    _names(settings, "queueName", (app.queue,))
    _names(settings, "ugi.user", (app.user,))
    _entries(settings, "ugi.groups", app.groups)
    _entries(settings, "tags", app.tags)
    _entries(settings, "placeholderAsk", app.placeholder_ask)


def _check_node(node: NodeUpdate, settings: ServiceSettings) -> None:
    _names(settings, "nodeID", (node.node_id,))
    _entries(settings, "attributes", (node.attributes or {}).keys() - {NODE_PARTITION})  # the adapters set this one
    _entries(settings, "schedulableResource", node.capacity)
    _entries(settings, "occupiedResource", node.occupied)
    for ask in node.existing:
        _check_ask(ask, settings)


def _entries(settings: ServiceSettings, field: str, names: Collection[str] | None) -> None:
    if names is None:
        return
    if len(names) > settings.tags:
        raise Fault(len(names), f"must have at most {settings.tags} entries", field)
    _names(settings, field, names)


def _names(settings: ServiceSettings, field: str, names: Iterable[str]) -> None:
    for name in names:
        if len(name) > settings.names:
            raise Fault(name, f"must have at most {settings.names} characters", field)
