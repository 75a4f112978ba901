"""Making requests of the 1.9 interface from lines, for a scheduler behind gRPC.

`licorne.sim.inputs` makes the core's own messages of the same lines, for a scheduler in the same process.
"""

from __future__ import annotations

from licorne.si import v19
from licorne.si.constants import (
    DOMAIN_K8S,
    FOREIGN_DEFAULT,
    GROUP_META,
    KEY_FOREIGN,
    KEY_NAMESPACE,
    KEY_POD_NAME,
    TAG_NAMESPACE,
)
from licorne.sim import lines
from licorne.sim.gangs import ATOMIC, TAG_GANG_SCHEDULING, TAG_TASK_GROUPS, placeholder_ask, task_groups

RM_ID = "demo"
_POLICIES = {
    (own, other): v19.PreemptionPolicy(allow_preempt_self=own, allow_preempt_other=other)
    for own in (False, True)
    for other in (False, True)
}


def application(line: lines.App, speed: float) -> v19.AddApplicationRequest:
    """Make a new application. A gang has its task groups as a tag, and the sum of its placeholders if it has these."""
    tags, placeholders = dict(line.tags or {}), None
    if line.gang:
        tags[TAG_TASK_GROUPS] = task_groups(line.gang)
        if line.atomic:
            tags[TAG_GANG_SCHEDULING] = ATOMIC
        else:
            placeholders = placeholder_ask(line.gang)
    return v19.AddApplicationRequest(
        application_id=line.id,
        queue_name=line.queue,
        ugi=v19.UserGroupInformation(user=line.user, groups=list(line.groups)),
        tags=tags,
        execution_timeout_milli_seconds=max(1, round(line.ph_timeout_ms / speed)) if placeholders else 0,
        placeholder_ask=placeholders,
        gang_scheduling_style=line.style,
    )


def allocation(line: lines.Ask, job: lines.App, node: str = "") -> v19.Allocation:
    """Make an ask of the application `job`; with a node, an allocation that runs there."""
    namespace = (job.tags or {}).get(TAG_NAMESPACE, job.user)
    return v19.Allocation(
        allocation_key=line.key,
        allocation_tags={**_shown_as(namespace, line.key), **(line.tags or {})},
        application_id=line.app,
        resource_per_alloc=line.res,
        priority=line.prio,
        node_id=node,
        task_group_name=line.group,
        placeholder=line.ph,
        originator=line.originator,
        preemption_policy=_POLICIES[line.pre_self, line.pre_other],
    )


def foreign(line: lines.Foreign) -> v19.Allocation:
    """Make an allocation of another scheduler."""
    return v19.Allocation(
        allocation_key=line.key,
        allocation_tags={**_shown_as("kube-system", line.key), KEY_FOREIGN: FOREIGN_DEFAULT},
        resource_per_alloc=line.res,
        node_id=line.node,
    )


def _shown_as(namespace: str, pod: str) -> dict[str, str]:
    """Return the tags from which web pages make the name of a pod."""
    meta = DOMAIN_K8S + GROUP_META
    return {meta + KEY_NAMESPACE: namespace, meta + KEY_POD_NAME: pod}


def release(
    app: str, key: str, termination: v19.TerminationType = v19.TerminationType.STOPPED_BY_RM
) -> v19.AllocationRelease:
    """Make the release of a pod's allocation or ask."""
    return v19.AllocationRelease(application_id=app, allocation_key=key, termination_type=termination)


def node(line: lines.Node, *, drained: bool = False) -> v19.NodeInfo:
    """Make a new node."""
    action = v19.ActionFromRM.CREATE_DRAIN if drained or line.drain else v19.ActionFromRM.CREATE
    return v19.NodeInfo(
        node_id=line.id, action=action, attributes=dict(line.attrs or {}), schedulable_resource=line.res
    )


def node_change(line: lines.NodeUpdate | lines.NodeDrain | lines.NodeUndrain | lines.NodeRemove) -> v19.NodeInfo:
    """Make a change of a node."""
    if isinstance(line, lines.NodeUpdate):
        return v19.NodeInfo(node_id=line.id, action=v19.ActionFromRM.UPDATE, schedulable_resource=line.res)
    if isinstance(line, lines.NodeDrain):
        return v19.NodeInfo(node_id=line.id, action=v19.ActionFromRM.DRAIN_NODE)
    if isinstance(line, lines.NodeUndrain):
        return v19.NodeInfo(node_id=line.id, action=v19.ActionFromRM.DRAIN_TO_SCHEDULABLE)
    return v19.NodeInfo(node_id=line.id, action=v19.ActionFromRM.DECOMISSION)
