"""Measure a full cluster in motion: an allocation ends, and a waiting ask takes its room.

First everything is submitted and decided, as in `bench.py`. Then allocations end one by one, in an order drawn from a
seed, each through the public API: one call that releases it, one that decides. Only allocations with a priority above 0
end; in the generated case these are the large ones, so that each end makes room for one of the smaller pods that wait. In a
workload without priorities any allocation may end.
"""

from __future__ import annotations

import random
import time
from statistics import fmean, median

import msgspec

from bench.measure.boundary import RM_ID, ObjectFeed
from bench.measure.machine import Meter
from licorne.si import v19
from licorne.sim.collector import quiet_collector
from licorne.workload.workload import Workload, WorkloadError

RELEASES = 20_000
LIMIT_S = 20.0
"""No further allocation ends after this many seconds, even if not all of `releases` have ended."""


class ChurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result: microseconds for one release together with the allocations that it allowed.

    `waiting`: asks that waited when the releases began. `allowed`: releases that allowed at least one allocation.
    """

    workload: str
    waiting: int
    releases: int
    allowed: int
    allocations: int
    release_us_mean: float
    release_us_median: float
    release_us_p99: float
    cpu_s: float
    other_cores: float | None


def churn(workload: Workload, *, seed: int = 1, releases: int = RELEASES, limit_s: float = LIMIT_S) -> ChurnResult:
    """Fill the cluster, then end `releases` allocations, or fewer if the time is up.

    Raises WorkloadError if no allocation was made, so that none can end.
    """
    feed = ObjectFeed(workload)
    session = feed.connect(keep=True, reservations=False)
    api = session.api
    with quiet_collector():
        for batch in feed.batches:
            session.hand_in(batch)
        while api.schedule():
            pass
        session.check(workload.name, "asks ")
        running = session.allocations
        ending = urgent(feed, running) or running
        order = random.Random(seed).sample(ending, len(ending))
        requests = [release_of(allocation) for allocation in order[:releases]]
        if not requests:
            raise WorkloadError(f"{workload.name}: nothing was allocated, so nothing can end")
        waiting = feed.asks - session.made
        made: list[int] = []
        times_ns: list[int] = []
        meter = Meter()
        clock = time.perf_counter_ns
        begun_ns = clock()
        for request in requests:
            started_ns = clock()
            api.update_allocation(request)
            number = api.schedule()
            times_ns.append(clock() - started_ns)
            made.append(number)
            if clock() - begun_ns > limit_s * 1e9:
                break
        use = meter.read()
    times_ns.sort()
    return ChurnResult(
        workload=workload.name,
        waiting=waiting,
        releases=len(times_ns),
        allowed=sum(number > 0 for number in made),
        allocations=sum(made),
        release_us_mean=fmean(times_ns) / 1e3,
        release_us_median=median(times_ns) / 1e3,
        release_us_p99=times_ns[len(times_ns) * 99 // 100] / 1e3,
        cpu_s=use.cpu_s,
        other_cores=use.other_cores,
    )


def urgent(feed: ObjectFeed, allocations: list[v19.Allocation]) -> list[v19.Allocation]:
    """Return the allocations whose asks have a priority above 0; an allocation itself does not carry the priority."""
    keys = {ask.allocation_key for batch in feed.batches for ask in batch.allocations if ask.priority > 0}
    return [allocation for allocation in allocations if allocation.allocation_key in keys]


def release_of(allocation: v19.Allocation) -> v19.AllocationRequest:
    """Return the request that ends an allocation."""
    release = v19.AllocationRelease(
        partition_name="default",
        application_id=allocation.application_id,
        allocation_key=allocation.allocation_key,
        termination_type=v19.TerminationType.STOPPED_BY_RM,
    )
    return v19.AllocationRequest(rm_id=RM_ID, releases=v19.AllocationReleasesRequest(allocations_to_release=[release]))
