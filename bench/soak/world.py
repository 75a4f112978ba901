"""The scheduler of a soak, with a resource manager that ends whatever the scheduler asks it to end.

Everything goes through the public API, as internal messages, the fastest way in. Virtual time passes with each event, so
that deadlines come due and cleaners run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.core.partition import Partition
from licorne.si import first, v19
from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NewAllocation,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    Released,
    RemoveApplication,
    Termination,
)

RM_ID = "soak"
GROUP = "soak"
SECOND_NS = 1_000_000_000
STEP_NS = SECOND_NS // 20
"""Virtual time that passes with each event, in nanoseconds."""
ENDED_BY_US = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)
"""Causes of a release that the resource manager has to confirm."""
CONFIG = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    preemption: {enabled: true}
    queues:
      - name: root
        submitacl: "*"
        limits:
          - {limit: each user, users: ["*"], maxresources: {vcore: "1000000"}}
          - {limit: a group, groups: [of-bob], maxapplications: 1000000}
          - {limit: each group, groups: ["*"], maxapplications: 1000000}
        queues:
          - {name: plain}
          - {name: small, resources: {max: {vcore: "1"}}}
          - {name: shy, properties: {application.unschedasks.backoff: "1", application.unschedasks.backoff.delay: 1h}}
          - {name: due, resources: {guaranteed: {vcore: "100"}}, properties: {preemption.delay: 1s}}
          - {name: dynamic, parent: true}
          - {name: promised, parent: true, childtemplate: {resources: {guaranteed: {vcore: "1"}}}}
"""
QUEUES = ("plain", "due")
"""The queues with an application for asks."""
NODES = 8
CORES = 64_000


class Hearing(ResourceManagerCallback):
    """A resource manager that accepts records of events."""

    def send_event(self, events: Sequence[v19.EventRecord] | Sequence[first.EventRecord]) -> None:
        """Ignore the records."""


class World:
    """A scheduler with a few nodes and one application in each of `QUEUES`, in which other things are created and removed.

    `first_interface`: the resource manager speaks the first interface. `hears`: it wants records of events.
    """

    def __init__(
        self, *, first_interface: bool = False, hears: bool = False, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.now_ns = 1_000_000 * SECOND_NS
        self.allocated = 0
        self._to_end: list[Input] = []
        self._first_interface = first_interface
        self._uuids: dict[str, str] = {}
        self.api = SchedulerAPI(on_output=self._hear, policy_groups={GROUP: (CONFIG, settings)})
        self.register(RM_ID, first_interface=first_interface, hears=hears)
        for i in range(NODES):
            self.tell(node(f"node{i}", {"vcore": CORES, "memory": CORES, "pods": 10**6}, {"label/only": f"n{i}"}))
        self.open()

    def register(self, rm_id: str, *, first_interface: bool = False, hears: bool = False) -> None:
        """Register a resource manager."""
        kind = first.RegisterResourceManagerRequest if first_interface else v19.RegisterResourceManagerRequest
        request = kind(rm_id=rm_id, policy_group=GROUP)
        self.api.register_resource_manager(request, Hearing() if hears else None, now_ns=self.now_ns)

    def open(self) -> None:
        """Create the applications for asks; each has an ask that never ends, so that the application does not complete."""
        for queue in QUEUES:
            self.tell(application(queue, f"root.{queue}"), ask("anchor", queue, {"pods": 1}))
        self.decide()

    @property
    def partition(self) -> Partition:
        """The partition in which things are created and removed."""
        return self.api.cluster.partition(RM_ID)

    def _hear(self, rm_id: str, outputs: list[Output]) -> None:
        for output in outputs:
            if type(output) is NewAllocation and output.uuid:
                self._uuids[output.key] = output.uuid
            elif type(output) is Released and not output.ask and output.termination in ENDED_BY_US:
                end = Release(
                    key=output.key,
                    application_id=output.application_id,
                    uuid=output.uuid,
                    what="allocation" if output.uuid else "both",
                    termination=output.termination,
                )
                self._to_end.append(end)

    def tell(self, *inputs: Input) -> None:
        """Submit inputs to the scheduler."""
        self.api.submit(RM_ID, list(inputs), now_ns=self.now_ns)

    def decide(self) -> None:
        """Let the scheduler decide, and end what it asks to end, until nothing more happens."""
        self.allocated += self.api.schedule(now_ns=self.now_ns)
        while self._to_end:
            ended, self._to_end = self._to_end, []
            self.tell(*ended)
            self.allocated += self.api.schedule(now_ns=self.now_ns)

    def step(self) -> None:
        """Let virtual time pass for one event."""
        self.now_ns += STEP_NS

    def release(self, key: str, app_id: str) -> None:
        """Release an ask or its allocation, as the resource manager's wish."""
        uuid = self._uuids.pop(key, "")
        what = "both" if not self._first_interface else "allocation" if uuid else "ask"
        self.tell(Release(key=key, application_id=app_id, uuid=uuid, what=what, termination=Termination.STOPPED_BY_RM))

    def rest(self, length_s: int) -> None:
        """Let `length_s` seconds of virtual time pass, with decisions at each deadline."""
        end = self.now_ns + length_s * SECOND_NS
        while (due := self.api.next_deadline_ns()) is not None and due <= end:
            self.now_ns = max(due, self.now_ns)
            self.decide()
        self.now_ns = end
        self.decide()


def application(app_id: str, queue: str, user: str = "ann", **fields: object) -> AddApplication:
    """Return a new application."""
    groups = (f"of-{user}",)
    return AddApplication(application_id=app_id, queue=queue, user=user, groups=groups, **fields)  # type: ignore[arg-type]


def removed(app_id: str) -> RemoveApplication:
    """Return the end of an application."""
    return RemoveApplication(application_id=app_id)


def ask(key: str, app_id: str, amounts: dict[str, int] | None = None, **fields: object) -> Allocation:
    """Return an ask, for a thousandth of a core unless said otherwise."""
    return Allocation(key=key, application_id=app_id, resource=amounts or {"vcore": 1}, **fields)  # type: ignore[arg-type]


def constrained(key: str, app_id: str, constraints: str, amounts: dict[str, int] | None = None) -> Allocation:
    """Return an ask with node constraints."""
    return ask(key, app_id, amounts, tags={TAG_NODE_CONSTRAINTS: constraints})


def node(node_id: str, capacity: dict[str, int], attributes: dict[str, str] | None = None) -> NodeUpdate:
    """Return a new node."""
    return NodeUpdate(node_id=node_id, action=NodeAction.CREATE, capacity=capacity, attributes=attributes or {})


def gone(node_id: str) -> NodeUpdate:
    """Return the end of a node."""
    return NodeUpdate(node_id=node_id, action=NodeAction.DECOMISSION)
