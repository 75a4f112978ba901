"""The table of a sweep: a row for each point, with what it was and what it came to, as CSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from licorne.lab.sweep.plan import Point
from licorne.lab.sweep.point import Outcome
from licorne.workload.row_files import row_file

TABLE = "table"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A point and its outcome; the fields are those of `Point` and `Outcome`."""

    workload: str
    configuration: str
    load: float | None
    seed: int | None
    policy: str
    policy_digest: str | None
    device_policy: str
    error: str
    asks: int | None
    placed: int | None
    never_placed: int | None
    rejected_applications: int | None
    preempted: int | None
    wait_mean_s: float | None
    wait_p50_s: float | None
    wait_p95_s: float | None
    wait_p99_s: float | None
    completion_mean_s: float | None
    slowdown_mean: float | None
    slowdown_p95: float | None
    use: float | None
    scarcest: str | None
    evenness: float | None
    guarantee_missing: float | None
    lost_pod_h: float | None
    fragmented: float | None
    simulated_s: float | None
    decisions: str | None


_OF_POINT = ("workload", "configuration", "load", "seed", "policy", "device_policy")


def rows(points: Sequence[Point], outcomes: Sequence[Outcome]) -> list[Row]:
    """Return the rows, in the order of the points."""
    return [
        Row(**{name: getattr(point, name) for name in _OF_POINT}, **msgspec.structs.asdict(outcome))
        for point, outcome in zip(points, outcomes, strict=True)
    ]


def write_table(folder: Path, found: Sequence[Row], *, parquet: bool) -> list[Path]:
    """Write the table into a folder, as CSV and, if wanted, as Parquet; return the files. Raises OSError."""
    endings = (".csv", ".parquet") if parquet else (".csv",)
    paths = [folder / f"{TABLE}{ending}" for ending in endings]
    for path in paths:
        with row_file(path, Row) as file:
            for row in found:
                file.write(row)
    return paths
