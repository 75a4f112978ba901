"""The process in which long configurations are read and checked: one job after the other, with bounded time and memory.

`licorne.grpc.service.checking.checks` starts it. It reads jobs from standard input, writes answers to standard output, and
ends when its input does. Jobs and answers are frames: 8 bytes of length, then a pickle. The process has its own limit
on memory, and a lower priority than the scheduler, with which it may share a processor.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import struct
import sys
from typing import IO, Any, Literal

import msgspec

from licorne._machine import rss_bytes
from licorne.config import ConfigError, Configuration, Report, examine
from licorne.config.counting import fault_of_count, load_counted

from .queue_texts import read_queues

MEMORY_BYTES = 1 << 30
"""Limit on the address space of the process. 10,000 queues take 90 MB, and 4 MiB of meaningless text up to 1 GB."""
RETIRE_BYTES = 256 << 20
"""Resident memory above which the process ends after its job. The current amount counts, not the peak: on Linux the
peak of a process starts at that of its parent."""
LENGTH = struct.Struct(">Q")

Kind = Literal["counted", "queues", "report"]


class Job(msgspec.Struct, frozen=True):
    """A text of a configuration, and what to do with it.

    `kind`: `counted`: read it, at most `most` queues; `queues`: read it, and check also that it can be applied;
    `report`: list all faults and warnings, too many queues among them. `seconds`: the process ends itself if the job
    takes longer.
    """

    kind: Kind
    text: str
    most: int
    file: str
    seconds: float


class Answer(msgspec.Struct, frozen=True):
    """The result of a job.

    `found`: a configuration, or a report, which for a refused configuration has its faults; None: memory ran out.
    `last`: the process ends after this answer.
    """

    found: Configuration | Report | None
    last: bool = False


def done(job: Job) -> Configuration | Report:
    """Read and check the text of a job within the calling process, and return what was found."""
    if job.kind == "report":
        report, found = examine(job.text, file=job.file)
        fault = None if found is None else fault_of_count(found, job.most, job.file)
        return report if fault is None else Report((fault,), report.warnings)
    read = read_queues if job.kind == "queues" else load_counted
    try:
        return read(job.text, job.most, file=job.file)
    except ConfigError as error:
        return Report(error.problems)


def main() -> None:
    """Run jobs until the input ends, or the process has used too much memory."""
    _set_limits()
    jobs, answers = sys.stdin.buffer, sys.stdout.buffer
    while (job := receive(jobs)) is not None:
        _end_after(job.seconds)
        try:
            answer = Answer(done(job), last=rss_bytes() > RETIRE_BYTES)
        except MemoryError:
            answer = Answer(None, last=True)
        send(answers, answer)
        if answer.last:
            return
        del job, answer
        _end_after(0)


def send(out: IO[bytes], frame: Any) -> None:
    """Write an object as a frame."""
    data = pickle.dumps(frame, 5)
    out.write(LENGTH.pack(len(data)) + data)
    out.flush()


def receive(source: IO[bytes]) -> Any:
    """Read the object in the next frame; None at the end of the input, or if the frame is cut off."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    data = source.read(size)
    return pickle.loads(data) if len(data) == size else None  # noqa: S301  the other end is this program too


def _set_limits() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the service, which then ends this process
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  not available on Windows

        with contextlib.suppress(OSError, ValueError):  # not permitted, or a lower limit is in force
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        with contextlib.suppress(OSError):
            os.nice(5)


def _end_after(seconds: float) -> None:
    """Let a signal end the process after this time; 0 cancels that. It works even when the service has died."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


__all__ = ["Answer", "Job", "Kind", "done", "main", "receive", "send"]
