"""The cases of the benchmark, and their targets.

A case is a generated workload (`python -m bench generate --help`) and a way to measure it. Its targets are those that the project
has set itself: they hold for pods of unique shapes, fifo applications and seed 1. No other shape or policy may reach less
than half of that, which the variants check.
"""

from __future__ import annotations

from itertools import product
from typing import Literal, get_args

import msgspec

from bench.measure.boundary import BoundaryName
from bench.workloads.generate import Options
from licorne.config.model import NodePolicy

Kind = Literal["speed", "blocked", "churn", "contest"]
"""speed: allocations per second; blocked: speed, and once more without the blocked asks; churn: speed, and releases;
contest: evictions, or members of gangs, per second"""


class Target(msgspec.Struct, frozen=True):
    """A figure to reach: `value` or more, or with `at_most` that value or less."""

    figure: str
    value: float
    at_most: bool = False

    def reached(self, measured: float) -> bool:
        """Whether a measured figure reaches the target."""
        return measured <= self.value if self.at_most else measured >= self.value


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the benchmark. `workload` is the generator's case."""

    name: str
    workload: str
    kind: Kind = "speed"
    shape: str = "unique"
    appsort: str = "fifo"
    nodesort: str = "fair"
    demand: float | None = None
    boundary: BoundaryName = "objects"
    targets: tuple[Target, ...] = ()

    def options(self) -> Options:
        """Return the options for the generator."""
        return Options(shape=self.shape, appsort=self.appsort, nodesort=self.nodesort, demand=self.demand)

    def targets_interpreted(self) -> tuple[Target, ...]:
        """Return the targets of an interpreted build, which replace the others."""
        return (Target("allocations_per_s", 10_000 if self.name == "b" else 2_000),)


GROUPS = ("quick", "binpacking", "full", "bytes", "variants", "all")
FULL = 1.5
"""Demand over capacity in cases with a full cluster."""
BIG = ("b", "c", "d")
PEER_DEFAULT = ("b", "c", "d", "binpacking", "full", "e2", "e3")

_IDLE = Target("idle_cycle_us", 10, at_most=True)
_MEMORY = (Target("pending_ask_bytes", 1024, at_most=True), Target("allocation_bytes", 1024, at_most=True))
_BLOCKED = (Target("decide_ratio", 2, at_most=True), Target("submit_us_per_ask", 2, at_most=True))


def _rate(allocations_per_s: float, ratio: float | None = None) -> tuple[Target, ...]:
    wanted = Target("allocations_per_s", allocations_per_s)
    return (wanted,) if ratio is None else (wanted, Target("ratio", ratio))


def _table() -> dict[str, Case]:
    cases = [
        Case(name="t", workload="t"),
        Case(name="a", workload="a"),
        *(Case(name=name, workload=name, targets=_rate(150_000, 25) + _MEMORY) for name in BIG),
        *(
            Case(name=f"{name}-binpacking", workload=name, nodesort="binpacking", targets=_rate(100_000, 40))
            for name in BIG
        ),
        *(Case(name=f"{name}-full", workload=name, demand=FULL, targets=_rate(100_000, 40)) for name in BIG),
        Case(name="e1", workload="e1", targets=(_IDLE,)),
        Case(name="e2", workload="e2", kind="blocked", targets=(*_BLOCKED, _IDLE)),
        Case(name="e3", workload="e3", kind="blocked", targets=_BLOCKED),
        Case(
            name="churn",
            workload="churn",
            kind="churn",
            targets=(Target("release_us", 20, at_most=True), _IDLE),
        ),
        Case(name="constraints", workload="constraints", targets=_rate(80_000)),
        *(Case(name=name, workload=name, targets=_rate(20_000)) for name in ("apart", "spread", "near")),
        Case(name="prefer", workload="prefer", targets=_rate(5_000)),
        Case(name="tree", workload="tree", targets=_rate(60_000)),
        *(
            Case(name=name, workload=name, kind="contest", targets=(Target(figure, value),))
            for name, figure, value in _CONTESTS
        ),
        Case(
            name="x",
            workload="x",
            targets=(*_rate(100_000), Target("peak_rss_bytes", 3e9, at_most=True), *_MEMORY),
        ),
        Case(name="x-full", workload="x", demand=FULL, targets=_rate(20_000)),
        *(
            Case(name=f"{name}-{boundary}", workload=name, boundary=boundary, targets=_rate(120_000))
            for boundary in _BYTES
            for name in BIG
        ),
        *_variants(),
    ]
    return {case.name: case for case in cases}


_CONTESTS = (
    ("preempt", "evictions_per_s", 1_000.0),
    ("gangs", "members_per_s", 20_000.0),
    ("gangs-atomic", "members_per_s", 20_000.0),
)
_BYTES: tuple[BoundaryName, ...] = ("bytes", "first-bytes")


def _variants() -> list[Case]:
    """Return the cases for every other shape and policy, with half of the targets."""
    variants: list[Case] = []
    for name, shape, appsort, nodesort in product(
        BIG, ("unique", "app", "same"), ("fifo", "fair"), get_args(NodePolicy)
    ):
        if (shape, appsort) != ("unique", "fifo"):
            half = _rate((150_000 if nodesort == "fair" else 100_000) / 2)
            row = f"{name}-{shape}-{appsort}-{nodesort}"
            variants.append(
                Case(name=row, workload=name, shape=shape, appsort=appsort, nodesort=nodesort, targets=half)
            )
    for (name, figure, value), shape in product(_CONTESTS, ("app", "same")):
        half = (Target(figure, value / 2),)
        variants.append(Case(name=f"{name}-{shape}", workload=name, kind="contest", shape=shape, targets=half))
    return variants


CASES: dict[str, Case] = _table()


def chosen(names: tuple[str, ...], default: tuple[str, ...] = ("quick",)) -> list[Case]:
    """Return the cases of these names and groups, each once, in the order of the table.

    Raises KeyError for an unknown name.
    """
    wanted: set[str] = set()
    for name in names or default:
        if name in CASES:
            wanted.add(name)
        elif name in GROUPS:
            wanted |= {case.name for case in CASES.values() if _belongs(case, name)}
        else:
            raise KeyError(name)
    return [case for case in CASES.values() if case.name in wanted]


def _belongs(case: Case, group: str) -> bool:
    variant = case in _VARIANTS
    match group:
        case "variants":
            return variant
        case "bytes":
            return case.boundary != "objects"
        case "all":
            return case.name != "t"
        case "quick":
            if case.boundary != "objects":
                return case.workload == "b"
            return case.name != "t" and case.workload != "x" and not variant
        case _:
            return case.name.endswith(f"-{group}") and case.workload in BIG and not variant


_VARIANTS = frozenset(_variants())
