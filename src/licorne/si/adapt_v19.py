"""Between the dialect of 1.9 and the core.

In: three kinds of request, each to a list of inputs, in the order in which the original handles them: additions
before removals, allocations before releases. Asks take the fast way through the check (`licorne.si._check`): a
resource manager starts with a hundred thousand of them.

Out: responses of three kinds, and scheduling states. Their order is the order of the core's outputs, also between
`new` and `released`: a response that holds both would lose it, because its reader goes list by list. So a response
ends where the kind of list changes; only the verdicts on new applications, and those on new nodes, share a response
(spec section 7.1), since each of them is about a different one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Literal

from licorne.si import messages, v19
from licorne.si._check import Fault, plain, salvaged
from licorne.si.adapt import (
    ShortPartitions,
    Translation,
    accepted_application,
    accepted_node,
    application_input,
    changed_attributes,
    each,
    each_row,
    node_attributes,
    qualified_partition,
    refused_allocation,
    refused_application,
    refused_node,
    rejected_application,
    rejected_node,
    removal_input,
    short_partition,
    updated_application,
)
from licorne.si.messages import NodeAction, Output, Termination

Kind = Literal["application", "allocation", "node", "state"]
Response = (
    v19.ApplicationResponse | v19.AllocationResponse | v19.NodeResponse | v19.UpdateContainerSchedulingStateRequest
)


# -- in: applications ------------------------------------------------------------------------------------


def inputs_from_application_request(req: v19.ApplicationRequest) -> Translation:
    """Additions, then removals. A removal that cannot be read is ignored, like that of an unknown application."""
    result = Translation()
    if not isinstance(req, v19.ApplicationRequest):
        result.ignored.append(str(Fault(req, "must be ApplicationRequest")))
        return result
    rm_id = salvaged(req, "rm_id")

    def add(value: object) -> None:
        app = plain(value, v19.AddApplicationRequest)
        result.inputs.append(application_input(app, rm_id, timeout_is_running_time=False))

    def remove(value: object) -> None:
        result.inputs.append(removal_input(plain(value, v19.RemoveApplicationRequest), rm_id))

    each(result, "new", req.new, add, refused_application)
    each(result, "remove", req.remove, remove, None)
    return result


# -- in: asks, allocations and releases ------------------------------------------------------------------


def inputs_from_allocation_request(req: v19.AllocationRequest) -> Translation:
    """Asks and allocations, then releases. A release that cannot be read is ignored, like that of an unknown key."""
    result = Translation()
    if not isinstance(req, v19.AllocationRequest):
        result.ignored.append(str(Fault(req, "must be AllocationRequest")))
        return result
    rm_id = salvaged(req, "rm_id")

    def release(value: object) -> None:
        result.inputs.append(_release(plain(value, v19.AllocationRelease), rm_id))

    each_row(result, "allocations", req.allocations, v19.Allocation, _ask_reader(rm_id), refused_allocation)
    if req.releases is not None:
        releases = getattr(req.releases, "allocations_to_release", req.releases)
        each(result, "releases.allocationsToRelease", releases, release, None)
    return result


def _ask_reader(rm_id: str) -> Callable[..., messages.Allocation]:
    """What turns the fields of an `Allocation`, in the order of their declaration, into an input."""
    partitions = ShortPartitions(rm_id)

    def ask(
        key: str,
        tags: dict[str, str],
        resource: dict[str, int] | None,
        priority: int,
        node_id: str,
        application_id: str,
        partition: str,
        task_group: str,
        placeholder: bool,
        originator: bool,
        policy: v19.PreemptionPolicy | None,
    ) -> messages.Allocation:
        own, other = _flags(policy)
        return messages.Allocation(
            key=key,
            application_id=application_id,
            partition=partitions[partition],
            resource=resource,
            priority=priority,
            tags=tags or None,
            node_id=node_id,
            task_group=task_group,
            placeholder=placeholder,
            originator=originator,
            allow_preempt_self=own,
            allow_preempt_other=other,
        )

    return ask


def _flags(policy: Any) -> tuple[bool, bool]:
    """What a preemption policy says; not looked into yet, unlike the fields of the ask."""
    if policy is None:
        return False, False
    if type(policy) is v19.PreemptionPolicy:
        flags: tuple[Any, Any] = policy.allow_preempt_self, policy.allow_preempt_other
        if type(flags[0]) is bool and type(flags[1]) is bool:
            return flags
    try:
        policy = plain(policy, v19.PreemptionPolicy)
    except Fault as fault:
        raise fault.inside("preemptionPolicy") from None
    return policy.allow_preempt_self, policy.allow_preempt_other


_TERMINATIONS = {number.value: number for number in Termination}
"""A type of a later version (SCHEDULING_FAILED_ON_RM) is a plain removal (spec scheduling.md, section 14)."""


def _release(release: v19.AllocationRelease, rm_id: str) -> messages.Release:
    return messages.Release(
        partition=short_partition(release.partition_name, rm_id),
        application_id=release.application_id,
        key=release.allocation_key,
        termination=_TERMINATIONS.get(release.termination_type, Termination.UNKNOWN),
        message=release.message,
        what="both",
    )


# -- in: nodes -------------------------------------------------------------------------------------------


def inputs_from_node_request(req: v19.NodeRequest) -> Translation:
    """Nodes in the order of the request. One that cannot be read, or that says not what to do, is refused."""
    result = Translation()
    if not isinstance(req, v19.NodeRequest):
        result.ignored.append(str(Fault(req, "must be NodeRequest")))
        return result
    rm_id = salvaged(req, "rm_id")

    def read(value: object) -> None:
        result.inputs.append(_node(plain(value, v19.NodeInfo), rm_id))

    each(result, "nodes", req.nodes, read, refused_node)
    return result


def _node(node: v19.NodeInfo, rm_id: str) -> messages.NodeUpdate:
    """Only an update or a new node says anything but which node is meant and what is to be done with it."""
    action = NodeAction(node.action)
    if action is NodeAction.UNKNOWN:
        raise Fault(0, "must say what is to be done with the node").inside("action")
    partition, attributes = node_attributes(node.attributes, rm_id)
    update = messages.NodeUpdate(node_id=node.node_id, action=action, partition=partition)
    if action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN):
        update.attributes, update.capacity = attributes, node.schedulable_resource
    elif action is NodeAction.UPDATE:
        update.attributes = changed_attributes(node.attributes, attributes)
        update.capacity = node.schedulable_resource
    return update


# -- out -------------------------------------------------------------------------------------------------

_LISTS: dict[type[Output], str] = {
    messages.AcceptedApplication: "application verdicts",
    messages.RejectedApplication: "application verdicts",
    messages.UpdatedApplication: "application updates",
    messages.NewAllocation: "new",
    messages.Released: "released",
    messages.RejectedAllocation: "rejected allocations",
    messages.AcceptedNode: "node verdicts",
    messages.RejectedNode: "node verdicts",
    messages.WaitingForResources: "state",
}
"""Outputs that may share a response carry the same name."""


def responses(outputs: Iterable[Output], rm_id: str) -> Iterator[tuple[Kind, Response]]:
    """The core's outputs as messages to a resource manager, in the order in which they must be delivered."""
    for name, run in groupby(outputs, key=lambda output: _LISTS[type(output)]):
        if name == "state":
            yield from (("state", _state(output)) for output in run)
        elif name.startswith("application"):
            yield "application", _application_response(run)
        elif name.startswith("node"):
            yield "node", _node_response(run)
        else:
            yield "allocation", _allocation_response(run, rm_id)


def _application_response(outputs: Iterable[Output]) -> v19.ApplicationResponse:
    response = v19.ApplicationResponse()
    for output in outputs:
        match output:
            case messages.AcceptedApplication():
                response.accepted.append(accepted_application(output))
            case messages.RejectedApplication():
                response.rejected.append(rejected_application(output))
            case messages.UpdatedApplication():
                response.updated.append(updated_application(output))
    return response


def _allocation_response(outputs: Iterable[Output], rm_id: str) -> v19.AllocationResponse:
    response = v19.AllocationResponse()
    for output in outputs:
        match output:
            case messages.NewAllocation():
                response.new.append(_new(output))
            case messages.Released():
                response.released.append(_released(output, rm_id))
            case messages.RejectedAllocation():
                response.rejected_allocations.append(
                    v19.RejectedAllocation(
                        allocation_key=output.key, application_id=output.application_id, reason=output.reason
                    )
                )
    return response


def _new(output: messages.NewAllocation) -> v19.Allocation:
    """A decision holds no partition, no tags and no priority (spec section 7.3)."""
    return v19.Allocation(
        allocation_key=output.key,
        resource_per_alloc=output.resource,
        node_id=output.node_id,
        application_id=output.application_id,
        task_group_name=output.task_group,
        placeholder=output.placeholder,
        originator=output.originator,
        preemption_policy=v19.PreemptionPolicy(
            allow_preempt_self=output.allow_preempt_self, allow_preempt_other=output.allow_preempt_other
        ),
    )


def _released(output: messages.Released, rm_id: str) -> v19.AllocationRelease:
    return v19.AllocationRelease(
        partition_name=qualified_partition(output.partition, rm_id),
        application_id=output.application_id,
        termination_type=v19.TerminationType(output.termination),
        message=output.message,
        allocation_key=output.key,
    )


def _node_response(outputs: Iterable[Output]) -> v19.NodeResponse:
    response = v19.NodeResponse()
    for output in outputs:
        match output:
            case messages.AcceptedNode():
                response.accepted.append(accepted_node(output))
            case messages.RejectedNode():
                response.rejected.append(rejected_node(output))
    return response


def _state(output: Any) -> v19.UpdateContainerSchedulingStateRequest:
    return v19.UpdateContainerSchedulingStateRequest(
        application_id=output.application_id,
        allocation_key=output.key,
        state=v19.SchedulingState.FAILED,
        reason=output.reason,
    )
