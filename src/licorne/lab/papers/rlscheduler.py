"""The table of RLScheduler (Zhang et al., SC '20): average bounded slowdown of five orders of jobs, with and without backfill.

The rules are those of docs/spec/experiments.md, part A. The machine is one node with all processors, a job one ask, and the
queue has the property `simulation.order` (`licorne.sim.jobs`). What the table shows is the mean of the bounded slowdown that
each simulation reports, over ten stretches of 1,024 jobs. Whether a job fits is decided by the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum
from pathlib import Path

import msgspec

from licorne.lab.papers.reproduction import Cell, Part, Reproduced, data_file, digest_of, run_groups
from licorne.sim.runner import simulate
from licorne.workload.lines import Line
from licorne.workload.traces.batch import CORE, QUEUE, job_lines, machine, parallel, queues
from licorne.workload.traces.swf import PARTS, SwfJob, SwfLog, read_swf
from licorne.workload.workload import Mode, Progress, Workload, WorkloadError

JOBS = 1024
"""The jobs of a stretch."""
STARTS = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
"""The first jobs of the ten stretches, counted from 0."""
ORDERS = ("FCFS", "WFP3", "UNI", "SJF", "F1")
LISTS = ("lublin-1", "lublin-2")
PUBLISHED = {
    ("lublin-1", False): (7273.77, 19753.53, 22274.74, 277.35, 258.37),
    ("lublin-1", True): (235.82, 133.87, 307.23, 73.31, 75.07),
    ("lublin-2", False): (7842.47, 9523.18, 11265.31, 787.89, 698.34),
    ("lublin-2", True): (247.61, 318.35, 379.59, 91.99, 148.25),
}
"""The published means of ten stretches, for list and backfill, in the order of `ORDERS`."""
FIRST_STRETCH = {
    ("lublin-1", False): (6862.2636, 17143.1787, 18572.7810, 204.2585, 266.7345),
    ("lublin-1", True): (163.7064, 105.5428, 166.7984, 69.8702, 66.7545),
    ("lublin-2", False): (7922.3337, 16047.4248, 16919.4149, 442.9853, 534.2165),
    ("lublin-2", True): (150.0786, 190.4145, 226.0872, 60.1512, 298.3322),
}
"""The values of the stretch from 1981 alone, which were not published; docs/spec/experiments.md, A.7, has them."""
SOURCE = (
    "Di Zhang, Dong Dai, Youbiao He, Forrest Sheng Bao, Bing Xie: RLScheduler: An Automated HPC Batch Job Scheduler "
    "Using Reinforcement Learning. SC '20. The table stands in the README of github.com/DIR-LAB/deep-batch-scheduler."
)
DATA_SOURCE = (
    "github.com/DIR-LAB/deep-batch-scheduler, folder data: lublin_256.swf as lublin-1.swf.gz, lublin_256_new2 as "
    "lublin-2.swf.gz (gzip; the name without .gz is read as well)"
)


class Stretch(msgspec.Struct, frozen=True):
    """What came out for a stretch: the mean bounded slowdown of its jobs, and the digest of the decisions."""

    slowdown: float
    digest: str


Stretches = tuple[SwfLog, str, bool, Sequence[int]]
"""Stretches of a log, with the order of jobs, whether there is backfill, and the first jobs."""


def reproduce(folder: Path, part: Part = "usual", at_once: int = 1, progress: Progress | None = None) -> Reproduced:
    """Make the table from the two logs in a folder; `part` small: only the stretch from 1981, of which other values are known.

    Raises:
        WorkloadError: a log is not there, or is not such a log.
        OSError: a log cannot be read.
        CrashedError: a process has ended too early.
    """
    paths = [_path(folder, name) for name in LISTS]
    logs = dict(zip(LISTS, map(read_log, paths), strict=True))
    small = part == "small"
    starts, expected = (STARTS[:1], FIRST_STRETCH) if small else (STARTS, PUBLISHED)
    keys = [(name, backfill, order) for name, backfill in PUBLISHED for order in ORDERS]
    groups = {key: (logs[key[0]], key[2].lower(), key[1], starts) for key in keys}
    found = run_groups(groups, _run_stretches, len(keys) * len(starts), at_once, progress)
    cells: list[Cell] = []
    digests: list[str] = []
    for name, backfill, order in keys:
        stretches = found[name, backfill, order]
        digests += [each.digest for each in stretches]
        row = f"{name}, {'backfill' if backfill else 'none'}"
        value = expected[name, backfill][ORDERS.index(order)]
        got = fsum(each.slowdown for each in stretches) / len(starts)
        cells.append(Cell(row=row, column=order, expected=value, got=got, decimals=4 if small else 2).compared())
    return Reproduced(
        name="rlscheduler",
        title=f"average bounded slowdown, {'the stretch from 1981' if small else 'mean of ten stretches'} of {JOBS:,} jobs",
        source=SOURCE,
        data_source=DATA_SOURCE,
        data=[data_file(path) for path in paths],
        cells=cells,
        simulations=len(digests),
        digest=digest_of(digests),
        notes=["these are values of one stretch, which were not published"] if small else [],
    )


def read_log(path: Path) -> SwfLog:
    """Read a log by the rules of the published program: jobs in ascending number, a negative run time is 10 s.

    A job with the run time zero is left out, and so is a line that tells only a part of a job. A job without a requested time
    requests its run time.

    Raises:
        WorkloadError: the log is not usable, or has a job that could never start; with file and line.
    """
    log = read_swf(path, whole=True)
    processors = log.number("MaxProcs") or log.number("MaxNodes")
    jobs: list[SwfJob] = []
    for job, line in zip(log.jobs, log.lines, strict=True):
        run_s = job.run_s if job.run_s >= 0 else 10
        if not run_s or job.status in PARTS:
            continue
        requested_s = run_s if job.requested_s == -1 else job.requested_s
        place = f"{path}:{line}: job {job.number}"
        if job.submit_s < 0 or requested_s <= 0 or job.processors < 1:
            raise WorkloadError(f"{place}: needs a submission, a requested time or none (-1), and processors")
        if processors and job.processors > processors:
            raise WorkloadError(f"{place}: needs {job.processors} of {processors} processors, so it can never start")
        jobs.append(msgspec.structs.replace(job, run_s=run_s, requested_s=requested_s, queue=-1))
    return msgspec.structs.replace(log, jobs=sorted(jobs, key=lambda job: job.number), lines=[])


def _run_stretches(stretches: Stretches) -> list[Stretch]:
    log, order, backfill, starts = stretches
    return [run_stretch(log, start, order=order, backfill=backfill) for start in starts]


def run_stretch(log: SwfLog, start: int, *, order: str, backfill: bool, jobs: int = JOBS) -> Stretch:
    """Simulate successive jobs of a log, the first of which is that at the index `start`, counted from 0.

    Raises:
        WorkloadError: the log has fewer jobs, or they are not sorted by submission.
    """
    chosen = log.jobs[start : start + jobs]
    if len(chosen) < jobs:
        raise WorkloadError(f"{log.file}: has {len(log.jobs):,} jobs, too few for {jobs:,} from {start}")
    result = simulate(stretch_workload(log, chosen, order=order, backfill=backfill), pods=False)
    row = result.completions[-1]
    if row.completed != jobs:
        raise WorkloadError(f"{log.file}: of {jobs:,} jobs from {start} only {row.completed:,} were completed")
    return Stretch(row.slowdown_mean, result.digest)


def stretch_workload(log: SwfLog, jobs: Sequence[SwfJob], *, order: str, backfill: bool) -> Workload:
    """Return jobs as a workload of one strict queue on one node with all processors of the log's machine."""
    if any(earlier.submit_s > later.submit_s for earlier, later in pairwise(jobs)):
        raise WorkloadError(f"{log.file}: the jobs are not sorted by submission")
    lines: list[Line] = machine(log, "one")
    for job in jobs:
        lines += job_lines(parallel(job), "one", {"vcore": CORE})
    return Workload(name=log.file, mode=Mode.TIMED, config=queues([QUEUE], order=order, backfill=backfill), lines=lines)


def _path(folder: Path, name: str) -> Path:
    for ending in (".swf.gz", ".swf"):
        if (folder / f"{name}{ending}").is_file():
            return folder / f"{name}{ending}"
    raise WorkloadError(f"{folder / name}.swf.gz: no such file; the data are published at {DATA_SOURCE}")
