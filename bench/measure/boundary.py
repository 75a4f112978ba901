"""The forms in which the benchmark exchanges messages with the scheduler.

A boundary is the form of what a resource manager submits and receives. `Feed` is what it has before the clock starts:
nodes, applications and the asks of a workload, 1,000 in a batch, in the form of this boundary. `Session` is one scheduler
that receives them: nodes and applications are in place when it is made, then batches are submitted, and what comes back is
kept in the form in which it came, or only counted.

To add a boundary, write another pair of these classes and enter it in `FEEDS`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from licorne import SchedulerAPI
from licorne.core.api import PolicyGroups
from licorne.core.calls import OnOutput
from licorne.si import adapt_first, adapt_v19, first, requests_v19, v19
from licorne.si.callback import ResourceManagerCallback
from licorne.si.messages import NewAllocation, Output, RejectedAllocation, RejectedApplication, RejectedNode
from licorne.si.wire import decode, encode
from licorne.sim import inputs
from licorne.workload.lines import App, Ask, Line, Node
from licorne.workload.workload import Mode, Workload, WorkloadError

BoundaryName = Literal["objects", "bytes", "first-bytes"]
"""objects: messages of the 1.9 interface; bytes: the same messages as protobuf; first-bytes: the first interface as protobuf"""

RM_ID = "bench"
ASKS_A_CALL = 1_000


class Session(ABC):
    """A scheduler to be measured. It has returned `made` allocations so far, the last of them at `last_ns`."""

    made = 0
    last_ns = 0

    def __init__(
        self, *, reservations: bool, policy_groups: PolicyGroups | None = None, on_output: OnOutput | None = None
    ) -> None:
        # With reservations time has to pass; without them it stands still, so nothing depends on the machine's speed.
        self.api = SchedulerAPI(
            policy_groups=policy_groups,
            settings={"reservation.enabled": str(reservations).lower()},
            clock=time.monotonic_ns if reservations else None,
            on_output=on_output,
        )
        self.refused: list[str] = []

    @abstractmethod
    def hand_in(self, batch: Any) -> None:
        """Submit one batch of the feed."""

    def decide(self) -> None:
        """Decide until nothing more is possible."""
        while self.api.schedule():
            pass

    @abstractmethod
    def decisions(self) -> list[tuple[str, str]]:
        """Return the pairs of ask and node in the order of decision; empty if they were only counted."""

    def check(self, workload: str, what: str) -> None:
        """Raise WorkloadError if anything was refused, since then the measurement is void."""
        if self.refused:
            raise WorkloadError(f"{workload}: {len(self.refused)} {what}refused, the first: {self.refused[0]}")


class Feed(ABC):
    """What a resource manager has of a workload of version 1 before it connects to a scheduler."""

    batches: Sequence[Any]
    asks: int

    @abstractmethod
    def __init__(self, workload: Workload) -> None: ...

    @abstractmethod
    def connect(self, *, keep: bool, reservations: bool) -> Session:
        """Return a new scheduler with nodes and applications in place. `keep`: keep its decisions rather than count them."""


def feed_of(workload: Workload, boundary: BoundaryName) -> Feed:
    """Return the workload in the form of a boundary.

    Raises WorkloadError for a workload of version 2, or an unknown boundary.
    """
    if workload.mode is not Mode.BATCH:
        raise WorkloadError(f"{workload.name}: only workloads of version 1 can be measured (all asks first, no times)")
    if boundary not in FEEDS:
        raise WorkloadError(f"boundary: {boundary!r} is none of {', '.join(FEEDS)}")
    return FEEDS[boundary](workload)


# -- objects ---------------------------------------------------------------------------------------------


class ObjectFeed(Feed):
    """Messages of the 1.9 interface as Python objects."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.nodes = node_request(workload)
        self.applications = application_request(workload)
        self.batches: list[v19.AllocationRequest] = allocation_requests(ask_messages(workload.lines))
        self.asks = sum(len(batch.allocations) for batch in self.batches)

    def connect(self, *, keep: bool, reservations: bool) -> ObjectSession:
        """Return a new scheduler with nodes and applications in place."""
        return ObjectSession(self, keep=keep, reservations=reservations)


class ObjectSession(Session, ResourceManagerCallback):
    """A resource manager that keeps the objects that it receives."""

    def __init__(self, feed: ObjectFeed, *, keep: bool, reservations: bool) -> None:
        super().__init__(reservations=reservations)
        self.keep = keep
        self.allocations: list[v19.Allocation] = []
        workload = feed.workload
        self.api.register_resource_manager(registration(workload), self)
        self.api.update_node(feed.nodes)
        self.api.update_application(feed.applications)
        self.check(workload.name, "")

    def hand_in(self, batch: v19.AllocationRequest) -> None:
        """Submit one batch of the feed."""
        self.api.update_allocation(batch)

    def decisions(self) -> list[tuple[str, str]]:
        """Return the pairs of ask and node in the order of decision."""
        return [(new.allocation_key, new.node_id) for new in self.allocations]

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Keep or count new allocations, and note the time."""
        if response.new:
            self.made += len(response.new)
            if self.keep:
                self.allocations.extend(response.new)
            self.last_ns = time.perf_counter_ns()
        if response.rejected_allocations:
            self.refused += [refusal.reason for refusal in response.rejected_allocations]

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Collect refusals."""
        self.refused += [refusal.reason for refusal in response.rejected]

    def update_node(self, response: v19.NodeResponse) -> None:
        """Collect refusals."""
        self.refused += [refusal.reason for refusal in response.rejected]


def registration(workload: Workload) -> v19.RegisterResourceManagerRequest:
    """Return the first request, which has the configuration."""
    return v19.RegisterResourceManagerRequest(rm_id=RM_ID, config=workload.config or "", extra_config=workload.extra)


def node_request(workload: Workload) -> v19.NodeRequest:
    """Return a request with all nodes."""
    nodes = [requests_v19.node(inputs.node(line)) for line in workload.lines if isinstance(line, Node)]
    return v19.NodeRequest(rm_id=RM_ID, nodes=nodes)


def application_request(workload: Workload) -> v19.ApplicationRequest:
    """Return a request with all applications."""
    applications = [
        requests_v19.application(inputs.application(line)) for line in workload.lines if isinstance(line, App)
    ]
    return v19.ApplicationRequest(rm_id=RM_ID, new=applications)


def ask_messages(lines: Iterable[Line]) -> list[v19.Allocation]:
    """Return the asks and existing allocations among these lines as messages."""
    return [requests_v19.allocation(inputs.ask(line)) for line in lines if isinstance(line, Ask)]


def allocation_requests(asks: list[v19.Allocation]) -> list[v19.AllocationRequest]:
    """Return requests with these asks, in batches."""
    return [
        v19.AllocationRequest(rm_id=RM_ID, allocations=asks[start : start + ASKS_A_CALL])
        for start in range(0, len(asks), ASKS_A_CALL)
    ]


# -- bytes -----------------------------------------------------------------------------------------------

_REFUSALS = (RejectedAllocation, RejectedApplication, RejectedNode)


class ByteSession(Session):
    """A host between the scheduler and a resource manager that speaks protobuf, in one dialect or the other.

    Outputs are encoded at once, and the bytes are kept. They are decoded only after the clock has stopped.
    """

    def __init__(self, *, keep: bool, reservations: bool, policy_groups: PolicyGroups | None = None) -> None:
        super().__init__(reservations=reservations, policy_groups=policy_groups, on_output=self.send)
        self.keep = keep
        self.sent: list[tuple[str, bytes]] = []

    @abstractmethod
    def as_bytes(self, outputs: list[Output]) -> Sequence[tuple[str, bytes]]:
        """Encode outputs as messages for the resource manager; each comes with its kind."""

    def send(self, _rm_id: str, outputs: list[Output]) -> None:
        """Encode outputs and keep the bytes; count new allocations, and note when they were encoded."""
        sent = self.as_bytes(outputs)
        done_ns = time.perf_counter_ns()
        if self.keep:
            self.sent += sent
        kinds = Counter(map(type, outputs))
        if kinds[NewAllocation]:
            self.made += kinds[NewAllocation]
            self.last_ns = done_ns
        if not kinds.keys().isdisjoint(_REFUSALS):
            self.refused += [output.reason for output in outputs if isinstance(output, _REFUSALS)]


class BytesFeed(Feed):
    """Messages of the 1.9 interface as protobuf."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.nodes = encode(node_request(workload))
        self.applications = encode(application_request(workload))
        requests = allocation_requests(ask_messages(workload.lines))
        self.asks = sum(len(request.allocations) for request in requests)
        self.batches: list[bytes] = [encode(request) for request in requests]

    def connect(self, *, keep: bool, reservations: bool) -> BytesSession:
        """Return a new scheduler with nodes and applications in place."""
        return BytesSession(self, keep=keep, reservations=reservations)


class BytesSession(ByteSession):
    """A session that takes AllocationRequest and returns AllocationResponse, both as bytes."""

    def __init__(self, feed: BytesFeed, *, keep: bool, reservations: bool) -> None:
        super().__init__(keep=keep, reservations=reservations)
        self.api.register_resource_manager(registration(feed.workload))
        self.api.update_node(feed.nodes)
        self.api.update_application(feed.applications)
        self.check(feed.workload.name, "")

    def hand_in(self, batch: bytes) -> None:
        """Submit one batch of the feed."""
        self.api.update_allocation(batch)

    def as_bytes(self, outputs: list[Output]) -> Sequence[tuple[str, bytes]]:
        """Encode outputs as messages for the resource manager."""
        return adapt_v19.responses_as_bytes(outputs, RM_ID)

    def decisions(self) -> list[tuple[str, str]]:
        """Return the pairs of ask and node, decoded from the bytes that were sent."""
        return [
            (new.allocation_key, new.node_id)
            for kind, data in self.sent
            if kind == "allocation"
            for new in decode(v19.AllocationResponse, data).new
        ]


class FirstBytesFeed(Feed):
    """Messages of the first interface as protobuf. That interface has no preemption policy, so it is left out."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.cluster = encode(
            first.UpdateRequest(
                rm_id=RM_ID,
                new_schedulable_nodes=[
                    first.NewNodeInfo(
                        node_id=node.node_id, attributes=node.attributes, schedulable_resource=node.schedulable_resource
                    )
                    for node in node_request(workload).nodes
                ],
                new_applications=application_request(workload).new,
            )
        )
        requests = allocation_requests(ask_messages(workload.lines))
        self.asks = sum(len(request.allocations) for request in requests)
        self.batches: list[bytes] = [
            encode(first.UpdateRequest(rm_id=RM_ID, asks=[_first_ask(ask) for ask in request.allocations]))
            for request in requests
        ]

    def connect(self, *, keep: bool, reservations: bool) -> FirstBytesSession:
        """Return a new scheduler with nodes and applications in place."""
        return FirstBytesSession(self, keep=keep, reservations=reservations)


class FirstBytesSession(ByteSession):
    """A session of UpdateRequest and UpdateResponse as bytes. The configuration is that of a policy group of the host."""

    def __init__(self, feed: FirstBytesFeed, *, keep: bool, reservations: bool) -> None:
        workload = feed.workload
        groups: PolicyGroups = {RM_ID: (workload.config or "", workload.extra)}
        super().__init__(keep=keep, reservations=reservations, policy_groups=groups)
        self.api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id=RM_ID, policy_group=RM_ID))
        self.api.update(feed.cluster)
        self.check(workload.name, "")

    def hand_in(self, batch: bytes) -> None:
        """Submit one batch of the feed."""
        self.api.update(batch)

    def as_bytes(self, outputs: list[Output]) -> Sequence[tuple[str, bytes]]:
        """Encode outputs as messages for the resource manager."""
        return adapt_first.responses_as_bytes(outputs, RM_ID)

    def decisions(self) -> list[tuple[str, str]]:
        """Return the pairs of ask and node, decoded from the bytes that were sent."""
        return [
            (new.allocation_key, new.node_id)
            for kind, data in self.sent
            if kind == "update"
            for new in decode(first.UpdateResponse, data).new_allocations
        ]


def _first_ask(ask: v19.Allocation) -> first.AllocationAsk:
    return first.AllocationAsk(
        allocation_key=ask.allocation_key,
        application_id=ask.application_id,
        partition_name=ask.partition_name,
        resource_ask=ask.resource_per_alloc,
        max_allocations=1,
        priority=first.Priority(priority_value=ask.priority),
        tags=ask.allocation_tags,
        task_group_name=ask.task_group_name,
        placeholder=ask.placeholder,
    )


FEEDS: dict[str, type[Feed]] = {"objects": ObjectFeed, "bytes": BytesFeed, "first-bytes": FirstBytesFeed}
