"""The result of a simulation, as data: `--json` prints it, and the tables are made from it.

Durations are in seconds of virtual time, amounts as in the workload (`units`), shares are fractions of 1; all are rounded
to six decimals. Only `real_s` differs between two runs on the same input.

Counts, reasons and refusals are of the whole simulation. Figures over time (`utilisation`, `queues`) are of its window, and
so are `waiting_times` and `completions`, of the pods that arrive in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from licorne._wording import counted
from licorne.core import compiled
from licorne.sim.evictions import Evictions
from licorne.sim.gangs import GangWaits
from licorne.sim.pods import PodRecord
from licorne.sim.refusals import Refused, RejectedQueue
from licorne.sim.series import SeriesRow
from licorne.sim.times import QueueCompletions, QueueWaits, completions, waiting_times
from licorne.sim.unplaced import TAKEN_BACK
from licorne.workload.measure import seconds
from licorne.workload.row_tables import Table, html_table
from licorne.workload.workload import Mode, Workload

if TYPE_CHECKING:
    from licorne.sim.simulation import SimulatedCluster

DATES_S = 365 * 24 * 3600
"""A first pod that arrives later than this, in seconds, has a date for a time."""
UNITS = {"vcore": "thousandths of a core", "memory": "bytes", "others": "as in the workload", "times": "seconds"}


class ReasonCount(msgspec.Struct, frozen=True):
    """A reason why asks were never placed, the number of such asks, and one of them as an example.

    `place`: the line of the example, as `FILE:LINE`, if the scheduler refused it.
    """

    reason: str
    asks: int
    example: str
    place: str = ""


class Utilisation(msgspec.Struct, frozen=True):
    """The use of a resource: mean over time, peak, and at the end; as amounts and as shares of the capacity."""

    resource: str
    mean_capacity: float
    mean_used: float
    peak_used: int
    end_used: int
    mean: float
    peak: float
    end: float


class QueueUsage(msgspec.Struct, frozen=True):
    """The use of a resource by a queue and all queues below it, with the queue's guarantee and max."""

    queue: str
    resource: str
    mean: float
    peak: int
    end: int
    guaranteed: int | None
    max: int | None


class UsedPolicy(msgspec.Struct, frozen=True):
    """A policy that decided: its name, the methods that it has, and SHA-256 of the file that defines it ("" if there is none)."""

    name: str
    decides: tuple[str, ...]
    digest: str


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of simulating a workload.

    `asks` counts an ask with repetitions as that many, and one that is created again after an eviction (`resubmitted`) once
    more. `placed` counts the allocations that the scheduler decided for them, `never_placed` the others, each with a reason.
    `configuration` says which queue configuration counted. `rejected_queues`: what refused applications asked for.
    `window_s`: the times, from and up to, that means, peaks and percentiles are for. `recovered` allocations were reported, not decided. `ended` pods ended by themselves; `timed_out` and `preempted` ones
    were ended by the scheduler. Placeholders are counted separately: `placeholders` were allocated. `refused` is what the
    scheduler refused except asks, which are among the `reasons`. `digest` is SHA-256 over the decision lines
    (`ask<TAB>node<LF>`; `licorne.workload.escaping`). `policies`: those that decided in place of the scheduler. `pods`: what became of each pod, in the order in which that was known; empty
    if it was not asked for. `series`: the use of queues at equal intervals, if it was asked for.
    """

    workload: str
    mode: str
    configuration: str
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
    rejected_queues: list[RejectedQueue]
    waiting_times: list[QueueWaits]
    completions: list[QueueCompletions]
    gangs: list[GangWaits]
    evictions: list[Evictions]
    utilisation: list[Utilisation]
    queues: list[QueueUsage]
    window_s: tuple[float, float]
    units: dict[str, str]
    simulated_s: float
    real_s: float
    digest: str
    compiled: bool
    policies: list[UsedPolicy] = []
    pods: list[PodRecord] = []
    series: list[SeriesRow] = []

    def table(self, name: str) -> Table[Any]:
        """Return the rows of a field, such as `pods`, `queues` or `waiting_times`, as a table that polars and pandas read.

        Raises:
            KeyError: there is no field of this name that has rows; the text names those that there are.
        """
        kinds = row_kinds()
        if name not in kinds:
            raise KeyError(f"{name}: no table of a result; there are {', '.join(kinds)}")
        return Table(kinds[name], getattr(self, name))

    def _repr_html_(self) -> str:
        """Return a summary as HTML, for notebooks."""
        counts = ("asks", "placed", "never_placed", "ended", "preempted", "simulated_s")
        text = html_table(("", "number"), [(name.replace("_", " "), getattr(self, name)) for name in counts])
        for policy in self.policies:
            text += f"<p>policy {escape(policy.name)}: {', '.join(policy.decides)}</p>"
        for name in ("waiting_times", "reasons"):
            if getattr(self, name):
                text += f"<h4>{name.replace('_', ' ')}</h4>" + self.table(name)._repr_html_()  # its display
        return f"<h3>{escape(self.workload)}</h3>{text}<p>digest <code>{self.digest}</code></p>"


def row_kinds() -> dict[str, type[msgspec.Struct]]:
    """Return the fields of a result that have rows, and the class of their rows."""
    lists = {name: get_args(hint) for name, hint in get_type_hints(Result).items() if get_origin(hint) is list}
    return {name: kind for name, (kind,) in lists.items() if issubclass(kind, msgspec.Struct)}


def summarise(
    workload: Workload,
    simulation: SimulatedCluster,
    *,
    configuration: str,
    digest: str,
    real_s: float,
    pods: list[PodRecord],
    series: list[SeriesRow],
) -> Result:
    """Make the result from what a simulation has recorded."""
    counts = simulation.counts
    records = simulation.records
    from_ns, to_ns = _window(simulation)
    return Result(
        workload=workload.name,
        mode=workload.mode.value,
        configuration=configuration,
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
        reasons=_reasons(simulation),
        refused=simulation.refusals.rows(),
        rejected_queues=_rejected_queues(simulation),
        waiting_times=waiting_times(simulation.waits_ns, records),
        completions=completions(records) if workload.mode is Mode.TIMED else [],
        gangs=simulation.model.gangs.rows(),
        evictions=simulation.evictions.rows(),
        utilisation=_utilisation(simulation, from_ns, to_ns),
        queues=_queues(simulation, from_ns, to_ns),
        window_s=(seconds(from_ns), seconds(to_ns)),
        units=UNITS,
        simulated_s=seconds(simulation.changed_ns),
        real_s=round(real_s, 6),
        digest=digest,
        compiled=compiled,
        policies=[UsedPolicy(each.name, each.decides, each.digest) for each in simulation.policies],
        pods=pods,
        series=series,
    )


def _window(simulation: SimulatedCluster) -> tuple[int, int]:
    """Return the part of the time that figures are for; an empty one if the simulation ended before it."""
    use = simulation.use
    return use.from_ns, max(use.from_ns, min(use.to_ns, simulation.changed_ns))


def _notes(workload: Workload, simulation: SimulatedCluster) -> Iterable[str]:
    if workload.mode is not Mode.TIMED:
        yield "time stands still: nothing waits and nothing ends"
    first_s = workload.first_arrival_s
    if first_s >= DATES_S and simulation.use.from_ns == 0:
        yield (
            f"times count from 0, and the first pod arrives at {first_s:.0f} s, so means over time are of little but an "
            "empty cluster; subtract the first time from all, or say from when figures count"
        )
    if workload.devices:
        own = next((each.name for each in simulation.policies if "choose_device" in each.decides), None)
        yield f"devices of {workload.devices}: a share comes from one device, chosen by {own or workload.device_policy}"
    if simulation.counts["without devices"]:
        yield f"{counted(simulation.counts['without devices'], 'reported allocation')} without devices: too little was left on the node"
    if simulation.jobs is not None:
        yield "jobs in a strict order are held back before the scheduler, which decides after each arrival and each end"
    if not workload.devices:
        for each in simulation.policies:
            if "choose_device" in each.decides:
                yield f"policy {each.name} chooses devices, and this workload has none"
    refused = simulation.counts["reloads refused"]
    if refused:
        yield f"{counted(refused, 'changed configuration')} refused; the one before stayed in force"
    if simulation.use.from_ns > simulation.changed_ns:
        yield f"the simulation ended after {seconds(simulation.changed_ns)} s, before the time that figures are for"


def _reasons(simulation: SimulatedCluster) -> list[ReasonCount]:
    """Return why asks were never placed, the most frequent reason first."""
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    places: dict[str, str] = {}
    for each in simulation.unplaced():
        counts[each.reason] += each.number
        examples.setdefault(each.reason, each.key)
        places.setdefault(each.reason, each.place)
    left = simulation.counts["asked"] - simulation.counts["placed"] - counts.total()
    if left > 0:
        counts[TAKEN_BACK] = left
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [ReasonCount(reason, number, examples.get(reason, ""), places.get(reason, "")) for reason, number in ordered]


def _rejected_queues(simulation: SimulatedCluster) -> list[RejectedQueue]:
    """Return the queues that refused applications asked for, the one that most asked for first."""
    rows = list(simulation.refusals.queues.values())
    for row in rows:
        row.exists = simulation.partition.tree.find(row.queue.lower()) is not None
    return sorted(rows, key=lambda row: (-row.applications, row.queue))


def _utilisation(simulation: SimulatedCluster, from_ns: int, to_ns: int) -> list[Utilisation]:
    share = simulation.use.share
    share.finish(to_ns)
    used = share.used.over(from_ns, to_ns)
    rows: list[Utilisation] = []
    for name, capacity in share.capacity.over(from_ns, to_ns).items():
        level = used.get(name)
        mean, peak = (level.mean, level.peak) if level is not None else (0.0, 0)
        part = mean / capacity.mean if capacity.mean > 0 else 0.0
        end, end_capacity = share.used.last(name), share.capacity.last(name)
        rows.append(
            Utilisation(
                resource=name,
                mean_capacity=round(capacity.mean, 6),
                mean_used=round(mean, 6),
                peak_used=peak,
                end_used=end,
                mean=round(part, 6),
                peak=round(share.peak(name, lasting=to_ns > from_ns), 6),
                end=round(end / end_capacity, 6) if end_capacity > 0 else 0.0,
            )
        )
    return rows


def _queues(simulation: SimulatedCluster, from_ns: int, to_ns: int) -> list[QueueUsage]:
    """Return a row for each queue and resource that was used, guaranteed or limited, queues in order of path."""
    queues: list[Any] = list(simulation.partition.tree.queues())
    known = {queue.path: queue for queue in queues}
    rows: list[QueueUsage] = []
    gauges = simulation.use.gauges
    for path in sorted(gauges.keys() | known.keys(), key=str.encode):
        gauge, queue = gauges.get(path), known.get(path)
        levels = gauge.over(from_ns, to_ns) if gauge is not None else {}
        guaranteed = (queue.guaranteed_resource() or {}) if queue is not None else {}
        limit = (queue.max_resource() or {}) if queue is not None else {}
        for name in sorted(levels.keys() | guaranteed.keys() | limit.keys()):
            level = levels.get(name)
            mean, peak = (level.mean, level.peak) if level is not None else (0.0, 0)
            end = gauge.last(name) if gauge is not None else 0
            rows.append(QueueUsage(path, name, round(mean, 6), peak, end, guaranteed.get(name), limit.get(name)))
    return rows
