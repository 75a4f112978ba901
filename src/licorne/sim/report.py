"""The result of a simulation, as data: `--json` prints it, and the tables are made from it.

Durations are in seconds of virtual time, amounts as in the workload (vcore in milli, memory in bytes), shares are
fractions of 1. Only `real_s` differs between two runs on the same input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.core import compiled
from licorne.sim.evictions import Evictions
from licorne.sim.gangs import GangWaits
from licorne.sim.measure import percentiles
from licorne.sim.reasons import waiting
from licorne.sim.refusals import Refused
from licorne.sim.workload import Mode, Workload

if TYPE_CHECKING:
    from licorne.sim.simulation import Simulation

NANOSECONDS = 1_000_000_000


class ReasonCount(msgspec.Struct, frozen=True):
    """A reason why asks were never placed, the number of such asks, and one of them as an example.

    `place`: the line of the example, as `FILE:LINE`, if the scheduler refused it.
    """

    reason: str
    asks: int
    example: str
    place: str = ""


class QueueWaits(msgspec.Struct, frozen=True):
    """How long the placed asks of a queue waited: nearest-rank percentiles, in seconds of virtual time."""

    queue: str
    placed: int
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float


class Utilisation(msgspec.Struct, frozen=True):
    """The use of a resource: mean over time and peak, as amounts and as shares of the capacity."""

    resource: str
    mean_capacity: float
    mean_used: float
    peak_used: int
    mean: float
    peak: float


class QueueUsage(msgspec.Struct, frozen=True):
    """The use of a resource by a queue and all queues below it, with the queue's guarantee and max."""

    queue: str
    resource: str
    mean: float
    peak: int
    guaranteed: int | None
    max: int | None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of simulating a workload.

    `asks` counts an ask with repetitions as that many, and one that is created again after an eviction (`resubmitted`) once
    more. `placed` counts the allocations that the scheduler decided for them, `never_placed` the others, each with a reason.
    `recovered` allocations were reported, not decided. `ended` pods ended by themselves; `timed_out` and `preempted` ones
    were ended by the scheduler. Placeholders are counted separately: `placeholders` were allocated. `refused` is what the
    scheduler refused except asks, which are among the `reasons`. `digest` is SHA-256 over the decision lines
    (`ask<TAB>node<LF>`; `licorne.sim.escaping`).
    """

    workload: str
    mode: str
    notes: list[str]
    applications_accepted: int
    applications_rejected: int
    nodes_rejected: int
    asks: int
    placed: int
    never_placed: int
    recovered: int
    ended: int
    timed_out: int
    preempted: int
    resubmitted: int
    placeholders: int
    reasons: list[ReasonCount]
    refused: list[Refused]
    waiting_times: list[QueueWaits]
    gangs: list[GangWaits]
    evictions: list[Evictions]
    utilisation: list[Utilisation]
    queues: list[QueueUsage]
    simulated_s: float
    real_s: float
    digest: str
    compiled: bool


def summarise(workload: Workload, simulation: Simulation, *, digest: str, real_s: float) -> Result:
    """Make the result from what a simulation has recorded."""
    counts = simulation.counts
    reasons = _reasons(simulation)
    return Result(
        workload=workload.name,
        mode=workload.mode.value,
        notes=[*workload.notes, *_notes(workload, simulation)],
        applications_accepted=counts["applications accepted"],
        applications_rejected=counts["applications rejected"],
        nodes_rejected=counts["nodes rejected"],
        asks=counts["asked"],
        placed=counts["placed"],
        never_placed=counts["asked"] - counts["placed"],
        recovered=counts["recovered"],
        ended=counts["ended"],
        timed_out=counts["timeout"],
        preempted=counts["preempted_by_scheduler"],
        resubmitted=counts["resubmitted"],
        placeholders=counts["placeholders"],
        reasons=reasons,
        refused=simulation.refusals.rows(),
        waiting_times=_waiting_times(simulation),
        gangs=simulation.model.gangs.rows(),
        evictions=simulation.evictions.rows(),
        utilisation=_utilisation(simulation),
        queues=_queues(simulation),
        simulated_s=simulation.changed_ns / NANOSECONDS,
        real_s=real_s,
        digest=digest,
        compiled=compiled,
    )


def _notes(workload: Workload, simulation: Simulation) -> Iterable[str]:
    if workload.mode is not Mode.TIMED:
        yield "time stands still: nothing waits and nothing ends"
    refused = simulation.counts["reloads refused"]
    if refused:
        yield f"{refused} changed configuration(s) were refused, and the one before stayed"


def _reasons(simulation: Simulation) -> list[ReasonCount]:
    """Return why asks were never placed, the most frequent reason first."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    places: dict[str, str] = {}
    for (reason, key), number in simulation.refusals.asks.items():
        text = f"rejected: {reason}"
        counts[text] += number
        examples.setdefault(text, key)
        places.setdefault(text, simulation.refusals.place_of(reason))
    gangs: dict[str, str] = {}  # why the first waiting placeholder of an application waits
    for key, text in waiting(simulation.partition):
        pod = simulation.model.pods.get(key)
        if pod is not None and pod.ask.ph:
            gangs.setdefault(pod.ask.app, text)
            continue
        counts[text] += pod.ask.max - pod.placed if pod is not None else 1
        examples.setdefault(text, key)
    for app, ask in simulation.model.gangs.kept_back():
        text = f"waits for the placeholders of its gang: {gangs.get(app, 'not all are there yet')}"
        counts[text] += ask.max
        examples.setdefault(text, ask.key)
    left = simulation.counts["asked"] - simulation.counts["placed"] - counts.total()
    if left > 0:
        counts["taken back before it was placed"] = left
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ReasonCount(reason, number, examples.get(reason, ""), places.get(reason, "")) for reason, number in ordered]


def _waiting_times(simulation: Simulation) -> list[QueueWaits]:
    """Return a row for each queue in which an ask was placed, and one for all together, named `*`."""
    groups = sorted(simulation.waits_ns.items())
    if len(groups) > 1:
        groups.append(("*", [wait for _, waits in groups for wait in waits]))
    rows: list[QueueWaits] = []
    for queue, waits in groups:
        p50, p95, p99, longest = (value / NANOSECONDS for value in percentiles(waits, (50, 95, 99, 100)))
        rows.append(QueueWaits(queue, len(waits), p50, p95, p99, longest))
    return rows


def _utilisation(simulation: Simulation) -> list[Utilisation]:
    end_ns, share = simulation.changed_ns, simulation.use.share
    share.finish(end_ns)
    used = share.used.over(0, end_ns)
    rows: list[Utilisation] = []
    for name, capacity in share.capacity.over(0, end_ns).items():
        level = used.get(name)
        mean, peak = (level.mean, level.peak) if level is not None else (0.0, 0)
        part = mean / capacity.mean if capacity.mean > 0 else 0.0
        rows.append(Utilisation(name, capacity.mean, mean, peak, part, share.peak(name, lasting=end_ns > 0)))
    return rows


def _queues(simulation: Simulation) -> list[QueueUsage]:
    """Return a row for each queue and resource that was used, guaranteed or limited, queues in order of path."""
    end_ns = simulation.changed_ns
    queues: list[Any] = list(simulation.partition.tree.queues())
    known = {queue.path: queue for queue in queues}
    rows: list[QueueUsage] = []
    gauges = simulation.use.gauges
    for path in sorted(gauges.keys() | known.keys(), key=str.encode):
        gauge, queue = gauges.get(path), known.get(path)
        levels = gauge.over(0, end_ns) if gauge is not None else {}
        guaranteed = (queue.guaranteed_resource() or {}) if queue is not None else {}
        limit = (queue.max_resource() or {}) if queue is not None else {}
        for name in sorted(levels.keys() | guaranteed.keys() | limit.keys()):
            level = levels.get(name)
            mean, peak = (level.mean, level.peak) if level is not None else (0.0, 0)
            rows.append(QueueUsage(path, name, mean, peak, guaranteed.get(name), limit.get(name)))
    return rows
