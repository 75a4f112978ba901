"""On which nodes a pod may run, as node constraints of the scheduler: selector, required affinity, tolerations.

The scheduler evaluates them once for each set of labels and taints (docs/spec/scheduler-interface.md, section 9). The
name of a node is known to it as a label too, `FIELD_NAME`, whose colon no label of Kubernetes can have.
"""

from __future__ import annotations

from typing import Any, Final

from licorne.kube.objects.meta import LabelSelectorRequirement
from licorne.kube.objects.pods import NodeSelectorTerm, Pod

NODE_NAME: Final = "metadata.name"
FIELD: Final = "field:"
FIELD_NAME: Final = FIELD + NODE_NAME
DAEMON_SET: Final = "DaemonSet"


def node_constraints(pod: Pod) -> dict[str, Any]:
    """Return the constraints in the form of the tag `licorne/node-constraints`; empty if there are none."""
    spec = pod.spec
    constraints: dict[str, Any] = {}
    if spec.node_selector:
        constraints["nodeSelector"] = spec.node_selector
    terms = _required_terms(pod)
    if terms is not None:
        constraints["nodeAffinity"] = [_term(term) for term in terms]
    if spec.tolerations:
        constraints["tolerations"] = [
            {
                name: value
                for name, value in (
                    ("key", one.key),
                    ("operator", one.operator),
                    ("value", one.value),
                    ("effect", one.effect),
                )
                if value
            }
            for one in spec.tolerations
        ]
    return constraints


def required_node(pod: Pod) -> str:
    """Return the node that a pod of a DaemonSet is made for, or "" for any other pod."""
    if not any(owner.kind == DAEMON_SET for owner in pod.metadata.owner_references or ()):
        return ""
    for term in _required_terms(pod) or ():
        for one in term.match_fields or ():
            if one.key == NODE_NAME and one.operator == "In" and len(one.values or ()) == 1:
                assert one.values is not None
                return one.values[0]
    return ""


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    return affinity.node_affinity.required.node_selector_terms or ()


def _term(term: NodeSelectorTerm) -> list[dict[str, Any]]:
    return [_expression(one, one.key) for one in term.match_expressions or ()] + [
        _expression(one, FIELD + one.key) for one in term.match_fields or ()
    ]


def _expression(one: LabelSelectorRequirement, key: str) -> dict[str, Any]:
    made: dict[str, Any] = {"key": key, "operator": one.operator}
    if one.values:
        made["values"] = list(one.values)
    return made
