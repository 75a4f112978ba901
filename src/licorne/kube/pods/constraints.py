"""On which nodes a pod may run, as node constraints of the scheduler: selector, required affinity, tolerations, host ports, features.

The scheduler evaluates them once for each set of labels and taints (docs/spec/scheduler-interface.md, section 9). The
name of a node is known to it as a label too, `FIELD_NAME`, whose colon no label of Kubernetes can have.

The scheduler refuses constraints that it does not understand, and kube-scheduler does not, so what means nothing to
kube-scheduler is left out here: a term that cannot be parsed holds nowhere, and a toleration that cannot be parsed
bears nothing. The API server has checked most of it before, but not that the bound of `Gt` is a number, and it may know
more operators than this program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from licorne.core.nodes.constraints import DEFAULT_PROTOCOL, FIELD_NAME, PORT_MAX, integer
from licorne.core.nodes.terms import WEIGHT_MAX
from licorne.kube.objects.meta import LabelSelectorRequirement
from licorne.kube.objects.pods import NodeSelector, NodeSelectorTerm, Pod, Toleration

NODE_NAME: Final = "metadata.name"
DAEMON_SET: Final = "DaemonSet"
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TOLERATION_OPERATORS: Final = ("", "Equal", "Exists")
EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
Terms = tuple[tuple[dict[str, Any], ...], ...] | None
"""Terms about the labels of nodes, as in a node selector: a node meets them if it meets all conditions of one; None: every node does."""
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
"""A value that a label can have."""


def node_constraints(pod: Pod, required: str = "", volumes: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return the constraints in the form of the tag `licorne/node-constraints`; empty if there are none.

    `required`: the name of the pod's `required_node`, if that is said elsewhere; it is then no condition. `volumes`: what its
    volumes demand.
    """
    spec = pod.spec
    constraints: dict[str, Any] = {}
    if spec.node_selector:
        constraints["nodeSelector"] = spec.node_selector
    terms = _required_terms(pod)
    affinity = None if terms is None else [parsed for term in terms if (parsed := conditions_of(term)) is not None]
    if required and affinity:  # of one term
        name = {"key": FIELD_NAME, "operator": "In", "values": [required]}
        others = [condition for condition in affinity[0] if condition != name]
        affinity = [others] if others else None
    if affinity is not None:
        constraints["nodeAffinity"] = affinity
    tolerations = [made for one in spec.tolerations or () if (made := _toleration(one)) is not None]
    if tolerations:
        constraints["tolerations"] = tolerations
    ports = host_ports(pod)
    if ports:
        constraints["hostPorts"] = ports
    features = _features(pod)
    if features:
        constraints["features"] = features
    if volumes:
        constraints["volumes"] = volumes
    return constraints


def constraints_text(pod: Pod, volumes: Sequence[dict[str, Any]] = ()) -> str:
    """Return the constraints as the text of the tag `licorne/node-constraints`; "" if there are none.

    The name of the node that a pod of a DaemonSet is made for is left out, because the tag of the required node says it: all
    its pods then have the same constraints, which the scheduler evaluates once for them all.
    """
    constraints = node_constraints(pod, required_node(pod), volumes)
    return msgspec.json.encode(constraints).decode() if constraints else ""


def preferred_nodes(pod: Pod) -> list[tuple[int, list[dict[str, Any]]]]:
    """Return the conditions of nodes that a pod would rather run on, each with its weight; what means nothing is left out."""
    affinity = pod.spec.affinity
    wishes = None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.preferred
    found = [(one.weight, conditions_of(one.preference)) for one in wishes or ()]
    return [(weight, made) for weight, made in found if made is not None and 0 < weight <= WEIGHT_MAX]


def _features(pod: Pod) -> list[str]:
    """Return the features that the pod's node must declare."""
    spec = pod.spec
    containers = (*spec.containers, *(spec.init_containers or ()))
    rules = [rule.action for one in containers for rule in one.restart_policy_rules or ()]
    needed = ["RestartAllContainersOnContainerExits"] if "RestartAllContainers" in rules else []
    return [*needed, "UserNamespacesHostNetworkSupport"] if spec.host_network and spec.host_users is False else needed


def unknown_operators(pod: Pod) -> list[str]:
    """Return a sentence for each operator that is not known here, as a newer API may have them, and what follows from it."""
    terms = _required_terms(pod) or ()
    conditions = [one for term in terms for one in (*(term.match_expressions or ()), *(term.match_fields or ()))]
    found = [
        f"required node affinity: the operator {one.operator!r:.60} is unknown: no node fits the term that has it"
        for one in conditions
        if one.operator not in OPERATORS
    ]
    found += [
        f"tolerations: the operator {one.operator!r:.60} is unknown: the toleration that has it does not count"
        for one in pod.spec.tolerations or ()
        if one.operator not in TOLERATION_OPERATORS
    ]
    return list(dict.fromkeys(found))


def host_ports(pod: Pod) -> list[dict[str, Any]]:
    """Return the ports of its node that a pod takes, in the form of the constraints.

    They are those of its containers and sidecars; an init container that ends before the others begin takes none. The
    API server has filled in the ports of a pod in the network of its node.
    """
    containers = [*pod.spec.containers]
    containers += [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    ports = []
    for container in containers:
        for port in container.ports or ():
            if 0 < port.host_port <= PORT_MAX:
                protocol = "" if port.protocol == DEFAULT_PROTOCOL else port.protocol
                fields = {"hostPort": port.host_port, "protocol": protocol, "hostIP": port.host_ip}
                ports.append({name: value for name, value in fields.items() if value})
    return ports


def required_node(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is made for, or "" for any other pod."""
    if not any(owner.kind == DAEMON_SET for owner in pod.metadata.owner_references or ()):
        return ""
    terms = _required_terms(pod) or ()
    names = node_names(terms[0]) if len(terms) == 1 else None
    return min(names) if names is not None and len(names) == 1 else ""


def required_labels(pod: Pod) -> Terms:
    """Return the terms of which a node must meet one for the selector and the required affinity of a pod; None: every node does."""
    selector = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in sorted((pod.spec.node_selector or {}).items())
    ]
    terms = _required_terms(pod)
    if terms is None:
        return (tuple(selector),) if selector else None
    return tuple((*selector, *term) for term in terms_of(NodeSelector(terms)) or ())


def terms_of(selector: NodeSelector | None) -> Terms:
    """Return a node selector as terms; a term that means nothing holds nowhere."""
    if selector is None:
        return None
    made = [conditions_of(term) for term in selector.node_selector_terms or ()]
    return tuple(tuple(one) for one in made if one is not None)


def node_names(term: NodeSelectorTerm) -> set[str] | None:
    """Return the names that a term allows a node to have by `In`; None if it does not say."""
    names: set[str] | None = None
    for one in term.match_fields or ():
        if one.key == NODE_NAME and one.operator == "In":
            names = set(one.values or ()) if names is None else names & set(one.values or ())
    return names


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    return affinity.node_affinity.required.node_selector_terms or ()


def conditions_of(term: NodeSelectorTerm) -> list[dict[str, Any]] | None:
    """Return the conditions of a term, or None if it cannot hold, because one of them means nothing."""
    made = list(_conditions(term))
    return None if not made or None in made else [one for one in made if one is not None]


def _conditions(term: NodeSelectorTerm) -> Iterator[dict[str, Any] | None]:
    for one in term.match_expressions or ():
        yield _condition(one, one.key) if _is_valid(one) else None
    for one in term.match_fields or ():
        known = one.key == NODE_NAME and one.operator in ("In", "NotIn") and len(one.values or ()) == 1
        yield _condition(one, FIELD_NAME) if known else None


def _is_valid(one: LabelSelectorRequirement) -> bool:
    values = one.values or ()
    if not one.key or any(_VALUE.fullmatch(value) is None for value in values):
        return False
    match one.operator:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and integer(values[0]) is not None
    return False


def _condition(one: LabelSelectorRequirement, key: str) -> dict[str, Any]:
    made: dict[str, Any] = {"key": key, "operator": one.operator}
    if one.values:
        made["values"] = list(one.values)
    return made


def _toleration(one: Toleration) -> dict[str, str] | None:
    """Return a toleration, or None if it bears nothing."""
    if one.effect not in EFFECTS or one.operator not in TOLERATION_OPERATORS:
        return None
    value = "" if one.operator == "Exists" else one.value
    if one.operator != "Exists" and not one.key:
        return None
    fields = (("key", one.key), ("operator", one.operator), ("value", value), ("effect", one.effect))
    return {name: text for name, text in fields if text}
