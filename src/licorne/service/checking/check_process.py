"""The process in which long configurations are read and checked: one job after the other, each within bounds.

It is started by `licorne.service.checking.checks`, gets jobs on standard input, answers on standard output, and ends when its
input does. Both are frames: 8 bytes of length, then a pickle. It has its own limit on memory, and gives way to the
scheduler where they share a processor.
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

from .queue_texts import fault_of_count, read_counted, read_queues

MEMORY_BYTES = 1 << 30
"""Address space of the process. 10,000 queues take 90 MB, and 4 MiB of text that means nothing up to 1 GB."""
RETIRE_BYTES = 256 << 20
"""Resident memory from which on the process ends after its job. What it has now: on Linux, the peak that the system keeps
of a process begins with that of the process that started it."""
LENGTH = struct.Struct(">Q")

Kind = Literal["counted", "queues", "report"]


class Job(msgspec.Struct, frozen=True):
    """A text, and what is to be known of it.

    `kind`: `counted`: what it means, if it has no more than `most` queues; `queues`: the same, and that it can be applied;
    `report`: all its faults and warnings, that of too many queues included. `seconds`: after so long nobody waits any more.
    """

    kind: Kind
    text: str
    most: int
    file: str
    seconds: float


class Answer(msgspec.Struct, frozen=True):
    """What was found: a configuration or a report, of a refused configuration with its faults; None: no memory was left.

    `last`: the process ends now.
    """

    found: Configuration | Report | None
    last: bool = False


def done(job: Job) -> Configuration | Report:
    """Read and check the text of a job within the calling process, and return what was found."""
    if job.kind == "report":
        report, found = examine(job.text, file=job.file)
        fault = None if found is None else fault_of_count(found, job.most, job.file)
        return report if fault is None else Report((fault,), report.warnings)
    read = read_queues if job.kind == "queues" else read_counted
    try:
        return read(job.text, job.most, file=job.file)
    except ConfigError as error:
        return Report(error.problems)


def main() -> None:
    """Do jobs until there are no more."""
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
    """Write a frame."""
    data = pickle.dumps(frame, 5)
    out.write(LENGTH.pack(len(data)) + data)
    out.flush()


def receive(source: IO[bytes]) -> Any:
    """The next frame; None at the end, or where a frame is cut."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    data = source.read(size)
    return pickle.loads(data) if len(data) == size else None  # noqa: S301  from ourselves


def _set_limits() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal it is meant for the service, which ends this process
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  not everywhere

        with contextlib.suppress(OSError, ValueError):  # it is not allowed, or less is allowed anyway
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        with contextlib.suppress(OSError):
            os.nice(5)


def _end_after(seconds: float) -> None:
    """End the process then, by a signal; 0: no longer. Should the service die, nobody else does it."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


__all__ = ["Answer", "Job", "Kind", "done", "main", "receive", "send"]
