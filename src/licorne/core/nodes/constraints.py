"""Node constraints: label selectors, node affinity, taints and host ports, with the meaning that Kubernetes gives them; devices.

An ask carries its constraints as one JSON text, a node its labels and taints as attributes. Both are parsed once,
strictly and completely, into immutable, hashable values: the core evaluates a set of constraints once for each
set of labels and keeps the answer as a bit, so nothing in this file runs per decision. For the same reason the
constraints are put in a canonical form (everything whose order means nothing is sorted, duplicates dropped): asks
whose texts differ only in spelling share one set, and with it every answer.

Where Kubernetes is easily misread:

* `nodeAffinity` absent or null allows every node; an empty list of terms, or a term without expressions, matches
  *no* node. (Its API server would refuse the former; its scheduler matches nothing with either.)
* NotIn and DoesNotExist also hold where the label is missing; Gt and Lt hold neither there nor for a label that is no
  integer.
* A toleration without an operator means Equal. One without a key must say Exists and tolerates every taint. One
  without an effect holds for all effects.
* PreferNoSchedule excludes no node; a search prefers others (`licorne.core.nodes.preferences`).
* A host port on the address 0.0.0.0, which is meant where none is given, excludes that port on every address of the node.
  `::` is an address like any other. Each protocol has its own ports.

Devices (`licorne.core.nodes.devices`) are licorne's own: a node says how many it has, an ask how much of them it wants.

Source: docs/spec/scheduler-interface.md, sections 8 (names) and 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from .devices import CHOICES, DEFAULT_CHOICE, DEVICES_MAX, NO_DEVICES, WHOLE, Demand, DevicesLeft
from .images import IMAGES_ATTRIBUTE, read_images
from .reading import fail, fields_of, list_of, one_of, read_json, sorted_set, text_of

CONSTRAINTS_TAG: Final = "licorne/node-constraints"
"""The tag of an ask that holds its constraints."""
TAINTS_ATTRIBUTE: Final = "taints"
"""The attribute of a node that holds its taints, a JSON list."""
DEVICES_ATTRIBUTE: Final = "licorne/devices"
"""The attribute of a node with the number of its devices; 0 if it is missing."""
DEVICE_POLICY_ATTRIBUTE: Final = "licorne/device-policy"
"""The attribute of a node that says on which of its devices a share is placed, `least-left` if it is missing."""
IN_USE: Final = "devices in use"
"""Why a node does not take an ask that its devices would suffice for if nothing used them."""
TOO_FEW: Final = "too few devices"
"""Why a node does not take an ask that it has not enough devices for, even if nothing uses them."""
LABEL_PREFIX: Final = "label/"
"""A node attribute with this prefix is a label; the rest of its name is the key."""
LABEL_ATTRIBUTES: Final = frozenset(
    {
        "si/arch",
        "si/hostname",
        "si/instance-type",
        "si/local-images",
        "si/node-partition",
        "si/os",
        "si/rackname",
        "si/region",
        "si/zone",
    }
)
"""Attributes that count as labels under their own names; a `label/` attribute for the same key takes precedence."""
FIELD_NAME: Final = "field:metadata.name"
"""The label under which licorne kube says the name of a node, for `matchFields`; no label of Kubernetes has a colon."""
FEATURE: Final = "feature:"
"""The prefix of the labels by which licorne kube says which features a node declares."""

NEAR: Final = "pod affinity"
APART: Final = "pod anti-affinity"
ANTI_AFFINITY: Final = "anti-affinity of running pods"
SPREAD: Final = "topology spread"
UNLABELLED: Final = "topology spread: no label"
"""Reasons of `Need.mismatch`: what pods demand of each other. The last one, which the key of the label follows, does not pass."""
CLAIM_IN_USE: Final = "claim in use"
DISK_IN_USE: Final = "disk in use"
ATTACHED: Final = "volume limit"
"""Reasons of `Need.mismatch` about volumes of other pods: one that a single pod may use, a disk of the node, and how many volumes
of a driver a node takes, where the name of the driver follows."""
CLAIM_ELSEWHERE: Final = "claim elsewhere"
"""Why a device that a claim of the ask has cannot be used on a node."""
VOLUME_REASONS: Final = ("no driver", "volume affinity", "no volume", "no storage", "volume zone", CLAIM_ELSEWHERE)
"""Why no volume of the ask, or no device that a claim of it has, can be used on a node (`VolumeDemand`): reasons that do not pass."""
LACKS_DEVICES: Final = "no devices"
"""How the reason of `Need.mismatch` begins where a node has no devices for the claims of an ask."""
CLAIMED: Final = "claimed:"
"""Stands for a label that gives each node a domain of its own, for the devices that claims get there."""
DRIVER: Final = "csi-driver:"
"""The prefix of the labels by which licorne kube says which drivers of volumes a node has, and how many volumes each takes."""
HOST_PORT: Final = "hostPort"
"""How the reason of `NodeConstraints.mismatch` begins where a host port is taken on the node."""
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  compared with, never listened on
DEFAULT_PROTOCOL: Final = "TCP"
PORT_MAX: Final = 65535

_SOFT: Final = "PreferNoSchedule"
_EFFECTS = ("NoSchedule", _SOFT, "NoExecute")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


class Taint(NamedTuple):
    """A taint of a node; an ask that does not tolerate it may not run there."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


CORDON: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that stands for a cordoned node, so that asks which tolerate it may still run there."""


class Toleration(NamedTuple):
    """A toleration of an ask. `exists`: the taint may have any value; an empty key or effect means any."""

    key: str
    exists: bool
    value: str
    effect: str

    def bears(self, taint: Taint) -> bool:
        """Return whether this toleration covers the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.exists or self.value == taint.value


class HostPort(NamedTuple):
    """A port of the node that an allocation takes, on one of the node's addresses or, with `ANY_ADDRESS`, on all."""

    protocol: str
    port: int
    address: str

    def conflicts(self, other: HostPort) -> bool:
        """Return whether the two cannot be taken on the same node."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}" + ("" if self.address == ANY_ADDRESS else f" on {self.address}")


class Expression(NamedTuple):
    """A condition on one label. The values of In and NotIn are sorted; the one of Gt or Lt is a plain integer."""

    key: str
    operator: str
    values: tuple[str, ...]

    def is_true(self, labels: Mapping[str, str]) -> bool:
        """Return whether the condition holds for a node with these labels."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else integer(value)
        if number is None:
            return False
        bound = int(self.values[0])
        return number > bound if self.operator == "Gt" else number < bound


class VolumeDemand(NamedTuple):
    """What a volume of an ask demands: a node for which one of `terms` holds; `reason` is told of the others."""

    reason: str
    terms: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """Labels, effective taints, taken ports and what is left of devices: equal where no constraint can tell two nodes apart.

    Ports and devices follow from the allocations on the node, see `licorne.core.nodes.needs`. `soft` are the taints that
    exclude nothing.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    ports: tuple[HostPort, ...] = ()
    devices: DevicesLeft = NO_DEVICES
    soft: tuple[Taint, ...] = ()

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, str]) -> NodeLabels:
        """Parse the attributes of a node of which no ports and devices are in use.

        Raises:
            ConstraintError: the taints, the number of devices, their policy or the images are malformed.
        """
        labels = {name: value for name, value in attributes.items() if name in LABEL_ATTRIBUTES}
        for name, value in attributes.items():
            if name.startswith(LABEL_PREFIX):
                labels[name[len(LABEL_PREFIX) :]] = value
        taints = _read_taints(attributes.get(TAINTS_ATTRIBUTE, ""))
        said = DEVICES_ATTRIBUTE in attributes or DEVICE_POLICY_ATTRIBUTE in attributes
        number = _read_devices(attributes) if said else 0
        read_images(attributes.get(IMAGES_ATTRIBUTE, ""))
        devices = DevicesLeft(number, number, WHOLE) if number else NO_DEVICES
        soft = tuple(taint for taint in taints if taint.effect == _SOFT)
        hard = tuple(taint for taint in taints if taint.effect != _SOFT) if soft else taints
        return cls(tuple(sorted(labels.items())), hard, (), devices, soft)


@dataclass(frozen=True, slots=True)
class NodeConstraints:
    """What an ask demands of a node, in canonical form, so that equal demands are equal values.

    `affinity` is None where no affinity is demanded, and empty where no node can satisfy it. `ports` are taken on the
    node as long as the allocation is there, and so is what `demand` says of its devices. `devices`: it must have so many,
    in use or not. `features`: names of what the node must declare. `volumes`: all must hold; they keep their order, as the
    first that does not is told.
    """

    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[tuple[Expression, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    demand: Demand | None = None
    devices: int = 0
    features: tuple[str, ...] = ()
    volumes: tuple[VolumeDemand, ...] = ()

    def matches(self, labels: NodeLabels) -> bool:
        """Return whether the ask may run on a node with these labels and taints."""
        return not self.mismatch(labels)

    def mismatch(self, labels: NodeLabels) -> str:
        """Return why the ask may not run there; empty if it may.

        The reasons are `taint <taint>`, `nodeSelector`, `nodeAffinity`, `too few devices`, those of volumes, `feature <name>`,
        `hostPort <port>` and `devices in use`; the last two pass when what runs ends (`passes`). The first that holds is
        returned: as kube-scheduler has its filters, but what passes comes last.
        """
        taints = [taint for taint in labels.taints if not any(one.bears(taint) for one in self.tolerations)]
        if taints:
            return f"taint {CORDON if CORDON in taints else taints[0]}"
        known: dict[str, str] = {}
        if self.selector or self.affinity is not None or self.features or self.volumes:
            known = dict(labels.pairs)
            for key, value in self.selector:
                if known.get(key) != value:
                    return "nodeSelector"
            if self.affinity is not None and not any(_term_holds(term, known) for term in self.affinity):
                return "nodeAffinity"
        if self.devices > labels.devices.number:
            return TOO_FEW
        for demand in self.volumes:
            if not any(_term_holds(term, known) for term in demand.terms):
                return demand.reason
        for name in self.features:
            if FEATURE + name not in known:
                return f"feature {name}"
        for port in self.ports:
            if any(port.conflicts(taken) for taken in labels.ports):
                return f"{HOST_PORT} {port}"
        return "" if self.demand is None or labels.devices.suffice(self.demand) else IN_USE

    def excludes(self, other: NodeConstraints) -> bool:
        """Return whether two asks with these constraints cannot run on one node, because of their host ports."""
        return any(one.conflicts(two) for one in self.ports for two in other.ports)


def passes(mismatch: str) -> bool:
    """Return whether a reason of `Need.mismatch` passes when pods begin or end, on this node or others."""
    others = (IN_USE, ANTI_AFFINITY, NEAR, APART, SPREAD, CLAIM_IN_USE, DISK_IN_USE)
    return mismatch in others or mismatch.startswith((HOST_PORT, ATTACHED, LACKS_DEVICES))


NO_CONSTRAINTS: Final = NodeConstraints()
"""The constraints of an ask that states none: any node without a NoSchedule or NoExecute taint matches."""


def _term_holds(term: tuple[Expression, ...], labels: Mapping[str, str]) -> bool:
    return bool(term) and all(expression.is_true(labels) for expression in term)


def parse_constraints(text: str) -> NodeConstraints:
    """Parse the text of the tag `licorne/node-constraints`.

    Raises:
        ConstraintError: malformed JSON, an unknown key or operator, a value that does not fit its operator.
    """
    path = CONSTRAINTS_TAG
    known = ("nodeSelector", "nodeAffinity", "tolerations", "hostPorts", "devices", "features", "volumes")
    fields = fields_of(read_json(text, path), path, known)
    selector = fields.get("nodeSelector", {})
    if not isinstance(selector, dict):
        fail(f"{path}.nodeSelector", selector, "must be an object of label to value")
    pairs = []
    for key, value in selector.items():
        where = f"{path}.nodeSelector[{json.dumps(key)}]"
        pairs.append((text_of(key, where, required=True), text_of(value, where)))
    affinity = None
    if "nodeAffinity" in fields:
        affinity = sorted_set(list_of(fields["nodeAffinity"], f"{path}.nodeAffinity", _read_term))
    tolerations = list_of(fields.get("tolerations", []), f"{path}.tolerations", _read_toleration)
    ports = parse_ports(fields.get("hostPorts", []), f"{path}.hostPorts")
    demand = _read_demand(fields.get("devices", 0), f"{path}.devices")
    number = demand.number if demand is not None else 0
    features = sorted_set(list_of(fields.get("features", []), f"{path}.features", text_of))
    volumes = tuple(dict.fromkeys(list_of(fields.get("volumes", []), f"{path}.volumes", _read_volume)))
    return NodeConstraints(
        tuple(sorted(pairs)), affinity, sorted_set(tolerations), ports, demand, number, features, volumes
    )


def parse_ports(value: object, path: str = "hostPorts") -> tuple[HostPort, ...]:
    """Parse host ports in the form that the tag `licorne/node-constraints` has them.

    Raises:
        ConstraintError: a port is malformed.
    """
    return sorted_set(list_of(value, path, _read_port))


# -- reading -------------------------------------------------------------------------------------------------


def _read_term(value: object, path: str) -> tuple[Expression, ...]:
    return sorted_set(list_of(value, path, read_expression))


def read_expression(value: object, path: str) -> Expression:
    """Parse one condition on a label."""
    fields = fields_of(value, path, ("key", "operator", "values"))
    key = text_of(fields.get("key", ""), f"{path}.key", required=True)
    operator = one_of(fields.get("operator", ""), f"{path}.operator", _OPERATORS)
    values = list_of(fields.get("values", []), f"{path}.values", text_of)
    if operator in ("In", "NotIn"):
        if not values:
            fail(f"{path}.values", values, f"{operator} needs at least one value")
        return Expression(key, operator, sorted_set(values))
    if operator in ("Exists", "DoesNotExist"):
        if values:
            fail(f"{path}.values", values, f"{operator} takes no values")
        return Expression(key, operator, ())
    number = integer(values[0]) if len(values) == 1 else None
    if number is None:
        fail(f"{path}.values", values, f"{operator} needs exactly one value, an integer of 64 bits")
    return Expression(key, operator, (str(number),))


def _read_volume(value: object, path: str) -> VolumeDemand:
    fields = fields_of(value, path, ("reason", "terms"))
    reason = one_of(fields.get("reason", ""), f"{path}.reason", VOLUME_REASONS)
    return VolumeDemand(reason, sorted_set(list_of(fields.get("terms", []), f"{path}.terms", _read_term)))


def _read_toleration(value: object, path: str) -> Toleration:
    fields = fields_of(value, path, ("key", "operator", "value", "effect"))
    key = text_of(fields.get("key", ""), f"{path}.key")
    operator = one_of(fields.get("operator", ""), f"{path}.operator", ("", "Equal", "Exists"))
    borne = text_of(fields.get("value", ""), f"{path}.value")
    effect = one_of(fields.get("effect", ""), f"{path}.effect", ("", *_EFFECTS))
    if operator == "Exists":
        if borne:
            fail(f"{path}.value", borne, "Exists takes no value")
    elif not key:
        fail(f"{path}.key", key, "a toleration without a key needs the operator Exists")
    return Toleration(key, operator == "Exists", borne, effect)


def _read_port(value: object, path: str) -> HostPort:
    fields = fields_of(value, path, ("hostPort", "protocol", "hostIP"))
    port = fields.get("hostPort", 0)
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= PORT_MAX:
        fail(f"{path}.hostPort", port, f"must be an integer from 1 to {PORT_MAX}")
    protocol = text_of(fields.get("protocol", ""), f"{path}.protocol") or DEFAULT_PROTOCOL
    return HostPort(protocol, port, text_of(fields.get("hostIP", ""), f"{path}.hostIP") or ANY_ADDRESS)


def _read_demand(value: object, path: str) -> Demand | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= DEVICES_MAX * WHOLE:
        fail(path, value, f"must be an integer from 0 to {DEVICES_MAX * WHOLE}, in thousandths of a device")
    try:
        return Demand.of(value) if value else None
    except ValueError:
        fail(path, value, f"must be a share of one device, 1 to {WHOLE - 1}, or a multiple of {WHOLE}")


def _read_devices(attributes: Mapping[str, str]) -> int:
    """Read the number of a node's devices, and check the name of their policy."""
    text = attributes.get(DEVICES_ATTRIBUTE, "0")
    number = integer(text)
    if number is None or not 0 <= number <= DEVICES_MAX:
        fail(f"attributes.{DEVICES_ATTRIBUTE}", text, f"must be an integer from 0 to {DEVICES_MAX}")
    one_of(
        attributes.get(DEVICE_POLICY_ATTRIBUTE, DEFAULT_CHOICE), f"attributes.{DEVICE_POLICY_ATTRIBUTE}", tuple(CHOICES)
    )
    return number


def _read_taints(text: str) -> tuple[Taint, ...]:
    """Parse taints; an empty text or null means a node without taints."""
    path = f"attributes.{TAINTS_ATTRIBUTE}"
    value = read_json(text, path) if text else None
    taints = [] if value is None else list_of(value, path, _read_taint)
    return sorted_set(taints)


def _read_taint(value: object, path: str) -> Taint:
    fields = fields_of(value, path, ("key", "value", "effect"))
    return Taint(
        text_of(fields.get("key", ""), f"{path}.key", required=True),
        text_of(fields.get("value", ""), f"{path}.value"),
        one_of(fields.get("effect", ""), f"{path}.effect", _EFFECTS),
    )


def integer(text: str) -> int | None:
    """Parse a decimal integer of 64 bits as Kubernetes does; None if the text is none."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -(1 << 63) <= number < 1 << 63 else None
