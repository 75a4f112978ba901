"""The usage of the queues and the size of the cluster, read from the core as virtual time passes."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from licorne._plain import cython
from licorne.core.queues.queue import Queue
from licorne.sim.gauges import Gauge, Share


@cython.cclass
class Use:
    """Gauges of the queues, and of the whole cluster; read only where something has changed.

    Only the time from `from_ns` up to `to_ns` (None: without end) counts.
    """

    from_ns: int
    to_ns: int
    share: Share
    gauges: dict[str, Gauge]
    _root: Queue
    _changed: set[Queue]
    _resized: cython.bint
    _names: list[str]

    def __init__(self, root: Queue, from_ns: int = 0, to_ns: int | None = None) -> None:
        self.from_ns = from_ns
        self.to_ns = sys.maxsize if to_ns is None else to_ns
        self.share = Share(from_ns)
        self.gauges = {root.path: self.share.used}
        self._root = root
        self._changed = set()
        self._resized = True
        self._names = []

    def changed(self, leaf: Queue) -> None:
        """Note that an allocation of this queue has begun, ended or changed."""
        self._changed.add(leaf)

    def queues_changed(self, leaves: Iterable[Queue]) -> None:
        """Note that the allocations of any of these queues may have changed."""
        self._changed.update(leaves)
        self._resized = True

    def resized(self) -> None:
        """Note that the size of the cluster may have changed."""
        self._resized = True

    def observe(self, now_ns: int) -> None:
        """Read the usage of the changed queues and all queues above them."""
        if now_ns > self.to_ns or not (self._changed or self._resized):
            return
        now_ns = max(now_ns, self.from_ns)
        root = self._root
        if root.types.names != self._names:
            self._names = root.types.names.copy()
        names = self._names
        seen = {root}
        queue: Queue | None
        for leaf in self._changed:
            queue = leaf
            while queue is not None and queue not in seen:
                seen.add(queue)
                gauge: Gauge | None = self.gauges.get(queue.path)
                if gauge is None:
                    gauge = self.gauges[queue.path] = Gauge(now_ns)
                gauge.set(now_ns, queue.allocated, names)
                queue = queue.parent
        self._changed.clear()
        if self._resized:
            self._resized = False
            self.share.resize(now_ns, root.limit, names)
        self.share.set(now_ns, root.allocated, names)
