"""Which devices of a node the claims of a pod would get: a search in depth, in a fixed order, as kube-scheduler's.

Requests in their order, of several alternatives the first with which the rest works too, devices in the order of pools, slices and
their own. So the same cluster gives the same devices. A search that takes too long ends with a refusal.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from licorne.core.nodes.constraints import LACKS_DEVICES
from licorne.kube.objects.devices import (
    AllocatedDevice,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceTaint,
    DeviceToleration,
    ExactRequest,
    SubRequest,
)

from .device_pools import DeviceId, Held, OfferedDevice, Pool, nano
from .device_selectors import SelectorError, values_of

STEPS_MAX: Final = 20_000
"""The most steps of the search for devices of one node for the claims of a pod; after them the node is refused. A step is a device
that is looked at, or an evaluation of a selector, which takes some 15 µs."""
SELECTORS_MAX: Final = 256
"""Different selectors of all claims of a pod and their classes."""
DEVICES_MAX: Final = 32
"""Devices of a claim, as the API server allows."""
POD_DEVICES_MAX: Final = 128
"""Devices and requests of all claims of a pod: the search is as deep."""
ALL: Final = "All"
_PREVENTS: Final = ("NoSchedule", "NoExecute")


class RefusedError(Exception):
    """Raised where a node has no devices for the claims of a pod; the text is the reason."""


class FailedError(RefusedError):
    """Raised where it cannot be said whether a node has devices; kube-scheduler then places the pod on no node."""


class Chosen(NamedTuple):
    """A device for a request, and what is taken of its capacity; `request` is its name, after a slash that of the alternative."""

    request: str
    wants: ExactRequest
    offered: OfferedDevice
    capacity: dict[str, int] | None


class Choice(NamedTuple):
    """A request, or one of its alternatives. `number` of devices; all of `devices`, if that is not None."""

    name: str
    wants: ExactRequest
    selectors: tuple[str, ...]
    number: int
    devices: tuple[OfferedDevice, ...] | None = None


class _Constraint:
    """What the devices of a claim must have in common, or none with another, and the values of those that are chosen.

    Of attributes that are lists all devices must have one value in common, or no two of them.
    """

    def __init__(self, of: DeviceConstraint) -> None:
        self._requests = of.requests or ()
        self._attribute = of.match_attribute or of.distinct_attribute or ""
        self._alike = of.match_attribute is not None
        # Of each device; of those that are to be alike what they have in common with all before. None: they need not have any.
        self._values: list[frozenset[object] | None] = []

    def add(self, request: str, one: OfferedDevice) -> bool:
        """Add a device; False if the constraint forbids it. Otherwise `remove` takes it out."""
        values = None
        if self._is_about(request):
            values = values_of(one.device, one.id[0], self._attribute)
            others = [known for known in self._values if known is not None]
            if self._alike:
                values = values.intersection(*others)
            elif any(values & known for known in others):
                return False
            if not values:
                return False
        self._values.append(values)
        return True

    def remove(self) -> None:
        """Take out the device that was added last."""
        self._values.pop()

    def _is_about(self, request: str) -> bool:
        return not self._requests or request in self._requests or request.partition("/")[0] in self._requests


class DeviceSearch:
    """The search for one node with these `pools`; `held` is what claims hold already, `steps` how many it had so far."""

    def __init__(self, pools: Sequence[Pool], held: Held) -> None:
        self._pools = pools
        self._held = held
        self._offered = [(pool, one) for pool in pools if not pool.updating for one in pool.devices]
        self._pool_of = {one.id: pool for pool, one in self._offered}
        self._requests: list[list[tuple[Choice, ...]]] = []
        self._constraints: list[list[_Constraint]] = []
        self._chosen: list[list[Chosen]] = []
        self._taken: dict[DeviceId, list[int]] = {}  # by device, the claims that take it as a whole
        self._shared: dict[DeviceId, list[dict[str, int]]] = {}
        self._left: dict[tuple[str, str], dict[tuple[str, str], int]] = {}  # of counters, by pool
        self._selectors: dict[str, None] = {}
        self.steps = 0

    def find(self, claims: Sequence[DeviceClaim], classes: dict[str, DeviceClass]) -> list[list[Chosen]]:
        """Return the devices of each claim.

        Raises:
            RefusedError: there are none, or the search was too long.
            FailedError: a selector fails, or all devices are wanted and a pool is being updated, or one breaks a constraint.
        """
        try:
            for claim in claims:
                self._requests.append([tuple(self._choices(one, classes)) for one in requests_of(claim)])
                self._constraints.append([_Constraint(one) for one in claim.constraints or ()])
                self._chosen.append([])
            least = [min((one.number for one in choices), default=0) for each in self._requests for choices in each]
            if sum(least) + len(least) > POD_DEVICES_MAX:
                raise RefusedError(f"{LACKS_DEVICES}: more than {POD_DEVICES_MAX} are asked for")
            if not self._request(0, 0):
                raise RefusedError(LACKS_DEVICES)
        except SelectorError as error:
            raise FailedError(f"CEL runtime error: {error}") from error
        return self._chosen

    # -- requests -----------------------------------------------------------------------------------------------

    def _choices(
        self, request: tuple[str, Sequence[ExactRequest]], classes: dict[str, DeviceClass]
    ) -> Iterator[Choice]:
        name, alternatives = request
        for one in alternatives:
            of_class = classes.get(one.device_class_name)
            if of_class is None or one.derived_attributes or one.allocation_mode not in ("", "ExactCount", ALL):
                raise RefusedError(f"{LACKS_DEVICES}: request {name} is not supported, or its class is gone")
            full = f"{name}/{one.name}" if isinstance(one, SubRequest) else name
            selectors = (*(of_class.spec.selectors or ()), *(one.selectors or ()))
            expressions = tuple((each.cel or {}).get("expression", "") for each in selectors)
            self._selectors |= dict.fromkeys(expressions)
            if len(self._selectors) > SELECTORS_MAX:
                raise RefusedError(f"{LACKS_DEVICES}: more than {SELECTORS_MAX} selectors are to be met")
            made = Choice(full, one, expressions, max(one.count, 1))
            if one.allocation_mode == ALL:
                devices = tuple(self._all(made))
                made = made._replace(number=len(devices), devices=devices)
            yield made

    def _all(self, choice: Choice) -> Iterator[OfferedDevice]:
        for pool in self._pools:
            if pool.updating:
                raise FailedError(f"all devices are wanted, and pool {'/'.join(pool.id)} is being updated")
            for one in pool.devices:
                if self._is_selected(one, choice) and _within(one, choice.wants, Counter()) is not None:
                    yield one

    def _request(self, claim: int, number: int) -> bool:
        if claim == len(self._requests):
            return True
        if number == len(self._requests[claim]):
            return self._request(claim + 1, 0)
        return any(
            self._devices(claim, number, choice, 0, 0)
            for choice in self._requests[claim][number]
            if choice.number <= DEVICES_MAX - len(self._chosen[claim])
        )

    # -- devices ------------------------------------------------------------------------------------------------

    def _devices(self, claim: int, number: int, choice: Choice, count: int, start: int) -> bool:
        """Choose the devices of a request from the one with this count on, among those from `start` on."""
        if choice.devices is not None:
            if count == choice.number > 0:
                return self._request(claim, number + 1)
            return bool(choice.devices) and self._with(claim, number, choice, count, choice.devices[count], 0)
        if count == choice.number:
            return self._request(claim, number + 1)
        for position in range(start, len(self._offered)):
            one = self._offered[position][1]
            if self._is_in_use(one.id, claim, admin=bool(choice.wants.admin_access)):
                self._step()
            elif self._is_selected(one, choice) and self._with(claim, number, choice, count, one, position + 1):
                return True
        return False

    def _is_selected(self, one: OfferedDevice, choice: Choice) -> bool:
        self._step()
        for expression in choice.selectors:
            if not one.remembers(expression):
                self._step()
            if not one.meets(expression):
                return False
        return True

    def _step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise RefusedError(f"{LACKS_DEVICES} within {STEPS_MAX} steps")

    def _with(self, claim: int, number: int, choice: Choice, count: int, one: OfferedDevice, start: int) -> bool:
        """Return whether the search succeeds with a device; if not, nothing is left of it."""
        self._step()
        if not self._take(claim, choice, one):
            return False
        if self._devices(claim, number, choice, count + 1, start):
            return True
        self._give_back(claim, one)
        return False

    def _is_in_use(self, key: DeviceId, claim: int, *, admin: bool) -> bool:
        taken = self._taken.get(key, ())
        return claim in taken if admin else bool(taken) or key in self._held.whole

    def _take(self, claim: int, choice: Choice, one: OfferedDevice) -> bool:
        key, wants = one.id, choice.wants
        many = bool(one.device.allow_multiple_allocations)
        if self._is_in_use(key, claim, admin=bool(wants.admin_access)) and not (many and wants.admin_access):
            return False
        used: Counter[str] = Counter(self._held.capacity.get(key, {}))
        for part in self._shared.get(key, ()):
            used.update(part)
        capacity = _within(one, wants, used)
        if capacity is None or _is_tainted(one, wants):
            return False
        is_first = not (many and (self._held.shares[key] or self._shared.get(key)))
        if is_first and not self._draw(one):
            return False
        for at, constraint in enumerate(self._constraints[claim]):
            if not constraint.add(choice.name, one):
                for added in self._constraints[claim][:at]:
                    added.remove()
                if is_first:
                    self._draw(one, back=True)
                if choice.devices is not None:
                    raise FailedError("all devices are wanted, and one breaks a constraint")
                return False
        if many:
            self._shared.setdefault(key, []).append(capacity)
        else:
            self._taken.setdefault(key, []).append(claim)
        self._chosen[claim].append(Chosen(choice.name, wants, one, capacity if many else None))
        return True

    def _give_back(self, claim: int, one: OfferedDevice) -> None:
        """Undo the last `_take`, which was of this device."""
        key = one.id
        self._chosen[claim].pop()
        many = bool(one.device.allow_multiple_allocations)
        (self._shared if many else self._taken)[key].pop()
        for constraint in self._constraints[claim]:
            constraint.remove()
        if not (many and (self._held.shares[key] or self._shared[key])):
            self._draw(one, back=True)

    def _draw(self, one: OfferedDevice, *, back: bool = False) -> bool:
        """Take what a device consumes of the shared counters of its pool, or give it back; False if too little is left."""
        drawn = list(one.consumes())
        if not drawn:
            return True
        pool = self._pool_of[one.id]
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = pool.counters()
            for device in (each for of in pool.slices for each in of.devices):
                if device.id in self._held.whole or device.id in self._held.shares:
                    for counter, amount in device.consumes():
                        left[counter] -= amount
        for counter, amount in drawn:
            left[counter] += amount if back else -amount
        if not back and min(left.values()) < 0:
            return self._draw(one, back=True) and False
        return True


def requests_of(claim: DeviceClaim) -> Iterator[tuple[str, Sequence[ExactRequest]]]:
    """Yield the requests of a claim: the name of each, and its alternatives."""
    for one in claim.requests or ():
        yield one.name, one.first_available or (() if one.exactly is None else (one.exactly,))


def _within(one: OfferedDevice, wants: ExactRequest, used: Counter[str]) -> dict[str, int] | None:
    """Return how much a request takes of the capacities of a device, in billionths; None if that is more than it has left.

    What the request does not name it takes whole, or as much as the device says.
    """
    capacity = one.device.capacity or {}
    asked = (wants.capacity or {}).get("requests") or {}
    if not asked.keys() <= capacity.keys():
        return None
    taken = {}
    for name, has in capacity.items():
        rules = has.request_policy or {}
        amount = _rounded(nano(asked[name]), rules) if name in asked else nano(rules.get("default", has.value))
        if amount is None or amount + used[name] > nano(has.value):
            return None
        taken[name] = amount
    return taken


def _rounded(amount: int, rules: dict[str, Any]) -> int | None:
    """Return how much of a capacity a request for this amount gets by the rules of a device; None if they refuse it."""
    between, values = rules.get("validRange"), rules.get("validValues")
    if between:
        least, step = nano(between.get("min", 0)), nano(between.get("step", 0))
        amount = max(amount, least)
        amount += (least - amount) % step if step else 0
        return None if "max" in between and amount > nano(between["max"]) else amount
    return min((value for value in map(nano, values) if value >= amount), default=None) if values else amount


def _is_tainted(one: OfferedDevice, wants: ExactRequest) -> bool:
    taints = [taint for taint in one.device.taints or () if taint.effect in _PREVENTS]
    return any(not any(_bears(each, taint) for each in wants.tolerations or ()) for taint in taints)


def _bears(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def allocated(chosen: Chosen, claim_uid: str, number: int) -> AllocatedDevice:
    """Return a device as the status of a claim says it."""
    driver, pool, device = chosen.offered.id
    capacity = chosen.capacity
    share = (
        None if capacity is None else str(uuid.uuid5(uuid.NAMESPACE_OID, f"{claim_uid}/{number}/{chosen.offered.id}"))
    )
    return AllocatedDevice(
        request=chosen.request,
        driver=driver,
        pool=pool,
        device=device,
        admin_access=True if chosen.wants.admin_access else None,
        tolerations=chosen.wants.tolerations,
        share_id=share,
        consumed_capacity=None if not capacity else {name: _amount(value) for name, value in capacity.items()},
    )


def _amount(value: int) -> str:
    whole, rest = divmod(value, 10**9)
    return f"{value}n" if rest else str(whole)
