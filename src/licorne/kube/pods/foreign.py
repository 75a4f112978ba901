"""Pods of other schedulers: what they take from their nodes, host ports too (docs/spec/k8shim.md, section 8)."""

from __future__ import annotations

import json

from licorne.kube.objects import Pod
from licorne.si.constants import FOREIGN_DEFAULT, FOREIGN_STATIC, TAG_FOREIGN, TAG_NODE_CONSTRAINTS
from licorne.si.messages import Allocation

from . import keys
from .constraints import host_ports
from .resources import read_countable


def foreign_allocation(pod: Pod, *, with_ports: bool = True) -> Allocation:
    """Return the allocation of a pod that another scheduler has placed. Mirror pods, owned by their node, never move.

    An amount that is too large to be counted fills its node, as for kube-scheduler; it concerns no queue. One that cannot be
    read does not count.
    `with_ports`: whether its host ports count; the scheduler refuses an allocation with very many.
    """
    ports = host_ports(pod) if with_ports else []
    static = any(owner.kind == "Node" for owner in pod.metadata.owner_references or ())
    return Allocation(
        key=pod.metadata.uid,
        tags={
            TAG_FOREIGN: FOREIGN_STATIC if static else FOREIGN_DEFAULT,
            keys.TAG_POD_NAMESPACE: pod.metadata.namespace,
            keys.TAG_POD_NAME: pod.metadata.name,
            **({TAG_NODE_CONSTRAINTS: json.dumps({"hostPorts": ports}, separators=(",", ":"))} if ports else {}),
        },
        resource=read_countable(pod, fill=True)[0],
        priority=pod.spec.priority or 0,
        node_id=pod.spec.node_name,
    )
