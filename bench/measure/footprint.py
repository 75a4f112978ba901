"""Measure the memory of a pending ask and of an allocation.

Memory that belongs to the caller is excluded: its messages exist before the first reading, and decisions are counted by the
session and dropped. (The strings and maps of messages that come as objects live on in the scheduler; they are the caller's.
From bytes the scheduler makes its own, and these count.) The figures are differences of the memory that the system gives to
the whole process, so they include the waste of allocators and tables, and only large workloads give steady figures. Measure
in a fresh process: memory that was freed earlier would be used again, and not be counted.
"""

from __future__ import annotations

import gc

import msgspec

from bench.measure.boundary import BoundaryName, feed_of
from bench.measure.machine import forget_peak
from licorne._machine import peak_rss_bytes, rss_bytes
from licorne.sim.collector import quiet_collector
from licorne.workload.workload import Workload


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the process. `cluster_bytes`: the scheduler with nodes and applications; `peak_bytes`: above the workload.

    `pending_ask_bytes` is for one ask when all are submitted and none is decided. `allocation_bytes` is for one allocation,
    including its ask, when all is decided; asks that still wait are subtracted, at `pending_ask_bytes` each.
    """

    workload: str
    asks: int
    allocations: int
    workload_bytes: int
    cluster_bytes: int
    pending_ask_bytes: float
    allocation_bytes: float
    peak_bytes: int


def footprint(workload: Workload, boundary: BoundaryName = "objects") -> Footprint:
    """Submit and decide a workload once, and read the memory before, between and after."""
    feed = feed_of(workload, boundary)
    with quiet_collector():
        forget_peak()
        loaded = rss_bytes()
        session = feed.connect(keep=False, reservations=False)
        cluster = _settled()
        for batch in feed.batches:
            session.hand_in(batch)
        pending = _settled()
        session.decide()
        decided = _settled()
        peak = peak_rss_bytes()
    session.check(workload.name, "asks ")
    ask_bytes = (pending - cluster) / max(1, feed.asks)
    waiting = (feed.asks - session.made) * ask_bytes
    return Footprint(
        workload=workload.name,
        asks=feed.asks,
        allocations=session.made,
        workload_bytes=loaded,
        cluster_bytes=cluster - loaded,
        pending_ask_bytes=ask_bytes,
        allocation_bytes=(decided - cluster - waiting) / max(1, session.made),
        peak_bytes=max(0, peak - loaded),
    )


def _settled() -> int:
    """Return the memory in use after a garbage collection."""
    gc.collect()
    return rss_bytes()
