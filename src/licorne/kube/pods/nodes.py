"""What a node of the cluster means to the scheduler (docs/spec/k8shim.md, section 9)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from licorne.config.kubernetes import QuantityError, read_amounts
from licorne.core.constants import SUM_MAX
from licorne.core.nodes.constraints import CORDON, DRIVER, FEATURE, FIELD_NAME
from licorne.core.nodes.images import IMAGES_ATTRIBUTE
from licorne.kube.objects import CSINode, Node
from licorne.si.constants import (
    ATTRIBUTE_LABEL_PREFIX,
    ATTRIBUTE_TAINTS,
    DEFAULT_PARTITION,
    HOST_NAME,
    NODE_PARTITION,
    RACK_NAME,
)
from licorne.si.messages import NodeAction, NodeUpdate

from .in_tree import MIGRATED, migrated_plugins

EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
IMAGES_LENGTH_MAX: Final = 60_000
"""How many characters the text of a node's images has; further ones are left out."""
DEFAULT_RACK: Final = "/rack-default"


def node_update(
    node: Node, action: NodeAction, drivers: CSINode | None = None, unlimited: Iterable[str] = ()
) -> NodeUpdate:
    """Return the message that makes or changes a node. `drivers`: those of volumes that it has.

    `unlimited`: resources that the node has without limit, unless it lists them: whether it has devices for them is asked otherwise.

    A quantity that cannot be read counts as nothing, so that the node takes no pod that needs it. A taint keeps pods off
    only with one of the effects `NoSchedule` and `NoExecute`, and with `PreferNoSchedule` makes other nodes better; others are
    left out, whatever they mean.
    """
    meta = node.metadata
    taints = [
        {name: value for name, value in (("key", one.key), ("value", one.value), ("effect", one.effect)) if value}
        for one in node.spec.taints or ()
        if one.key and one.effect in EFFECTS
    ]
    cordon = {"key": CORDON.key, "effect": CORDON.effect}
    if node.spec.unschedulable and cordon not in taints:
        taints.append(cordon)
    attributes = {ATTRIBUTE_LABEL_PREFIX + name: value for name, value in (meta.labels or {}).items()}
    attributes |= {
        HOST_NAME: meta.name,
        RACK_NAME: DEFAULT_RACK,
        NODE_PARTITION: DEFAULT_PARTITION,
        ATTRIBUTE_LABEL_PREFIX + FIELD_NAME: meta.name,
        ATTRIBUTE_TAINTS: json.dumps(taints, separators=(",", ":")) if taints else "",
    }
    attributes |= {ATTRIBUTE_LABEL_PREFIX + FEATURE + name: "" for name in node.status.declared_features or ()}
    if images := _images(node):
        attributes[IMAGES_ATTRIBUTE] = json.dumps(images, separators=(",", ":"))
    for driver in () if drivers is None else drivers.spec.drivers or ():
        number = (driver.allocatable or {}).get("count")
        attributes[f"{ATTRIBUTE_LABEL_PREFIX}{DRIVER}{driver.name}"] = "" if number is None else str(number)
    for plugin in () if drivers is None else migrated_plugins(drivers):
        attributes[f"{ATTRIBUTE_LABEL_PREFIX}{MIGRATED}{plugin}"] = ""
    amounts = read_allocatable(node)
    amounts |= {name: SUM_MAX for name in unlimited if not amounts.get(name)}
    return NodeUpdate(node_id=meta.name, action=action, attributes=attributes, capacity=amounts)


def _images(node: Node) -> dict[str, int]:
    """Return the sizes of the images of a node, by each of their names."""
    sizes: dict[str, int] = {}
    left = IMAGES_LENGTH_MAX
    for image in node.status.images or ():
        for name in image.names or ():
            left -= len(json.dumps(name)) + len(f":{image.size_bytes},")
            if left > 0 <= image.size_bytes:
                sizes.setdefault(name, image.size_bytes)
    return sizes


def read_allocatable(node: Node) -> dict[str, int]:
    """Return how much pods may take of a node; of what the scheduler cannot count, nothing.

    The scheduler refuses a node with a larger amount, and would not count what its pods take of all others.
    """
    amounts: dict[str, int] = {}
    for name, value in (node.status.allocatable or {}).items():
        try:
            read = read_amounts({name: value})
        except QuantityError:
            continue
        amounts |= {key: amount for key, amount in read.items() if amount <= SUM_MAX}
    return amounts
