"""The cases that are measured of the service, and their targets."""

from __future__ import annotations

import msgspec

from bench.cases import Target
from bench.workloads.generate import CASES, Size


class ServiceCase(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `size` is that of the main resource manager, `beside` that of another one, which is read or only present.

    In that one `changes_a_s` pods per second are placed and ended, one after the other.
    """

    name: str
    size: Size
    beside: Size | None = None
    rounds: int = 5
    managers: int = 1
    changes_a_s: float = 0.0
    clients: int = 0
    seconds: float = 0.0
    targets: tuple[Target, ...] = ()

    def scaled(self, scale: float) -> ServiceCase:
        """Return the case scaled in size and duration, without targets, as they hold for the full size only."""
        if scale == 1:
            return self
        return msgspec.structs.replace(
            self,
            size=_scaled(self.size, scale),
            beside=None if self.beside is None else _scaled(self.beside, scale),
            managers=max(2, round(self.managers * scale)) if self.managers > 1 else 1,
            clients=max(4, round(self.clients * scale)) if self.clients else 0,
            rounds=max(1, round(self.rounds * min(1.0, scale * 10))),
            seconds=self.seconds * min(1.0, scale * 10),
            targets=(),
        )


def _scaled(size: Size, scale: float) -> Size:
    nodes, pods, applications, queues = (max(2, round(number * scale)) for number in size)
    return Size(nodes, max(pods, applications), applications, min(queues, applications))


B = CASES["b"]
_STALL = Target("longest_gap_ms", 50, at_most=True)
_REST = ServiceCase(
    name="rest",
    size=B,
    beside=Size(1_000, 10_000, 1_000, 100),
    clients=50,
    seconds=96.0,  # single turns differ by a third: the median of this many is exact to two in a hundred
    targets=(Target("rest_p99_ms", 50, at_most=True), Target("lost_percent", 10, at_most=True)),
)
SERVICE_CASES: dict[str, ServiceCase] = {
    case.name: case
    for case in (
        ServiceCase(name="grpc", size=B, targets=(Target("pods_per_s", 100_000),)),
        ServiceCase(name="client", size=B, targets=(Target("pods_per_s", 40_000),)),
        ServiceCase(name="managers", size=Size(20, 500, 5, 2), beside=B, managers=200),
        ServiceCase(name="dump", size=B, beside=Size(5_000, 150_000, 1_500, 100), changes_a_s=500, targets=(_STALL,)),
        _REST,
        msgspec.structs.replace(_REST, name="rest-changing", changes_a_s=20),
        ServiceCase(name="memory", size=Size(1_000, 60_000, 600, 100)),
        ServiceCase(
            name="record",
            size=CASES["c"],
            seconds=96.0,  # single pairs of turns differ by several percent: the median of 48 is exact to one
            targets=(
                Target("loop_percent", 3, at_most=True),
                Target("bytes_per_decision", 200, at_most=True),
            ),
        ),
        ServiceCase(
            name="follow",
            size=CASES["c"],
            seconds=30.0,
            targets=(Target("question_percent", 1, at_most=True), Target("state_age_s", 1, at_most=True)),
        ),
    )
}
