"""Collects the figures of a report while a workload is simulated, in memory that does not grow with the virtual time.

What is used, waits and is guaranteed is read from the core at sampled moments (`licorne.lab.report.grid`), never counted a second
time. What became of pods comes as their records. Exact means and peaks of use are in the result, which a report shows beside.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from licorne._version import __version__
from licorne._wording import counted
from licorne.lab.report.fairness import evenness, shortfall
from licorne.lab.report.figures import (
    Bar,
    Figures,
    FragmentationOverTime,
    ModelOverTime,
    NeverPlaced,
    NodesOverTime,
    QueueOverTime,
    ResourceOverTime,
    Shortfall,
    most_pods,
)
from licorne.lab.report.fragments import Fragments
from licorne.lab.report.grid import Binned, Grid
from licorne.lab.report.spreads import Spreads
from licorne.sim.observer import Observer
from licorne.sim.pods import PodRecord
from licorne.sim.report import DATES_S, Result
from licorne.sim.unplaced import TAKEN_BACK
from licorne.workload.lines import Ask, to_ns
from licorne.workload.measure import seconds
from licorne.workload.workload import Mode, Workload

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.queue import Queue
    from licorne.sim.simulation import SimulatedCluster

QUEUES_MAX = 64
"""Most queues that are followed over time."""
NEVER_PLACED_MAX = 1_000
"""Most asks that were never placed in `report.json`; the table beside it has all."""
BARS_MAX = 2_000
BARS_NODES_MAX = 60
"""Most runs of pods, and most nodes, that are drawn one by one."""
GROUPS_MAX = 200
"""Most queues, and most users, of which times are shown."""
CLASSES = 11
"""Number of classes in which nodes are counted by their use: one for unused nodes, and ten of 10 % each."""
LOOK_EVERY = 4
NODES_A_LOOK = 2_000
"""Nodes are looked at with each fourth sample; with more nodes than these, in proportion less often."""


class _Lack:
    """What a queue lacks of its guarantee of one resource: sums over samples, weighted by time."""

    __slots__ = ("demand_ns", "guaranteed", "lost", "most", "short_ns")

    def __init__(self) -> None:
        self.guaranteed = 0
        self.demand_ns = 0
        self.short_ns = 0
        self.most = 0
        self.lost = 0

    def add(self, used: int, pending: int, guaranteed: int, lasted_ns: int) -> None:
        """Count a state that lasts this long."""
        self.guaranteed = guaranteed
        if used or pending:
            missing = shortfall(used, pending, guaranteed)
            self.demand_ns += lasted_ns
            self.short_ns += lasted_ns if missing else 0
            self.lost += missing * lasted_ns
            self.most = max(self.most, missing)


SECOND_NS = 1_000_000_000
_Values = list[tuple[Binned, float]]


class _State(NamedTuple):
    """What was read of the queues: values over time, and of each guarantee what is used, pending and guaranteed."""

    values: _Values
    lacks: list[tuple[_Lack, int, int, int]]


class Collector(Observer):
    """An observer that collects the figures of a report; `figures` returns them when the simulation has ended."""

    def __init__(self) -> None:
        self._simulation: SimulatedCluster
        self._grid: Grid
        self._values: dict[tuple[str, ...], Binned] = {}
        self._lacks: dict[tuple[str, str], _Lack] = {}
        self._leaves: dict[str, bool] = {}
        self._named: dict[str, set[str]] = {}  # by path of a queue, the types of which it has had anything
        self._left_out: set[str] = set()
        self._fragments: Fragments | None = None
        self._spreads: Spreads
        self._bars: list[Bar] | None = []
        self._missing: list[PodRecord] = []
        self._bins = 0

    # -- what happens --------------------------------------------------------------------------------------------

    def on_begin(self, simulation: SimulatedCluster) -> None:
        """Lay out the time: from the beginning of the window, or from the first arrival if times are dates."""
        self._simulation = simulation
        workload, records = simulation.workload, simulation.records
        first_s = workload.first_arrival_s
        start_ns = to_ns(first_s) if not records.from_ns and first_s >= DATES_S else records.from_ns
        end_ns = None if records.to_ns == sys.maxsize else records.to_ns
        self._grid = Grid(start_ns, end_ns, max(start_ns + SECOND_NS, _horizon_ns(workload, start_ns)))
        self._spreads = Spreads(seconds(records.from_ns), None if end_ns is None else seconds(end_ns))
        if simulation.model.devices is not None:
            self._fragments = Fragments(workload.lines, simulation.model.devices)

    def on_pod(self, record: PodRecord) -> None:
        """Take what became of a pod."""
        self._spreads.take(record)
        if record.start_s is None:
            self._missing.append(record)
        elif self._bars is not None and record.node is not None and record.outcome != "placed":
            if len(self._bars) == BARS_MAX:
                self._bars = None
            else:
                end_s = record.start_s + record.run_s if record.end_s is None else record.end_s
                self._bars.append(Bar(record.node, record.queue, record.start_s, round(end_s, 6)))

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        """Take the samples that are due while this state lasts."""
        grid = self._grid
        if until_ns is None:
            if not grid.samples:
                self._enter(0, self._read(partition), self._look(partition))
            self._bins = grid.finish(now_ns)
        elif grid.next_ns < until_ns:
            every = LOOK_EVERY * max(1, -(-len(partition.nodes) // NODES_A_LOOK))
            state: _State | None = None
            nodes: _Values | None = None
            for at in grid.take(until_ns):
                state = state or self._read(partition)
                looks = at % every == 0
                if looks and nodes is None:
                    nodes = self._look(partition)
                self._enter(at, state, nodes if looks and nodes else [])

    def _enter(self, at: int, state: _State, nodes: _Values) -> None:
        """Enter a state into a bin."""
        for series, value in chain(state.values, nodes):
            series.add(at, value)
        for lack, used, pending, guaranteed in state.lacks:
            lack.add(used, pending, guaranteed, self._grid.width_ns)

    def _read(self, partition: Partition) -> _State:
        """Return what the figures take of the queues now: values over time, and what each lacks of its guarantees."""
        root, *others = partition.tree.queues()
        values: _Values = [(self._series("pending asks"), root.asks_pending), (self._series("held asks"), self._held())]
        lacks: list[tuple[_Lack, int, int, int]] = []
        leaves: list[tuple[dict[str, int], dict[str, int], dict[str, int]]] = []
        for queue in (root, *others):
            used, pending = queue.allocated_resource(), queue.pending_resource()
            guaranteed = queue.guaranteed_resource() or {}
            if queue.is_leaf:
                leaves.append((used, pending, guaranteed))
            for name, amount in guaranteed.items():
                lack = self._lacks.setdefault((queue.path, name), _Lack())
                lacks.append((lack, used.get(name, 0), pending.get(name, 0), amount))
            if self._follows(queue):
                values += self._usage(queue, used, pending, guaranteed)
        index = evenness(leaves, root.max_resource() or {})
        if index is not None:
            values.append((self._series("evenness"), index))
        return _State(values, lacks)

    def _follows(self, queue: Queue) -> bool:
        """Return whether a queue is followed over time: if it is among the first that were there."""
        path = queue.path
        if path not in self._leaves:
            if len(self._leaves) == QUEUES_MAX:
                self._left_out.add(path)
                return False
            self._leaves[path] = queue.is_leaf
        return True

    def _usage(
        self, queue: Queue, used: dict[str, int], pending: dict[str, int], guaranteed: dict[str, int]
    ) -> Iterator[tuple[Binned, float]]:
        path, limit = queue.path, queue.max_resource() or {}
        there = self._series("there", path)
        names = self._named.setdefault(path, set())
        for name in (used.keys() | pending.keys() | guaranteed.keys() | limit.keys()) - names:
            names.add(name)
            for what in ("used", "pending"):  # nothing of it, as long as the queue was there
                self._series(what, path, name).zeros_of(there)
        yield there, 0
        for name in sorted(names):
            yield self._series("used", path, name), used.get(name, 0)
            yield self._series("pending", path, name), pending.get(name, 0)
            if name in guaranteed:
                yield self._series("guaranteed", path, name), guaranteed[name]
            if name in limit:
                yield self._series("max", path, name), limit[name]

    def _held(self) -> int:
        """Return how many pods are held back from the scheduler, for gangs or a strict order."""
        simulation = self._simulation
        held = sum(ask.max for _, ask in simulation.model.gangs.kept_back())
        return held + (sum(1 for _ in simulation.jobs.held_back()) if simulation.jobs is not None else 0)

    def _look(self, partition: Partition) -> _Values:
        """Read the nodes and their devices."""
        classes = [0] * CLASSES
        for node in partition.nodes.values():
            classes[use_class(node)] += 1
        values: _Values = [(self._series("nodes", str(number)), count) for number, count in enumerate(classes)]
        if self._fragments is not None:
            fragments, idle, capacity = self._fragments.fragmented(partition)
            if capacity:
                values.append((self._series("fragmented", "capacity"), fragments / capacity))
            if idle:
                values.append((self._series("fragmented", "idle"), fragments / idle))
            for model, state in self._fragments.by_model(partition).items():
                values += (
                    (self._series("devices", model, name), value)
                    for name, value in zip(state._fields, state, strict=True)
                )
        return values

    def _series(self, *key: str) -> Binned:
        """Return a value over time, which is new at its first use."""
        series = self._values.get(key)
        if series is None:
            series = self._values[key] = self._grid.new()
        return series

    # -- the figures ---------------------------------------------------------------------------------------------

    def never_placed(self) -> list[NeverPlaced]:
        """Return all asks that were never placed, in the order in which that was known."""
        why = {(each.application, each.key): each.reason for each in self._simulation.unplaced()}

        def reason(record: PodRecord) -> str:
            found = why.get((record.application, record.key))
            return found if found is not None else why.get(("", record.key), TAKEN_BACK)

        return [
            NeverPlaced(each.key, each.application, each.queue, each.user, reason(each), each.pods)
            for each in self._missing
        ]

    def figures(self, result: Result, label: str = "") -> Figures:
        """Return the figures, once the simulation has ended with this result; `label` names it beside others."""
        grid, timed = self._grid, self._simulation.workload.mode is Mode.TIMED
        self._spreads.sort()
        everything, by_queue, by_user = (self._spreads.everything(), self._spreads.by_queue(), self._spreads.by_user())
        bars = self._bars
        if bars is not None and len({bar.node for bar in bars}) > BARS_NODES_MAX:
            bars = None
        samples = self._values.get(("evenness",))
        number = sum(samples.counts) if samples is not None else 0
        evenness_mean = round(sum(samples.sums) / number, 6) if samples is not None and number else None
        missing = self.never_placed()
        return Figures(
            label=label or result.workload,
            licorne=__version__,
            workload=result.workload,
            result=_steady(result),
            timed=timed,
            start_s=seconds(grid.start_ns),
            bin_s=seconds(grid.width_ns),
            bins=self._bins,
            samples=grid.samples,
            cluster=self._cluster(),
            pending_asks=self._over_time("pending asks"),
            held_asks=self._over_time("held asks"),
            queues=self._queues(),
            device_resource=self._simulation.workload.devices,
            devices=self._devices(),
            fragmentation=self._fragmentation(),
            nodes=self._nodes(),
            evenness=self._over_time("evenness"),
            evenness_mean=evenness_mean,
            shortfalls=self._shortfalls(),
            everything=everything,
            by_queue=most_pods(by_queue, GROUPS_MAX),
            by_user=most_pods(by_user, GROUPS_MAX),
            never_placed=missing[:NEVER_PLACED_MAX],
            never_placed_all=len(missing),
            bars=sorted(bars or [], key=lambda bar: (bar.node, bar.start_s, bar.end_s, bar.queue)),
            notes=self._notes(len(by_queue), len(by_user), bars is None and timed),
        )

    def _over_time(self, *key: str) -> list[float | None]:
        series = self._values.get(key)
        return series.means(self._bins) if series is not None else [None] * self._bins

    def _cluster(self) -> list[ResourceOverTime]:
        root = next(iter(self._leaves), "")
        names = sorted({key[2] for key in self._values if key[0] == "max" and key[1] == root})
        return [
            ResourceOverTime(name, *(self._over_time(what, root, name) for what in ("max", "used", "pending")))
            for name in names
        ]

    def _queues(self) -> list[QueueOverTime]:
        found = sorted({key[1:] for key in self._values if key[0] == "used"})
        return [
            QueueOverTime(
                path,
                self._leaves[path],
                name,
                *(self._over_time(what, path, name) for what in ("used", "pending", "guaranteed", "max")),
            )
            for path, name in found
            if path != "root"
        ]

    def _devices(self) -> list[ModelOverTime]:
        models = sorted({key[1] for key in self._values if key[0] == "devices"})
        fields = ("devices", "untouched", "partly", "full", "used")
        return [ModelOverTime(model, *(self._over_time("devices", model, name) for name in fields)) for model in models]

    def _fragmentation(self) -> FragmentationOverTime | None:
        if self._fragments is None:
            return None
        shares = (self._over_time("fragmented", what) for what in ("capacity", "idle"))
        return FragmentationOverTime(len(self._fragments.typical), *shares)

    def _nodes(self) -> NodesOverTime:
        classes = [self._over_time("nodes", str(number)) for number in range(CLASSES)]
        totals = [
            None if None in column else round(sum(value or 0 for value in column), 6)
            for column in zip(*classes, strict=True)
        ]
        return NodesOverTime(totals, classes)

    def _shortfalls(self) -> list[Shortfall]:
        return [
            Shortfall(
                queue,
                name,
                lack.guaranteed,
                seconds(lack.demand_ns),
                seconds(lack.short_ns),
                round(lack.lost / lack.demand_ns, 6) if lack.demand_ns else 0.0,
                lack.most,
                seconds(lack.lost),
            )
            for (queue, name), lack in sorted(self._lacks.items())
        ]

    def _notes(self, queues: int, users: int, no_bars: bool) -> list[str]:
        """Return what was left out."""
        notes: list[str] = []
        if self._left_out:
            notes.append(f"left out over time: {counted(len(self._left_out), 'queue')}; {QUEUES_MAX} are followed")
        for what, number in (("queues", queues), ("users", users)):
            if number > GROUPS_MAX:
                notes.append(f"times are of the {GROUPS_MAX} {what} with the most pods, of {number}")
        if no_bars:
            notes.append(
                f"runs of single pods are drawn for up to {BARS_MAX:,} runs on up to {BARS_NODES_MAX} nodes; here are more"
            )
        return notes


def _horizon_ns(workload: Workload, start_ns: int) -> int:
    """Return when the last pod ends if each starts on arrival; of lines that are made while they are read, their end if known."""
    if not isinstance(workload.lines, list):
        if workload.lines.length_s:
            return to_ns(workload.lines.length_s)
        return start_ns + 1_000 * SECOND_NS  # bins of about a second, which are joined as time passes
    now_ns = last_ns = 0
    for line in workload.lines:
        now_ns = now_ns if line.at is None else to_ns(line.at)
        runs_ns = to_ns(line.duration_s) if type(line) is Ask and line.duration_s is not None else 0
        last_ns = max(last_ns, now_ns + runs_ns)
    return last_ns


def use_class(node: Node) -> int:
    """Return the class of a node by the use of what it has the smallest part left of: 0 without any, else 1 to 10."""
    capacity, free = node.capacity.values(), node.free.values()
    share = 0.0
    for index, amount in enumerate(capacity):
        if amount > 0:
            used = (amount - free[index]) / amount if index < len(free) else 0.0
            if used > share:  # noqa: PLR1730  max() takes longer, and this is done for each node
                share = used
    if share <= 0 and not any(node.allocated.values()):
        return 0
    return min(CLASSES - 1, 1 + int(share * 10 - 1e-9))


def _steady(result: Result) -> dict[str, object]:
    """Return a result as data, without its pods and without what depends on the machine."""
    data: dict[str, object] = msgspec.to_builtins(result)
    for name in ("pods", "real_s", "compiled"):
        data.pop(name, None)
    return data
