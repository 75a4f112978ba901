"""Measures how fast the scheduler decides, as a resource manager that embeds it would see it.

The clock runs from the first ask handed in to the last allocation handed out as a Python object. Everything goes
through the public API in the dialect of 1.9: asks are `Allocation` messages, made before the clock starts, because
they are the resource manager's; they are handed in 1,000 a call; then the scheduler decides until nothing more is
possible; the callback keeps every allocation that it is given. Nodes and applications are in place before.

Two policies belong to a host, and are those of the simulator: the garbage collector is kept from walking what
lives (`collector.py`), and virtual time stands still, so that nothing is decided by the machine's speed. Only with
reservations, which need time to pass, is the real clock used.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from licorne import SchedulerAPI
from licorne.core import compiled
from licorne.si import v19
from licorne.si.callback import ResourceManagerCallback
from licorne.sim.collector import quiet_collector
from licorne.sim.lines import App, Ask, Node
from licorne.sim.workload import Mode, Workload, WorkloadError

RM_ID = "bench"
ASKS_A_CALL = 1_000


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run: allocations made, and seconds in all, until all asks were handed in, and from then on."""

    allocations: int
    seconds: float
    submit_s: float
    decide_s: float
    allocations_per_s: float
    digest: str


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a benchmark measured; figures are medians over the runs.

    `expected` is what the workload says that it ends with (0: not known). `peak_rss_bytes` is the whole process's,
    the workload included.
    """

    workload: str
    asks: int
    allocations: int
    expected: int
    allocations_per_s: float
    seconds: float
    submit_s: float
    decide_s: float
    peak_rss_bytes: int
    digest: str
    compiled: bool
    reservations: bool
    python: str
    processors: int
    runs: list[Run]


class Collector(ResourceManagerCallback):
    """A resource manager that keeps what it is given, and knows when the last allocation came."""

    def __init__(self) -> None:
        self.allocations: list[v19.Allocation] = []
        self.last_ns = 0
        self.refused: list[str] = []

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Keep what is new, and when it came."""
        if response.new:
            self.allocations += response.new
            self.last_ns = time.perf_counter_ns()
        self.refused += [refusal.reason for refusal in response.rejected_allocations]

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Keep refusals."""
        self.refused += [refusal.reason for refusal in response.rejected]

    def update_node(self, response: v19.NodeResponse) -> None:
        """Keep refusals."""
        self.refused += [refusal.reason for refusal in response.rejected]


def measure(
    workload: Workload,
    *,
    repeat: int = 1,
    reservations: bool = False,
    told: Callable[[Run], None] | None = None,
) -> BenchResult:
    """Run a workload of version 1 as often as wanted, each time in a new scheduler.

    Raises WorkloadError for a workload of version 2, or one of which something is refused, or if two runs decide
    differently.
    """
    if workload.mode is not Mode.BATCH:
        raise WorkloadError(f"{workload.name}: only workloads of version 1 can be measured (all asks first, no times)")
    nodes, applications, batches = messages_of(workload)
    runs: list[Run] = []
    for _ in range(repeat):
        runs.append(_run(workload, nodes, applications, batches, reservations))
        if told is not None:
            told(runs[-1])
    digests = {run.digest for run in runs}
    if len(digests) > 1 and not reservations:
        raise WorkloadError(f"{workload.name}: two runs decided differently, which must never happen: please report it")
    return BenchResult(
        workload=workload.name,
        asks=sum(len(batch.allocations) for batch in batches),
        allocations=runs[-1].allocations,
        expected=workload.expect,
        allocations_per_s=median(run.allocations_per_s for run in runs),
        seconds=median(run.seconds for run in runs),
        submit_s=median(run.submit_s for run in runs),
        decide_s=median(run.decide_s for run in runs),
        peak_rss_bytes=peak_rss_bytes(),
        digest=runs[-1].digest,
        compiled=compiled,
        reservations=reservations,
        python=platform.python_version(),
        processors=os.cpu_count() or 1,
        runs=runs,
    )


def messages_of(
    workload: Workload,
) -> tuple[v19.NodeRequest, v19.ApplicationRequest, Sequence[v19.AllocationRequest]]:
    """What a resource manager would hand in: all nodes, all applications, the asks in batches."""
    nodes = [
        v19.NodeInfo(
            node_id=line.id,
            action=v19.ActionFromRM.CREATE,
            attributes=line.attrs or {},
            schedulable_resource=line.res,
        )
        for line in workload.lines
        if isinstance(line, Node)
    ]
    applications = [
        v19.AddApplicationRequest(
            application_id=line.id,
            queue_name=line.queue,
            partition_name="default",
            ugi=v19.UserGroupInformation(user=line.user, groups=list(line.groups)),
            tags=line.tags or {},
        )
        for line in workload.lines
        if isinstance(line, App)
    ]
    asks = [_ask(line) for line in workload.lines if isinstance(line, Ask)]
    batches = [
        v19.AllocationRequest(rm_id=RM_ID, allocations=asks[start : start + ASKS_A_CALL])
        for start in range(0, len(asks), ASKS_A_CALL)
    ]
    return (
        v19.NodeRequest(rm_id=RM_ID, nodes=nodes),
        v19.ApplicationRequest(rm_id=RM_ID, new=applications),
        batches,
    )


def _ask(line: Ask) -> v19.Allocation:
    policy = None
    if line.pre_self or line.pre_other:
        policy = v19.PreemptionPolicy(allow_preempt_self=line.pre_self, allow_preempt_other=line.pre_other)
    return v19.Allocation(
        allocation_key=line.key,
        application_id=line.app,
        partition_name="default",
        resource_per_alloc=line.res,
        priority=line.prio,
        allocation_tags=line.tags or {},
        task_group_name=line.group,
        placeholder=line.ph,
        preemption_policy=policy,
    )


def _run(
    workload: Workload,
    nodes: v19.NodeRequest,
    applications: v19.ApplicationRequest,
    batches: Sequence[v19.AllocationRequest],
    reservations: bool,
) -> Run:
    settings = {"reservation.enabled": str(reservations).lower()}
    api = SchedulerAPI(settings=settings, clock=time.monotonic_ns if reservations else None)
    keeper = Collector()
    request = v19.RegisterResourceManagerRequest(rm_id=RM_ID, config=workload.config or "", extra_config=workload.extra)
    api.register_resource_manager(request, keeper)
    api.update_node(nodes)
    api.update_application(applications)
    if keeper.refused:
        raise WorkloadError(f"{workload.name}: {len(keeper.refused)} refused, the first: {keeper.refused[0]}")
    with quiet_collector():
        started_ns = time.perf_counter_ns()
        for batch in batches:
            api.update_allocation(batch)
        submitted_ns = time.perf_counter_ns()
        while api.schedule():
            pass
    if keeper.refused:
        raise WorkloadError(f"{workload.name}: {len(keeper.refused)} asks refused, the first: {keeper.refused[0]}")
    ended_ns = max(keeper.last_ns, submitted_ns)
    seconds = (ended_ns - started_ns) / 1e9
    sha = hashlib.sha256()
    for new in keeper.allocations:
        sha.update(f"{new.allocation_key}\t{new.node_id}\n".encode())
    return Run(
        allocations=len(keeper.allocations),
        seconds=seconds,
        submit_s=(submitted_ns - started_ns) / 1e9,
        decide_s=(ended_ns - submitted_ns) / 1e9,
        allocations_per_s=len(keeper.allocations) / seconds if seconds > 0 else 0.0,
        digest=sha.hexdigest(),
    )


def peak_rss_bytes() -> int:
    """The most memory that this process has had; 0 where the system doesn't say."""
    try:
        import resource  # noqa: PLC0415  # not on every system
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
