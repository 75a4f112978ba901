"""Tables of jobs as workloads: a CSV file with a header, and a mapping of its columns (`licorne.workload.traces.columns`).

A row is a job: its name, user, virtual cluster, submission and duration, and its GPUs, cores and memory, as far as the table
has them. Submissions are seconds, or dates (`2020-06-09 18:41:01`; UTC unless they say otherwise); second 0 is the earliest
one. A job becomes an application in the forms of `licorne.workload.traces.batch`, in the queue of its virtual cluster. It has as
many pods as its column of pods says, else one for each GPU, and one where it has none; its amounts are spread evenly over them.

A row that is cut off, or has something else than numbers and dates where these belong, refuses the table with file and line.
A job that says too little (no submission, no duration, no amount), or has a negative duration or amount, is left out, and
counted with the reason: such jobs never ran, or still ran when the table was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path

import msgspec

from licorne._wording import counted
from licorne.config.quantity import spoken
from licorne.config.structure import QUEUE_NAME
from licorne.workload.traces.batch import CORE, QUEUE, Job, JobLines, JobsAs, queues, skip_notes, skip_words, spread
from licorne.workload.traces.columns import GPU, TYPES, Mapping
from licorne.workload.traces.swf import DECIMAL, PROCESSORS_MAX, TIME_MAX_S, SwfSkip, opened_lines
from licorne.workload.traces.tables import parsed_rows
from licorne.workload.workload import ASKS_MAX, Mode, Workload, WorkloadError

WORDS = {"gpus": "number of GPUs", "cores": "number of cores", "memory": "memory", "pods": "number of pods"}
MEMORY_MAX = 2**53
"""Bytes of memory of a job, at most: all whole numbers up to here are exact."""
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
        job = _job(row, mapping, found.line, place)
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
    number = mapping.nodes or -(-peak_gpus(jobs) // mapping.each[GPU])
    nodes = spread(table.file, number, 1 if jobs_as == "one" else number, mapping.each)
    cluster = f"the cluster has {counted(number, 'node')} of {_spoken(mapping.each)}, "
    cluster += (
        f"as the mapping {mapping.name} says"
        if mapping.nodes
        else "as many as hold all jobs if each starts on its arrival; a mapping with `cluster: {nodes: N, gpus: M}` says it"
    )
    pool = ["the machine is one node: what it has is a pool, and no job waits because it lies apart"]
    return Workload(
        name=f"{table.file} ({jobs_as})",
        mode=Mode.TIMED,
        config=queues(sorted({job.queue for job in jobs}), order=order, backfill=backfill),
        lines=JobLines(table.file, nodes, jobs, jobs_as, {}, asks_max),
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


def _spoken(each: dict[str, int]) -> str:
    """Return what a node has, in words."""
    words = {
        GPU: lambda amount: counted(amount, "GPU"),
        "vcore": lambda amount: f"{spoken('vcore', amount)} cores",
        "memory": lambda amount: f"{spoken('memory', amount)} of memory",
    }
    return ", ".join(words[kind](amount) for kind, amount in each.items())


def _job(row: dict[str, str], mapping: Mapping, line: int, place: str) -> Job | str:
    """Return the job of a row, or why it cannot be simulated."""
    if _unknown(row["job"]):
        return "the name of the job is not known"
    submit_s = _time(row["submitted"], f"{place}: submitted")
    run_s = _number(row["duration"], f"{place}: duration", TIME_MAX_S)
    amounts = {field: _amount(row, field, mapping, place) for field in (*mapping.amounts, "pods") if field in row}
    for value, what in (
        (submit_s, "submission"),
        (run_s, "duration"),
        *((value, WORDS[field]) for field, value in amounts.items()),
    ):
        if value is None:
            return f"the {what} is not known"
        if value < 0 and what != "submission":
            return f"the {what} is negative"
    known = {field: value for field, value in amounts.items() if value}
    if not known.keys() & TYPES.keys():
        return f"it has no {' and no '.join('GPUs' if field == 'gpus' else field for field in mapping.amounts)}"
    if "pods" in amounts and "pods" not in known:
        return "it has no pods"
    assert submit_s is not None
    assert run_s is not None
    user, queue = row.get("user", ""), row.get("queue", "")
    if not _unknown(queue) and not QUEUE_NAME.fullmatch(queue):
        raise WorkloadError(f"{place}: queue: {queue[:80]!r} cannot be the name of a queue")
    units = int(known.get("pods") or known.get("gpus") or 1)
    base = {"gpus": 1, "cores": CORE, "memory": mapping.memory_bytes}
    return Job(
        name=row["job"],
        line=line,
        queue=QUEUE if _unknown(queue) else f"root.{queue.lower()}",
        user="nobody" if _unknown(user) else user,
        units=units,
        each={
            TYPES[field]: -(-max(round(known[field] * base[field]), 1) // units)
            for field in mapping.amounts
            if field in known
        },
        submit_s=submit_s,
        run_s=run_s,
        estimate_s=run_s,
    )


def _amount(row: dict[str, str], field: str, mapping: Mapping, place: str) -> float | None:
    """Return how many cores, GPUs or pods, or how much memory, a row of the table says; None where it says that it is unknown."""
    most = MEMORY_MAX // mapping.memory_bytes if field == "memory" else PROCESSORS_MAX
    value = _number(row[field], f"{place}: {field}", most)
    if field in ("gpus", "pods") and value is not None and value != int(value):
        raise WorkloadError(f"{place}: {field}: {row[field][:40]} is not a whole number")
    return value


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
