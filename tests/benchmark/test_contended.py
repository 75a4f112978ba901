"""The workloads of gangs and preemption, and their measurements; no speed is tested."""

from __future__ import annotations

import io
from collections import Counter, defaultdict

import pytest
from bench.measure.contest import measure_contest
from bench.workloads.contended import CONTENDED, RUNNING_ON_A_NODE, contended
from bench.workloads.generate import Options, Size

from licorne.config import load
from licorne.sim.runner import simulate
from licorne.workload.lines import App, Ask, Node
from licorne.workload.workload import Mode, Workload, WorkloadError, parse_workload, write_workload

GANGS = Size(24, 60, 6, 2)
PREEMPT = Size(12, 20, 4, 2)
SHAPES = ("app", "same", "unique")


def made(case: str, shape: str = "unique", seed: int = 1) -> Workload:
    return contended(case, Options(shape=shape, seed=seed), PREEMPT if case == "preempt" else GANGS)


def text_of(workload: Workload) -> bytes:
    stream = io.BytesIO()
    write_workload(workload, stream)
    return stream.getvalue()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CONTENDED)
def test_a_case_comes_from_its_seed_and_can_be_written(case: str, shape: str) -> None:
    first, again, other = (made(case, shape, seed) for seed in (1, 1, 2))
    assert text_of(first) == text_of(again)
    assert (text_of(first).split(b"\n", 1)[1] != text_of(other).split(b"\n", 1)[1]) is (shape == "unique")
    read = parse_workload(text_of(first).splitlines(keepends=True))
    assert (read.mode, read.lines, read.name) == (Mode.TIMED, first.lines, f"{case}-{shape}-s1")


@pytest.mark.parametrize(
    ("case", "options", "complaint"),
    [
        ("b", Options(), "case: 'b' is none of gangs, gangs-atomic, preempt"),
        ("gangs", Options(appsort="fair"), "no options but shape and seed"),
        ("preempt", Options(demand=2), "no options but shape and seed"),
        ("gangs", Options(shape="round"), "shape: 'round' is none of"),
    ],
)
def test_an_option_of_another_case_is_refused(case: str, options: Options, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        contended(case, options)


@pytest.mark.parametrize("shape", SHAPES)
def test_nodes_of_preempt_are_full_and_the_asks_equal_the_guarantee(shape: str) -> None:
    workload = made("preempt", shape)
    asks = [line for line in workload.lines if isinstance(line, Ask)]
    used: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ask in asks:
        if ask.node:
            used[ask.node].update({name: ask.res[name] for name in ("vcore", "memory")})
    nodes = [line for line in workload.lines if isinstance(line, Node)]
    for node in nodes:
        assert used[node.id] == {name: node.res[name] for name in ("vcore", "memory")}
    assert sum(bool(ask.node) for ask in asks) == RUNNING_ON_A_NODE * len(nodes)
    asked = [ask for ask in asks if not ask.node]
    assert len(asked) == PREEMPT.pods
    assert {(ask.prio, ask.pre_other) for ask in asked} == {(100, True)}
    text = workload.config or ""
    assert load(text) is not None
    for name in ("vcore", "memory"):
        assert str(sum(ask.res[name] for ask in asked)) in text


def test_members_of_a_gang_fit_their_placeholders() -> None:
    workload = made("gangs")
    apps = {line.id: line for line in workload.lines if isinstance(line, App)}
    members: Counter[tuple[str, str]] = Counter()
    for ask in (line for line in workload.lines if isinstance(line, Ask)):
        group = next(group for group in apps[ask.app].gang if group.name == ask.group)
        assert all(amount <= group.res[name] for name, amount in ask.res.items())
        members[ask.app, ask.group] += 1
    assert members == {(app.id, group.name): group.min for app in apps.values() for group in app.gang}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", ["gangs", "gangs-atomic"])
def test_gangs_are_measured(case: str, shape: str) -> None:
    result = measure_contest(made(case, shape), repeat=2)
    assert (result.counted, result.placed, result.expected, result.evictions) == ("members", 60, 60, 0)
    assert result.virtual_s == 0
    for run in result.runs:
        assert run.seconds >= run.submit_s + run.decide_s + run.answer_s
        assert run.answer_s >= 0
    digests = {run.digest for run in result.runs}
    assert len(digests) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_evictions_are_measured(shape: str) -> None:
    result = measure_contest(made("preempt", shape), repeat=2)
    assert (result.counted, result.placed, result.expected) == ("evictions", 20, 20)
    assert result.evictions >= (20 if shape == "same" else 10)
    assert result.per_s > 0
    assert result.decided_per_s >= result.per_s


@pytest.mark.parametrize("case", CONTENDED)
def test_the_simulator_runs_them_too(case: str) -> None:
    """All that is wanted runs in the end; of what was evicted as much as there is room for again."""
    result = simulate(made(case))
    if case == "preempt":
        assert result.waiting_times[0].queue == "root.high"
        assert result.waiting_times[0].placed == 20
        assert {(row.kind, row.wanted_by) for row in result.evictions} == {("guaranteed", "root.high")}
        assert result.preempted == result.resubmitted
    else:
        assert (result.placed, result.never_placed) == (60, 0)
        assert sum(row.started for row in result.gangs) == 6
        assert result.placeholders == (60 if case == "gangs" else 0)


def test_a_refused_ask_is_no_measurement() -> None:
    workload = made("preempt")
    workload.lines = [*workload.lines, Ask(key="k", app="nobody", res={"vcore": 1})]
    with pytest.raises(WorkloadError, match="1 refused, the first: failed to find application nobody"):
        measure_contest(workload)
