"""The tasks of a process of clients, and their outcomes."""

from __future__ import annotations

from typing import Literal

import msgspec

from bench.workloads.generate import Size

What = Literal["grpc", "turns", "client", "managers", "hold", "rest"]
"""grpc: prepared bytes, round after round; turns: as many rounds as fill some seconds, at each signal; client: prepared
requests as objects through `licorne.grpc.client`; managers: many resource managers at once; hold: fill a cluster, then ask for
single pods until told to end; rest: clients of REST, from one signal to the next"""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The task of one process of clients. `address` is that of gRPC, `rest` that of REST."""

    what: What
    address: str
    rest: str = ""
    rm_id: str = "bench"
    size: Size = Size(1_000, 50_000, 50, 10)
    rounds: int = 1
    """grpc: the number of rounds; 0: as many as begin until it is told to end"""
    turns: int = 1
    seconds: float = 0.0
    """turns, rest: `turns` is how often; turns: `seconds` is the least duration of each, which ends with a whole round"""
    managers: int = 1
    stay: bool = False
    """managers: when all have their pods, wait until told to end"""
    clients: int = 0
    probes_a_s: float = 0.0
    """hold: ask for at most this many single pods per second, each after the last one has ended, and time each"""
    tagged: bool = False
    """hold: each pod has two tags, its name and its namespace"""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """All asks of a workload, timed from the first one sent to the last allocation received. `turn`: the turn it belongs to."""

    allocations: int
    seconds: float
    turn: int = 0


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of durations, in milliseconds."""

    count: int
    median_ms: float
    p99_ms: float
    most_ms: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a process of clients."""

    rounds: list[Round] = []
    finished_s: list[float] = []
    """managers: seconds until each had all its pods, from the moment at which all began"""
    probes: Times | None = None
    answers_s: dict[str, list[float]] = {}
    """rest: seconds that each answer took, by kind of path, and `all`"""
    failures: list[str] = []
    cpu_s: float = 0.0


def times(taken_s: list[float]) -> Times:
    """Return statistics of durations in seconds; zeros for none."""
    ordered = sorted(taken_s) or [0.0]
    last = len(ordered) - 1
    return Times(
        count=len(taken_s),
        median_ms=round(ordered[last // 2] * 1e3, 3),
        p99_ms=round(ordered[min(last, int(len(ordered) * 0.99))] * 1e3, 3),
        most_ms=round(ordered[-1] * 1e3, 3),
    )
