"""Quantities of Kubernetes, and what a pod takes from its node."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config.kubernetes import QuantityError, parse_quantity, read_amounts
from licorne.kube.objects import Pod
from licorne.kube.pods.resources import read_resources

FACTORS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000) ** (place + 1) for place, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024) ** (place + 1) for place, suffix in enumerate("KMGTPE")},
}


@pytest.mark.parametrize(
    ("text", "whole", "thousandths"),
    [
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("0.5", 1, 500),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("1.5Gi", 1610612736, 1610612736000),
        ("1e3", 1000, 1000000),
        ("1E3", 1000, 1000000),
        ("2E", 2 * 10**18, None),
        ("12e-1", 2, 1200),
        ("1n", 1, 1),
        ("0", 0, 0),
        ("-1500m", -2, -1500),
        ("+3k", 3000, 3000000),
    ],
)
def test_a_quantity_means_a_number(text: str, whole: int, thousandths: int | None) -> None:
    assert parse_quantity(text) == whole
    if thousandths is not None:
        assert parse_quantity(text, milli=True) == thousandths


@pytest.mark.parametrize("text", ["", ".", "1.5.", "1 Gi", "Gi", "1gi", "1e", "1mi", "0x10", "1_000", "1e1000", "٣"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@given(st.integers(0, 10**12), st.integers(0, 6), st.sampled_from(sorted(FACTORS)), st.booleans())
def test_a_part_of_a_unit_is_rounded_up(digits: int, point: int, suffix: str, milli: bool) -> None:
    places = str(digits).rjust(point + 1, "0")
    text = f"{places[: len(places) - point]}.{places[len(places) - point :]}{suffix}"
    value = Fraction(digits, 10**point) * FACTORS[suffix] * (1000 if milli else 1)
    if ceil(value) < 2**63:
        assert parse_quantity(text, milli=milli) == ceil(value)
    else:
        with pytest.raises(QuantityError, match="too large"):
            parse_quantity(text, milli=milli)


@pytest.mark.parametrize("value", [None, True, [], "-1", "x" * 10000, 1 << 70])
def test_what_is_no_amount_is_refused_by_name(value: Any) -> None:
    with pytest.raises(QuantityError, match=r"^cpu: "):
        read_amounts({"cpu": value})


# -- resources of pods ---------------------------------------------------------------------------------------------


def container(cpu: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    """Return a container with requests."""
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": more.pop("name", "c"), "resources": {"requests": requests}, **more}


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    """Return a pod."""
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec, "status": status or {}}, Pod)


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "status", "wanted"),
    [
        ({"containers": [container()]}, None, {"pods": 1}),
        ({"containers": [container("100m", "1Gi"), container("1", "1")]}, None, (1100, (1 << 30) + 1)),
        ({"containers": [container("1", "1")], "initContainers": [container("2")]}, None, (2000, 1)),
        (  # a sidecar runs beside what comes after it, and to the end
            {"containers": [container("1")], "initContainers": [container("1", **SIDECAR), container("3")]},
            None,
            (4000, None),
        ),
        (  # but not beside what comes before it
            {"containers": [container("1")], "initContainers": [container("3"), container("1", **SIDECAR)]},
            None,
            (3000, None),
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, None, (1250, None)),
        (  # the pod's own requests replace the sum, of processors and memory
            {"containers": [container("1", "5")], "resources": {"requests": {"cpu": "4"}}},
            None,
            (4000, 5),
        ),
        (  # a change in place: the larger of what is wanted and what there is
            {"containers": [container("1")]},
            {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]},
            (2000, None),
        ),
        (  # one that the kubelet refuses: what there is
            {"containers": [container("8")]},
            {
                "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            },
            (2000, None),
        ),
    ],
)
def test_what_a_pod_takes(spec: dict[str, Any], status: dict[str, Any] | None, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        named = {"vcore": wanted[0], "memory": wanted[1], "pods": 1}
        wanted = {name: amount for name, amount in named.items() if amount is not None}
    assert read_resources(pod(spec, status)) == wanted


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=5),
)
def test_a_pod_takes_the_most_that_runs_at_once(containers: list[int], init: list[tuple[int, bool]]) -> None:
    """The timeline played: each init container with the sidecars before it, then all containers with all sidecars."""
    most, sidecars = 0, 0
    for cpu, stays in init:
        most = max(most, sidecars + cpu)
        sidecars += cpu if stays else 0
    most = max(most, sum(containers) + sidecars)
    made = pod(
        {
            "containers": [container(str(cpu), name=f"c{i}") for i, cpu in enumerate(containers)],
            "initContainers": [
                container(str(cpu), name=f"i{i}", **(SIDECAR if stays else {})) for i, (cpu, stays) in enumerate(init)
            ],
        }
    )
    assert read_resources(made).get("vcore", 0) == 1000 * most
