"""Generated workloads: the same bytes as the generator of the recordings, and the sample that ships."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import TypeVar

import pytest
from bench.measure.speed import measure
from bench.workloads.generate import CASES, Options, Size, benchmark
from bench.workloads.week import GPU, week

from licorne.config import load
from licorne.core.nodes.constraints import NodeConstraints, NodeLabels, parse_constraints
from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.workload.lines import GI, App, Ask, Line, Node
from licorne.workload.workload import Mode, Workload, WorkloadError, parse_workload, write_workload

Kind = TypeVar("Kind", bound=Line)
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "demo" / "week.jsonl"


def text_of(workload: Workload) -> bytes:
    stream = io.BytesIO()
    write_workload(workload, stream)
    return stream.getvalue()


# SHA-256 of the files that the peer's own generator of workloads wrote, which the recordings of the original were made
# with. A case that comes out otherwise is another workload, and no recording speaks of it.
PEERS = [
    ("t", Options(), "ae26d3a463a084260a42e7f61bc75d5368f6b4cbb2ac766a58ae43617f80030e"),
    (
        "t",
        Options(shape="unique", appsort="fair", nodesort="binpacking", order="app", seed=7),
        "21937940e5c5b2554f21221d45509bde485e451e520b0a6afc3dc22245ce3246",
    ),
    ("a", Options(shape="unique", appsort="fair"), "761559bd6ce0d5ac5ed6b5c465af7a6716ee2c973041cff3e2c92b1d98972017"),
    ("a", Options(shape="same", order="app"), "7b76c21421c9333b8b62558c1d21e9eadccf8bf5cae2928dc8c0cb25d1123b8c"),
    ("b", Options(), "bb51636e20e8dd4a66ad0c5ae3ff65aed9b79868b3efa756e614a47bf024c214"),
    ("b", Options(shape="unique", seed=3), "a5691f4fa623a6e184ca1dbef368bdcb627a3efb12c8fa74a8f5304a05916d07"),
    ("e1", Options(), "961fd93fb2cde2e44f5f6e65330ac516343c04d3035f08cc626f5c74b351de32"),
    ("e2", Options(nodesort="binpacking"), "9ded6fadaa1d6e0c4bb0c2046d94de4469cb4d6323a850c64248939943ccc864"),
    ("e3", Options(), "51e2a5c530977068496be24bd44da29939c49a890b06d993009cee5841ddece1"),
    ("e3", Options(shape="unique"), "dc3da5a619c4cb606f198ac23a26c989fa9ca4ce34ce6533db9c6c4c334b022c"),
    ("t", Options(shape="unique"), "60d7c0485f3b39e4d0b9615c5507120afcd62c1223d7b1938a291e521affb9eb"),
]


@pytest.mark.parametrize(("case", "options", "digest"), PEERS)
def test_a_case_is_that_of_the_peers_generator(case: str, options: Options, digest: str) -> None:
    assert hashlib.sha256(text_of(benchmark(case, options))).hexdigest() == digest


SMALL = {
    "churn": Size(50, 800, 16, 4),
    "constraints": Size(100, 2_000, 10, 10),
    "tree": Size(25, 1_000, 200, 100),
}


def of_kind(workload: Workload, kind: type[Kind]) -> list[Kind]:
    return [line for line in workload.lines if isinstance(line, kind)]


@pytest.mark.parametrize("shape", ["app", "same", "unique"])
@pytest.mark.parametrize("case", SMALL)
def test_a_case_of_our_own_comes_from_its_seed(case: str, shape: str) -> None:
    first, again, other = (text_of(benchmark(case, Options(shape=shape, seed=seed), SMALL[case])) for seed in (1, 1, 2))
    assert first == again
    assert first != other or (case, shape) in {("churn", "app"), ("churn", "same")}  # nothing is drawn
    assert parse_workload(first.splitlines(keepends=True)).mode is Mode.BATCH


@pytest.mark.parametrize("shape", ["app", "same", "unique"])
def test_waiting_asks_of_churn_are_smaller_than_ending_ones(shape: str) -> None:
    asks = of_kind(benchmark("churn", Options(shape=shape), SMALL["churn"]), Ask)
    ending, waiting = ([ask.res for ask in asks if (ask.prio > 0) is ends] for ends in (True, False))
    assert len(ending) == len(waiting) == 400
    for name in ("vcore", "memory"):
        assert max(each[name] for each in waiting) <= min(each[name] for each in ending)
    # One end makes room for one, rarely for two.
    assert max(each["vcore"] for each in ending) <= 2 * min(each["vcore"] for each in waiting)
    assert not {tuple(each.values()) for each in ending} & {tuple(each.values()) for each in waiting}


def test_churn_leaves_large_pods_running_and_small_ones_waiting() -> None:
    result = measure(benchmark("churn", Options(shape="unique"), SMALL["churn"]))
    assert 400 < result.allocations < 700


def test_asks_with_constraints_name_a_class_or_a_set() -> None:
    workload = benchmark("constraints", Options(shape="unique"), SMALL["constraints"])
    labels = [NodeLabels.from_attributes(node.attrs or {}) for node in of_kind(workload, Node)]
    asks = of_kind(workload, Ask)
    texts = {(ask.tags or {})[TAG_NODE_CONSTRAINTS] for ask in asks}
    met = {text: sum(map(parse_constraints(text).matches, labels)) for text in texts}
    assert set(met.values()) == {2, 6}  # 100 nodes of 50 classes; a set has three
    sets = [ask for ask in asks if met[(ask.tags or {})[TAG_NODE_CONSTRAINTS]] == 6]
    assert 0.05 < len(sets) / len(asks) < 0.15
    assert len(texts) == 50 + 10
    assert NodeConstraints() not in {parse_constraints(text) for text in texts}


def test_the_tree_has_five_levels_and_room_for_the_expected_allocations() -> None:
    workload = benchmark("tree", Options(shape="unique", appsort="fair"), SMALL["tree"])
    result = measure(workload)
    assert result.allocations == result.expected == 1_000
    assert result.asks == len(of_kind(workload, Ask)) > 1_050
    paths = {application.queue for application in of_kind(workload, App)}
    assert {path.count(".") for path in paths} == {5}
    assert len({ask.prio for ask in of_kind(workload, Ask)}) == 3


@pytest.mark.gate
def test_the_tree_has_its_size() -> None:
    workload = benchmark("tree")
    text = workload.config or ""
    assert text.count("- name: ") == 2_000 + 2  # the partition and root
    for word in ("guaranteed:", "max:", "limits:", "users: ['*']", "priority.offset", "fence", "maxapplications:"):
        assert text.count(word) >= 4, word
    assert load(text) is not None
    counts = [len(of_kind(workload, kind)) for kind in (Node, App)]
    assert counts == [CASES["tree"].nodes, CASES["tree"].applications]


@pytest.mark.parametrize("case", ["a", "e1", "e2", "e3", "t"])
def test_a_case_has_its_size(case: str) -> None:
    workload, size = benchmark(case), CASES[case]
    counts = [sum(isinstance(line, kind) for line in workload.lines) for kind in (Node, Ask, App)]
    assert counts == [size.nodes, size.pods, size.applications]


def test_demand_makes_the_cluster_too_small() -> None:
    workload = benchmark("t", Options(demand=1.5))
    asked = sum(line.res["vcore"] for line in workload.lines if isinstance(line, Ask))
    # Nodes have a least size, so case t needs more asks to be full: only the direction is certain here.
    assert workload.expect == 0
    assert workload.name.endswith("-d1.5")
    full = benchmark("a", Options(demand=1.5))
    asked = sum(line.res["vcore"] for line in full.lines if isinstance(line, Ask))
    has = sum(line.res["vcore"] for line in full.lines if isinstance(line, Node))
    assert asked / has == pytest.approx(1.5, rel=0.01)


@pytest.mark.parametrize(
    ("case", "options", "complaint"),
    [
        ("z", Options(), "case: 'z' is none of a, b"),
        ("t", Options(shape="round"), "shape: 'round' is none of app, same, unique"),
        ("t", Options(demand=0), "demand: 0 is not between"),
        ("t", Options(demand=float("nan")), "demand: nan is not between"),
    ],
)
def test_an_unknown_choice_is_refused(case: str, options: Options, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        benchmark(case, options)


def test_the_sample_that_ships_is_the_generators() -> None:
    assert SAMPLE.read_bytes() == text_of(week())
    assert SAMPLE.stat().st_size < 2_000_000


def test_the_week_is_a_busy_one() -> None:
    workload = parse_workload(text_of(week()).splitlines(keepends=True))
    assert workload.mode is Mode.TIMED
    nodes = [line for line in workload.lines if isinstance(line, Node)]
    asks = [line for line in workload.lines if isinstance(line, Ask)]
    assert len(nodes) == 60
    assert 4_500 <= len(asks) <= 5_500
    capacity = sum(node.res["vcore"] for node in nodes)
    used = sum(ask.res["vcore"] * (ask.duration_s or 0) for ask in asks) / (7 * 86_400)
    assert 0.5 < used / capacity < 0.9
    assert max(node.res.get(GPU, 0) for node in nodes) < max(ask.res.get(GPU, 0) for ask in asks)
    assert max(node.res["memory"] for node in nodes) == 128 * GI


def test_another_seed_makes_another_week() -> None:
    assert text_of(week(1)) != text_of(week(2))
