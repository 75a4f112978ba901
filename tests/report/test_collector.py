"""Figures that are collected during a simulation, compared with what is known of small workloads, and computed naively."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import measure_report
from common.examples import examples
from licorne import Scenario, simulate
from licorne.core.nodes.devices import Demand
from licorne.lab.papers.fragmentation import Shape, Typical
from licorne.lab.report import Collector, Figures
from licorne.lab.report.collector import use_class
from licorne.lab.report.fragments import Fragments
from licorne.lab.report.sections import sections
from licorne.sim.observer import Observer
from licorne.workload.device_models import MODEL_LABELS
from licorne.workload.devices import Devices
from licorne.workload.lines import Ask, Node
from licorne.workload.reading import load_workload
from licorne.workload.traces.openb import read_openb
from report.workloads import app, ask, head, small

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.sim.simulation import SimulatedCluster
    from licorne.workload.workload import Workload


def collected(lines: Sequence[dict[str, Any]] | Workload, **options: Any) -> tuple[Figures, Collector]:
    collector = Collector()
    result = simulate(lines, observers=[collector], **options)
    return collector.figures(result), collector


def mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def test_the_figures_of_a_small_workload() -> None:
    """Queue b has all 4 cores until 100 s; a waits from 40 to 100 s, below its guarantee of 2, and runs until 150 s."""
    figures, collector = collected(small())
    assert figures.timed
    assert (figures.start_s, round(figures.bins * figures.bin_s)) == (0, 150)
    (cluster,) = figures.cluster
    assert set(cluster.capacity) == {4000}
    assert mean(cluster.used) == pytest.approx((4000 * 100 + 3000 * 50) / 150, rel=0.01)
    assert mean(figures.pending_asks) == pytest.approx((3 * 60 + 100) / 150, rel=0.02)
    short = {row.queue: row for row in figures.shortfalls}
    assert short["root.b"].short_s == 0
    assert short["root.a"].demand_s == pytest.approx(110, rel=0.02)
    assert short["root.a"].short_s == pytest.approx(60, rel=0.02)
    assert short["root.a"].most == 2000
    assert short["root.a"].lost == pytest.approx(2000 * 60, rel=0.02)
    assert [(row.name, row.pods, row.waiting_s.p50, row.completion_s.p50) for row in figures.by_queue] == [
        ("root.a", 4, 60, 110),
        ("root.b", 4, 0, 100),
    ]
    assert [(row.name, row.slowdown.mean) for row in figures.by_user] == [("<bob> & co", 2.2), ("ann", 1.0)]
    assert figures.everything.never_placed == figures.never_placed_all == 1
    (missing,) = collector.never_placed()
    assert (missing.key, missing.queue, missing.user, missing.pods) == ("huge", "root.a", "<bob> & co", 1)
    assert missing.reason == figures.result["reasons"][0]["reason"]
    assert Counter(bar.queue for bar in figures.bars) == {"root.a": 3, "root.b": 4}


def test_times_by_user_are_drawn_where_they_differ_from_those_by_queue() -> None:
    def drawn(user: str) -> set[str]:
        lines = [*head(), app("x", "a"), app("y", "b", user), app("z", "b", "bob")]
        for at, name in enumerate("xyz"):
            lines.append(ask(name, name, at, duration_s=10 + at))
        figures, _ = collected(lines)
        return {plot.name for section in sections([figures]) for plot in section.plots if "-by-" in plot.name}

    by_queue = {f"{what}-by-queue" for what in ("waiting", "completion", "slowdown")}
    assert drawn("bob") == by_queue
    assert drawn("ann") > by_queue


def test_asks_that_were_never_placed_each_have_their_reason() -> None:
    lines = [
        *head(),
        app("x", "nowhere", at=0),
        ask("refused", "x", 0),
        app("y", "a", at=0),
        ask("large", "y", 0, 9000),
        ask("back", "y", 0, 9000),
        {"t": "release", "app": "y", "key": "back", "at": 5},
        ask("many", "y", 6, 1000, max=7),
    ]
    figures, collector = collected(lines)
    found = {row.key: row for row in collector.never_placed()}
    assert sum(row.pods for row in found.values()) == figures.result["never_placed"] == 6
    assert {key: row.pods for key, row in found.items()} == {"refused": 1, "large": 1, "back": 1, "many": 3}
    assert found["refused"].reason.startswith("rejected: ")
    assert found["back"].reason == "taken back before it was placed"
    by_reason = Counter(row.reason for row in found.values() for _ in range(row.pods))
    assert by_reason == {row["reason"]: row["asks"] for row in figures.result["reasons"]}


def test_asks_of_one_key_in_two_applications_have_their_own_reasons() -> None:
    lines = [
        *head(),
        app("x", "a", at=0),
        app("y", "b", at=0),
        ask("same", "x", 0, 9000),
        ask("same", "y", 0, 4500),
    ]
    _, collector = collected(lines)
    reasons = {row.application: row.reason for row in collector.never_placed()}
    assert len(set(reasons.values())) == 2
    assert "quota" in reasons["y"] or "max" in reasons["y"]


@pytest.mark.parametrize("version", [1, 2])
def test_where_time_stands_still_there_are_figures_of_the_end(version: int) -> None:
    lines: list[dict[str, Any]] = [
        {"t": "meta", "name": "still", "version": version},
        {"t": "node", "id": "n", "res": {"vcore": 2000}},
        {"t": "app", "id": "app", "queue": "root.default", "user": "u", "tags": {"namespace": "default"}},
        *({"t": "ask", "key": f"k{index}", "app": "app", "res": {"vcore": 1000}} for index in range(3)),
        *([{"t": "run"}] if version == 2 else []),
    ]
    figures, _ = collected(lines)
    assert (figures.timed, figures.bins) == (False, 1)
    assert figures.pending_asks == [1]
    assert figures.cluster[0].used == [2000]


def test_only_the_window_counts() -> None:
    figures, _ = collected(small(), since_s=40, until_s=100)
    assert (figures.start_s, round(figures.bins * figures.bin_s)) == (40, 60)
    assert set(figures.cluster[0].used) == {4000}
    assert (figures.everything.pods, figures.everything.never_placed) == (4, 1)


def test_a_scenario_is_sampled_at_equal_distances_over_its_length() -> None:
    """Pods of 1 h come each 2 h for ten days, so the mean of evenly spaced samples is half of a core."""
    job = {"queue": "root.a", "size": {"vcore": 1}, "duration": "1h", "bursts": {"apps": 1, "every": "2h"}}
    queues = {
        "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}]}]
    }
    pool = {"nodes": 1, "size": {"vcore": 1}}
    document = {"scenario": "x", "length": "10d", "cluster": {"pool": pool}, "queues": queues, "arrivals": {"job": job}}
    scenario = Scenario(document)
    figures, _ = collected(scenario.workload())
    assert 1_000 < figures.samples <= 1_024
    assert mean(figures.cluster[0].used) == pytest.approx(500, rel=0.02)


def test_times_that_are_dates_begin_with_the_first_arrival() -> None:
    moved = [{**line, "at": line["at"] + 1.7e9} if "at" in line else line for line in small()]
    figures, _ = collected(moved)
    assert figures.start_s == 1.7e9
    assert mean(figures.cluster[0].used) == pytest.approx((4000 * 100 + 3000 * 50) / 150, rel=0.01)


def test_a_queue_that_has_nothing_uses_nothing() -> None:
    """Before its first pod, between two, and after the last: else the mean would be that of the times with pods alone."""
    memory = {"res": {"vcore": 100, "memory": 1000}, "duration_s": 100}
    given = [
        *head(0),
        {"t": "node", "id": "n", "res": {"vcore": 4000, "memory": 4000}},
        app("x", "a", at=0),
        app("y", "b", at=0),
        ask("long", "y", 0, 100, duration_s=1000),
        ask("k1", "x", 200) | memory,
        app("z", "a", at=600),
        ask("k2", "z", 600) | memory,
    ]
    figures, _ = collected(given)
    (queue,) = (row for row in figures.queues if (row.queue, row.resource) == ("root.a", "memory"))
    assert None not in queue.used
    assert mean(queue.used) == pytest.approx(200, rel=0.05)


class _Naive(Observer):
    """Compares the fragmentation of each state with its definition (docs/spec/experiments.md, B.5), computed naively."""

    def __init__(self, asks: Sequence[dict[str, Any]]) -> None:
        self.compared = 0
        counts = Counter((each["res"]["vcore"], each["res"].get("gpu", 0), models(each)) for each in asks)
        ordered = sorted(
            counts.items(),
            key=lambda item: (-item[1], -item[0][0], -Demand.of(item[0][1]).each, -Demand.of(item[0][1]).number),
        )
        total, held = counts.total(), 0
        self.typical: list[tuple[tuple[int, int, str], int]] = []
        for shape, count in ordered:
            if held < 0.95 * total:
                self.typical.append((shape, count))
                held += count
        self.held = held

    def on_begin(self, simulation: SimulatedCluster) -> None:
        assert simulation.model.devices is not None
        self.simulation = simulation
        self.fragments = Fragments(simulation.workload.lines, simulation.model.devices)

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        found, idle, capacity = self.fragments.fragmented(partition)
        expected = Fraction(0)
        all_idle = all_there = 0
        used: Counter[str] = Counter()
        for run in self.simulation.model.running.values():
            used[run.node] += run.pod.ask.res["vcore"]
        for node in partition.nodes.values():
            assert self.simulation.model.devices is not None
            free = self.simulation.model.devices.free(node.id)
            model = "P100" if node.id == "n1" else "T4"
            cpu = 4000 - used[node.id]
            all_idle += sum(free)
            all_there += 1000 * len(free)
            expected += sum(free)
            for (wanted, amount, names), count in self.typical:
                number, each = Demand.of(amount)
                enough = [left for left in free if left >= each]
                allowed = not names or model in names.split("|")
                if number and allowed and cpu >= wanted and len(enough) >= number:
                    expected -= Fraction(count, self.held) * sum(enough)
        assert (idle, capacity) == (all_idle, all_there)
        assert found == pytest.approx(float(expected), abs=1e-6)
        self.compared += 1


def models(line: dict[str, Any]) -> str:
    return "T4" if "tags" in line else ""


@given(
    st.lists(
        st.tuples(
            st.sampled_from([500, 1000, 3000]),
            st.sampled_from([0, 300, 500, 1000, 2000]),
            st.booleans(),
            st.integers(1, 9),
            st.integers(0, 20),
        ),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from(MODEL_LABELS),
)
@examples(40)
def test_fragmentation_at_each_moment_is_its_definition_computed_naively(
    pods: list[tuple[int, int, bool, int, int]], label: str
) -> None:
    tag = {"licorne/node-constraints": f'{{"nodeAffinity":[[{{"key":"{label}","operator":"In","values":["T4"]}}]]}}'}
    asks = [
        {
            **ask(f"k{index}", "x", at, vcore, duration_s=length),
            "res": {"vcore": vcore, "gpu": gpu},
            **({"tags": tag} if only else {}),
        }
        for index, (vcore, gpu, only, length, at) in enumerate(sorted(pods, key=lambda pod: pod[4]))
    ]
    nodes = [
        {"t": "node", "id": f"n{index}", "res": {"vcore": 4000, "gpu": 2000}, "attrs": {f"label/{label}": model}}
        for index, model in enumerate(("T4", "P100", "T4"))
    ]
    naive = _Naive(asks)
    first: dict[str, Any] = {"t": "meta", "name": "devices", "version": 2, "devices": "gpu"}
    simulate([first, *nodes, app("x", "default", tags={"namespace": "default"}), *asks], observers=[naive])
    assert naive.compared > 1


def test_each_pod_of_an_ask_that_repeats_counts_for_what_is_usual() -> None:
    lines = [Ask(key="a", app="x", res={"vcore": 1, "gpu": 500}, max=19), Ask(key="b", app="x", res={"vcore": 2})]
    assert Fragments(lines, Devices("gpu")).typical == [Typical(Shape(1, Demand(1, 500), ""), 1.0)]


def test_a_scenario_whose_lines_are_made_while_they_are_read_has_the_figures_of_its_lines() -> None:
    """Its end is not known before, so bins begin small and are joined; times of pods and sums do not depend on bins."""
    scenario = Path(__file__).resolve().parents[2] / "examples/scenarios/pool-leaves.yaml"
    stream = load_workload(scenario, load=0.05, seed=1)
    known = replace(stream, lines=list(stream.lines))
    figures = []
    for workload in (stream, known):
        collector = Collector()
        figures.append(collector.figures(simulate(workload, observers=[collector])))
    one, other = figures
    assert one.everything == other.everything
    assert one.result["digest"] == other.result["digest"]
    assert one.bins <= 300
    assert one.bins * one.bin_s == pytest.approx(other.bins * other.bin_s, rel=0.02)
    for mine, listed in zip(one.cluster, other.cluster, strict=True):
        assert mean(mine.used) == pytest.approx(mean(listed.used), rel=0.1)


class _StoppedError(Exception):
    """The simulation has gone far enough."""


class _Empty(Observer):
    """Takes the fragmentation of the cluster before any pod is placed, and stops."""

    share = 0.0

    def on_begin(self, simulation: SimulatedCluster) -> None:
        assert simulation.model.devices is not None
        self.fragments = Fragments(simulation.workload.lines, simulation.model.devices)

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        if partition.nodes:
            fragments, _, capacity = self.fragments.fragmented(partition)
            self.share = fragments / capacity
            raise _StoppedError


@pytest.mark.gate
@pytest.mark.parametrize(
    ("name", "percent"),
    [("default", 13.9445), ("gpushare100", 13.6422), ("cpu250", 25.8740)],
)
def test_the_empty_cluster_of_openb_is_fragmented_as_published(openb: Path, name: str, percent: float) -> None:
    workload = read_openb(openb / f"openb_pod_list_{name}.csv", how="recorded")
    # All pods come ten seconds later: the first one comes with the nodes.
    later = [
        line if type(line) is Node or line.at is None else replace(line, at=line.at + 10) for line in workload.lines
    ]
    workload = replace(workload, lines=later)
    heard = _Empty()
    with pytest.raises(_StoppedError):
        simulate(workload, observers=[heard])
    assert 100 * heard.share == pytest.approx(percent, abs=0.0001)


class _Classes(Observer):
    def __init__(self) -> None:
        self.found: list[list[int]] = []

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        self.found.append([use_class(node) for node in partition.nodes.values()])


@pytest.mark.parametrize(
    ("vcore", "expected"), [(0, 0), (1, 1), (200, 1), (201, 2), (1000, 5), (1001, 6), (1800, 9), (1999, 10), (2000, 10)]
)
def test_the_class_of_a_node_is_its_use_in_tenths(vcore: int, expected: int) -> None:
    heard = _Classes()
    pods = [ask("k", "x", 1, vcore)] if vcore else []
    simulate([*head(1), app("x", "b", at=0), *pods, ask("end", "x", 2, 9000)], observers=[heard])
    assert heard.found[-1] == [expected]


@pytest.mark.gate
def test_what_measures_reports_measures_the_same_simulation_with_and_without_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    measure_report.main(100, 5, 0.5)
    assert "100 pods placed" in capsys.readouterr().out
