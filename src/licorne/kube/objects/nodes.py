"""Nodes."""

from __future__ import annotations

import msgspec

from .meta import KubernetesObject, Object, Quantities
from .pods import Condition


class Taint(Object):
    """What keeps pods off a node, unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Object):
    """`spec` of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class ContainerImage(Object):
    """An image that a node has, by all of its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Object):
    """`status` of a node."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None
    declared_features: tuple[str, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None


class Node(KubernetesObject):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
