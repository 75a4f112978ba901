"""The cases of the benchmark, and the targets that they have to reach."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from bench.cases import BIG, CASES, PEER_DEFAULT, Case, Target, chosen
from bench.results import CaseResult, figures
from bench.worker import prepared
from bench.workloads.contended import CONTENDED
from bench.workloads.generate import CASES as GENERATED

from licorne.config import load
from licorne.config.model import NodePolicy

CONTENDED_ORDER = ("preempt", "gangs", "gangs-atomic")


def names(*wanted: str) -> list[str]:
    return [case.name for case in chosen(wanted)]


def test_groups() -> None:
    quick = names()
    assert quick == names("quick")
    assert {"a", "b", "c", "d", "e1", "e2", "e3", "churn", "constraints", "tree", "c-full", "d-binpacking"} <= set(
        quick
    )
    assert {"b-bytes", "b-first-bytes"} < set(quick)
    assert not {"t", "x", "x-full", "c-bytes", "d-first-bytes"} & set(quick)
    assert names("bytes") == [f"{name}-{kind}" for kind in ("bytes", "first-bytes") for name in BIG]
    assert {*quick, "x", "x-full", *names("bytes"), *names("variants")} == set(names("all")) == {*CASES} - {"t"}
    assert names("full", "binpacking") == [f"{name}-{kind}" for kind in ("binpacking", "full") for name in BIG]
    assert [case.name for case in chosen((), PEER_DEFAULT)] == ["b", "c", "d", *names("full", "binpacking"), "e2", "e3"]


def test_a_case_named_twice_is_measured_once() -> None:
    assert names("b", "b-full", "full", "b") == ["b", "b-full", "c-full", "d-full"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(KeyError, match="zz"):
        chosen(("b", "zz"))


def test_the_variants_are_all_other_shapes_and_policies_at_half_the_target() -> None:
    variants = [case for case in chosen(("variants",)) if case.kind == "speed"]
    kinds = {(case.workload, case.shape, case.appsort, case.nodesort) for case in variants}
    combined = set(product(BIG, ("unique", "app", "same"), ("fifo", "fair"), get_args(NodePolicy)))
    assert len(variants) == len(kinds)
    assert kinds == combined - set(product(BIG, ["unique"], ["fifo"], get_args(NodePolicy)))
    for case in variants:
        assert case.targets == (Target("allocations_per_s", 75_000 if case.nodesort == "fair" else 50_000),)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_a_case_can_be_made_and_its_targets_are_of_known_figures(case: Case) -> None:
    assert case.workload in (CONTENDED if case.kind == "contest" else GENERATED)
    case.options()
    known = {
        "allocations_per_s", "ratio", "decide_ratio", "submit_us_per_ask", "release_us", "idle_cycle_us",
        "evictions_per_s", "members_per_s", "peak_rss_bytes", "pending_ask_bytes", "allocation_bytes",
    }  # fmt: skip
    assert {target.figure for target in case.targets} <= known


def test_contests_have_their_other_shapes_as_variants() -> None:
    variants = {case.name: case for case in chosen(("variants",)) if case.kind == "contest"}
    assert list(variants) == [f"{name}-{shape}" for name in CONTENDED_ORDER for shape in ("app", "same")]
    for case in variants.values():
        (target,), (full,) = case.targets, CASES[case.workload].targets
        assert (target.figure, target.value) == (full.figure, full.value / 2)
    assert set(CONTENDED) == set(CONTENDED_ORDER) <= set(names())


def test_a_target_is_reached_from_its_side() -> None:
    assert [Target("ratio", 25).reached(value) for value in (24.9, 25, 26)] == [False, True, True]
    assert [Target("idle_cycle_us", 10, at_most=True).reached(value) for value in (9, 10, 10.1)] == [True, True, False]


def test_preemption_is_off() -> None:
    workload = prepared("t", CASES["t"].options())
    assert workload.config is not None
    assert "preemption: {enabled: false}" in workload.config
    assert load(workload.config) is not None


def test_there_are_no_figures_of_nothing() -> None:
    assert figures(CaseResult(case=CASES["b"])) == {}
