"""Logs in the Standard Workload Format (SWF 2.2 of the Parallel Workloads Archive), read and written.

A log has a header of comments (`; MaxProcs: 256`), and a line of 18 numbers for each job; -1 stands for a number that is not
known. This module decides which text is such a log, and which lines of it are jobs that can be simulated. A line that is cut
off, or has anything but numbers, refuses the log with file and line. A job that says too little (no submission, no run time,
no processors), or has a negative number other than -1 there, is left out, and counted with the reason: logs of real machines
have such jobs, of users who cancelled them before they started. `licorne.workload.traces.batch` makes a workload of a log.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import isfinite, nan
from pathlib import Path
from typing import Protocol

import msgspec

from licorne._bounded import lines
from licorne._files import opened
from licorne.workload.workload import WorkloadError, unpacked_lines

ENDINGS = (".swf", ".swf.gz")
COLUMNS = 18
PARTS = (2, 3, 4)
"""The states of a line that tells only a part of a job, which has a line of its own (a job that was swapped out)."""
PART = "a part of a job, which has a line of its own"
TIME_MAX_S = 9_000_000_000
"""Latest time in seconds, as in a workload."""
PROCESSORS_MAX = 10_000_000
_LABEL = re.compile(r";\s*([A-Za-z][\w ]*?)\s*:\s*(.*?)\s*$")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
LINE_MAX = 100_000
"""Bytes of a line; a longer one is no line of a log."""


class SwfJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of a log: its 18 columns, in their order; -1: not known. Times in seconds, memory in KiB for each processor."""

    number: int
    submit_s: float
    wait_s: float = -1
    run_s: float = -1
    allocated: int = -1
    cpu_s: float = -1
    used_memory_kib: float = -1
    requested: int = -1
    requested_s: float = -1
    requested_memory_kib: float = -1
    status: int = -1
    user: int = -1
    group: int = -1
    executable: int = -1
    queue: int = -1
    partition: int = -1
    preceding: int = -1
    think_s: float = -1

    @property
    def processors(self) -> int:
        """The processors that the job needs: allocated or requested, whichever is more."""
        return max(self.allocated, self.requested)

    @property
    def estimate_s(self) -> float:
        """The requested time; the run time where none was requested."""
        return self.requested_s if self.requested_s > 0 else self.run_s


class SwfSkip(msgspec.Struct):
    """A reason why jobs were left out, their number, and the line of the first."""

    reason: str
    jobs: int
    first_line: int


class SwfLog(msgspec.Struct, kw_only=True):
    """A log: the labels of its header in order, and its jobs in the order of the file.

    `lines` are the line numbers of the jobs; `skipped` says what was left out and why. Both are empty unless it was read.
    """

    file: str
    labels: list[tuple[str, str]]
    jobs: list[SwfJob]
    lines: list[int] = []
    skipped: list[SwfSkip] = []

    def label(self, name: str) -> str:
        """Return the text of a label of the header, its first one; "" if there is none."""
        return next((text for known, text in self.labels if known.lower() == name.lower()), "")

    def number(self, name: str) -> int:
        """Return the number with which the text of a label begins; 0 if there is none."""
        found = re.match(r"[0-9]{1,8}(?![0-9])", self.label(name))
        return int(found[0]) if found is not None else 0

    @property
    def stands_for(self) -> int:
        """How many jobs the log has: those that were read and those that were left out, but no parts of jobs."""
        left_out = sum(skip.jobs for skip in self.skipped if skip.reason != PART)
        return left_out + sum(job.status not in PARTS for job in self.jobs)


_NAMES = SwfJob.__struct_fields__
_WHOLE = frozenset(field.name for field in msgspec.structs.fields(SwfJob) if field.type in (int, "int"))


class Writable(Protocol):
    """What bytes are written to: a file, or one that compresses them."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""


def is_swf(path: Path) -> bool:
    """Whether a name is that of a log: it ends in .swf or .swf.gz."""
    return path.name.lower().endswith(ENDINGS)


def read_swf(path: Path, *, whole: bool = False, jobs_max: int = 2_000_000) -> SwfLog:
    """Read a log (`.gz`: compressed).

    `whole`: also jobs that cannot be simulated are kept, for readers that have rules of their own for them.

    Raises:
        WorkloadError: a line is not one of a log, a job stands twice, there are more than `jobs_max`, or a compressed file is
            cut off: with file and line.
        OSError: the file cannot be read.
    """
    with opened_lines(path) as stream:
        return parse_swf(stream, file=str(path), whole=whole, jobs_max=jobs_max)


def parse_swf(
    stream: Iterable[bytes], *, file: str = "<swf>", whole: bool = False, jobs_max: int = 2_000_000
) -> SwfLog:
    """Read a log from lines of bytes; `file` is its name in messages. Raises WorkloadError as `read_swf`."""
    log = SwfLog(file=file, labels=[], jobs=[])
    skipped: dict[str, SwfSkip] = {}
    known: dict[int, int] = {}
    for number, raw in enumerate(stream, 1):
        if len(raw) > LINE_MAX:
            raise WorkloadError(f"{file}:{number}: a line of {len(raw):,} bytes; is this a log in SWF?")
        text = raw.decode("utf-8", "replace").strip()
        if text.startswith(";"):
            label = _LABEL.match(text)
            if label is not None:
                log.labels.append((label[1], label[2]))
            continue
        if not text:
            continue
        job = _job(text, f"{file}:{number}")
        reason = "" if whole else unusable(job)
        if reason:
            skipped.setdefault(reason, SwfSkip(reason, 0, number)).jobs += 1
            continue
        if job.number in known:
            raise WorkloadError(f"{file}:{number}: number: job {job.number} stands in line {known[job.number]} already")
        known[job.number] = number
        if len(log.jobs) >= jobs_max:
            raise WorkloadError(f"{file}:{number}: more than {jobs_max:,} jobs; --max-asks allows more")
        log.jobs.append(job)
        log.lines.append(number)
    log.skipped = list(skipped.values())
    return log


def unusable(job: SwfJob) -> str:
    """Return why a job cannot be simulated; "" if it can be."""
    if job.status in PARTS:
        return PART
    for value, what in ((job.submit_s, "submission"), (job.run_s, "run time")):
        if value < 0:
            return f"the {what} is not known" if value == -1 else f"the {what} is negative"
    if job.processors < 1:
        return "it has no processors"
    if job.requested_s < 0 and job.requested_s != -1:
        return "the requested time is negative"
    return ""


def write_jobs(stream: Writable, labels: Iterable[tuple[str, str]], jobs: Iterable[SwfJob]) -> None:
    """Write the labels of a header, and then jobs, which may be made while they are written."""
    for name, text in labels:
        stream.write(f"; {name}: {' '.join(text.split())}\n".encode())
    for job in jobs:
        stream.write((" ".join(_text(getattr(job, name)) for name in _NAMES) + "\n").encode())


def _job(text: str, place: str) -> SwfJob:
    """Return the job of a line."""
    words = text.split()
    if len(words) != COLUMNS:
        guess = "; is the line cut off?" if len(words) < COLUMNS else ""
        raise WorkloadError(f"{place}: has {len(words)} numbers, where a job has {COLUMNS}{guess}")
    return SwfJob(**{name: _number(name, word, place) for name, word in zip(_NAMES, words, strict=True)})


def _number(name: str, word: str, place: str) -> int:
    """Return the number of a column: integral where it is one."""
    value = float(word) if DECIMAL.fullmatch(word) is not None else nan
    if not isfinite(value):
        raise WorkloadError(f"{place}: {name}: {word[:40]!r} is no number")
    if name in _WHOLE and value != int(value):
        raise WorkloadError(f"{place}: {name}: {word[:40]} is not a whole number")
    bound = PROCESSORS_MAX if name in ("allocated", "requested") else TIME_MAX_S if name.endswith("_s") else 2**53
    if abs(value) > bound:
        raise WorkloadError(f"{place}: {name}: {word[:40]} is above {bound:,}")
    return int(value) if value == int(value) else value  # type: ignore[return-value]  # a column of times may be a float


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


@contextmanager
def opened_lines(path: Path) -> Iterator[Iterable[bytes]]:
    """Open a file (`.gz`: compressed); yield its lines, of which one that is longer than `LINE_MAX` comes in pieces."""
    with opened(path, from_shell=True) as stream:
        if path.name.lower().endswith(".gz"):
            yield unpacked_lines(gzip.GzipFile(fileobj=stream), str(path), line_max=LINE_MAX)
        else:
            yield lines(stream.readline, LINE_MAX)
