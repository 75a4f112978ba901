"""Batch logs as workloads: a log in the Standard Workload Format (`licorne.workload.traces.swf`) as nodes, applications and asks.

A job becomes an application, in one of three forms:

    gang    an atomic gang of as many pods as the job has processors: they start together, as those of a parallel job do
    asks    as many asks of one processor, which the scheduler may place one by one
    one     one ask of all processors, on a machine that is one node: a pool of processors without any placement

The machine has `MaxProcs` processors, or as many as it has nodes (`MaxNodes`), or as the largest job needs: the header of a
log says the first two. Its processors are spread over `MaxNodes` nodes, if the header says that, else over nodes of one
processor each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from licorne._wording import counted
from licorne.workload.lines import App, Ask, Line, Node, TaskGroup
from licorne.workload.traces.swf import SwfJob, SwfLog, SwfSkip
from licorne.workload.workload import ASKS_MAX, LineStream, Mode, OptionError, Workload, WorkloadError

JobsAs = Literal["gang", "asks", "one"]
"""What a job of several processors becomes."""
CORE = 1000
"""A processor, in thousandths of a core."""
NODES_MAX = 100_000
QUEUE = "root.jobs"
GROUP = "job"


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A parallel job: `units` processors, GPUs or pods, from its submission on for `run_s` seconds; `line`: where it stands, 0: nowhere.

    `each`: what a unit amounts to, where that is not the same for all jobs.
    """

    name: str
    line: int
    queue: str
    user: str
    groups: tuple[str, ...] = ()
    units: int
    each: dict[str, int] | None = None
    submit_s: float
    run_s: float
    estimate_s: float


def batch_workload(
    log: SwfLog, *, jobs_as: JobsAs = "gang", order: str = "", backfill: bool = False, asks_max: int = ASKS_MAX
) -> Workload:
    """Return a log as a timed workload. `order` and `backfill` are the properties of its queues for the simulator.

    Raises:
        WorkloadError: the log has no jobs, or stands for more asks, or more nodes, than anybody would simulate on purpose.
    """
    if not log.jobs:
        raise WorkloadError(f"{log.file}: there are no jobs that can be simulated{skip_words(log.skipped)}")
    jobs = [parallel(job, line) for job, line in zip(log.jobs, log.lines or [0] * len(log.jobs), strict=True)]
    return Workload(
        name=f"{log.file} ({jobs_as})",
        mode=Mode.TIMED,
        config=queues(sorted({queue_of(job) for job in log.jobs}), order=order, backfill=backfill),
        lines=JobLines(log.file, machine(log, jobs_as), jobs, jobs_as, {"vcore": CORE}, asks_max),
        notes=list(_notes(log, jobs_as)),
    )


def machine(log: SwfLog, jobs_as: JobsAs) -> list[Line]:
    """Return the nodes of the machine of a log.

    Raises:
        WorkloadError: they are too many.
    """
    largest = max((job.processors for job in log.jobs), default=1)
    processors = log.number("MaxProcs") or log.number("MaxNodes") or largest
    number = 1 if jobs_as == "one" else min(log.number("MaxNodes") or processors, processors)
    return spread(log.file, processors, number, {"vcore": CORE})


def spread(file: str, units: int, number: int, unit: dict[str, int]) -> list[Line]:
    """Return this number of nodes, over which the units of a machine are spread evenly; `unit` is what one amounts to.

    Raises:
        WorkloadError: the nodes are too many.
    """
    if number > NODES_MAX:
        raise WorkloadError(f"{file}: the machine has {number:,} nodes, and no more than {NODES_MAX:,} are simulated")
    each, more = divmod(units, number)
    digits = len(str(number))
    return [
        Node(id=f"node-{index:0{digits}}", res=_times(each + (index <= more), unit)) for index in range(1, number + 1)
    ]


def parallel(job: SwfJob, line: int = 0) -> Job:
    """Return what a job of a log is as a parallel job."""
    return Job(
        name=f"job-{job.number}",
        line=line,
        queue=queue_of(job),
        user="nobody" if job.user < 0 else f"user-{job.user}",
        groups=() if job.group < 0 else (f"group-{job.group}",),
        units=job.processors,
        submit_s=job.submit_s,
        run_s=job.run_s,
        estimate_s=job.estimate_s,
    )


class JobLines(LineStream):
    """The nodes of a machine, and then its jobs as applications and asks in the order of their submission.

    Raises:
        WorkloadError: the jobs are more than `asks_max` asks.
    """

    def __init__(
        self, file: str, nodes: list[Line], jobs: Sequence[Job], jobs_as: JobsAs, unit: dict[str, int], asks_max: int
    ) -> None:
        asks = 0
        for job in jobs:
            asks += 1 if jobs_as == "one" else job.units
            if asks > asks_max:
                raise WorkloadError(
                    f"{file}:{job.line}: with it there are {asks:,} asks, and no more than {asks_max:,} are simulated; "
                    "--max-asks allows more"
                )
        self._nodes = nodes
        self._jobs = sorted(jobs, key=lambda one: one.submit_s)
        self._made = jobs_as, unit
        self.steps = len(jobs) + 2 * asks

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines."""
        yield from self._nodes
        for job in self._jobs:
            yield from job_lines(job, *self._made)


def job_lines(job: Job, jobs_as: JobsAs, unit: dict[str, int]) -> list[Line]:
    """Return a job as an application and its asks.

    `unit`: the resources of one processor, or GPU, of a job that does not say its own.
    """
    number = 1 if jobs_as == "one" else job.units
    each = _times(job.units if jobs_as == "one" else 1, unit if job.each is None else job.each)
    gang = jobs_as == "gang" and number > 1
    application = App(
        at=job.submit_s,
        id=job.name,
        queue=job.queue,
        user=job.user,
        groups=job.groups,
        gang=(TaskGroup(name=GROUP, min=number, res=each),) if gang else (),
        atomic=gang,
    )
    asks = (
        Ask(
            at=job.submit_s,
            key=job.name if number == 1 else f"{job.name}-{index}",
            app=job.name,
            res=each,
            group=GROUP if gang else "",
            duration_s=job.run_s,
            requested_s=job.estimate_s,
        )
        for index in range(1, number + 1)
    )
    return [application, *asks]


def _times(number: int, unit: dict[str, int]) -> dict[str, int]:
    return {resource: number * amount for resource, amount in unit.items()}


def queue_of(job: SwfJob) -> str:
    """Return the queue of a job: that of its number, or one for all jobs of which it is not known."""
    return QUEUE if job.queue < 0 else f"root.queue-{job.queue}"


def queues(paths: Iterable[str], *, order: str = "", backfill: bool = False) -> str:
    """Return a configuration with these queues below root, in which everybody may submit.

    Raises:
        OptionError: there is backfill, and no order.
    """
    if backfill and not order:
        raise OptionError("--backfill is for jobs in a strict order: give --order too")
    rules = f"simulation.order: {order}, simulation.backfill: {'enabled' if backfill else 'disabled'}"
    properties = f"            properties: {{{rules}}}\n" if order else ""
    leaves = "".join(f"          - name: '{path.removeprefix('root.')}'\n{properties}" for path in paths)
    head = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n"
    return head + leaves


def skip_notes(file: str, skipped: Iterable[SwfSkip]) -> Iterable[str]:
    """Yield a sentence for each reason why jobs were left out."""
    for skip in skipped:
        yield f"{counted(skip.jobs, 'job')} left out: {skip.reason} ({file}:{skip.first_line})"


def skip_words(skipped: Iterable[SwfSkip]) -> str:
    """Return the reasons why jobs were left out, as the end of a message that says that none is left."""
    return "".join(f"; {skip.jobs:,} left out: {skip.reason} (line {skip.first_line})" for skip in skipped)


def _notes(log: SwfLog, jobs_as: JobsAs) -> Iterable[str]:
    yield from skip_notes(log.file, log.skipped)
    said = log.number("MaxJobs")
    if said and said != log.stands_for:
        less = "; is it cut off?" if said > log.stands_for else ""
        yield f"the header says MaxJobs: {said:,}, and the log has {counted(log.stands_for, 'job')}{less}"
    if any(earlier.submit_s > later.submit_s for earlier, later in pairwise(log.jobs)):
        yield "the jobs are not in the order of their submission in the log; they arrive in that order here"
    dependent = sum(job.preceding > 0 for job in log.jobs)
    if dependent:
        yield f"{counted(dependent, 'job')} with a preceding job: not waited for here, each arrives at its submission"
    if any(job.used_memory_kib > 0 or job.requested_memory_kib > 0 for job in log.jobs):
        yield "memory is not modelled: a log does not say how much its machine has"
    if jobs_as == "one":
        yield "the machine is one node: processors are a pool, and no job waits because they lie apart"
