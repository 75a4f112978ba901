"""Batch logs as workloads: a log in the Standard Workload Format (`licorne.sim.traces.swf`) as nodes, applications and asks.

A job becomes an application, in one of three forms:

    gang    an atomic gang of as many pods as the job has processors: they start together, as those of a parallel job do
    asks    as many asks of one processor, which the scheduler may place one by one
    one     one ask of all processors, on a machine that is one node: a pool of processors without any placement

The machine has `MaxProcs` processors, or as many as it has nodes (`MaxNodes`), or as the largest job needs: the header of a
log says the first two. Its processors are spread over `MaxNodes` nodes, if the header says that, else over nodes of one
processor each.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from licorne.sim.lines import App, Ask, Line, Node, TaskGroup
from licorne.sim.traces.swf import SwfJob, SwfLog
from licorne.sim.workload import ASKS_MAX, Mode, Workload, WorkloadError

JobsAs = Literal["gang", "asks", "one"]
"""What a job of several processors becomes."""
CORE = 1000
"""A processor, in thousandths of a core."""
NODES_MAX = 100_000
QUEUE = "root.jobs"
GROUP = "job"


def batch_workload(
    log: SwfLog, *, jobs_as: JobsAs = "gang", order: str = "", backfill: bool = False, asks_max: int = ASKS_MAX
) -> Workload:
    """Return a log as a timed workload. `order` and `backfill` are the properties of its queues for the simulator.

    Raises:
        WorkloadError: the log has no jobs, or stands for more asks, or more nodes, than anybody would simulate on purpose.
    """
    if not log.jobs:
        raise WorkloadError(f"{log.file}: there are no jobs that can be simulated{_skipped(log)}")
    asks = 0
    for job, line in zip(log.jobs, log.lines or [0] * len(log.jobs), strict=True):
        asks += 1 if jobs_as == "one" else job.processors
        if asks > asks_max:
            raise WorkloadError(
                f"{log.file}:{line}: with it there are {asks:,} asks, and no more than {asks_max:,} are simulated; "
                "--max-asks allows more"
            )
    numbered = sorted(zip(log.jobs, log.lines or [0] * len(log.jobs), strict=True), key=lambda one: one[0].submit_s)
    lines: list[Line] = machine(log, jobs_as)
    numbers = [0] * len(lines)
    for job, line in numbered:
        made = job_lines(job, jobs_as)
        lines += made
        numbers += [line] * len(made)
    return Workload(
        name=f"{log.file} ({jobs_as})",
        mode=Mode.TIMED,
        config=queues(sorted({queue_of(job) for job in log.jobs}), order=order, backfill=backfill),
        lines=lines,
        notes=list(_notes(log, jobs_as)),
        file=log.file,
        numbers=numbers,
    )


def machine(log: SwfLog, jobs_as: JobsAs) -> list[Line]:
    """Return the nodes of the machine of a log.

    Raises:
        WorkloadError: they are too many.
    """
    largest = max((job.processors for job in log.jobs), default=1)
    processors = log.number("MaxProcs") or log.number("MaxNodes") or largest
    number = 1 if jobs_as == "one" else min(log.number("MaxNodes") or processors, processors)
    if number > NODES_MAX:
        raise WorkloadError(
            f"{log.file}: the machine has {number:,} nodes, and no more than {NODES_MAX:,} are simulated"
        )
    each, more = divmod(processors, number)
    digits = len(str(number))
    return [
        Node(id=f"node-{index:0{digits}}", res={"vcore": (each + (index <= more)) * CORE})
        for index in range(1, number + 1)
    ]


def job_lines(job: SwfJob, jobs_as: JobsAs) -> list[Line]:
    """Return a job as an application and its asks."""
    name = f"job-{job.number}"
    number = 1 if jobs_as == "one" else job.processors
    each = {"vcore": CORE * (job.processors if jobs_as == "one" else 1)}
    gang = jobs_as == "gang" and number > 1
    application = App(
        at=job.submit_s,
        id=name,
        queue=queue_of(job),
        user="nobody" if job.user < 0 else f"user-{job.user}",
        groups=() if job.group < 0 else (f"group-{job.group}",),
        gang=(TaskGroup(name=GROUP, min=number, res=each),) if gang else (),
        atomic=gang,
    )
    asks = (
        Ask(
            at=job.submit_s,
            key=name if number == 1 else f"{name}-{index}",
            app=name,
            res=each,
            group=GROUP if gang else "",
            duration_s=job.run_s,
            requested_s=job.estimate_s,
        )
        for index in range(1, number + 1)
    )
    return [application, *asks]


def queue_of(job: SwfJob) -> str:
    """Return the queue of a job: that of its number, or one for all jobs of which it is not known."""
    return QUEUE if job.queue < 0 else f"root.queue-{job.queue}"


def queues(paths: Iterable[str], *, order: str = "", backfill: bool = False) -> str:
    """Return a configuration with these queues below root, in which everybody may submit."""
    rules = f"simulation.order: {order}, simulation.backfill: {'enabled' if backfill else 'disabled'}"
    properties = f"            properties: {{{rules}}}\n" if order else ""
    leaves = "".join(f"          - name: {path.removeprefix('root.')}\n{properties}" for path in paths)
    head = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n"
    return head + leaves


def _notes(log: SwfLog, jobs_as: JobsAs) -> Iterable[str]:
    for skip in log.skipped:
        yield f"{skip.jobs:,} job(s) left out: {skip.reason} ({log.file}:{skip.first_line})"
    if any(earlier.submit_s > later.submit_s for earlier, later in pairwise(log.jobs)):
        yield "the jobs are not in the order of their submission in the log; they arrive in that order here"
    dependent = sum(job.preceding > 0 for job in log.jobs)
    if dependent:
        yield f"{dependent:,} job(s) name a preceding job, for which they do not wait here: they arrive at their submission"
    if any(job.used_memory_kib > 0 or job.requested_memory_kib > 0 for job in log.jobs):
        yield "memory is not modelled: a log does not say how much its machine has"
    if jobs_as == "one":
        yield "the machine is one node: processors are a pool, and no job waits because they lie apart"


def _skipped(log: SwfLog) -> str:
    return "".join(f"; {skip.jobs:,} left out: {skip.reason} (line {skip.first_line})" for skip in log.skipped)
