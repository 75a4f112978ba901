"""Devices of nodes, such as GPUs: which of them an allocation takes, and how the scheduler learns what is left.

A node has devices of one model. An ask wants either some whole devices, which nothing else may use, or a share of a single
one, in thousandths; two halves of different devices are no device. Both are one amount of one resource type: 460 is a share,
3000 are three devices, and 1460 is neither. The models that an ask accepts are node constraints like any other.

The core counts the sum of a node's thousandths and knows nothing of devices. They are kept here, beside it, by the
simulator's resource manager. It tells the core what it needs to know by the interface that every resource manager has:

* each node has two labels, how many of its devices are untouched and how much is left on the device with the most;
* each ask that wants devices has a node constraint on one of these labels;
* when an allocation takes or gives back devices, the labels of its node are reported anew. Decisions are made one at a time
  where a workload has devices, so none is made on labels that an earlier one has made wrong.

docs/understand/devices.md says why this is not a part of the core, nor a predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from licorne.core.nodes.constraints import CONSTRAINTS_TAG, LABEL_PREFIX, NodeConstraints
from licorne.sim.lines import App, Ask, DevicePolicy, Node, NodeUpdate
from licorne.sim.workload import Mode, Workload, WorkloadError

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node as CoreNode

WHOLE = 1000
"""Thousandths of a device."""
UNTOUCHED = "licorne/devices-untouched"
"""The node label with the number of devices of which nothing is used."""
MOST_LEFT = "licorne/device-most-left"
"""The node label with the thousandths that are left on the device with the most left."""
IN_USE = "devices in use"
"""Why a node does not take an ask that its devices would suffice for if nothing used them."""

DeviceChoice = Callable[[Sequence[int], int], int]
"""A function that takes what is left on each device of a node, and a share that at least one of them has left; both in
thousandths. It returns the index of a device with that much left, on which the share is placed."""


def least_left(free: Sequence[int], share: int) -> int:
    """Return the device with the least left that suffices, the lowest index of equal ones: shares fill devices."""
    return min((left, index) for index, left in enumerate(free) if left >= share)[1]


def most_left(free: Sequence[int], share: int) -> int:
    """Return the device with the most left, the lowest index of equal ones: shares have devices for themselves."""
    del share
    return max((left, -index) for index, left in enumerate(free))[1] * -1


def first(free: Sequence[int], share: int) -> int:
    """Return the lowest index of the devices that suffice."""
    return next(index for index, left in enumerate(free) if left >= share)


CHOICES: dict[DevicePolicy, DeviceChoice] = {"least-left": least_left, "most-left": most_left, "first": first}


class Demand(NamedTuple):
    """What an ask wants: `each` thousandths of each of `number` devices: of one, or all of whole ones; 0 of 0 is none."""

    number: int
    each: int

    @classmethod
    def of(cls, amount: int) -> Demand:
        """Return the demand that an amount in thousandths means.

        Raises:
            ValueError: the amount is below 0, or more than one device but not a number of whole ones.
        """
        if amount < 0 or (amount > WHOLE and amount % WHOLE):
            raise ValueError(
                f"{amount} is neither a share of one device (1 to 999 thousandths) nor a multiple of {WHOLE}"
            )
        if amount < WHOLE:
            return cls(1 if amount else 0, amount)
        return cls(amount // WHOLE, WHOLE)

    def fits(self, free: Sequence[int]) -> bool:
        """Return whether devices with this much left suffice."""
        return sum(left >= self.each for left in free) >= self.number

    def label(self) -> tuple[str, int]:
        """Return the label that says whether a node has enough left, and the least value that is enough."""
        return (UNTOUCHED, self.number) if self.each == WHOLE else (MOST_LEFT, self.each)


def untouched(free: Sequence[int]) -> Iterator[int]:
    """Yield the indices of the devices of which nothing is used, the lowest first."""
    return (index for index, left in enumerate(free) if left == WHOLE)


class _Held(NamedTuple):
    """Thousandths of each of some devices of a node that an allocation has taken."""

    node: str
    devices: tuple[int, ...]
    each: int


class Devices:
    """The devices of all nodes, and which allocation has taken which.

    `resource` is the resource type that counts them in thousandths; `choose` decides which device a share is placed on.
    Whole devices are those of the lowest index, as nothing tells untouched devices of one node apart.
    """

    def __init__(self, resource: str, choose: DeviceChoice = least_left) -> None:
        self.resource = resource
        self._choose = choose
        self._free: dict[str, list[int]] = {}
        self._held: dict[str, _Held] = {}
        self._changed: dict[str, None] = {}
        self._tags: dict[tuple[str | None, Demand], str] = {}

    # -- nodes ---------------------------------------------------------------------------------------------------

    def resize(self, node: str, amount: int) -> None:
        """Note that a node has devices for this amount; of fewer than before the last ones go, with what is on them."""
        free = self._free.setdefault(node, [])
        count = amount // WHOLE
        if count < len(free):
            del free[count:]
            for name, held in list(self._held.items()):
                if held.node == node:
                    self._held[name] = held._replace(devices=tuple(index for index in held.devices if index < count))
        free += [WHOLE] * (count - len(free))

    def remove(self, node: str) -> None:
        """Forget a node that is gone, and its devices."""
        self._free.pop(node, None)
        self._changed.pop(node, None)

    def free(self, node: str) -> tuple[int, ...]:
        """Return the thousandths that are left on each device of a node."""
        return tuple(self._free.get(node, ()))

    def labels(self, node: str) -> dict[str, str]:
        """Return the labels, as node attributes, that say what is left on a node; none for a node without devices."""
        free = self._free.get(node)
        if not free:
            return {}
        whole = sum(1 for _ in untouched(free))
        return {LABEL_PREFIX + UNTOUCHED: str(whole), LABEL_PREFIX + MOST_LEFT: str(max(free))}

    def changed(self) -> list[str]:
        """Return the nodes whose devices were taken or given back since the last call."""
        changed, self._changed = list(self._changed), {}
        return changed

    # -- allocations ---------------------------------------------------------------------------------------------

    def take(self, name: str, node: str, amount: int) -> tuple[int, ...]:
        """Take devices of a node for an allocation; return their indices, none if the node has not enough left.

        Raises:
            ValueError: the amount is no demand for devices, or the policy chose a device without enough left.
        """
        demand = Demand.of(amount)
        free = self._free.get(node, [])
        if not demand.number or not demand.fits(free):
            return ()
        if demand.each == WHOLE:
            chosen = tuple(untouched(free))[: demand.number]
        else:
            chosen = (self._choose(free, demand.each),)
            if not 0 <= chosen[0] < len(free) or free[chosen[0]] < demand.each:
                raise ValueError(
                    f"the policy chose device {chosen[0]} of {free} on {node} for a share of {demand.each}"
                )
        self.hold(name, node, chosen, demand.each)
        return chosen

    def hold(self, name: str, node: str, devices: tuple[int, ...], each: int) -> None:
        """Note that an allocation has taken these devices, which have that much left."""
        assert name not in self._held, f"allocation {name} holds devices already"
        free = self._free[node]
        for index in devices:
            assert free[index] >= each, f"device {index} of {node} has {free[index]} left, and {each} are taken"
            free[index] -= each
        self._held[name] = _Held(node, devices, each)
        self._changed[node] = None

    def give_back(self, name: str) -> None:
        """Give back what an allocation has taken, if it has taken something and its node is still there."""
        held = self._held.pop(name, None)
        if held is None or held.node not in self._free:
            return
        free = self._free[held.node]
        for index in held.devices:
            free[index] += held.each
        self._changed[held.node] = None

    # -- what is told to the scheduler -----------------------------------------------------------------------------

    def marked(self, ask: Ask) -> Ask:
        """Return an ask with the node constraint that its demand for devices means, besides those that it has."""
        demand = Demand.of(ask.res.get(self.resource, 0))
        if not demand.number:
            return ask
        tags = ask.tags or {}
        text = tags.get(CONSTRAINTS_TAG)
        if (text, demand) not in self._tags:
            self._tags[text, demand] = _with_demand(text, demand)
        return replace(ask, tags={**tags, CONSTRAINTS_TAG: self._tags[text, demand]})


def _with_demand(text: str | None, demand: Demand) -> str:
    """Add a demand for devices to the text of node constraints, None if there are none; a text that is no JSON is kept."""
    label, least = demand.label()
    expression = {"key": label, "operator": "Gt", "values": [str(least - 1)]}
    try:
        constraints: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except msgspec.MsgspecError:
        return text or ""  # the core refuses it, and says why
    terms = constraints.get("nodeAffinity")
    constraints["nodeAffinity"] = [[expression]] if terms is None else [[*term, expression] for term in terms if term]
    return msgspec.json.encode(constraints).decode()


def in_use(
    survey: Iterable[tuple[CoreNode, str, bool]], constraints: NodeConstraints
) -> Iterator[tuple[CoreNode, str, bool]]:
    """Tell the nodes of a survey that only lack devices from those that an ask cannot run on at all.

    The core knows the demand as a constraint on labels, and these do not change by themselves as far as it knows.
    """
    own = (UNTOUCHED, MOST_LEFT)
    affinity = constraints.affinity
    if affinity is not None:
        terms = (tuple(each for each in term if each.key not in own) for term in affinity)
        kept = tuple(term for term in terms if term)
        affinity = kept if len(kept) == len(affinity) else None
    relaxed = replaced(constraints, affinity=affinity)
    for node, why, unfit in survey:
        if why == "nodeAffinity" and relaxed.matches(node.labels):
            yield node, IN_USE, False
        else:
            yield node, why, unfit


def devices_of(workload: Workload, own: DeviceChoice | None = None) -> Devices | None:
    """Return the devices of a workload, before any node is known; None if it has none.

    `own` is a choice of device in place of the one that the workload names.

    Raises:
        WorkloadError: the workload has what devices are not modelled for, or an ask wants parts of several devices.
    """
    if not workload.devices:
        return None
    choice = CHOICES.get(workload.device_policy)
    if choice is None:
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
    return Devices(workload.devices, own or choice)


def _fault(line: object, resource: str, amounts: dict[str, int]) -> str:
    """Return what is wrong with a line of a workload with devices, "" if nothing; `amounts`: of earlier asks, by key."""
    if type(line) is Ask:
        amount = line.res.get(resource, 0)
        try:
            Demand.of(amount)
        except ValueError as error:
            return f"res.{resource}: {error}"
        if amount and line.max > 1:
            return "max: an ask for devices cannot repeat"
        if amount and line.ph:
            return "ph: placeholders that want devices are not modelled"
        if amounts.setdefault(line.key, amount) != amount:
            return f"res.{resource}: {amount} instead of {amounts[line.key]}: an ask cannot change its devices"
    elif type(line) is App and any(
        _wants(each, resource) for each in (line.ph_ask, *(group.res for group in line.gang))
    ):
        return "gang: gangs that want devices are not modelled"
    elif type(line) is Node or type(line) is NodeUpdate:
        amount = (line.res or {}).get(resource, 0)
        if amount % WHOLE:
            return f"res.{resource}: {amount} are not whole devices of {WHOLE} thousandths"
    return ""


def _wants(resources: Mapping[str, int] | None, resource: str) -> bool:
    return bool(resources and resources.get(resource))
