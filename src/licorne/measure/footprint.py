"""Measures what a pending ask and an allocation take in memory.

What belongs to the caller is left out: his messages exist before the first reading, and what is decided is counted by
the session and dropped. (The strings and maps of messages that come as objects live on in the scheduler; they are the
caller's. Of bytes the scheduler makes its own, and they count.)
The figures are differences of the memory that the system gives to the whole process, so they hold what allocators
and tables waste, and only large workloads give steady ones. Measure in a fresh process: memory that something else gave
back before would be used again, and not be seen.
"""

from __future__ import annotations

import gc

import msgspec

from licorne._machine import forget_peak, peak_rss_bytes, rss_bytes
from licorne.measure.boundary import BoundaryName, feed_of
from licorne.sim.collector import quiet_collector
from licorne.sim.workload import Workload


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of the process. `cluster_bytes`: the scheduler with nodes and applications; `peak_bytes`: above the workload.

    `pending_ask_bytes` is for one ask when all are handed in and none is decided. `allocation_bytes` is for one
    allocation, its ask included, when all is decided; asks that still wait are taken off, as large as before.
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
    """Hand in and decide a workload once, and read the memory before, between and after."""
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
    """The memory in use, without what nobody can reach any more."""
    gc.collect()
    return rss_bytes()
