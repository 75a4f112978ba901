"""A search for nodes of all members of a gang, which steps back where a member finds no node.

It is exact, apart from its bound on counted work: where it ends by itself and finds nothing, the members fit in no way.
(Which of its devices a node gives is not searched: its policy says so.) A member with at least as many nodes as there are
members is left to the end, because one of its nodes is then without any other. So however large the cluster is, the
search itself looks at few nodes.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.queues.ask import Ask

    from .trial import Trial

MEMBERS_MAX = 32
"""Members of the largest gang that is searched."""
WORK_MAX = 20_000
"""Most comparisons of members or states with a node: less than 0.1 s. Tight gangs of eight members take some hundreds."""


class GangPacking:
    """One search, for members in the order in which they are placed if they have equally much choice.

    `_states` holds of each node all that decides whether it takes members: who may use it at all, and what is free.
    Nodes in equal states are interchangeable. `_failed` are the states in which the rest found no nodes: so neither an
    exchange of equal members nor one of equal nodes is tried.
    """

    def __init__(self, trial: Trial, asks: list[Ask], types: list[int]) -> None:
        self._trial = trial
        self._types = types
        self._nodes = {ask: list(islice(trial.fitting(ask), len(asks))) for ask in dict.fromkeys(asks)}
        self._scarce, last = list(asks), []
        while (ask := next((a for a in self._scarce if len(self._nodes[a]) >= len(self._scarce)), None)) is not None:
            self._scarce.remove(ask)
            last.append(ask)
        self._asks = self._scarce + last[::-1]
        self._amounts = [[ask.shape.amounts.at(d) for d in types] for ask in self._scarce]
        users: dict[Node, int] = {}
        for number, ask in enumerate(self._scarce):
            for node in self._nodes[ask]:
                users[node] = users.get(node, 0) | 1 << number
        self._users = users
        self._states = {node: self._state(node) for node in users}
        self._useful: dict[tuple[Any, ...], list[int]] = {}
        self._failed: set[tuple[Any, ...]] = set()
        self._work = 0
        self._placed: list[tuple[Ask, Node]] = []

    def find(self) -> list[tuple[Ask, Node]] | None:
        """Take room for all members, and return their nodes; or None, with nothing taken."""
        return self._placed if all(self._nodes.values()) and self._place_from(0) else None

    def _place_from(self, at: int) -> bool:
        """Place the members from this one on."""
        if at == len(self._asks):
            return True
        ask = self._asks[at]
        scarce = at < len(self._scarce)
        known = (at, *sorted(self._states.values())) if scarce else ()
        if scarce and (known in self._failed or not self._may_suffice(at)):
            return False
        trial, tried = self._trial, set()
        self._work += len(self._nodes[ask]) + len(self._states)
        takers = [node for node in self._nodes[ask] if trial.has_room(ask, node)]
        for node in sorted(takers, key=lambda node: trial.left(ask, node)):
            before = self._states.get(node)
            if before in tried:
                continue
            if self._work > WORK_MAX:
                return False
            tried.add(before)
            trial.put(ask, node)
            self._placed.append((ask, node))
            if before is not None:
                self._states[node] = self._state(node)
            if self._place_from(at + 1):
                return True
            trial.undo([self._placed.pop()])
            if before is not None:
                self._states[node] = before
        if scarce:
            self._failed.add(known)
        return False

    def _state(self, node: Node) -> tuple[Any, ...]:
        free = tuple(node.free.at(d) for d in self._types)
        if not self._trial.counts:
            return self._users[node], free
        return self._users[node], free, node.id, node.labels.ports, tuple(node.devices.free if node.devices else ())

    def _may_suffice(self, at: int) -> bool:
        """Tell whether the nodes have enough of each type, where only members that fit a node count for it."""
        left = [sum(column) for column in zip(*self._amounts[at:], strict=True)]
        for state in self._states.values():
            left = [lacking - useful for lacking, useful in zip(left, self._of_use(at, state), strict=True)]
        return all(lacking <= 0 for lacking in left)

    def _of_use(self, at: int, state: tuple[Any, ...]) -> list[int]:
        """Return, for each resource type, an upper bound of what a node in this state gives to the members from `at` on."""
        found = self._useful.get((at, state))
        if found is None:
            users, free = state[:2]
            self._work += len(self._amounts) - at
            found = [0] * len(free)
            for number, amounts in enumerate(self._amounts[at:], at):
                if users >> number & 1 and all(a <= f for a, f in zip(amounts, free, strict=True)):
                    found = [f + a for f, a in zip(found, amounts, strict=True)]
            found = self._useful[at, state] = [min(f, most) for f, most in zip(found, free, strict=True)]
        return found
