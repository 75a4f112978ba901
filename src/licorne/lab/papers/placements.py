"""Pods one after the other on GPU nodes, each placed at once or never: experiments about the order of nodes.

The scheduler decides, by its ordinary interface. It has one queue, and one ask at a time; a policy like those of users
(`licorne.sim.policies`) takes the node that is best by one of the published orders (`licorne.lab.papers.node_orders`), and the
scheduler takes it only if the pod fits there by its own account. An ask without a node has failed, and is withdrawn. Which devices
the pod takes is the order's choice, too.

The same orders are policies for any simulation (`licorne.lab.papers.gpu_policies`), which place every pod on the same node and
devices, and take tens of times as long, because they look at all nodes that fit. Nothing but the pods of the run changes a node
here, so an order is asked that keeps the numbers of nodes which have not changed.

Source: docs/spec/experiments.md, B.3, B.4 and B.8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from licorne.core.api import SchedulerAPI
from licorne.core.nodes.constraints import CONSTRAINTS_TAG, LABEL_PREFIX
from licorne.core.nodes.devices import WHOLE
from licorne.lab.papers.fragmentation import Fragmentation, Shape, Typical
from licorne.lab.papers.node_orders import Chosen, Machine, node_order
from licorne.si import messages, v19
from licorne.sim.inputs import convert
from licorne.sim.policies import Node, Pod, Policy
from licorne.sim.policies.loading import Loaded
from licorne.sim.policies.orders import Policies
from licorne.sim.policies.watch import Watch
from licorne.workload import lines
from licorne.workload.escaping import decision_lines

RM_ID = "experiment"
APPLICATION = "pods"
DEVICE = "gpu-milli"
MODEL = "gpu-model"
CONFIG = """
partitions:
  - name: default
    nodesortpolicy: {type: fair, resourceweights: {vcore: 0, memory: 0}}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: pods}]
"""
"""All nodes have the same score, so that the scheduler takes them in the order of their names, which is that of the run."""
SETTINGS = {"reservation.enabled": "false", "outstanding.inspection": "false"}


class GpuNode(NamedTuple):
    """A node: model and number of its devices, thousandths of CPU, and MiB of memory."""

    model: str
    devices: int
    cpu: int
    memory_mib: int


class GpuPod(NamedTuple):
    """A pod: its shape, and MiB of memory."""

    shape: Shape
    memory_mib: int

    @property
    def wanted(self) -> int:
        """Thousandths of devices in all."""
        return self.shape.devices.number * self.shape.devices.each


class Shares(NamedTuple):
    """What a cluster looks like after a pod, in per cent: allocated, and fragmented of the capacity and of what is idle."""

    gpu_allocated_pct: float
    fragmented_pct_of_capacity: float
    fragmented_pct_of_idle: float


class Curve(msgspec.Struct, frozen=True):
    """The result of a run: shares by the percentage of the capacity that all pods so far have asked for.

    The value at a percentage is the mean over the pods whose percentage is rounded to it. `placed` are the decisions: the place
    of the node in the order and the devices, None for a pod that has failed. `digest` is SHA-256 over the decision lines.
    """

    shares: Mapping[int, Shares]
    placed: Sequence[Chosen | None]
    digest: str


class _Best(Policy):
    """Takes the node that an order has found best for the pod that is decided next."""

    best: str | None = None

    def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> str | None:
        """Return the name of the best node; None if there is none."""
        return self.best


def node_name(at: int) -> str:
    """Return the name of the node at a place in the order: names sort as places do."""
    return f"{at:06d}"


class Experiment:
    """One run: a scheduler with the nodes, the policy, and what is observed."""

    def __init__(self, nodes: Sequence[GpuNode], typical: Sequence[Typical], policy: str, random: Random) -> None:
        """Register the nodes, in the order that settles ties.

        Raises:
            KeyError: there is no such policy.
        """
        self._fragmentation = Fragmentation(typical)
        level = self._fragmentation.level
        self._nodes = [
            Machine(node.model, node.cpu, node.memory_mib, [WHOLE] * node.devices, level=level(node.cpu))
            for node in nodes
        ]
        self._order = node_order(policy, self._nodes, self._fragmentation, random)
        self._policy = _Best()
        given = Policies([Loaded(policy, "", self._policy)], lambda: 0.0, Watch(None))
        self._outputs: list[messages.Output] = []
        self._api = SchedulerAPI(settings=SETTINGS, on_output=lambda _, outputs: self._outputs.extend(outputs))
        self._api.cluster.orders = given.orders()
        self._api.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id=RM_ID, config=CONFIG), None, now_ns=0
        )
        given.attach(self._api.cluster.partition(RM_ID), lambda _app, _key: None)
        self._submit(
            *(_node_line(at, node) for at, node in enumerate(nodes)),
            lines.App(id=APPLICATION, queue="root.pods", user="experiment"),
        )
        self._outputs.clear()
        self._tags: dict[str, dict[str, str]] = {}
        self._capacity = WHOLE * sum(node.devices for node in nodes)
        self._fragmented = sum(self._fragmented_of(node) for node in self._nodes)

    def run(self, pods: Sequence[GpuPod]) -> Curve:
        """Offer each pod once, in order."""
        arrived = allocated = 0
        groups: dict[int, list[Shares]] = {}
        placed: list[Chosen | None] = []
        digest = hashlib.sha256()
        for number, pod in enumerate(pods):
            chosen = self._offer(str(number), pod)
            placed.append(chosen)
            arrived += pod.wanted
            if chosen is not None:
                allocated += pod.wanted
                digest.update(decision_lines([(str(number), node_name(chosen.node))]).encode())
            groups.setdefault(round(100 * arrived / self._capacity), []).append(self._shares(allocated))
        means = {
            percent: Shares(*(sum(each) / len(group) for each in zip(*group, strict=True)))
            for percent, group in groups.items()
        }
        return Curve(means, placed, digest.hexdigest())

    def _offer(self, key: str, pod: GpuPod) -> Chosen | None:
        """Let the scheduler place a pod; return where, None if it has failed."""
        chosen = self._order.choose(pod.shape, pod.memory_mib)
        best = self._policy.best = None if chosen is None else node_name(chosen.node)
        self._submit(lines.Ask(key=key, app=APPLICATION, res=_resources(pod), tags=self._constraints(pod.shape.spec)))
        self._api.schedule(now_ns=0)
        where = [output.node_id for output in self._outputs if isinstance(output, messages.NewAllocation)]
        self._outputs.clear()
        if where != [best][: chosen is not None]:
            raise RuntimeError(
                f"pod {key}: the scheduler placed it on {where}, and the policy chose {best or 'no node'}"
            )
        if chosen is None:
            self._submit(lines.Release(app=APPLICATION, key=key))
            return None
        node = self._nodes[chosen.node]
        self._fragmented -= self._fragmented_of(node)
        node.take(pod.shape, pod.memory_mib, chosen.devices)
        node.level = self._fragmentation.level(node.cpu)
        self._fragmented += self._fragmented_of(node)
        self._order.changed(chosen.node)
        return chosen

    def _submit(self, *given: lines.Line) -> None:
        self._api.submit(RM_ID, [convert(line) for line in given], now_ns=0)

    def _constraints(self, spec: str) -> dict[str, str] | None:
        """Return the tags with the node constraint that a list of models means."""
        if spec and spec not in self._tags:
            expression = {"key": MODEL, "operator": "In", "values": spec.split("|")}
            text = msgspec.json.encode({"nodeAffinity": [[expression]]}).decode()
            self._tags[spec] = {CONSTRAINTS_TAG: text}
        return self._tags.get(spec)

    def _fragmented_of(self, node: Machine) -> float:
        return self._fragmentation.of(node.model, node.level, node.ordered)

    def _shares(self, allocated: int) -> Shares:
        idle = self._capacity - allocated
        return Shares(
            100 * allocated / self._capacity,
            100 * self._fragmented / self._capacity,
            100 * self._fragmented / idle if idle else 0.0,
        )


def _resources(pod: GpuPod) -> dict[str, int]:
    found = {"vcore": pod.shape.cpu, "memory": pod.memory_mib << 20, DEVICE: pod.wanted}
    return {name: amount for name, amount in found.items() if amount}


def _node_line(at: int, node: GpuNode) -> lines.Node:
    resources = {"vcore": node.cpu, "memory": node.memory_mib << 20, DEVICE: node.devices * WHOLE}
    return lines.Node(id=node_name(at), res=resources, attrs={LABEL_PREFIX + MODEL: node.model})
