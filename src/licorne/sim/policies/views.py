"""What policies are given: pods, nodes, queues and applications, as the scheduler knows them at that moment.

An object is read from the scheduler when one of its attributes is, so it costs little and is never out of date. Amounts are as
in workloads: vcore in thousandths of a core, memory in bytes. Types of which there is nothing are left out of a map, so read
`node.free.get("vcore", 0)`. Objects are equal if they are of the same thing, such as the application of two pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from licorne.core.nodes.devices import NO_DEMAND, Demand
from licorne.workload.device_models import accepted_models, model_of
from licorne.workload.measure import NANOSECONDS

if TYPE_CHECKING:
    from licorne.core.amounts.types import Types
    from licorne.core.nodes.node import Node as CoreNode
    from licorne.core.queues.application import Application as CoreApplication
    from licorne.core.queues.ask import Ask as CoreAsk
    from licorne.core.queues.queue import Queue as CoreQueue
    from licorne.sim.model import Pod as ModelPod
    from licorne.workload.lines import Ask as AskLine

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Known(NamedTuple):
    """What the simulator knows besides the scheduler: the line of a pod, by application and key."""

    types: Types
    pod: Callable[[str, str], ModelPod | None]


class _View:
    """What a policy is given. Two are equal if they are of the same thing in the scheduler, so they may be kept in sets and maps.

    An application that comes again under the name of one that has ended is another one, as is a pod that was created again. The
    hash is of the name, not of an address in memory, which would differ from run to run.
    """

    __slots__ = ("_known", "_viewed")

    _viewed: Any

    def __init__(self, viewed: Any, known: Known) -> None:  # noqa: ANN401  # each class says of what it is
        self._viewed = viewed
        self._known = known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _View) and other._viewed is self._viewed

    def __hash__(self) -> int:
        return hash(repr(self))


class Pod(_View):
    """A pod that waits, or in `Node.pods` one that runs."""

    __slots__ = ()
    _viewed: CoreAsk

    def __repr__(self) -> str:
        return f"pod {self.key!r}"

    @property
    def key(self) -> str:
        """Its name."""
        return self._viewed.key

    @property
    def application(self) -> Application:
        """Its application."""
        return Application(self._viewed.app, self._known)

    @property
    def resources(self) -> Mapping[str, int]:
        """What it wants."""
        return MappingProxyType(self._viewed.shape.resource)

    @property
    def devices(self) -> Demand:
        """What it wants of devices: `number` of them, and of each `each` thousandths; 0 and 0 if it wants none.

        So a share is 1 and 1 to 999, and whole devices are their number and 1000.
        """
        return self._viewed.shape.need.demand or NO_DEMAND

    @property
    def models(self) -> tuple[str, ...]:
        """The models of devices that its node constraints list (`licorne.workload.device_models`); empty if any will do."""
        return accepted_models(self._viewed.tags)

    @property
    def priority(self) -> int:
        """Its priority; larger is more urgent."""
        return self._viewed.priority

    @property
    def tags(self) -> Mapping[str, str]:
        """Its tags."""
        return MappingProxyType(self._viewed.tags) if self._viewed.tags else _NOTHING

    @property
    def task_group(self) -> str:
        """The task group of its gang; empty if it is in none."""
        return self._viewed.task_group

    @property
    def placeholder(self) -> bool:
        """Whether it is a placeholder of a gang."""
        return bool(self._viewed.placeholder)

    @property
    def arrived_s(self) -> float:
        """The simulated time, in seconds, at which the pod arrived, or was created again after an eviction."""
        return self._viewed.created / NANOSECONDS

    @property
    def requested_s(self) -> float | None:
        """How long its user expects it to run: `requested_s` of its line, or else `duration_s`; None if neither is known."""
        pod = self._known.pod(self._viewed.app.id, self._viewed.key)
        if pod is None:
            return None
        return pod.ask.requested_s if pod.ask.requested_s is not None else pod.ask.duration_s


class Node(_View):
    """A node."""

    __slots__ = ()
    _viewed: CoreNode

    def __repr__(self) -> str:
        return f"node {self.id!r}"

    @property
    def id(self) -> str:
        """Its name."""
        return self._viewed.id

    @property
    def capacity(self) -> Mapping[str, int]:
        """What it has."""
        return self._viewed.capacity.named(self._known.types)

    @property
    def free(self) -> Mapping[str, int]:
        """What is left of that for pods."""
        return self._viewed.free.named(self._known.types)

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes, as its line has them; the scheduler's labels among them."""
        return MappingProxyType(self._viewed.attributes)

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels, which node constraints are about."""
        return dict(self._viewed.labels.pairs)

    @property
    def pods(self) -> Iterator[Pod]:
        """The pods that run on it, in order of their placement."""
        return (Pod(ask, self._known) for ask in self._viewed.allocations)

    @property
    def devices(self) -> tuple[int, ...]:
        """What is left on each of its devices, in thousandths; empty if it has none."""
        devices = self._viewed.devices
        return tuple(devices.free) if devices is not None else ()

    @property
    def model(self) -> str:
        """The model of its devices, which a label says (`licorne.workload.device_models`); empty if none does."""
        return model_of(self._viewed.attributes)


class NodeBefore(Node):
    """A node in a choice of device, shown without the pod that gets the device, whose amounts the scheduler counts there already."""

    __slots__ = ("_pod",)

    def __init__(self, viewed: CoreNode, known: Known, pod: CoreAsk) -> None:
        super().__init__(viewed, known)
        self._pod = pod

    @property
    def free(self) -> Mapping[str, int]:
        """What is left of its capacity for pods, before this one."""
        left = self._viewed.free.clone()
        left.plus(self._pod.shape.amounts)
        return left.named(self._known.types)

    @property
    def pods(self) -> Iterator[Pod]:
        """The pods that run on it, without this one, in order of their placement."""
        return (Pod(ask, self._known) for ask in self._viewed.allocations if ask is not self._pod)


class Queue(_View):
    """A queue."""

    __slots__ = ()
    _viewed: CoreQueue

    def __repr__(self) -> str:
        return f"queue {self.path}"

    @property
    def path(self) -> str:
        """Its path, such as `root.batch`."""
        return self._viewed.path

    @property
    def used(self) -> Mapping[str, int]:
        """What is allocated to it, and to the queues below it."""
        return self._viewed.allocated_resource()

    @property
    def pending(self) -> Mapping[str, int]:
        """What waits in it, and in the queues below it."""
        return self._viewed.pending_resource()

    @property
    def guaranteed(self) -> Mapping[str, int]:
        """What it is guaranteed; empty if nothing is."""
        return self._viewed.guaranteed_resource() or {}

    @property
    def max(self) -> Mapping[str, int]:
        """Its own quota; empty if it has none. That of the root queue is the size of the cluster."""
        return self._viewed.max_resource() or {}

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties in the configuration: a place for what a policy wants to know about a queue."""
        return MappingProxyType(self._viewed.properties)


class Application(_View):
    """An application."""

    __slots__ = ()
    _viewed: CoreApplication

    def __repr__(self) -> str:
        return f"application {self.id!r}"

    @property
    def id(self) -> str:
        """Its name."""
        return self._viewed.id

    @property
    def queue(self) -> Queue:
        """Its queue."""
        return Queue(self._viewed.queue, self._known)

    @property
    def user(self) -> str:
        """Its user."""
        return self._viewed.user

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of its user."""
        return self._viewed.groups

    @property
    def tags(self) -> Mapping[str, str]:
        """Its tags."""
        return MappingProxyType(self._viewed.tags)

    @property
    def submitted_s(self) -> float:
        """When it came, or its oldest ask if that is earlier."""
        return self._viewed.submitted / NANOSECONDS

    @property
    def used(self) -> Mapping[str, int]:
        """What is allocated to it, placeholders not counted."""
        return self._viewed.allocated_resource()

    @property
    def pending(self) -> Mapping[str, int]:
        """What its pods want that wait."""
        return self._viewed.pending_resource()

    @property
    def running(self) -> int:
        """How many allocations it has."""
        return len(self._viewed.allocations)

    @property
    def waiting(self) -> Iterator[Pod]:
        """Its pods that wait, in order of arrival."""
        return (Pod(ask, self._known) for ask in self._viewed.asks.values())


class PlannedPod:
    """A pod of the workload, as its line says it: what `Policy.begin` is given, before anything has happened."""

    __slots__ = ("_ask", "_devices", "arrives_s")

    def __init__(self, ask: AskLine, devices: str, arrives_s: float) -> None:
        """Take an ask, the resource type that counts devices (empty if none does), and the time of its line."""
        self._ask = ask
        self._devices = devices
        self.arrives_s = arrives_s

    def __repr__(self) -> str:
        return f"planned pod {self.key!r}"

    @property
    def key(self) -> str:
        """Its name."""
        return self._ask.key

    @property
    def application(self) -> str:
        """The name of its application."""
        return self._ask.app

    @property
    def number(self) -> int:
        """For how many pods it stands: 1, or more for an ask that repeats."""
        return self._ask.max

    @property
    def resources(self) -> Mapping[str, int]:
        """What each of them wants."""
        return MappingProxyType(self._ask.res)

    @property
    def devices(self) -> Demand:
        """What each of them wants of devices, like `Pod.devices`."""
        return Demand.of(self._ask.res.get(self._devices, 0))

    @property
    def models(self) -> tuple[str, ...]:
        """The models of devices that its node constraints list, like `Pod.models`."""
        return accepted_models(self._ask.tags)

    @property
    def requested_s(self) -> float | None:
        """How long its user expects it to run: `requested_s` of its line, or else `duration_s`; None if neither is known."""
        return self._ask.requested_s if self._ask.requested_s is not None else self._ask.duration_s
