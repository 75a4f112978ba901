"""The outcome of a simulation as a log in the Standard Workload Format: what a batch system would have written.

A line is an application. It arrives with its first pod, starts with the first of its pods that starts, and ends with the last
that ends; of a pod that was evicted and created again the last run counts. Its processors are those of all its pods that
were placed, or if none was, of all; `vcore` counts, other resources have no column. So an application whose pods come one
after the other looks as if it had them all at once: logs of batch systems know no such jobs.

The header comes first and gives a number to each user and queue, and an application may get more pods at any time. So lines are
written when the simulation has ended, and until then a few numbers are kept of each application; of its asks, where they are
made while they are simulated, only those of pods that are alive.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from licorne.sim.observer import Observer
from licorne.sim.pods import COMPLETED, PodRecord
from licorne.workload.finished import written
from licorne.workload.lines import Ask, Line, Node
from licorne.workload.traces.batch import CORE
from licorne.workload.traces.swf import SwfJob, Writable, write_jobs
from licorne.workload.workload import LineStream, Workload

ENDED, FAILED, CANCELLED, UNKNOWN = 1, 0, 5, -1
"""States of a job: it ended by itself; it was ended; it never ran; it runs to the end of the simulation."""
_JOB = re.compile(r"job-(0|[1-9][0-9]{0,8})")


class _Application(msgspec.Struct, gc=False):
    """What the pods that have been told so far say of their application, for its line in the log; times in seconds.

    `runs`: a pod of it runs at the end; `failed`: one of its pods has ended otherwise than by itself, or never ran.
    """

    user: str
    queue: str
    arrived_s: float
    started_s: float | None = None
    ended_s: float | None = None
    placed: int = 0
    asked: int = 0
    requested_s: float = -1
    runs: bool = False
    failed: bool = False
    first_line: int = sys.maxsize  # of those of its pods, in the workload


@contextmanager
def swf_file(path: Path, outcome: SwfOutcome) -> Iterator[None]:
    """Write the log of an outcome to a file (`.gz`: compressed), which gets its name if the `with` block ends without an error.

    Raises:
        OSError: the file cannot be written; before the block begins, if possible.
    """
    with written(path) as stream:
        yield
        outcome.write(stream)


class SwfOutcome(Observer):
    """An observer that collects what became of applications; `write` writes their log when the simulation has ended."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._asks = _Asks(workload.lines)
        self._applications: dict[str, _Application] = {}

    def on_pod(self, record: PodRecord) -> None:
        """Add a pod to its application."""
        known = self._applications.get(record.application)
        if known is None:
            known = self._applications[record.application] = _Application(record.user, record.queue, record.arrival_s)
        known.arrived_s = min(known.arrived_s, record.arrival_s)
        known.runs |= record.outcome == "running"
        known.failed |= record.outcome not in COMPLETED
        asked = self._asks.of(record)
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

    def write(self, stream: Writable) -> None:
        """Write the log: its jobs in the order of submission; those of the same moment in the order of the workload.

        They have the numbers of the log that was simulated, if it was one, else numbers from 1.
        """
        # Pods are told as they end, so the order in which applications became known says nothing about submission.
        # Two sorts, of which the second keeps the order of the first, need no pair of keys for each application.
        ordered = sorted(self._applications, key=lambda name: self._applications[name].first_line)
        ordered.sort(key=lambda name: self._applications[name].arrived_s)
        users = _numbers(self._applications[name].user for name in ordered)
        queues = _numbers(self._applications[name].queue for name in ordered)
        numbered = all(map(_JOB.fullmatch, ordered))
        jobs = (
            _job(int(name.removeprefix("job-")) if numbered else place, self._applications[name], users, queues)
            for place, name in enumerate(ordered, 1)
        )
        write_jobs(stream, self._labels(len(ordered), users, queues), jobs)

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


class _Asks:
    """Finds the ask that a pod is of, and the number of its line in the workload.

    Lines that are in memory anyway are looked at once. Lines that are made while they are read are read a second time, no
    further than the simulation has come, and an ask is forgotten when all its pods have been told.
    """

    def __init__(self, lines: list[Line] | LineStream) -> None:
        self._made = isinstance(lines, LineStream)
        self._lines = enumerate(lines)
        self._known: dict[str, tuple[int, Ask]] = {}
        self._left: dict[str, int] = {}  # how many pods of an ask that repeats are still to be told
        if not self._made:
            self._read_to(())

    def of(self, record: PodRecord) -> tuple[int, Ask] | None:
        """Return the number of the line of a pod's ask, and the ask; None if the workload has none.

        A pod that was created again may have the key of its ask with `~` and a number behind it.
        """
        keys = (record.key, record.key.rpartition("~")[0])
        found = next((key for key in keys if key in self._known), None) or self._read_to(keys)
        if found is None:
            return None
        number, ask = self._known[found]
        if self._made:
            left = self._left.pop(found, ask.max) - record.pods
            if left > 0:
                self._left[found] = left
            else:
                del self._known[found]
        return number, ask

    def _read_to(self, keys: Collection[str]) -> str | None:
        """Read on up to an ask with one of these keys, and return its key; None if no further line is such an ask."""
        for number, line in self._lines:
            if type(line) is Ask:
                self._known[line.key] = number, line
                if line.key in keys:
                    return line.key
        return None


def _numbers(names: Iterable[str]) -> dict[str, int]:
    """Return a number from 1 for each name, in the order in which names come first."""
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


def _job(number: int, known: _Application, users: Mapping[str, int], queues: Mapping[str, int]) -> SwfJob:
    started, ended = known.started_s, known.ended_s
    over = started is not None and ended is not None and not known.runs
    placed = -(-known.placed // CORE)
    return SwfJob(
        number=number,
        submit_s=known.arrived_s,
        wait_s=-1 if started is None else round(started - known.arrived_s, 6),
        run_s=round(ended - started, 6) if over and started is not None and ended is not None else -1,
        allocated=placed if started is not None else -1,
        requested=-(-known.asked // CORE),
        requested_s=known.requested_s,
        status=_status(known),
        user=users[known.user],
        queue=queues[known.queue],
    )


def _status(known: _Application) -> int:
    if known.started_s is None:
        return CANCELLED
    if known.runs:
        return UNKNOWN
    return FAILED if known.failed else ENDED
