"""The objects of the machine's records: applications with asks and allocations, nodes, and how states may change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from machine.amounts import Amounts, total
from machine.flights import Flight, Gang

_ALIKE = {("New", "Accepted"), ("Accepted", "Completing"), ("Running", "Completing"), ("Completing", "Running")}
_ALIKE |= {("Completing", "Completed"), ("Failing", "Failed"), ("New", "Failing"), ("Accepted", "Failing")}
_ALIKE |= {("Running", "Failing"), ("Accepted", "Resuming"), ("Resuming", "Accepted")}
MOVES = {
    False: _ALIKE | {("Accepted", "Running")},
    True: _ALIKE
    | {("Accepted", "Starting"), ("Starting", "Running"), ("Starting", "Completing"), ("Starting", "Failing")},
}
"""The changes of state that may be told, without and with Starting (docs/spec/states.md)."""


@dataclass
class Ask:
    """A pending ask; `left` is how often it is still to be placed."""

    key: str
    resource: Amounts
    left: int
    priority: int
    created: int
    seq: int
    constraint: int
    required: str
    timed: bool = False
    group: str = ""
    placeholder: bool = False

    def one(self) -> Ask:
        """One of it, on its own."""
        return replace(self, left=1)


@dataclass
class Alloc:
    """An allocation. `ending`: the scheduler has asked for its end."""

    key: str
    id: str
    node: str
    resource: Amounts
    ending: bool = False
    group: str = ""
    placeholder: bool = False


@dataclass
class App:
    """An application that was taken."""

    id: str
    user: str
    groups: tuple[str, ...]
    independent: bool = False
    queue: str = ""
    state: str = "New"
    asks: dict[str, Ask] = field(default_factory=dict)
    allocs: dict[str, Alloc] = field(default_factory=dict)
    gang: Gang | None = None
    flights: dict[str, Flight] = field(default_factory=dict)  # real asks in flight, by the id of the placeholder
    entered: bool = False  # it counts as running for its user and group: had an allocation, and is not empty since

    def used(self) -> Amounts:
        """The sum of its allocations."""
        return total(alloc.resource for alloc in self.allocs.values())


@dataclass
class Node:
    """A node; `foreign` is what other schedulers run there, by key."""

    id: str
    capacity: Amounts
    occupied: Amounts
    labels: dict[str, str]
    tainted: bool
    schedulable: bool
    foreign: dict[str, Amounts] = field(default_factory=dict)
