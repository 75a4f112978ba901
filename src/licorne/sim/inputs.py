"""Convert lines of a workload to messages for the core.

The simulator submits the internal messages (`si.messages`) rather than those of a dialect: a workload can say more than
either dialect can, and translating a million asks twice is a waste. Fields that a line leaves out have the defaults of the
messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from licorne.si import messages
from licorne.si.constants import DEFAULT_PARTITION, FOREIGN_DEFAULT, NODE_PARTITION, TAG_FOREIGN
from licorne.sim.gangs import ATOMIC, TAG_GANG_SCHEDULING, TAG_TASK_GROUPS, placeholder_ask, task_groups
from licorne.workload import lines


def ask(line: lines.Ask) -> messages.Allocation:
    """Convert an ask, or with a node an existing allocation."""
    return messages.Allocation(
        key=line.key,
        application_id=line.app,
        resource=line.res,
        priority=line.prio,
        tags=line.tags,
        node_id=line.node,
        task_group=line.group,
        placeholder=line.ph,
        originator=line.originator,
        allow_preempt_self=line.pre_self,
        allow_preempt_other=line.pre_other,
        max_allocations=line.max,
        timeout_ms=line.timeout_ms,
    )


def application(line: lines.App) -> messages.AddApplication:
    """Convert a new application, with the timeout of its placeholders or else the limit of its running time.

    The message has one field for both (as the dialects have), so only one of the two can apply
    (docs/spec/scheduling.md, section 16.9: an application with a placeholder ask has no limit of its running time).

    A gang carries its groups as a tag; the total of its placeholders is computed from them.
    """
    tags, placeholders = line.tags or {}, line.ph_ask or {}
    if line.gang:
        tags = {**tags, TAG_TASK_GROUPS: task_groups(line.gang)}
        if line.atomic:
            tags[TAG_GANG_SCHEDULING] = ATOMIC
        else:
            placeholders = placeholder_ask(line.gang)
    gang = bool(placeholders)
    return messages.AddApplication(
        application_id=line.id,
        queue=line.queue,
        user=line.user,
        groups=line.groups,
        tags=tags,
        execution_timeout_ms=line.ph_timeout_ms if gang else line.timeout_ms,
        timeout_is_running_time=not gang and line.timeout_ms > 0,
        placeholder_ask=placeholders,
        gang_style=line.style,
    )


def node(line: lines.Node) -> messages.NodeUpdate:
    """Convert a new node, in the partition that its attribute names."""
    attributes = line.attrs or {}
    return messages.NodeUpdate(
        node_id=line.id,
        action=messages.NodeAction.CREATE_DRAIN if line.drain else messages.NodeAction.CREATE,
        partition=attributes.get(NODE_PARTITION) or DEFAULT_PARTITION,
        attributes=attributes,
        capacity=line.res,
    )


def node_update(line: lines.NodeUpdate) -> messages.NodeUpdate:
    """Convert a change of a node; capacity or attributes that the line leaves out stay."""
    return messages.NodeUpdate(
        node_id=line.id, action=messages.NodeAction.UPDATE, attributes=line.attrs, capacity=line.res
    )


def foreign(line: lines.Foreign) -> messages.Allocation:
    """Convert an allocation of another scheduler."""
    tags = {TAG_FOREIGN: FOREIGN_DEFAULT} | (line.tags or {})
    return messages.Allocation(key=line.key, resource=line.res, node_id=line.node, tags=tags)


def convert(line: lines.Line) -> messages.Input:
    """Convert a line of any kind that is a message; a configuration, a reload or a run is none."""
    return _CONVERSIONS[type(line)](line)


_CONVERSIONS: dict[type[lines.Line], Callable[[Any], messages.Input]] = {
    lines.Ask: ask,
    lines.App: application,
    lines.Node: node,
    lines.NodeUpdate: node_update,
    lines.NodeDrain: lambda line: messages.NodeUpdate(node_id=line.id, action=messages.NodeAction.DRAIN_NODE),
    lines.NodeUndrain: lambda line: messages.NodeUpdate(
        node_id=line.id, action=messages.NodeAction.DRAIN_TO_SCHEDULABLE
    ),
    lines.NodeRemove: lambda line: messages.NodeUpdate(node_id=line.id, action=messages.NodeAction.DECOMISSION),
    lines.ReleaseApp: lambda line: messages.RemoveApplication(application_id=line.app),
    lines.Foreign: foreign,
    lines.Release: lambda line: messages.Release(application_id=line.app, key=line.key),
}
