"""A scheduler in which things come and go, and its resource manager, which ends what it is asked to end.

Everything goes through the public API, as internal messages, the shortest way in. Virtual time passes with each event, so that
deadlines come due and cleaners run.
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
"""How much time passes with each event."""
ENDED_BY_US = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)
"""What the resource manager has to confirm."""
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
"""Those with an application that asks are of."""
NODES = 8
CORES = 64_000


class Hearing(ResourceManagerCallback):
    """A resource manager that wants records of events."""

    def send_event(self, events: Sequence[v19.EventRecord] | Sequence[first.EventRecord]) -> None:
        """Take them; nobody reads them."""


class World:
    """A scheduler with a few nodes and one application in each queue, in which other things come and go.

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
        """Let there be the applications that asks are of; something of each runs for ever, so that it does not complete."""
        for queue in QUEUES:
            self.tell(application(queue, f"root.{queue}"), ask("anchor", queue, {"pods": 1}))
        self.decide()

    @property
    def partition(self) -> Partition:
        """The partition in which things come and go."""
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
        """Say this to the scheduler."""
        self.api.submit(RM_ID, list(inputs), now_ns=self.now_ns)

    def decide(self) -> None:
        """Let it decide, and end what it wants ended, until there is nothing more to do."""
        self.allocated += self.api.schedule(now_ns=self.now_ns)
        while self._to_end:
            ended, self._to_end = self._to_end, []
            self.tell(*ended)
            self.allocated += self.api.schedule(now_ns=self.now_ns)

    def step(self) -> None:
        """A moment passes."""
        self.now_ns += STEP_NS

    def release(self, key: str, app_id: str) -> None:
        """The resource manager wants an ask, or the allocation of it, to end."""
        uuid = self._uuids.pop(key, "")
        what = "both" if not self._first_interface else "allocation" if uuid else "ask"
        self.tell(Release(key=key, application_id=app_id, uuid=uuid, what=what, termination=Termination.STOPPED_BY_RM))

    def rest(self, length_s: int) -> None:
        """So much time passes, and what has a deadline happens at its time."""
        end = self.now_ns + length_s * SECOND_NS
        while (due := self.api.next_deadline_ns()) is not None and due <= end:
            self.now_ns = max(due, self.now_ns)
            self.decide()
        self.now_ns = end
        self.decide()


def application(app_id: str, queue: str, user: str = "ann", **fields: object) -> AddApplication:
    """A new application."""
    groups = (f"of-{user}",)
    return AddApplication(application_id=app_id, queue=queue, user=user, groups=groups, **fields)  # type: ignore[arg-type]


def removed(app_id: str) -> RemoveApplication:
    """The end of an application."""
    return RemoveApplication(application_id=app_id)


def ask(key: str, app_id: str, amounts: dict[str, int] | None = None, **fields: object) -> Allocation:
    """An ask, of a thousandth of a core unless said otherwise."""
    return Allocation(key=key, application_id=app_id, resource=amounts or {"vcore": 1}, **fields)  # type: ignore[arg-type]


def constrained(key: str, app_id: str, constraints: str, amounts: dict[str, int] | None = None) -> Allocation:
    """An ask with node constraints."""
    return ask(key, app_id, amounts, tags={TAG_NODE_CONSTRAINTS: constraints})


def node(node_id: str, capacity: dict[str, int], attributes: dict[str, str] | None = None) -> NodeUpdate:
    """A new node."""
    return NodeUpdate(node_id=node_id, action=NodeAction.CREATE, capacity=capacity, attributes=attributes or {})


def gone(node_id: str) -> NodeUpdate:
    """The end of a node."""
    return NodeUpdate(node_id=node_id, action=NodeAction.DECOMISSION)
