"""Devices of nodes, such as GPUs, in a simulation: what a workload says of them, as the scheduler is told it.

A workload names the resource type that counts devices in thousandths. The amount of it that an ask wants is a share of one
device or a number of whole ones, and the amount of a node is the number of its devices. The simulator says both to the
scheduler, in the node constraints of asks and in the attributes of nodes; which device an allocation gets is decided there
(`licorne.core.nodes.devices`), by the policy of the workload or by a policy of the user's own.

docs/understand/devices.md describes the model, and why the scheduler keeps the books.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from licorne._bounded import UNDECODABLE
from licorne.core.nodes.constraints import CONSTRAINTS_TAG, DEVICE_POLICY_ATTRIBUTE, DEVICES_ATTRIBUTE
from licorne.core.nodes.devices import CHOICES, WHOLE, Demand, HostChoice
from licorne.workload.lines import App, Ask, DevicePolicy, Node, NodeUpdate
from licorne.workload.workload import Mode, Workload, WorkloadError

if TYPE_CHECKING:
    from licorne.core.partition import Partition


class Devices:
    """The devices of a workload, counted by the resource type `resource` in thousandths.

    `policy` names the choice of the device for a share; `own` is a choice in its place.
    """

    def __init__(self, resource: str, policy: DevicePolicy = "least-left", own: HostChoice | None = None) -> None:
        self.resource = resource
        self.policy = policy
        self._own = own
        self._partition: Partition | None = None
        self._tags: dict[tuple[str | None, int], str] = {}

    def attach(self, partition: Partition) -> None:
        """Take the partition of the nodes, before it has any."""
        self._partition = partition
        partition.needs.choose_device = self._own

    def free(self, node: str) -> tuple[int, ...]:
        """Return the thousandths that are left on each device of a node."""
        known = self._partition.nodes.get(node) if self._partition is not None else None
        return tuple(known.devices.free) if known is not None and known.devices is not None else ()

    def held(self, app: str, name: str) -> tuple[int, ...]:
        """Return the indices of the devices that an allocation holds, by its UUID, or its key where there are no UUIDs."""
        known = self._partition.applications.get(app) if self._partition is not None else None
        alloc = known.allocations.get(name) if known is not None else None
        if alloc is None or alloc.node is None or alloc.node.devices is None:
            return ()
        held = alloc.node.devices.held.get(alloc)
        return held.devices if held is not None else ()

    # -- what is told to the scheduler -----------------------------------------------------------------------------

    def attributes(self, resources: Mapping[str, int]) -> dict[str, str]:
        """Return the attributes that say which devices a node with these resources has; none if it has no devices."""
        amount = resources.get(self.resource)
        if amount is None:
            return {}
        return {DEVICES_ATTRIBUTE: str(amount // WHOLE), DEVICE_POLICY_ATTRIBUTE: self.policy}

    def marked(self, ask: Ask) -> Ask:
        """Return an ask with its demand for devices among its node constraints, besides those that it has."""
        amount = ask.res.get(self.resource, 0)
        if not amount:
            return ask
        tags = ask.tags or {}
        text = tags.get(CONSTRAINTS_TAG)
        if (text, amount) not in self._tags:
            self._tags[text, amount] = _with_demand(text, amount)
        return replace(ask, tags={**tags, CONSTRAINTS_TAG: self._tags[text, amount]})


def _with_demand(text: str | None, amount: int) -> str:
    """Add a demand for devices to the text of node constraints, None if there are none; a text that is no JSON is kept."""
    try:
        constraints: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except UNDECODABLE:
        return text or ""  # the core refuses it, and says why
    return msgspec.json.encode({**constraints, "devices": amount}).decode()


def devices_of(workload: Workload, own: HostChoice | None = None) -> Devices | None:
    """Return the devices of a workload, before any node is known; None if it has none.

    `own` is a choice of device in place of the one that the workload names.

    Raises:
        WorkloadError: the workload has what devices are not modelled for, or an ask wants parts of several devices.
    """
    if not workload.devices:
        return None
    if workload.device_policy not in CHOICES:
        raise WorkloadError(f"device policy {workload.device_policy!r} is unknown; known are {', '.join(CHOICES)}")
    if workload.mode is not Mode.TIMED:
        raise WorkloadError(
            f"devices ({workload.devices}) need a workload with times: allocations that end give them back"
        )
    amounts: dict[str, int] = {}
    for index, line in enumerate(workload.lines):
        fault = _fault(line, workload.devices, amounts)
        if fault:
            place = workload.place(index)
            raise WorkloadError(f"{place}: {fault}" if place else fault)
    return Devices(workload.devices, workload.device_policy, own)


def _fault(line: object, resource: str, amounts: dict[str, int]) -> str:
    """Return what is wrong with a line of a workload with devices, "" if nothing; `amounts`: of earlier asks, by key."""
    if type(line) is Ask:
        amount = line.res.get(resource, 0)
        fault = _no_demand(amount)
        if fault:
            return f"res.{resource}: {fault}"
        if amounts.setdefault(line.key, amount) != amount:
            return f"res.{resource}: {amount} instead of {amounts[line.key]}: an ask cannot change its devices"
    elif type(line) is App:
        for place, group in enumerate(line.gang):
            fault = _no_demand(group.res.get(resource, 0))
            if fault:
                return f"gang[{place}].res.{resource}: {fault}"
    elif type(line) is Node or type(line) is NodeUpdate:
        amount = (line.res or {}).get(resource, 0)
        if amount % WHOLE:
            return f"res.{resource}: {amount} are not whole devices of {WHOLE} thousandths"
    return ""


def _no_demand(amount: int) -> str:
    """Return why an amount is no demand for devices; "" if it is one."""
    try:
        Demand.of(amount)
    except ValueError as error:
        return str(error)
    return ""
