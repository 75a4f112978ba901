"""Devices of a node, such as GPUs: what an ask wants of them, which it gets, and what is left.

A node may have devices of one model, which are not interchangeable halves: an ask wants either some whole devices, which
nothing else may use, or a share of a single one, in thousandths; two halves of different devices are no device. Both are one
number: 460 is a share, 3000 are three devices, and 1460 is neither.

The amounts that queues and nodes count know nothing of this; they add up thousandths. Devices are counted beside them as
host ports are: what is left on a node's devices is a part of its labels (`licorne.core.nodes.needs`), so an ask that wants
some is kept off the nodes that lack them by its bit in the constraint bitmap, and an ask that wants none costs nothing. Two
numbers say all that a demand can ask for: how many devices are untouched, and how much is left on the one with the most.

docs/understand/devices.md says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask

    from .node import Node

WHOLE: Final = 1000
"""Thousandths of a device."""
DEVICES_MAX: Final = 10_000
"""Most devices of a node, and most whole ones that an ask may want."""

DeviceChoice = Callable[[Sequence[int], int], int]
"""A function that takes what is left on each device of a node, and a share that at least one of them has left; both in
thousandths. It returns the index of a device with that much left, on which the share is placed."""
HostChoice = Callable[["Ask", "Node", Sequence[int], int], int]
"""The same as the host program gives it: it is also told of the ask, and the node, on which the amounts of the ask are counted."""


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


CHOICES: Final[dict[str, DeviceChoice]] = {"least-left": least_left, "most-left": most_left, "first": first}
"""The policies by name: on which device of its node a share is placed."""
DEFAULT_CHOICE: Final = "least-left"


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


NO_DEMAND: Final = Demand(0, 0)


class DevicesLeft(NamedTuple):
    """What the labels of a node say of its devices: their number, of how many nothing is used, and the most left on one."""

    number: int = 0
    untouched: int = 0
    most: int = 0

    @classmethod
    def of(cls, free: Sequence[int]) -> DevicesLeft:
        """Return it for devices with this much left."""
        return cls(len(free), sum(1 for _ in untouched(free)), max(free, default=0))

    def unused(self) -> DevicesLeft:
        """Return it for as many devices of which nothing is used."""
        return DevicesLeft(self.number, self.number, WHOLE) if self.number else NO_DEVICES

    def suffice(self, demand: Demand) -> bool:
        """Return whether they suffice: the same answer as `Demand.fits` gives for the devices themselves."""
        return self.untouched >= demand.number if demand.each == WHOLE else self.most >= demand.each


NO_DEVICES: Final = DevicesLeft()


def untouched(free: Sequence[int]) -> Iterator[int]:
    """Yield the indices of the devices of which nothing is used, the lowest first."""
    return (index for index, left in enumerate(free) if left == WHOLE)


class Held(NamedTuple):
    """Thousandths, `each`, of each of some devices of a node, by their indices."""

    devices: tuple[int, ...]
    each: int


class NodeDevices:
    """The devices of one node: what is left on each, in thousandths, and which allocation holds which.

    Changed by `licorne.core.nodes.needs` alone, which keeps the labels of the node in agreement. `policy` names the choice of
    device for a share; of whole devices those with the lowest index are taken, as nothing tells untouched ones apart. `tried`
    is what trials of gangs have taken (`licorne.core.gangs.trial`); an ask that repeats may be in a trial several times.
    """

    TRANSIENT = ("tried",)  # of trials, which end within a call

    def __init__(self, number: int, policy: str) -> None:
        self.free: list[int] = [WHOLE] * number
        self.policy: str = policy
        self.held: dict[Ask, Held] = {}
        self.tried: dict[Ask, list[Held]] = {}

    def left(self) -> DevicesLeft:
        """Return what the labels say of the devices."""
        return DevicesLeft.of(self.free)

    def resize(self, number: int) -> None:
        """Change the number of devices; of fewer than before the last ones go, with what is on them."""
        if number < len(self.free):
            del self.free[number:]
            for holder, held in list(self.held.items()):
                self.held[holder] = held._replace(devices=tuple(index for index in held.devices if index < number))
        self.free += [WHOLE] * (number - len(self.free))

    def take(self, holder: Ask, demand: Demand, choose: DeviceChoice | None) -> None:
        """Take devices for an allocation; nothing if it holds some, or if too little is left (it was reported, not decided).

        Raises:
            ValueError: `choose`, the host's choice in place of the policy, chose a device without enough left.
        """
        if holder not in self.held and demand.fits(self.free):
            self.held[holder] = self._take(demand, choose)

    def give_back(self, holder: Ask) -> None:
        """Give back the devices that an allocation holds; nothing happens if it holds none."""
        held = self.held.pop(holder, None)
        if held is not None:
            self._change(held, 1)

    def hand_over(self, holder: Ask, successor: Ask, demand: Demand) -> None:
        """Let an allocation take the devices of the one that it replaces, as many as it wants; the others are given back."""
        if self.suffices_of(holder, demand):
            held = self.held[holder]
            self.give_back(holder)
            kept = Held(held.devices[: demand.number], demand.each)
            self._change(kept, -1)
            self.held[successor] = kept

    def suffices_of(self, holder: Ask, demand: Demand) -> bool:
        """Return whether an allocation holds enough devices for one that is to replace it."""
        held = self.held.get(holder)
        return held is not None and held.each >= demand.each and len(held.devices) >= demand.number

    def try_take(self, ask: Ask, demand: Demand, choose: DeviceChoice | None) -> None:
        """Take devices for an ask in a trial; they suffice."""
        self.tried.setdefault(ask, []).append(self._take(demand, choose))

    def undo_try(self, ask: Ask) -> None:
        """Give back what the last `try_take` for this ask took."""
        taken = self.tried[ask]
        self._change(taken.pop(), 1)
        if not taken:
            del self.tried[ask]

    def lift(self, holder: Ask) -> None:
        """Count the devices of an allocation as free, for a trial of what would fit if it ended; `lower` ends the trial."""
        held = self.held.get(holder)
        if held is not None:
            self._change(held, 1)

    def lower(self, holder: Ask) -> None:
        """Count the devices of an allocation as in use again, after a trial in which they counted as free (`lift`)."""
        held = self.held.get(holder)
        if held is not None:
            self._change(held, -1)

    def _take(self, demand: Demand, choose: DeviceChoice | None) -> Held:
        if demand.each == WHOLE:
            chosen = tuple(untouched(self.free))[: demand.number]
        else:
            index = (choose or CHOICES[self.policy])(self.free, demand.each)
            if not 0 <= index < len(self.free) or self.free[index] < demand.each:
                raise ValueError(f"the policy chose device {index} of {self.free} for a share of {demand.each}")
            chosen = (index,)
        taken = Held(chosen, demand.each)
        self._change(taken, -1)
        return taken

    def _change(self, held: Held, sign: int) -> None:
        for index in held.devices:
            self.free[index] += sign * held.each
            assert 0 <= self.free[index] <= WHOLE, f"device {index} has {self.free[index]} left"


class DeviceRoom:
    """What would be left on the devices of a node if some allocations there ended: for the choice of victims."""

    def __init__(self, devices: NodeDevices, demand: Demand, leaving: Iterable[Ask] = ()) -> None:
        """Begin with what is left now, and what allocations will give back that were asked to end already."""
        self._held = devices.held
        self._demand = demand
        self._free = list(devices.free)
        for alloc in leaving:
            self.add(alloc)

    def add(self, alloc: Ask) -> None:
        """Let an allocation end; one on another node changes nothing."""
        self._change(alloc, 1)

    def remove(self, alloc: Ask) -> None:
        """Undo `add`."""
        self._change(alloc, -1)

    def helps(self, alloc: Ask) -> bool:
        """Return whether an allocation holds devices here."""
        return alloc in self._held

    def suffices(self) -> bool:
        """Return whether the ask would get what it wants."""
        return self._demand.fits(self._free)

    def _change(self, alloc: Ask, sign: int) -> None:
        held = self._held.get(alloc)
        if held is not None:
            for index in held.devices:
                self._free[index] += sign * held.each
