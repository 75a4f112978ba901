"""Connect policies with the scheduler, which asks for orders, and with the book of devices, which asks for a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from licorne.core.nodes.devices import HostChoice
from licorne.core.nodes.node import Node as CoreNode
from licorne.core.partition import Partition
from licorne.core.queues.application import Application as CoreApplication
from licorne.core.queues.ask import Ask as CoreAsk
from licorne.core.queues.queue import Queue as CoreQueue
from licorne.core.scheduling.host_orders import HostOrders
from licorne.sim.model import Pod as ModelPod
from licorne.sim.policies.calls import KEY, Caller
from licorne.sim.policies.interface import Key, Policy
from licorne.sim.policies.loading import Loaded
from licorne.sim.policies.views import Application, Known, Node, NodeBefore, PlannedPod, Pod, Queue
from licorne.sim.policies.watch import Watch
from licorne.workload.lines import Ask, Line

_EXPECTED = {
    "node_key": KEY,
    "choose_node": "one of the nodes, its id, or None",
    "queue_key": KEY,
    "application_key": KEY,
    "choose_device": "the index of a device with that much left",
    "begin": "None",
}


class Policies:
    """The policies of a simulation. `now_s` returns the virtual time; `watch` ends calls that take too long."""

    def __init__(self, loaded: Sequence[Loaded], now_s: Callable[[], float], watch: Watch) -> None:
        self._now_s = now_s
        self._watch = watch
        self._callers = {
            method: Caller(each, method, _EXPECTED[method], watch) for each in loaded for method in each.decides
        }
        self._beginning = [
            Caller(each, "begin", _EXPECTED["begin"], watch)
            for each in loaded
            if type(each.policy).begin is not Policy.begin
        ]
        self._known: Known | None = None
        self._nodes: Mapping[str, CoreNode] = {}

    def attach(self, partition: Partition, pod: Callable[[str, str], ModelPod | None]) -> None:
        """Take the partition whose orders these are, before its first decision, and what the simulator knows besides."""
        self._known = Known(partition.types, pod)
        self._nodes = partition.nodes

    def begin(self, lines: Iterable[Line], devices: str) -> None:
        """Tell policies of the pods of the workload, of which the resource type `devices` counts devices; done once.

        Raises:
            PolicyError: a policy raised, took too long, or returned something.
        """
        callers, self._beginning = self._beginning, []
        for caller in callers:
            given = (_PlannedPods(lines, devices, self._watch),)
            answer = caller(self._now_s(), *given)
            if answer is not None:
                raise caller.wrong(answer, given)

    @property
    def known(self) -> Known:
        """What views are read from."""
        assert self._known is not None, "the policies of a simulation are asked before its partition is there"
        return self._known

    def orders(self) -> HostOrders | None:
        """Return what the scheduler is to ask; None if the policies give no orders."""
        has = self._callers
        if not has.keys() - {"choose_device"}:
            return None
        return HostOrders(
            choose_node=self._least_node if "node_key" in has else self._chosen_node if "choose_node" in has else None,
            queue_key=self._queue_key if "queue_key" in has else None,
            application_key=self._application_key if "application_key" in has else None,
        )

    def device_choice(self) -> HostChoice | None:
        """Return what the book of devices is to ask; None if no policy chooses devices."""
        return self._device if "choose_device" in self._callers else None

    def _least_node(self, ask: CoreAsk, nodes: Iterator[CoreNode]) -> CoreNode | None:
        """Return the node with the smallest key, the first of equal ones; None if there is none."""
        key, now_s, known = self._callers["node_key"].key, self._now_s(), self.known
        pod = Pod(ask, known)
        return min(nodes, key=lambda node: key(now_s, pod, Node(node, known)), default=None)

    def _chosen_node(self, ask: CoreAsk, nodes: Iterator[CoreNode]) -> CoreNode | None:
        caller, known = self._callers["choose_node"], self.known
        given = (Pod(ask, known), _Nodes(nodes, known))
        answer = caller(self._now_s(), *given)
        if answer is None:
            return None
        name = answer.id if isinstance(answer, Node) else answer
        node = self._nodes.get(name) if isinstance(name, str) else None
        if node is None:
            raise caller.wrong(answer, given)
        if not node.fits(ask.shape.amounts, ask.shape.need):
            raise caller.wrong(answer, given, ": the pod does not fit that one")
        return node

    def _queue_key(self, queue: CoreQueue) -> Key:
        return self._callers["queue_key"].key(self._now_s(), Queue(queue, self.known))

    def _application_key(self, application: CoreApplication) -> Key:
        return self._callers["application_key"].key(self._now_s(), Application(application, self.known))

    def _device(self, ask: CoreAsk, node: CoreNode, free: Sequence[int], share: int) -> int:
        caller, known = self._callers["choose_device"], self.known
        given = (Pod(ask, known), NodeBefore(node, known, ask), share)
        index = caller(self._now_s(), *given)
        if type(index) is not int or not 0 <= index < len(free) or free[index] < share:
            raise caller.wrong(index, given, f"; left on each is {', '.join(map(str, free))}")
        return index


class _Nodes:
    """The nodes that fit a pod, looked up one by one as they are iterated over."""

    __slots__ = ("_known", "_nodes")

    def __init__(self, nodes: Iterator[CoreNode], known: Known) -> None:
        self._nodes = nodes
        self._known = known

    def __iter__(self) -> Iterator[Node]:
        return self

    def __next__(self) -> Node:
        return Node(next(self._nodes), self._known)

    def __repr__(self) -> str:
        return "nodes"


class _PlannedPods:
    """The pods of a workload, made from its lines as they are iterated over. The time of a call begins anew with each of them."""

    def __init__(self, lines: Iterable[Line], devices: str, watch: Watch) -> None:
        self._lines = lines
        self._devices = devices
        self._watch = watch

    def __iter__(self) -> Iterator[PlannedPod]:
        at_s: float = 0
        for line in self._lines:
            if line.at is not None:
                at_s = line.at
            if type(line) is Ask:
                self._watch.restart()
                yield PlannedPod(line, self._devices, at_s)

    def __repr__(self) -> str:
        return "pods"
