"""Generated workloads: the same bytes as the generator of the recordings, and the sample that ships."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

import pytest

from licorne.config import load
from licorne.core.constraints import NodeConstraints, NodeLabels, parse_constraints
from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.sim.bench import measure
from licorne.sim.generate import CASES, GI, Options, Size, benchmark, write
from licorne.sim.lines import App, Ask, Line, Node
from licorne.sim.week import GPU, week
from licorne.sim.workload import Mode, Workload, WorkloadError, parse_workload

Kind = TypeVar("Kind", bound=Line)
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "demo" / "week.jsonl"


def text_of(workload: Workload) -> bytes:
    stream = io.BytesIO()
    write(workload, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("t", Options()),
        ("t", Options(shape="unique", appsort="fair", nodesort="binpacking", order="app", seed=7)),
        ("a", Options(shape="unique", appsort="fair")),
        ("a", Options(shape="same", order="app")),
        ("b", Options()),
        ("b", Options(shape="unique", seed=3)),
        ("e1", Options()),
        ("e2", Options(nodesort="binpacking")),
        ("e3", Options()),
        ("e3", Options(shape="unique")),
    ],
)
def test_a_case_is_that_of_the_peers_generator(shared: Path, tmp_path: Path, case: str, options: Options) -> None:
    theirs = tmp_path / "theirs.jsonl"
    arguments = [f"--{name}={getattr(options, name)}" for name in ("shape", "appsort", "nodesort", "order", "seed")]
    script = shared / "peer" / "gen_workload.py"
    subprocess.run([sys.executable, str(script), case, str(theirs), *arguments], check=True)
    assert text_of(benchmark(case, options)) == theirs.read_bytes()


def test_a_case_without_the_peers_generator_at_hand() -> None:
    """The same bytes as ever, where there is nothing to compare with."""
    digest = hashlib.sha256(text_of(benchmark("t", Options(shape="unique")))).hexdigest()
    assert digest == "60d7c0485f3b39e4d0b9615c5507120afcd62c1223d7b1938a291e521affb9eb"


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
def test_what_waits_in_churn_is_smaller_than_what_ends(shape: str) -> None:
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


def test_the_tree_has_five_levels_and_room_for_what_is_expected() -> None:
    workload = benchmark("tree", Options(shape="unique", appsort="fair"), SMALL["tree"])
    result = measure(workload)
    assert result.allocations == result.expected == 1_000
    assert result.asks == len(of_kind(workload, Ask)) > 1_050
    paths = {application.queue for application in of_kind(workload, App)}
    assert {path.count(".") for path in paths} == {5}
    assert len({ask.prio for ask in of_kind(workload, Ask)}) == 3


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
