"""Tables of GPU jobs as workloads: a CSV file with a header, and a mapping of its columns (`licorne.workload.traces.columns`).

A row is a job: its name, user, virtual cluster, number of GPUs, submission and duration. Submissions are seconds, or dates
(`2020-06-09 18:41:01`; UTC unless they say otherwise); second 0 is the earliest one. A job becomes an application of one GPU
for each pod in the forms of `licorne.workload.traces.batch`, in the queue of its virtual cluster.

A row that is cut off, or has something else than numbers and dates where these belong, refuses the table with file and line.
A job that says too little (no submission, no duration, no GPUs), or has a negative duration or number of GPUs, is left out,
and counted with the reason: such jobs never ran, or still ran when the table was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path

import msgspec

from licorne._wording import counted
from licorne.config.structure import QUEUE_NAME
from licorne.workload.traces.batch import QUEUE, Job, JobLines, JobsAs, queues, skip_notes, skip_words, spread
from licorne.workload.traces.columns import Mapping
from licorne.workload.traces.swf import DECIMAL, PROCESSORS_MAX, TIME_MAX_S, SwfSkip, opened_lines
from licorne.workload.traces.tables import parsed_rows
from licorne.workload.workload import ASKS_MAX, Mode, Workload, WorkloadError

GPU = "nvidia.com/gpu"
"""The resource type of GPUs, as Kubernetes knows them."""
UNKNOWN = frozenset({"", "none", "null", "nan", "nat", "na", "n/a"})
"""How tables write that a value is not known, in lower case."""


class GpuTable(msgspec.Struct, kw_only=True):
    """The jobs of a table in the order of the file, what was left out and why, and sentences about the table."""

    file: str
    jobs: list[Job]
    skipped: list[SwfSkip]
    notes: list[str]


def read_gpu_csv(path: Path, mapping: Mapping, *, jobs_max: int = ASKS_MAX) -> GpuTable:
    """Read a table (`.gz`: compressed).

    Raises:
        WorkloadError: it is not such a table, a job stands twice, or there are more than `jobs_max`: with file and line.
        OSError: the file cannot be read.
    """
    with opened_lines(path) as stream:
        return parse_gpu_csv(stream, mapping, file=str(path), jobs_max=jobs_max)


def parse_gpu_csv(stream: Iterable[bytes], mapping: Mapping, *, file: str, jobs_max: int = ASKS_MAX) -> GpuTable:
    """Read a table from lines of bytes; `file` is its name in messages. Raises WorkloadError as `read_gpu_csv`."""
    notes: list[str] = []
    needed = {column: f"that is `{field}` by the mapping {mapping.name}" for field, column in mapping.columns.items()}
    skipped: dict[str, SwfSkip] = {}
    known: dict[str, int] = {}
    spelled: dict[str, str] = {}
    merged: dict[str, str] = {}
    jobs: list[Job] = []
    for found in parsed_rows(stream, file, needed, notes):
        place = f"{file}:{found.line}"
        row = {field: found.values[column] for field, column in mapping.columns.items()}
        job = _job(row, found.line, place)
        if isinstance(job, str):
            skipped.setdefault(job, SwfSkip(job, 0, found.line)).jobs += 1
            continue
        if job.name in known:
            raise WorkloadError(f"{place}: job: {job.name} stands in line {known[job.name]} already")
        known[job.name] = job.line
        if len(jobs) >= jobs_max:
            raise WorkloadError(f"{place}: more than {jobs_max:,} jobs; --max-asks allows more")
        jobs.append(job)
        queue = row.get("queue", "")
        if spelled.setdefault(job.queue, queue) != queue:
            merged.setdefault(queue, f"{queue} is one queue with {spelled[job.queue]}: queues have no case ({place})")
    return GpuTable(
        file=file, jobs=jobs, skipped=list(skipped.values()), notes=[*notes, *merged.values(), *_notes(jobs)]
    )


def gpu_workload(
    table: GpuTable,
    mapping: Mapping,
    *,
    jobs_as: JobsAs = "gang",
    order: str = "",
    backfill: bool = False,
    asks_max: int = ASKS_MAX,
) -> Workload:
    """Return a table as a timed workload; the options are those of `licorne.workload.traces.batch.batch_workload`.

    Raises:
        WorkloadError: there are no jobs, or more asks, or more nodes, than anybody would simulate on purpose.
    """
    if not table.jobs:
        raise WorkloadError(f"{table.file}: there are no jobs that can be simulated{skip_words(table.skipped)}")
    zero = min(job.submit_s for job in table.jobs)
    jobs = [msgspec.structs.replace(job, submit_s=job.submit_s - zero) for job in table.jobs]
    if jobs_as != "one":
        _check_names(table.file, jobs)
    number = mapping.nodes or -(-peak_gpus(jobs) // mapping.gpus_each)
    nodes = spread(table.file, number * mapping.gpus_each, 1 if jobs_as == "one" else number, {GPU: 1})
    cluster = f"the cluster has {counted(number, 'node')} of {counted(mapping.gpus_each, 'GPU')}, "
    cluster += (
        f"as the mapping {mapping.name} says"
        if mapping.nodes
        else "as many as hold all jobs if each starts on its arrival; a mapping with `cluster: {nodes: N, gpus: M}` says it"
    )
    pool = ["the machine is one node: GPUs are a pool, and no job waits because they lie apart"]
    return Workload(
        name=f"{table.file} ({jobs_as})",
        mode=Mode.TIMED,
        config=queues(sorted({job.queue for job in jobs}), order=order, backfill=backfill),
        lines=JobLines(table.file, nodes, jobs, jobs_as, {GPU: 1}, asks_max),
        notes=[*skip_notes(table.file, table.skipped), *table.notes, cluster, *(pool if jobs_as == "one" else [])],
    )


def peak_gpus(jobs: Iterable[Job]) -> int:
    """Return the most GPUs that are in use at once if each job starts on its arrival.

    Those of a job that ends are free then. A job without duration counts in its moment: if it had to wait for its GPUs,
    it would keep them from others meanwhile.
    """
    changes = []
    for job in jobs:
        changes.append((job.submit_s, 1, job.units))
        changes.append((job.submit_s + job.run_s, 0 if job.run_s else 2, -job.units))
    used = most = 0
    for _, _, change in sorted(changes):
        used += change
        most = max(most, used)
    return most


def _check_names(file: str, jobs: list[Job]) -> None:
    """Refuse a job of the name that a pod of another job has."""
    units = {job.name: job.units for job in jobs}
    for job in jobs:
        base, _, index = job.name.rpartition("-")
        if job.units == 1 and index.isdecimal() and 2 <= units.get(base, 0) >= int(index) >= 1:
            raise WorkloadError(f"{file}:{job.line}: job: {job.name} is also the name of a pod of job {base}")


def _job(row: dict[str, str], line: int, place: str) -> Job | str:
    """Return the job of a row, or why it cannot be simulated."""
    if _unknown(row["job"]):
        return "the name of the job is not known"
    submit_s = _time(row["submitted"], f"{place}: submitted")
    run_s = _number(row["duration"], f"{place}: duration", TIME_MAX_S)
    gpus = _number(row["gpus"], f"{place}: gpus", PROCESSORS_MAX)
    if gpus is not None and gpus != int(gpus):
        raise WorkloadError(f"{place}: gpus: {row['gpus'][:40]} is not a whole number")
    for value, what in ((submit_s, "submission"), (run_s, "duration"), (gpus, "number of GPUs")):
        if value is None:
            return f"the {what} is not known"
        if value < 0 and what != "submission":
            return f"the {what} is negative"
    if not gpus:
        return "it has no GPUs"
    assert submit_s is not None
    assert run_s is not None
    user, queue = row.get("user", ""), row.get("queue", "")
    if not _unknown(queue) and not QUEUE_NAME.fullmatch(queue):
        raise WorkloadError(f"{place}: queue: {queue[:80]!r} cannot be the name of a queue")
    return Job(
        name=row["job"],
        line=line,
        queue=QUEUE if _unknown(queue) else f"root.{queue.lower()}",
        user="nobody" if _unknown(user) else user,
        units=int(gpus),
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=run_s,
    )


def _unknown(text: str) -> bool:
    return text.lower() in UNKNOWN


def _number(text: str, place: str, most: float) -> float | None:
    """Return the number of a field; None if it is not known."""
    if _unknown(text):
        return None
    if DECIMAL.fullmatch(text) is None:
        raise WorkloadError(f"{place}: {text[:40]!r} is no number")
    value = float(text)
    if not isfinite(value) or abs(value) > most:
        raise WorkloadError(f"{place}: {text[:40]} is beyond {most:,}")
    return int(value) if value == int(value) else value


def _time(text: str, place: str) -> float | None:
    """Return the seconds of a number, or of a date since 1970; None if it is not known."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        if ":" in text or text.count("-") > 1:
            raise WorkloadError(f"{place}: {text[:40]!r} is no date like 2020-06-09 18:41:01") from None
        return _number(text, place, TIME_MAX_S)
    if text.isdecimal():  # 20200609 is a date in the basic form, and a number of seconds
        return _number(text, place, TIME_MAX_S)
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return int(seconds) if seconds == int(seconds) else seconds


def _notes(jobs: list[Job]) -> Iterator[str]:
    if any(earlier.submit_s > later.submit_s for earlier, later in pairwise(jobs)):
        yield "the jobs are not in the order of their submission in the table; they arrive in that order here"
    if jobs and (zero := min(job.submit_s for job in jobs)):
        first = next(job for job in jobs if job.submit_s == zero)
        yield f"second 0 is the earliest submission, that of {first.name} (line {first.line})"
