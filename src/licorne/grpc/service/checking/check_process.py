"""A process that reads and checks one long configuration, with bounded time and memory.

`licorne.grpc.service.checking.checks` starts it, gives it a `Job` on standard input and reads what it found from standard
output, both as pickles. The process has its own limit on memory, and a lower priority than the scheduler, with which it
may share a processor.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from typing import Literal

import msgspec

from licorne.config import ConfigError, Configuration, Report, examine
from licorne.config.counting import fault_of_count, load_counted

from .queue_texts import read_queues

MEMORY_BYTES = 1 << 30
"""Limit on the address space of the process. 10,000 queues take 90 MB, and 4 MiB of meaningless text up to 1 GB."""

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


def done(job: Job) -> Configuration | Report:
    """Read and check the text of a job within the calling process. Of a refused configuration, the report has its faults."""
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
    """Do the job on standard input. If memory runs out, the process fails."""
    _set_limits()
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301  the other end is this program too
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, job.seconds)  # this ends the process even when the service has died
    pickle.dump(done(job), sys.stdout.buffer)


def _set_limits() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the service, which then ends this process
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  not available on Windows

        with contextlib.suppress(OSError, ValueError):  # not permitted, or a lower limit is in force
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        with contextlib.suppress(OSError):
            os.nice(5)
