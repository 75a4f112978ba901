"""Pods that are asked for one after the other, because where one is placed decides what is left for the next.

So it is where a volume that exists may be taken by one of several claims, and where several pods name one claim that waits: which
nodes are left is known only when the pod before has got its node. A pod that finds no node passes its turn on after a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

TURN_S: Final = 2.0
"""How long a pod has its turn while others wait."""


class Turns:
    """Who has the turn, and who waits for it, by what it is about. A pod has all of its turns, or none."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, None]] = {}  # the first has the turn, if it is in `_since`
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._since: dict[str, float] = {}

    def wanted(self, uid: str) -> tuple[str, ...]:
        """Return what a pod has the turn of, or waits for."""
        return self._wanted.get(uid, ())

    def take(self, uid: str, names: tuple[str, ...], now_s: float) -> bool:
        """Return whether it is a pod's turn; else it waits."""
        if uid not in self._wanted:
            self._wanted[uid] = names
            for name in names:
                self._queues.setdefault(name, {})[uid] = None
        if uid not in self._since and all(next(iter(self._queues[name])) == uid for name in names):
            self._since[uid] = now_s
        return uid in self._since

    def waits(self, uid: str) -> bool:
        """Return whether a pod waits for its turn."""
        return uid in self._wanted and uid not in self._since

    def before(self, uid: str) -> str:
        """Return the UID of a pod before another; "" if there is none."""
        firsts = (next(iter(self._queues[name])) for name in self._wanted.get(uid, ()))
        return next((first for first in firsts if first != uid), "")

    def leave(self, uid: str) -> list[str]:
        """End the turn of a pod, or its wait; return the pods that may have theirs now."""
        self._since.pop(uid, None)
        found: dict[str, None] = {}
        for name in self._wanted.pop(uid, ()):
            queue = self._queues[name]
            queue.pop(uid, None)
            if queue:
                found[next(iter(queue))] = None
            else:
                del self._queues[name]
        return [*found]

    def overdue(self, now_s: float) -> Iterable[str]:
        """Return the pods whose turn has lasted while others wait."""
        late = [uid for uid, since in self._since.items() if not 0.0 <= now_s - since < TURN_S]
        return [uid for uid in late if any(len(self._queues[name]) > 1 for name in self._wanted[uid])]
