"""What each filter plugin of kube-scheduler says of a pod and a node.

These are all but those of volumes and devices. A plugin that refuses gives its reasons, and a code that says whether evicting pods could help. All plugins are asked, in kube-scheduler's order, where that
stops at the first one that refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from licorne.config.kubernetes import CPU
from licorne.core.nodes.constraints import CORDON, NodeConstraints, NodeLabels, Taint, parse_constraints
from licorne.kube.objects import Node, Pod
from licorne.kube.pods.constraints import node_constraints, node_names
from licorne.kube.pods.resources import read_resources
from licorne.si.constants import VCORE

from .domains import UNRESOLVABLE
from .snapshot import NodeState, Snapshot

PODS: Final = "pods"


class Code(StrEnum):
    """How a plugin refuses."""

    UNSCHEDULABLE = "Unschedulable"
    """Evicting pods from the node may help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """It would not."""
    ERROR = "Error"
    """The attempt ends for all nodes."""


class Refusal(NamedTuple):
    """A reason why a node does not take a pod."""

    plugin: str
    code: Code
    reason: str


def refused_at_once(pod: Pod) -> Refusal | None:
    """Return why the pod can run on no node whatever there is, or None."""
    affinity = pod.spec.affinity
    required = None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required
    allowed = [node_names(term) for term in (required and required.node_selector_terms) or ()]
    if not allowed or any(names is None or names for names in allowed):
        return None
    return Refusal("NodeAffinity", Code.UNRESOLVABLE, "pod affinity terms conflict")


def verdict(pod: Pod, state: NodeState, cluster: Snapshot) -> list[Refusal]:
    """Return what all plugins say against the pod on a node; nothing if the node takes it.

    Raises:
        QuantityError: the resources of the pod cannot be read.
    """
    wanted = parse_constraints(msgspec.json.encode(node_constraints(pod)).decode())
    node = state.node
    said: list[Refusal] = []

    def refuse(plugin: str, reason: str, code: Code = Code.UNRESOLVABLE) -> None:
        said.append(Refusal(plugin, code, reason))

    if pod.spec.node_name not in ("", node.metadata.name):
        refuse("NodeName", "node(s) didn't match the requested node name")
    if node.spec.unschedulable and _mismatch(NodeConstraints(tolerations=wanted.tolerations), (CORDON,)):
        refuse("NodeUnschedulable", "node(s) were unschedulable")
    if _is_kept_off_by_taints(wanted, state):
        refuse("TaintToleration", "node(s) had untolerated taint(s)")
    if refused_at_once(pod) is None and not _is_selected(wanted, state):
        refuse("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if NodeConstraints(ports=wanted.ports).mismatch(replace(state.labels, taints=())):
        refuse("NodePorts", "node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)
    said += _fit(read_resources(pod), state)

    def admits(other: Node) -> tuple[bool, bool]:
        its = cluster.nodes[other.metadata.name]
        return _is_selected(wanted, its), not _is_kept_off_by_taints(wanted, its)

    constraints = pod.spec.topology_spread_constraints or cluster.spread
    name = node.metadata.name
    spread = cluster.domains.spread(pod, name, constraints, admits)
    among = (("PodTopologySpread", spread), ("InterPodAffinity", cluster.domains.apart(pod, name)))
    for plugin, reason in among:
        if reason:
            refuse(plugin, reason, Code.UNRESOLVABLE if reason in UNRESOLVABLE else Code.UNSCHEDULABLE)
    if not features_of(pod) <= {*(node.status.declared_features or ())}:
        refuse("NodeDeclaredFeatures", "node(s) didn't match Pod's required features")
    return said


def features_of(pod: Pod) -> set[str]:
    """Return the features that a pod's node must declare."""
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    rules = [rule.action for one in containers for rule in one.restart_policy_rules or ()]
    restarts = {"RestartAllContainersOnContainerExits"} if "RestartAllContainers" in rules else set()
    return restarts | (
        {"UserNamespacesHostNetworkSupport"} if pod.spec.host_network and pod.spec.host_users is False else set()
    )


def _is_selected(wanted: NodeConstraints, state: NodeState) -> bool:
    placed = NodeConstraints(selector=wanted.selector, affinity=wanted.affinity)
    return placed.matches(replace(state.labels, taints=()))


def _is_kept_off_by_taints(wanted: NodeConstraints, state: NodeState) -> bool:
    own = tuple(taint for taint in state.labels.taints if taint != CORDON or _has_cordon(state))
    return bool(_mismatch(NodeConstraints(tolerations=wanted.tolerations), own))


def _mismatch(wanted: NodeConstraints, taints: tuple[Taint, ...]) -> str:
    return wanted.mismatch(NodeLabels(taints=taints))


def _has_cordon(state: NodeState) -> bool:
    """Return whether the node has the taint of a cordoned node itself, beside the mark that stands for it."""
    return any((one.key, one.value, one.effect) == CORDON for one in state.node.spec.taints or ())


def _fit(wanted: Mapping[str, int], state: NodeState) -> list[Refusal]:
    """NodeResourcesFit: what is lacking. If the node is too small even when empty, the whole answer is unresolvable."""
    reasons = []
    code = Code.UNSCHEDULABLE
    for name, amount in wanted.items():
        size = state.allocatable.get(name, 0)
        if amount and amount > size - state.used.get(name, 0):
            reasons.append("Too many pods" if name == PODS else f"Insufficient {CPU if name == VCORE else name}")
            if amount > size:
                code = Code.UNRESOLVABLE
    return [Refusal("NodeResourcesFit", code, reason) for reason in sorted(reasons)]
