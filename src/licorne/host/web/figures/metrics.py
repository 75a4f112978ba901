"""The original's metrics, with its names and labels, and some more, in Prometheus' text format.

Source: docs/spec/metrics.md.

The figures are read from the scheduler when they are requested (`fill`, on the loop) and formatted afterwards
(`Metrics.text`, which may run in a thread, as it touches nothing of the scheduler). Only counters of outputs are kept from
one scrape to the next, so a removed queue has no series.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

import licorne
from licorne.core import compiled
from licorne.core.constants import SUM_MAX
from licorne.core.inputs.node_changes import full_name
from licorne.host.log import dropped_of
from licorne.host.web.monitor import Monitor
from licorne.state.recording.recorder import STATES
from licorne.state.recording.recorder import Figures as Recording

from .counts import WAIT_BUCKETS_S, Shown
from .lag import LAG_BUCKETS_S
from .latencies import BUCKETS_S
from .metric_texts import COUNTERS_OF_HOST, HELP, OF_HOST, QUEUE_CONTAINER_HELP, RANGES
from .queue_figures import QueueFigures, add_amounts, figures_of, homes_of, keep_zeros

if TYPE_CHECKING:
    from licorne.core.partition import Partition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
SCHEDULER = "yunikorn_scheduler_"
LIVE_STATES = ("running", "resuming", "failing", "completing")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_:]")

Labels = tuple[str, ...]


def legal(name: str) -> str:
    """Return a part of a metric's name with `_` for each character that is not allowed there."""
    return _ILLEGAL.sub("_", name)


def _label(bound: float) -> str:
    """Return a bucket's bound as the original writes it (`le="1"`, not `1.0`), as queries compare labels as text."""
    return str(bound).removesuffix(".0")


class Snapshot:
    """All figures of one reading."""

    def __init__(self) -> None:
        self.families: list[Metric] = []
        self.lines: list[str] = []  # text of metrics whose names the library would change

    def counter(self, name: str, labels: Sequence[str], values: Iterable[tuple[Labels, float]]) -> None:
        """Add a counter; the library appends `_total` to its name."""
        family = CounterMetricFamily(name, HELP[name], labels=labels)
        for of, value in values:
            family.add_metric(of, value)
        self.families.append(family)

    def gauge(self, name: str, labels: Sequence[str], values: Iterable[tuple[Labels, float]], text: str = "") -> None:
        """Add a gauge."""
        family = GaugeMetricFamily(name, text or HELP[name], labels=labels)
        for of, value in values:
            family.add_metric(of, value)
        self.families.append(family)

    def histogram(
        self,
        name: str,
        bounds: Sequence[float],
        labels: Sequence[str],
        values: Iterable[tuple[Labels, list[int], float]],
    ) -> None:
        """Add a histogram; the given buckets are not cumulative."""
        family = HistogramMetricFamily(name, HELP[name], labels=labels)
        for of, buckets, total in values:
            count = 0
            cumulative = []
            for bound, number in zip([*map(_label, bounds), "+Inf"], buckets, strict=True):
                count += number
                cumulative.append((bound, float(count)))
            family.add_metric(of, cumulative, total)
        self.families.append(family)


def fill(found: Snapshot, monitor: Monitor, *, old_queue_names: bool) -> Iterator[None]:
    """Read all figures into `found`, in steps between which the scheduler works.

    Figures that must agree with each other are read in the same step.

    Parameters:
        found: gets the figures.
        monitor: watches the scheduler.
        old_queue_names: also export the names of releases up to 1.3, which the original's shipped dashboard still uses.
    """
    partitions = list(monitor.backend.partitions())
    figures = figures_of(monitor, partitions)
    _scheduler(found, monitor, partitions, figures)
    _latencies(found, monitor, partitions)
    _events(found, monitor)
    _own(found, monitor, partitions)
    yield
    yield from _nodes(found, partitions)
    yield from _queues(found, partitions, figures, monitor.counts.shown, old_names=old_queue_names)


class _Given(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


class Metrics:
    """Formats snapshots, together with metrics of the process."""

    def __init__(self) -> None:
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def text(self, found: Snapshot) -> bytes:
        """Return a snapshot in the text format, version 0.0.4."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Given(found.families))
        lines = "".join(line + "\n" for line in found.lines).encode()
        return generate_latest(registry) + lines + generate_latest(self._process)


# -- the scheduler ---------------------------------------------------------------------------------------


def _by_label(values: Mapping[str, float]) -> list[tuple[Labels, float]]:
    """Return the values of a metric that has a single label."""
    return [((label,), value) for label, value in values.items()]


def _scheduler(
    found: Snapshot, monitor: Monitor, partitions: list[Partition], figures: dict[str, QueueFigures]
) -> None:
    counts = monitor.counts
    attempts = {"allocated": counts.allocated, "rejected": counts.rejected}
    attempts |= {"error": counts.rejected + monitor.errors, "released": counts.released}
    found.counter(SCHEDULER + "container_allocation_attempt", ["state"], _by_label(attempts))
    submitted = {"new": counts.submitted, "accepted": counts.accepted, "rejected": counts.refused_applications}
    found.counter(SCHEDULER + "application_submission", ["result"], _by_label(submitted))
    states = {state: sum(of.states.get(state, 0) for of in figures.values()) for state in LIVE_STATES}
    states |= {"completed": counts.completed, "failed": counts.failed}
    found.gauge(SCHEDULER + "application_total", ["state"], _by_label(states))
    nodes = [node for partition in partitions for node in partition.nodes.values()]
    numbers = {"active": len(nodes), "failed": counts.nodes_refused}
    numbers |= {"draining": sum(not node.schedulable for node in nodes)}
    numbers |= {"decommissioned": max(0, counts.nodes_accepted - len(nodes))}
    found.gauge(SCHEDULER + "node", ["state"], _by_label(numbers))


def _latencies(found: Snapshot, monitor: Monitor, partitions: list[Partition]) -> None:
    """Add the original's six latencies. No decision sorts nodes or queues, so the sorting latencies are empty."""
    of = monitor.latencies
    of.settle(partitions)
    for name, durations in (
        ("scheduling_latency", of.slices),
        ("scheduling_cycle", of.slices),
        ("trynode_latency", of.placed),
        ("trynode_evaluation", of.tried),
        ("trypreemption_latency", of.preemption),
    ):
        values = [((), durations.buckets, durations.sum)]
        found.histogram(f"{SCHEDULER}{name}_milliseconds", BUCKETS_S, [], values)
    nothing = [0] * (len(BUCKETS_S) + 1)
    sorting = [((level,), nothing, 0.0) for level in ("app", "queue")]
    found.histogram(SCHEDULER + "node_sorting_latency_milliseconds", BUCKETS_S, ["level"], sorting)


def _nodes(found: Snapshot, partitions: list[Partition]) -> Iterator[None]:
    usage: dict[str, list[int]] = {}
    for partition in partitions:
        names = partition.types.names
        for node in list(partition.nodes.values()):
            yield
            used = node.allocated.values()
            for d, capacity in enumerate(node.capacity.values()):
                if 0 < capacity < SUM_MAX:
                    share = (used[d] if d < len(used) else 0) * 10
                    at = min(max((share - 1) // capacity, 0), 9)
                    usage.setdefault(names[d], [0] * 10)[at] += 1
    for name in sorted(usage):
        metric = f"{SCHEDULER}{legal(name)}_node_usage_total"
        values = [((range_,), number) for range_, number in zip(RANGES, usage[name], strict=True)]
        found.gauge(metric, ["range"], values, "Total resource usage of node, by resource name.")


# -- queues ----------------------------------------------------------------------------------------------


def _queues(
    found: Snapshot, partitions: list[Partition], figures: dict[str, QueueFigures], shown: Shown, *, old_names: bool
) -> Iterator[None]:
    for partition in partitions:
        for queue in partition.tree.queues():
            yield
            if queue.path in figures:
                add_amounts(figures[queue.path], queue)
    yield from keep_zeros(figures, shown)
    by_path = sorted(figures.items())
    apps = [((path, state), number) for path, of in by_path for state, number in (of.states | of.ended).items()]
    found.gauge("yunikorn_queue_app", ["queue", "state"], apps)
    ended = [((path, state), number) for path, of in by_path for state, number in sorted(of.ended.items())]
    found.counter("yunikorn_queue_app", ["queue", "state"], ended)
    rows = [((path, *key), number) for path, of in by_path for key, number in of.resources.items()]
    found.gauge("yunikorn_queue_resource", ["queue", "state", "resource"], rows)
    for path, of in by_path:
        name = f"yunikorn_{legal(path)}_queue_container"
        found.lines += [f"# HELP {name} {QUEUE_CONTAINER_HELP}", f"# TYPE {name} counter"]
        found.lines.append(f'{name}{{state="allocated"}} {of.made}')
        found.lines.append(f'{name}{{state="released"}} {max(0, of.made - of.live)}')
        if old_names:
            _old_names(found, legal(path), of)


def _old_names(found: Snapshot, name: str, of: QueueFigures) -> None:
    app, resource = f"yunikorn_{name}_queue_app", f"yunikorn_{name}_queue_resource"
    states = of.states | of.ended
    if states:
        found.lines.append(f"# TYPE {app} gauge")
    found.lines += [f'{app}{{state="{state}"}} {number}' for state, number in states.items()]
    found.lines.append(f"# TYPE {resource} gauge")
    for (state, kind), number in of.resources.items():
        found.lines.append(f'{resource}{{state="{state}",resource="{_escaped(kind)}"}} {number}')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# -- events, and metrics that the original does not have -------------------------------------------------


def _events(found: Snapshot, monitor: Monitor) -> None:
    stores = [manager.store for manager in monitor.backend.managers() if manager.store is not None and manager.listens]
    lost = sum(store.dropped for store in stores)
    made = monitor.ring.made
    figures = {"created": made, "channeled": made, "not_channeled": 0, "processed": made}
    figures |= {"stored": made - lost if stores else 0, "not_stored": lost, "collected": 0}
    for name, number in figures.items():
        # The library would export this as a gauge, since it accepts only names in `_total` as counters.
        metric = f"yunikorn_event_total_{name}"
        found.lines += [f"# HELP {metric} {HELP[metric]}", f"# TYPE {metric} counter", f"{metric} {number}"]


def _own(found: Snapshot, monitor: Monitor, partitions: list[Partition]) -> None:
    found.counter("licorne_decisions", [], [((), monitor.decisions)])
    found.gauge("licorne_decisions_per_second", [], [((), round(monitor.rate, 3))])
    found.gauge("licorne_parked_asks", ["reason"], _by_label(monitor.parked))
    work = [
        ((full_name(partition), name.replace(" ", "_")), number)
        for partition in partitions
        for name, number in partition.work().items()
    ]
    found.counter("licorne_work", ["partition", "kind"], work)
    wakeups = [((full_name(partition),), partition.parking.wakeups) for partition in partitions]
    found.counter("licorne_wakeups", ["partition"], wakeups)
    searches = [((full_name(partition),), partition.guarantee_preemption.plans.searches) for partition in partitions]
    found.counter("licorne_preemption_searches", ["partition"], searches)
    reserved = [((full_name(partition),), len(partition.reservations)) for partition in partitions]
    found.gauge("licorne_reservations", ["partition"], reserved)
    homes = homes_of(partitions)
    waits = [
        ((f"[{rm_id}]{name}", path), of.buckets, of.sum / 1e9)
        for (rm_id, name, path), of in sorted(monitor.counts.waits.items())
        if (home := homes.get((rm_id, name))) is not None and home.tree.find(path) is not None
    ]
    found.histogram("licorne_waiting_seconds", WAIT_BUCKETS_S, ["partition", "queue"], waits)
    for name, of in (("licorne_loop_lag_seconds", monitor.lag.waits), ("licorne_decision_gap_seconds", monitor.gaps)):
        found.histogram(name, LAG_BUCKETS_S, [], [((), of.buckets, of.sum)])
        found.gauge(f"{name}_max", [], [((), of.take_longest())])
    messages = sorted(monitor.backend.messages().items())
    ways = [((rm, way), number) for rm, both in messages for way, number in zip(("in", "out"), both, strict=True)]
    found.counter("licorne_messages", ["rm", "way"], ways)
    figures = monitor.backend.figures()
    for name, labels in OF_HOST.items():
        add = found.counter if name in COUNTERS_OF_HOST else found.gauge
        add(name, labels, figures.get(name, {}).items())
    _recording(found, monitor.backend.recording())
    clock = (time.time_ns() - monitor.backend.clock()) / 1e9
    found.gauge("licorne_clock_offset_seconds", [], [((), round(clock, 3))])
    found.counter("licorne_log_lines_dropped", [], [((), dropped_of(monitor.log))])
    info = (licorne.__version__, platform.python_version(), "true" if compiled else "false")
    found.gauge("licorne_build_info", ["version", "python", "compiled"], [(info, 1)])


def _recording(found: Snapshot, recording: Recording | None) -> None:
    """Add what becomes of the recording; names without values where none is made."""
    states = [] if recording is None else [((each,), int(each == recording.state)) for each in STATES]
    found.gauge("licorne_recording_state", ["state"], states)
    counts = {} if recording is None else msgspec.structs.asdict(recording.counts)
    for name in ("bytes", "entries", "runs", "gaps"):
        found.counter(f"licorne_recording_{name}", [], [((), counts[name])] if counts else [])
    queue_bytes = [] if recording is None else [((), recording.queue_bytes)]
    found.gauge("licorne_recording_queue_bytes", [], queue_bytes)
    lag_s = [] if recording is None else [((), round(recording.lag_s, 3))]
    found.gauge("licorne_recording_lag_seconds", [], lag_s)
