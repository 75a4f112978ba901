"""Measure evictions and gangs, as seen by a resource manager that embeds the scheduler.

As in `bench.py`, everything goes through the public API in the 1.9 interface, with messages that are made before the clock
starts, 1,000 in a call. But here the resource manager has a part of its own: it confirms releases, and submits the real
asks of a gang when its application runs. Its answers are made inside the measured loop, because they depend on what was
decided; their time is part of the whole, and reported separately from that of deciding.

It keeps no state of its pods, as `licorne.sim.model` does: that takes 2 µs for each allocation, half as long as the decision.

| case | the clock runs |
|---|---|
| preempt | from the first virtual time at which preemption is allowed, until all asks run or nothing more happens |
| gangs | from the first placeholder submitted until all real pods run |
| gangs-atomic | from the first ask submitted until all pods run |
"""

from __future__ import annotations

import gc
import hashlib
import time
from statistics import median

import msgspec

from bench.measure.boundary import (
    ASKS_A_CALL,
    RM_ID,
    allocation_requests,
    application_request,
    ask_messages,
    node_request,
    registration,
)
from bench.measure.machine import Meter
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.core import compiled
from licorne.si import v19
from licorne.sim.collector import quiet_collector
from licorne.sim.gangs import Gangs
from licorne.workload.lines import App, Ask
from licorne.workload.workload import Workload, WorkloadError

SECOND_NS = 1_000_000_000
ALLOWED_NS = 30 * SECOND_NS
"""When preemption is first allowed for asks that came at 0, in nanoseconds of virtual time.

Source: docs/spec/preemption.md, section 1: the delay of a leaf.
"""
PATIENCE_NS = 600 * SECOND_NS
"""Most virtual time that may pass until everything is decided."""


class ContestRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `decide_s` is the time in calls that decide, `answer_s` in calls that bring the manager's answers.

    `placed`: asks, or members of gangs, that run in the end. `virtual_s`: seconds of virtual time that passed meanwhile.
    """

    evictions: int
    placed: int
    seconds: float
    submit_s: float
    decide_s: float
    answer_s: float
    virtual_s: float
    cpu_s: float
    other_cores: float | None
    digest: str


class ContestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a measurement: medians over the runs. `per_s` counts evictions in case preempt, else members of gangs.

    `decided_per_s` divides the same number by the time in calls that decide alone. `expected`: asks, or members of gangs.
    """

    workload: str
    counted: str
    expected: int
    placed: int
    evictions: int
    per_s: float
    decided_per_s: float
    seconds: float
    submit_s: float
    decide_s: float
    answer_s: float
    virtual_s: float
    cpu_s: float
    other_cores: float | None
    digest: str
    compiled: bool
    runs: list[ContestRun]


def measure_contest(workload: Workload, *, repeat: int = 1) -> ContestResult:
    """Measure a workload of `contended.py` `repeat` times, each time in a new scheduler.

    Raises WorkloadError if any part of it is refused, or if two runs decide differently.
    """
    feed = _Feed(workload)
    runs = [_run(feed) for _ in range(repeat)]
    if len({run.digest for run in runs}) > 1:
        raise WorkloadError(f"{workload.name}: two runs decided differently, which must never happen: please report it")
    counted = "members" if feed.gangs else "evictions"
    numbers = [run.placed if feed.gangs else run.evictions for run in runs]
    return ContestResult(
        workload=workload.name,
        counted=counted,
        expected=feed.expected,
        placed=runs[-1].placed,
        evictions=runs[-1].evictions,
        per_s=median(n / run.seconds for n, run in zip(numbers, runs, strict=True)),
        decided_per_s=median(n / max(1e-9, run.decide_s) for n, run in zip(numbers, runs, strict=True)),
        seconds=median(run.seconds for run in runs),
        submit_s=median(run.submit_s for run in runs),
        decide_s=median(run.decide_s for run in runs),
        answer_s=median(run.answer_s for run in runs),
        virtual_s=runs[-1].virtual_s,
        cpu_s=median(run.cpu_s for run in runs),
        other_cores=max((run.other_cores for run in runs if run.other_cores is not None), default=None),
        digest=runs[-1].digest,
        compiled=compiled,
        runs=runs,
    )


class _Feed:
    """The messages made before the clock starts, and those that the resource manager will send for gangs."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.nodes = node_request(workload)
        self.applications = application_request(workload)
        applications = [line for line in workload.lines if isinstance(line, App)]
        asks = [line for line in workload.lines if isinstance(line, Ask)]
        self.gangs = any(line.gang for line in applications)
        self.expected = sum(not line.node for line in asks)
        self.running = allocation_requests(ask_messages(line for line in asks if line.node))
        gangs = Gangs()
        for line in applications:
            gangs.submitted(line, 0)
        first = [placeholder for line in applications for placeholder in gangs.accepted(line.id, "")]
        first += [line for line in asks if not line.node and not gangs.keeps(line)]
        self.first = allocation_requests(ask_messages(first))
        self.later = {app: ask_messages(gang.kept.values()) for app, gang in gangs.known.items() if gang.kept}


class _Manager(ResourceManagerCallback):
    """A resource manager that counts decisions and collects the answers that it owes."""

    def __init__(self, feed: _Feed) -> None:
        self.later = dict(feed.later)
        self.api = SchedulerAPI()
        self.refused: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.placed = self.evictions = 0
        self.to_confirm: list[v19.AllocationRelease] = []
        self.to_hand_in: list[v19.Allocation] = []
        self.now_ns = 0
        self.api.register_resource_manager(registration(feed.workload), self, now_ns=0)
        self.api.update_node(feed.nodes, now_ns=0)
        self.api.update_application(feed.applications, now_ns=0)
        for request in feed.running:
            self.api.update_allocation(request, now_ns=0)
        self.placed = 0
        self.told.clear()
        self.check(feed)

    def check(self, feed: _Feed) -> None:
        if self.refused:
            name = feed.workload.name
            raise WorkloadError(f"{name}: {len(self.refused)} refused, the first: {self.refused[0]}")

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        for new in response.new:
            self.placed += not new.placeholder
            self.told.append((new.allocation_key, new.node_id))
        for gone in response.released:
            self.told.append((gone.allocation_key, gone.termination_type.name))
            self.evictions += gone.termination_type is v19.TerminationType.PREEMPTED_BY_SCHEDULER
            if gone.termination_type is not v19.TerminationType.STOPPED_BY_RM:
                self.to_confirm.append(gone)
        self.refused += [refusal.reason for refusal in response.rejected_allocations]

    def update_application(self, response: v19.ApplicationResponse) -> None:
        for updated in response.updated:
            if updated.state == "Running":
                self.to_hand_in += self.later.pop(updated.application_id, ())
        self.refused += [refusal.reason for refusal in response.rejected]

    def update_node(self, response: v19.NodeResponse) -> None:
        self.refused += [refusal.reason for refusal in response.rejected]

    def answer(self) -> bool:
        """Confirm releases and submit asks that are due; return whether there were any."""
        confirming, self.to_confirm = self.to_confirm, []
        asks, self.to_hand_in = self.to_hand_in, []
        for request in allocation_requests(asks):
            self.api.update_allocation(request, now_ns=self.now_ns)
        for start in range(0, len(confirming), ASKS_A_CALL):
            chunk = [_confirmation(gone) for gone in confirming[start : start + ASKS_A_CALL]]
            releases = v19.AllocationReleasesRequest(allocations_to_release=chunk)
            self.api.update_allocation(v19.AllocationRequest(rm_id=RM_ID, releases=releases), now_ns=self.now_ns)
        return bool(confirming or asks)


def _confirmation(gone: v19.AllocationRelease) -> v19.AllocationRelease:
    return v19.AllocationRelease(
        partition_name=gone.partition_name,
        application_id=gone.application_id,
        allocation_key=gone.allocation_key,
        termination_type=gone.termination_type,
    )


def _run(feed: _Feed) -> ContestRun:
    manager = _Manager(feed)
    api, clock = manager.api, time.perf_counter_ns
    submit_ns = decide_ns = answer_ns = 0
    gc.collect()  # as in `bench.measure.speed`
    with quiet_collector():
        if not feed.gangs:
            for request in feed.first:
                api.update_allocation(request, now_ns=0)
            while api.schedule(now_ns=0):
                pass
            manager.now_ns = ALLOWED_NS
        meter, started_ns = Meter(), clock()
        if feed.gangs:
            for request in feed.first:
                api.update_allocation(request, now_ns=0)
            submit_ns = clock() - started_ns
        while True:
            before_ns = clock()
            made = api.schedule(now_ns=manager.now_ns)
            decided_ns = clock()
            answered = manager.answer()
            decide_ns += decided_ns - before_ns
            answer_ns += clock() - decided_ns
            if not made and not answered and not _next_moment(manager, feed):
                break
        ended_ns = clock()
        use = meter.read()
    manager.check(feed)
    sha = hashlib.sha256()
    for key, what in manager.told:
        sha.update(f"{key}\t{what}\n".encode())
    return ContestRun(
        evictions=manager.evictions,
        placed=manager.placed,
        seconds=(ended_ns - started_ns) / 1e9,
        submit_s=submit_ns / 1e9,
        decide_s=decide_ns / 1e9,
        answer_s=answer_ns / 1e9,
        virtual_s=(manager.now_ns - (0 if feed.gangs else ALLOWED_NS)) / SECOND_NS,
        cpu_s=use.cpu_s,
        other_cores=use.other_cores,
        digest=sha.hexdigest(),
    )


def _next_moment(manager: _Manager, feed: _Feed) -> bool:
    """Advance virtual time to the next deadline; return False if everything is placed or the deadline is too far away."""
    if manager.placed >= feed.expected:
        return False
    next_ns = manager.api.next_deadline_ns()
    if next_ns is None or next_ns <= manager.now_ns or next_ns > ALLOWED_NS + PATIENCE_NS:
        return False
    manager.now_ns = next_ns
    return True
