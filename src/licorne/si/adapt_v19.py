"""Translates between the 1.9 interface and the core.

In: each of three kinds of request becomes a list of inputs, in the order in which the original handles them: additions
before removals, allocations before releases. Asks take the fast path (`licorne.si.reading`, `licorne.si.wire_asks`):
a resource manager starts with a hundred thousand of them.

Out: responses of three kinds, and scheduling states. They keep the order of the core's outputs, also between `new` and
`released`. A response that held both lists would lose that order, because its reader goes list by list; so a response
ends where the next output belongs to another list. Only the verdicts on new applications share a response, accepted and
rejected ones, and so do those on new nodes (docs/spec/scheduler-interface.md, section 7.1), since each is about a
different application or node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from msgspec.structs import replace

from licorne.si import adapt, messages, v19, wire_roles
from licorne.si._check import Fault, Mistyped, plain, salvaged
from licorne.si.decisions import released_v19, responses_v19, run_end
from licorne.si.messages import NewAllocation, NodeAction, Output, Termination, UpdatedApplication
from licorne.si.partitions import ShortPartitions, names_for
from licorne.si.reading import read_releases_v19, read_v19
from licorne.si.wire_asks import AskReader
from licorne.si.wire_decisions import write_v19
from licorne.si.wire_read import STEP_ITEMS
from licorne.si.wire_write import encode

Kind = Literal["application", "allocation", "node", "state"]
Response = (
    v19.ApplicationResponse | v19.AllocationResponse | v19.NodeResponse | v19.UpdateContainerSchedulingStateRequest
)


# -- in: applications ------------------------------------------------------------------------------------


def inputs_from_application_request(req: v19.ApplicationRequest) -> adapt.Translation:
    """Translate a request: its additions, then its removals.

    A removal that cannot be read is ignored, like that of an unknown application.
    """
    return adapt.translated(req, v19.ApplicationRequest, _applications)


def _applications(result: adapt.Translation, req: v19.ApplicationRequest, rm_id: str) -> Iterator[None]:
    def add(value: object) -> None:
        app = plain(value, v19.AddApplicationRequest)
        result.inputs.append(adapt.application_input(app, rm_id, timeout_is_running_time=False))

    def remove(value: object) -> None:
        result.inputs.append(adapt.removal_input(plain(value, v19.RemoveApplicationRequest), rm_id))

    yield from adapt.each(result, "new", req.new, add, adapt.refused_application)
    yield from adapt.each(result, "remove", req.remove, remove, None)


APPLICATIONS = adapt.Reading(v19.ApplicationRequest, "", lambda result, req, *_: _applications(result, req, req.rm_id))


# -- in: asks, allocations and releases ------------------------------------------------------------------


def inputs_from_allocation_request(req: v19.AllocationRequest) -> adapt.Translation:
    """Translate a request: its asks and allocations, then its releases.

    A release that cannot be read is ignored, like that of an unknown key.
    """
    result = adapt.Translation()
    if not isinstance(req, v19.AllocationRequest):
        result.ignored.append(result.reason(Mistyped(req, "must be AllocationRequest")))
        return result
    rm_id = salvaged(req, "rm_id")

    partitions = names_for(rm_id).short
    asks = req.allocations
    if asks or type(asks) is not list:  # a request with releases mostly has no asks
        slow_path = adapt.ask_slow_path(result, "allocations", v19.Allocation, _ask_reader(partitions))
        result.inputs += read_v19(adapt.readable(result, "allocations", asks), partitions, slow_path)
    if req.releases is not None:
        adapt.finish(_releases(result, req.releases, partitions))
    return result


def _allocations(
    result: adapt.Translation, req: v19.AllocationRequest, data: bytes, lengths: list[int]
) -> Iterator[None]:
    partitions = names_for(req.rm_id).short
    slow_path = adapt.ask_slow_path_on_wire(
        result, "AllocationRequest", "allocations", data, v19.Allocation, _ask_reader(partitions)
    )
    reader = AskReader(data, lengths, wire_roles.V19, partitions, slow_path)
    for start in range(0, len(lengths), adapt.STEP_ASKS):
        result.inputs += reader.read(start, start + adapt.STEP_ASKS)
        yield
    if req.releases is not None:
        yield from _releases(result, req.releases, partitions)


ALLOCATIONS = adapt.Reading(v19.AllocationRequest, "allocations", _allocations)


def _releases(result: adapt.Translation, releases: object, partitions: ShortPartitions) -> Iterator[None]:
    name = "releases.allocationsToRelease"
    start = 0

    def slow_path(index: int, value: object) -> messages.Release | None:
        try:
            return _release(plain(_known_type(value), v19.AllocationRelease), partitions)
        except Fault as fault:
            result.ignored.append(result.reason(fault.inside(f"{name}[{start + index}]")))
            return None

    listed = adapt.readable(result, name, getattr(releases, "allocations_to_release", releases))
    for start in range(0, len(listed), STEP_ITEMS):
        result.inputs += read_releases_v19(listed[start : start + STEP_ITEMS], partitions, slow_path)
        yield


def _known_type(value: object) -> object:
    """Replace a termination type of a later version by the unknown one; return anything else as it is.

    A release of an unknown type is a plain removal (docs/spec/scheduling.md, section 14).
    """
    if type(value) is not v19.AllocationRelease or type(value.termination_type) is not int:
        return value
    if value.termination_type in _TERMINATIONS:
        return value
    return replace(value, termination_type=v19.TerminationType.UNKNOWN_TERMINATION_TYPE)


def _ask_reader(partitions: ShortPartitions) -> Callable[..., messages.Allocation]:
    """Return the function that makes an input of an `Allocation`'s fields, given in the order of their declaration."""

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
        flags = policy or v19.PreemptionPolicy()
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
            allow_preempt_self=flags.allow_preempt_self,
            allow_preempt_other=flags.allow_preempt_other,
        )

    return ask


_TERMINATIONS = frozenset(v19.TerminationType)


def _release(release: v19.AllocationRelease, partitions: ShortPartitions) -> messages.Release:
    return messages.Release(
        partition=partitions[release.partition_name],
        application_id=release.application_id,
        key=release.allocation_key,
        termination=Termination(release.termination_type),
        message=release.message,
        what="both",
    )


# -- in: nodes -------------------------------------------------------------------------------------------


def inputs_from_node_request(req: v19.NodeRequest) -> adapt.Translation:
    """Translate the nodes of a request in order. A node that cannot be read, or whose action is unknown, is refused."""
    return adapt.translated(req, v19.NodeRequest, _nodes)


def _nodes(result: adapt.Translation, req: v19.NodeRequest, rm_id: str) -> Iterable[None]:
    def read(value: object) -> None:
        result.inputs.append(_node(plain(value, v19.NodeInfo), rm_id))

    return adapt.each(result, "nodes", req.nodes, read, adapt.refused_node)


NODES = adapt.Reading(v19.NodeRequest, "", lambda result, req, *_: _nodes(result, req, req.rm_id))


def _node(node: v19.NodeInfo, rm_id: str) -> messages.NodeUpdate:
    """Translate a node. With an action that neither creates nor updates it only the node and the action count.

    Raises:
        Fault: the action is unknown.
    """
    action = NodeAction(node.action)
    if action is NodeAction.UNKNOWN:
        raise Fault(0, "must say what is to be done with the node").inside("action")
    partition, attributes = adapt.node_attributes(node.attributes, rm_id)
    update = messages.NodeUpdate(node_id=node.node_id, action=action, partition=partition)
    if action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN):
        update.attributes, update.capacity = attributes, node.schedulable_resource
    elif action is NodeAction.UPDATE:
        update.attributes = adapt.changed_attributes(node.attributes, attributes)
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
"""The list of a response to which each type of output belongs: outputs with the same name may share a response."""
_VERDICTS: dict[type[Output], str] = {
    messages.AcceptedApplication: "accepted",
    messages.RejectedApplication: "rejected",
    messages.UpdatedApplication: "updated",
    messages.AcceptedNode: "accepted",
    messages.RejectedNode: "rejected",
}
"""The list of a response for each type of output that is alike in both dialects."""


def responses(outputs: Iterable[Output], rm_id: str) -> list[tuple[Kind, Response]]:
    """Translate the core's outputs to messages, in the order in which they must be delivered."""
    return responses_v19(outputs if type(outputs) is list else list(outputs), rm_id, other_responses)


def other_responses(outputs: list[Output], start: int, rm_id: str) -> tuple[int, list[tuple[Kind, Response]]]:
    """Return where the run of outputs ends that begins at `start`, and its responses."""
    end = start + 1
    # A single update, as comes with an application's first pod, is a run of its own: the search is spared.
    followed = end < len(outputs) and type(outputs[end]) is UpdatedApplication
    if type(outputs[start]) is not UpdatedApplication or followed:
        end = _end_of_run(outputs, start)
    return end, _responses_of_run(outputs, start, end, rm_id)


def responses_as_bytes(outputs: Iterable[Output], rm_id: str) -> list[tuple[Kind, bytes]]:
    """Translate the core's outputs to messages as protobuf bytes, in the order in which they must be delivered.

    This is for a host that takes the core's outputs (`on_output`) and sends bytes.
    """
    found = outputs if type(outputs) is list else list(outputs)
    made: list[tuple[Kind, bytes]] = []
    start = 0
    while start < len(found):
        end = _end_of_run(found, start)
        if type(found[start]) is NewAllocation:
            made.append(("allocation", write_v19(found, start, end)))
        else:
            made += [(kind, encode(response)) for kind, response in _responses_of_run(found, start, end, rm_id)]
        start = end
    return made


def _end_of_run(outputs: list[Output], start: int) -> int:
    """Return where the run of outputs ends that may share a response with the one at `start`."""
    end = run_end(outputs, start)
    name = _LISTS[type(outputs[start])]
    while end < len(outputs) and _LISTS[type(outputs[end])] == name:
        end += 1
    return end


def _responses_of_run(outputs: list[Output], start: int, end: int, rm_id: str) -> list[tuple[Kind, Response]]:
    """Make the responses for a run of outputs that may share one, other than decisions."""
    name = _LISTS[type(outputs[start])]
    if name == "released":
        return [("allocation", v19.AllocationResponse(released=released_v19(outputs, start, end, rm_id)))]
    run = outputs[start:end]
    if name == "rejected allocations":
        rejected = [_rejected_allocation(output) for output in run]
        return [("allocation", v19.AllocationResponse(rejected_allocations=rejected))]
    if name == "state":
        return [("state", _state(output)) for output in run]
    kind: Kind = "node" if name == "node verdicts" else "application"
    response: Response = v19.NodeResponse() if kind == "node" else v19.ApplicationResponse()
    for output in run:
        getattr(response, _VERDICTS[type(output)]).append(adapt.verdict(output))
    return [(kind, response)]


def _rejected_allocation(output: Any) -> v19.RejectedAllocation:
    return v19.RejectedAllocation(allocation_key=output.key, application_id=output.application_id, reason=output.reason)


def _state(output: Any) -> v19.UpdateContainerSchedulingStateRequest:
    return v19.UpdateContainerSchedulingStateRequest(
        application_id=output.application_id,
        allocation_key=output.key,
        state=v19.SchedulingState.FAILED,
        reason=output.reason,
    )
