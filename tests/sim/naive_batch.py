"""A batch system in a few lines, written from docs/spec/experiments.md, A.3 to A.5, to compare the simulator with."""

from __future__ import annotations

from math import log2, log10
from typing import Any, NamedTuple


class BatchJob(NamedTuple):
    """A job: its number, submission, run time, requested time (all in seconds) and processors."""

    number: int
    submit: int
    run: int
    requested: int
    processors: int


def key(order: str, job: BatchJob) -> Any:
    """A.4."""
    s, r, p = job.submit, job.requested, job.processors
    if order == "fcfs":
        return s
    if order == "sjf":
        return (r, s)
    if order == "f1":
        return log10(r if r > 0 else 0.1) * p + 870 * log10(s if s > 0 else 0.1)
    if order == "wfp3":
        return p * ((1 + s) / r) ** 3
    return (1 + s) / (log2(p + 1e-15) * r)


def starts(jobs: list[BatchJob], processors: int, order: str, *, backfill: bool) -> dict[int, int]:
    """Return when each job starts, by its number. Jobs are sorted by submission, and none needs more than there is."""
    now = jobs[0].submit
    coming = list(jobs[1:])
    queue = [jobs[0]]
    running: list[tuple[int, int, BatchJob]] = []  # end, number of the start, job
    started: dict[int, int] = {}
    free = processors

    def start(job: BatchJob) -> None:
        nonlocal free
        started[job.number] = now
        free -= job.processors
        running.append((now + job.run, len(started), job))
        queue.remove(job)

    def event() -> None:
        nonlocal now, free
        end = min(running) if running else None
        if coming and (end is None or coming[0].submit <= end[0]):
            now = coming[0].submit
            queue.append(coming.pop(0))
        else:
            assert end is not None
            running.remove(end)
            now, free = end[0], free + end[2].processors

    while queue or coming:
        if not queue:
            event()
            continue
        queue.sort(key=lambda job: key(order, job))
        head = queue[0]
        limit = None
        while head.processors > free:
            if backfill:
                if limit is None:
                    room = free
                    for _, _, job in sorted(running, key=lambda one: started[one[2].number] + one[2].requested):
                        room += job.processors
                        limit = started[job.number] + job.requested
                        if room >= head.processors:
                            break
                    assert limit is not None
                queue.sort(key=lambda job: job.submit)
                for job in queue.copy():  # started ones leave the queue
                    if job.processors <= free and now + job.requested < limit:
                        start(job)
            event()
        start(head)
    return started
