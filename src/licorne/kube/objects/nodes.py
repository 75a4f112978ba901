"""Nodes."""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import KubernetesObject, Object, Quantities
from .pods import Condition


class Taint(Object):
    """What keeps pods off a node, unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    """`spec` of a node. The ranges of addresses of its pods decide nothing; diagnostics show them."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None
    pod_cidrs: tuple[str, ...] | None = msgspec.field(default=None, name="podCIDRs")


class NodeAddress(Object):
    """An address of a node."""

    type: str = ""
    address: str = ""


class ContainerImage(Object):
    """An image that a node has, by all of its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Object):
    """`status` of a node. Addresses and `node_info`, versions of its software, decide nothing; diagnostics show them."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None
    addresses: tuple[NodeAddress, ...] | None = None
    node_info: dict[str, Any] | None = None
    declared_features: tuple[str, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None


class Node(KubernetesObject):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
