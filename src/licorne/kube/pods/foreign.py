"""Pods of other schedulers: what they take from their nodes, host ports too, and what they demand of others (docs/spec/k8shim.md, section 8)."""

from __future__ import annotations

import json

from licorne.kube.objects import Namespace, Pod
from licorne.si.constants import (
    FOREIGN_DEFAULT,
    FOREIGN_STATIC,
    TAG_FOREIGN,
    TAG_NODE_CONSTRAINTS,
    TAG_POD,
    TAG_POD_TERMS,
)
from licorne.si.messages import Allocation

from . import keys
from .constraints import host_ports
from .resources import read_countable
from .storage import Storage
from .terms import pod_text, terms_text
from .volumes import NO_VOLUMES, read_volumes


def foreign_allocation(
    pod: Pod, namespace: Namespace | None = None, storage: Storage | None = None, *, whole: bool = True
) -> Allocation:
    """Return the allocation of a pod that another scheduler has placed. Mirror pods, owned by their node, never move.

    An amount that is too large to be counted fills its node, as for kube-scheduler; it concerns no queue. One that cannot be
    read does not count.
    `whole`: whether its host ports, its labels and its demands of other pods count; the scheduler refuses what is too long.
    """
    ports = host_ports(pod) if whole else []
    constraints = json.dumps({"hostPorts": ports}, separators=(",", ":")) if ports else ""
    read = {
        TAG_NODE_CONSTRAINTS: constraints,
        TAG_POD: pod_text(pod, namespace),
        TAG_POD_TERMS: terms_text(pod, None, NO_VOLUMES if storage is None else read_volumes(pod, storage)),
    }
    static = any(owner.kind == "Node" for owner in pod.metadata.owner_references or ())
    return Allocation(
        key=pod.metadata.uid,
        tags={
            TAG_FOREIGN: FOREIGN_STATIC if static else FOREIGN_DEFAULT,
            keys.TAG_POD_NAMESPACE: pod.metadata.namespace,
            keys.TAG_POD_NAME: pod.metadata.name,
            **({tag: text for tag, text in read.items() if text} if whole else {}),
        },
        resource=read_countable(pod, fill=True)[0],
        priority=pod.spec.priority or 0,
        node_id=pod.spec.node_name,
    )
