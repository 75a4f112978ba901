"""The outcome of a simulation as a log in the Standard Workload Format: what a batch system would have written.

A line is an application. It arrives with its first pod, starts with the first of its pods that starts, and ends with the last
that ends; of a pod that was evicted and created again the last run counts. Its processors are those of all its pods that
were placed, or if none was, of all; `vcore` counts, other resources have no column. So an application whose pods come one
after the other looks as if it had them all at once: logs of batch systems know no such jobs.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from licorne.sim.finished import finished_file, opened
from licorne.sim.lines import Ask, Node
from licorne.sim.observer import Observer
from licorne.sim.pods import COMPLETED
from licorne.sim.traces.batch import CORE
from licorne.sim.traces.swf import SwfJob, SwfLog, write_swf

if TYPE_CHECKING:
    from licorne.sim.pods import PodRecord
    from licorne.sim.workload import Workload

ENDED, FAILED, CANCELLED, UNKNOWN = 1, 0, 5, -1
"""States of a job: it ended by itself; it was ended; it never ran; it runs to the end of the simulation."""
_JOB = re.compile(r"job-(0|[1-9][0-9]{0,8})")


class _Application(msgspec.Struct):
    """What is known of an application so far; times in seconds."""

    user: str
    queue: str
    arrived_s: float
    started_s: float | None = None
    ended_s: float | None = None
    placed: int = 0
    asked: int = 0
    requested_s: float = -1
    outcomes: set[str] = msgspec.field(default_factory=set)
    first_line: int = sys.maxsize  # of those of its pods, in the workload


@contextmanager
def swf_file(path: Path, outcome: SwfOutcome) -> Iterator[None]:
    """Write the log of an outcome to a file (`.gz`: compressed), which gets its name if the `with` block ends without an error.

    Raises:
        OSError: the file cannot be written; before the block begins, if possible.
    """
    with finished_file(path) as part, opened(part, path) as stream:
        yield
        if path.name.lower().endswith(".gz"):
            # Without a name and a time, so that the same log is the same file.
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                write_swf(packed, outcome.log())
        else:
            write_swf(stream, outcome.log())


class SwfOutcome(Observer):
    """An observer that collects what became of applications; `log` returns it when the simulation has ended."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._asks: dict[str, tuple[int, Ask]] = {
            line.key: (number, line) for number, line in enumerate(workload.lines) if type(line) is Ask
        }
        self._applications: dict[str, _Application] = {}

    def on_pod(self, record: PodRecord) -> None:
        """Add a pod to its application."""
        known = self._applications.get(record.application)
        if known is None:
            known = self._applications[record.application] = _Application(record.user, record.queue, record.arrival_s)
        known.arrived_s = min(known.arrived_s, record.arrival_s)
        known.outcomes.add(record.outcome)
        asked = self._asks.get(record.key) or self._asks.get(record.key.rpartition("~")[0])
        if asked is not None:
            number, ask = asked
            known.first_line = min(known.first_line, number)
            vcore = ask.res.get("vcore", 0) * record.pods
            known.asked += vcore
            known.placed += vcore if record.start_s is not None else 0
            if ask.requested_s is not None:
                known.requested_s = max(known.requested_s, ask.requested_s)
        if record.start_s is not None:
            known.started_s = min(record.start_s, record.start_s if known.started_s is None else known.started_s)
        if record.end_s is not None:
            known.ended_s = max(record.end_s, record.end_s if known.ended_s is None else known.ended_s)

    def log(self) -> SwfLog:
        """Return the log: its jobs in the order of submission; those of the same moment in the order of the workload.

        They have the numbers of the log that was simulated, if it was one, else numbers from 1.
        """
        # Pods are told as they end, so the order in which applications became known says nothing about submission.
        ordered = sorted(self._applications.items(), key=lambda one: (one[1].arrived_s, one[1].first_line))
        users = _numbers(known.user for _, known in ordered)
        queues = _numbers(known.queue for _, known in ordered)
        names = [_JOB.fullmatch(name) for name, _ in ordered]
        jobs = [
            _job(int(name[1]) if name is not None and all(names) else place, known, users, queues)
            for place, ((_, known), name) in enumerate(zip(ordered, names, strict=True), 1)
        ]
        return SwfLog(file="", labels=self._labels(len(jobs), users, queues), jobs=jobs)

    def _labels(self, jobs: int, users: Mapping[str, int], queues: Mapping[str, int]) -> list[tuple[str, str]]:
        nodes = [line for line in self._workload.lines if type(line) is Node]
        processors = sum(node.res.get("vcore", 0) for node in nodes) // CORE
        return [
            ("Version", "2.2"),
            ("Computer", f"simulated: {self._workload.name}"),
            ("MaxJobs", str(jobs)),
            ("MaxRecords", str(jobs)),
            ("UnixStartTime", "0"),
            ("MaxNodes", str(len(nodes))),
            ("MaxProcs", str(processors)),
            *(("Queue", f"{number} {name or '(none)'}") for name, number in queues.items()),
            *(("Note", f"user {number} is {name or '(none)'}") for name, number in users.items()),
        ]


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Return a number from 1 for each name, in the order in which names come first."""
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


def _job(number: int, known: _Application, users: Mapping[str, int], queues: Mapping[str, int]) -> SwfJob:
    started, ended = known.started_s, known.ended_s
    over = started is not None and ended is not None and "running" not in known.outcomes
    placed = -(-known.placed // CORE)
    return SwfJob(
        number=number,
        submit_s=known.arrived_s,
        wait_s=-1 if started is None else round(started - known.arrived_s, 6),
        run_s=round(ended - started, 6) if over and started is not None and ended is not None else -1,
        allocated=placed if started is not None else -1,
        requested=-(-known.asked // CORE),
        requested_s=known.requested_s,
        status=_status(known.outcomes, started=started is not None),
        user=users[known.user],
        queue=queues[known.queue],
    )


def _status(outcomes: set[str], *, started: bool) -> int:
    if not started:
        return CANCELLED
    if "running" in outcomes:
        return UNKNOWN
    return ENDED if outcomes.issubset(COMPLETED) else FAILED
