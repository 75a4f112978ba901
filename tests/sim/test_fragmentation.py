"""Fragmentation against its definition, computed naively, and the published examples."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from common.examples import examples
from common.planting import LOOKED_AT, Counted, a_law_breaks
from licorne.core.nodes.devices import Demand
from licorne.lab.papers.fgd import read_pod_list
from licorne.lab.papers.fragmentation import Fragmentation, Shape, Typical, typical_shapes

shapes = st.builds(
    Shape,
    cpu=st.sampled_from([1000, 2000, 4000, 8000]),
    devices=st.sampled_from([0, 200, 460, 999, 1000, 2000, 4000]).map(Demand.of),
    spec=st.sampled_from(["", "T4", "T4|G2", "P100"]),
)
free_devices = st.lists(st.integers(0, 1000) | st.sampled_from([0, 460, 1000]), max_size=8)


def naive(typical: list[Typical], model: str, cpu: int, free: list[int]) -> Fraction:
    """What is idle, less what each typical shape could use, by weight (docs/spec/experiments.md, B.5)."""
    fragments = Fraction(sum(free))
    for (wanted_cpu, (number, each), spec), weight in typical:
        sufficing = [left for left in free if left >= each]
        allowed = spec == "" or model in spec.split("|")
        usable = sum(sufficing) if number > 0 and allowed and cpu >= wanted_cpu and len(sufficing) >= number else 0
        fragments -= Fraction(weight) * usable
    return fragments


nodes = (
    st.lists(shapes, min_size=1, max_size=30),
    st.sampled_from(["T4", "G2", "A10"]),
    st.integers(0, 9000),
    free_devices,
)


@given(*nodes)
def test_fragmentation_is_what_is_idle_less_what_typical_pods_could_use(
    pods: list[Shape], model: str, cpu: int, free: list[int]
) -> None:
    check(pods, model, cpu, free)


def check(pods: list[Shape], model: str, cpu: int, free: list[int]) -> None:
    typical = typical_shapes(pods)
    assert sum(each.weight for each in typical) == pytest.approx(1)
    fragmentation = Fragmentation(typical)
    found = fragmentation.of(model, fragmentation.level(cpu), tuple(sorted(free)))
    assert found == pytest.approx(float(naive(typical, model, cpu, free)), abs=1e-6)
    assert -1e-6 <= found <= sum(free) + 1e-6


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Shape, "accepts", lambda *_: True),
        (Fragmentation, "level", lambda self, cpu: bisect_left(self._steps, cpu)),
    ],
)
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    owner: type,
    name: str,
    fault: object,
) -> None:
    monkeypatch.setattr(owner, name, fault)
    law = Counted(check)

    @examples(500, phases=(Phase.generate,), report_multiple_bugs=False)
    @given(*nodes)
    def holds(pods: list[Shape], model: str, cpu: int, free: list[int]) -> None:
        law(pods, model, cpu, free)

    with a_law_breaks(sys.modules[__name__]):
        holds()
    record_property(LOOKED_AT, law.looked_at)


@given(st.lists(shapes, min_size=1, max_size=40))
def test_typical_shapes_are_the_fewest_frequent_ones_that_hold_95_percent(pods: list[Shape]) -> None:
    taken = [each.shape for each in typical_shapes(pods)]
    counts = [pods.count(shape) for shape in taken]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) >= 0.95 * len(pods)
    assert sum(counts[:-1]) < 0.95 * len(pods)
    assert all(pods.count(shape) <= counts[-1] for shape in pods if shape not in taken)


def test_equal_counts_are_ordered_by_cpu_share_number_and_spelling() -> None:
    expected = [
        Shape(9, Demand(1, 100), ""),
        Shape(8, Demand(1, 500), ""),
        Shape(8, Demand(2, 400), "b"),
        Shape(8, Demand(2, 400), "a"),
        Shape(8, Demand(1, 400), "z"),
    ]
    assert [each.shape for each in typical_shapes(reversed(expected))] == expected


def test_the_typical_shapes_of_the_real_list(openb: Path) -> None:
    pods = read_pod_list(openb, "default")
    typical = pods.typical
    assert (len({pod.shape for pod in pods.pods}), len(typical)) == (91, 35)
    assert (typical[0].shape[:2], round(typical[0].weight, 5)) == ((3152, (1, 810)), 0.13482)
    assert (typical[-1].shape[:2], round(typical[-1].weight, 5)) == ((4152, (1, 810)), 0.00399)
    assert round(sum(weight for shape, weight in typical if not shape.devices.number), 4) == 0.1360


@pytest.mark.parametrize(
    ("model", "cpu", "free", "expected"),
    [
        ("G2", 96_000, [1000] * 8, 1087.818697),
        ("P100", 16_000, [1000] * 2, 359.258305),
        ("G2", 24_000, [1000, 540, 300, 0, 0, 0, 0, 0], 878.483132),
        ("T4", 8_000, [460, 1000], 1024.450167),
        ("G2", 90_000, [540, *[1000] * 7], 1391.990729),
        ("P100", 4_000, [0, 1000], 716.456348),
        ("V100M16", 32_000, [300, 1000, 1000, 1000], 699.472058),
        ("A10", 128_000, [1000], 135.977337),
    ],
)
def test_the_examples_of_the_real_list(openb: Path, model: str, cpu: int, free: list[int], expected: float) -> None:
    fragmentation = Fragmentation(read_pod_list(openb, "default").typical)
    assert round(fragmentation.of(model, fragmentation.level(cpu), tuple(sorted(free))), 6) == expected
