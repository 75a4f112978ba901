"""What searches for devices have found, by node, and how many steps they took.

An answer depends on what is published for a node, and on the devices that claims hold there. When other devices are published the
answers of the nodes concerned are dropped. What is held changes with each decision, and in trials, which are undone: a
gang is placed to see whether it fits, a victim's devices are free for a moment. So answers are kept beside a hash of what is held,
and a node on which all is as it was before has its answers at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from licorne.core.nodes.constraints import LACKS_DEVICES
from licorne.kube.objects.devices import AllocatedDevice

from .device_pools import Nodes
from .storage import ClaimKey

ANSWERS_MAX: Final = 64
"""Answers that are remembered for a node, at most; those that were asked for least recently are forgotten first."""
DEMANDS_MAX: Final = 1024
"""Demands that are kept decoded, or whose steps are counted, at most."""
DEMAND_STEPS_MAX: Final = 1_000_000
"""Steps of the searches of all nodes for a demand, until a device is given or taken back, or a slice, a class or a node changes."""
Texts = tuple[str, ...]
"""What the claims of a pod demand, as JSON."""


class Answer(NamedTuple):
    """Why a node has no devices, "": it has. `fails`: that could not be decided."""

    why: str
    fails: bool = False


class Answers:
    """The answers of all nodes.

    What is held on a node is an exclusive or of hashes, since the answers of the node were dropped last: a claim that gives back what it
    has got leaves the one before. What a claim holds on other nodes may be in it too, which only costs a search.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[int, Texts], Answer]] = {}
        self._held_on: dict[str, int] = {}
        self._held_everywhere = 0
        self._steps: Counter[Texts] = Counter()

    def published(self, nodes: Nodes) -> None:
        """Note that other devices are published for these nodes, or that nodes are new, gone or have changed."""
        self._steps.clear()
        if nodes is None:
            self._known.clear()
            self._held_on.clear()
        for node in nodes or ():
            self._known.pop(node, None)
            self._held_on.pop(node, None)

    def held(
        self, nodes: Nodes, claim: ClaimKey, before: Iterable[AllocatedDevice], after: Iterable[AllocatedDevice]
    ) -> None:
        """Note that a claim holds other devices than before, which are for these nodes."""
        self._steps.clear()
        change = _hash(claim, before) ^ _hash(claim, after)
        if nodes is None:
            self._held_everywhere ^= change
        for node in nodes or ():
            self._held_on[node] = self._held_on.get(node, 0) ^ change

    def of(self, node: str, demand: Texts) -> Answer | None:
        """Return the answer of a node as things are; None if it is not known."""
        known = self._known.get(node, {})
        place = (self._held_everywhere ^ self._held_on.get(node, 0), demand)
        found = known.pop(place, None)
        if found is not None:
            known[place] = found
        return found

    def put(self, node: str, demand: Texts, answer: Answer) -> None:
        """Remember the answer of a node as things are."""
        known = self._known.setdefault(node, {})
        if len(known) >= ANSWERS_MAX:
            del known[next(iter(known))]
        known[self._held_everywhere ^ self._held_on.get(node, 0), demand] = answer

    def exhausted(self, demand: Texts) -> str:
        """Return why there is no further search for a demand, "" if there is one: the searches have had all their steps."""
        is_so = self._steps[demand] >= DEMAND_STEPS_MAX
        return f"{LACKS_DEVICES} within {DEMAND_STEPS_MAX} steps on all nodes" if is_so else ""

    def spend(self, demand: Texts, steps: int) -> None:
        """Count the steps of a search for a demand."""
        if len(self._steps) >= DEMANDS_MAX:
            self._steps.clear()
        self._steps[demand] += steps


def _hash(claim: ClaimKey, devices: Iterable[AllocatedDevice]) -> int:
    held = tuple(devices)
    return hash((claim, msgspec.json.encode(held))) if held else 0
