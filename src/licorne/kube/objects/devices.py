"""Claims on devices (dynamic resource allocation), classes of devices, and what drivers publish of them.

`config` of claims and classes is for drivers alone; it is kept as it is, because an allocation repeats it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import KubernetesObject, Object, ObjectMeta, Quantities
from .pods import NodeSelector


class DeviceSelector(Object):
    """A condition on a device: `cel` has an `expression` about it, in CEL."""

    cel: dict[str, str] | None = None


class DeviceTaint(Object):
    """A taint of a device: requests that do not tolerate it do not get the device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceToleration(Object):
    """A toleration of a request for taints of devices. Without an operator values are compared."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ExactRequest(Object):
    """Which devices are asked for, and how many: `count` (0: one), or with the mode `All` all of them.

    `capacity`: under `requests`, how much is taken of the capacities of a device.
    """

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] | None = None
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    capacity: dict[str, Quantities | None] | None = None
    derived_attributes: tuple[dict[str, Any], ...] | None = None


class SubRequest(ExactRequest):
    """One of several requests of which the first that can be satisfied counts."""

    name: str = ""


class DeviceRequest(Object):
    """A request of a ResourceClaim for devices: `exactly` one, or the first of several alternatives that is available."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] | None = None


class DeviceConstraint(Object):
    """An attribute that the devices of some requests, or of all, must have in common, or none of them with another."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Object):
    """The devices that a ResourceClaim asks for: requests, and constraints across them. `config` is for drivers."""

    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class ResourceClaimSpec(Object):
    """`spec` of a ResourceClaim, which never changes."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocatedDevice(Object):
    """A device that is allocated to a ResourceClaim; if `share_id` is set, a share of the capacity of a device that several claims use."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Quantities | None = None


class AllocatedDevices(Object):
    """The devices that are allocated to a ResourceClaim, and what their drivers are told."""

    results: tuple[AllocatedDevice, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None


class ClaimAllocation(Object):
    """The allocation of a ResourceClaim: its devices, and the nodes on which they can be used; without a selector all."""

    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    node_selector: NodeSelector | None = None


class Consumer(Object):
    """Who may use a ResourceClaim, an item of `reservedFor`: a pod, unless `api_group` is set."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Object):
    """`status` of a ResourceClaim: what is allocated to it, and who may use it."""

    allocation: ClaimAllocation | None = None
    reserved_for: tuple[Consumer, ...] | None = None


class ClaimMeta(ObjectMeta):
    """`metadata` of a ResourceClaim, with the finalizers that keep it from being removed."""

    finalizers: tuple[str, ...] | None = None


class ResourceClaim(KubernetesObject):
    """A ResourceClaim: a demand for devices, by which pods name it."""

    metadata: ClaimMeta
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class DeviceClassSpec(Object):
    """`spec` of a DeviceClass: conditions on devices, configuration for their drivers, and the extended resource that it backs."""

    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[dict[str, Any], ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject):
    """A DeviceClass: conditions on devices under a name."""

    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class CounterSet(Object):
    """Amounts (`value`) by name that devices of a pool share."""

    name: str = ""
    counters: dict[str, Quantities] | None = None


class CounterConsumption(Object):
    """How much a device that is in use takes of a set of counters."""

    counter_set: str = ""
    counters: dict[str, Quantities] | None = None


class DeviceCapacity(Object):
    """How much a device has of something. `request_policy`: how much requests may take of it."""

    value: Any = 0
    request_policy: dict[str, Any] | None = None


class Device(Object):
    """A device that a driver publishes. The node is said here if its slice says `per_device_node_selection`."""

    name: str = ""
    attributes: dict[str, dict[str, Any]] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[CounterConsumption, ...] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Object):
    """The pool of a ResourceSlice. Only slices of the highest generation count, and only if there are `resource_slice_count`."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Object):
    """`spec` of a ResourceSlice: its pool, the nodes that can use the devices, and the devices or shared counters."""

    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(KubernetesObject):
    """A ResourceSlice: devices, or counters, of a pool of a driver."""

    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)
