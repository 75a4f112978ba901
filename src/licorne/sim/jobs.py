"""Strict order and backfill: a resource manager that holds jobs back, as a batch system in front of the scheduler does.

A queue with the property `simulation.order` has a list of jobs. A job is an ask, or an atomic gang with all its asks. The
job that is first by the order is the **head**. It is handed to the scheduler, and no other job is until the head has
started: so the head blocks. It stays the head while it waits, whatever arrives meanwhile. With `simulation.backfill` a later
job may start before the head, if by its requested time it ends before the head can start (docs/spec/experiments.md, A.3 and
A.5):

* When the head begins to wait its *limit* is fixed: the earliest expected end (start + requested time) of a running pod at
  which the nodes have room for the head, if everything that is expected to end by then does.
* After each event the other jobs are looked at, in the order of their submission. One that would end strictly before the
  limit is handed to the scheduler, and taken back at once if it is not placed.

Who decides what: this module decides **which** jobs the scheduler knows of, and when; whether a job fits, and on which nodes,
is the scheduler's decision alone, under all its rules (quotas, limits of users, constraints of nodes). Of what fits there is
no second account here but one: the limit is an estimate of the future, which the scheduler does not make. It counts what
nodes have and pods take, not quotas and constraints. A head that waits although the nodes have room for it waits for
something else; then no limit is known, and nothing is backfilled.

Three other places for this were considered. In the core it would burden every decision of a live cluster with a rule that no
live cluster has. As priorities of the asks it would not block: the scheduler passes over an ask that does not fit. As
predicates of the resource manager, which may say no to all asks but some, it would be asked for each ask and node, and a
refused ask is not tried again until something changes.

A job that the scheduler has refused is not handed in again, nor is one that needs at least as much, until something has been
released or changed: more room can come from nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from licorne.config.simulation import JOB_ORDER, JobRules, job_rules
from licorne.core.queues.queue import Queue
from licorne.si import messages
from licorne.sim.model import Pod, ResourceManager
from licorne.workload.joborders import NEED_ESTIMATE, ORDERS, Key
from licorne.workload.lines import Ask, to_ns
from licorne.workload.measure import NANOSECONDS
from licorne.workload.workload import Workload, WorkloadError

NEVER_NS = sys.maxsize
"""The limit of a head that is not expected to start at all: it delays nothing."""
SETTINGS = {"reservation.enabled": "false", "gang.hold.max.age": "0s"}
"""Settings of the scheduler under which the head alone decides what waits for it: no node is closed to later jobs."""
Send = Callable[[list[messages.Input]], None]
Amounts = dict[str, int]


def has_job_orders(workload: Workload, config: str | None) -> bool:
    """Whether a configuration of a workload, or the one in place of its own, may have a strict order of jobs."""
    first = workload.config if config is None else config
    return (first is not None and JOB_ORDER in first) or any(JOB_ORDER in text for text in workload.reloads)


class Job:
    """A job of a strict queue: its pods, its key in the order, and what it needs.

    `needs`: amounts and number of its pods, by kind. `alike` is equal for jobs that the scheduler treats alike apart from
    what they need. `handed_in`: the scheduler knows its asks.
    """

    __slots__ = ("alike", "app", "handed_in", "key", "needs", "pods", "queue", "requested_ns", "submitted_ns")

    def __init__(self, queue: JobQueue, app: str, pod: Pod, alike: tuple[object, ...]) -> None:
        self.queue = queue
        self.app = app
        self.pods = [pod]
        self.submitted_ns = pod.arrived_ns
        self.alike = alike
        self.handed_in = False
        self.key: Key = 0
        self.requested_ns: int | None = None
        self.needs: list[tuple[Amounts, int]] = []

    def measure(self, order: str) -> None:
        """Compute what follows from the pods: key, requested time and needs."""
        self.needs = []
        for pod in self.pods:
            if self.needs and self.needs[-1][0] == pod.ask.res:
                self.needs[-1] = (pod.ask.res, self.needs[-1][1] + 1)
            else:
                self.needs.append((pod.ask.res, 1))
        times = [requested_s(pod.ask) for pod in self.pods]
        longest_s = max((time for time in times if time is not None), default=None)
        self.requested_ns = None if longest_s is None or None in times else to_ns(longest_s)
        processors = sum(amounts.get("vcore", 0) * number for amounts, number in self.needs) / 1000
        submit_s, rest = divmod(self.submitted_ns, NANOSECONDS)
        submit: float = submit_s if not rest else self.submitted_ns / NANOSECONDS
        self.key = ORDERS[order](submit, longest_s or 0, processors)

    @property
    def started(self) -> bool:
        """Whether a pod of it has been placed: a gang starts with all that it needs, and what more it asks for may follow."""
        pods = self.pods
        return pods[0].placed > 0 if len(pods) == 1 else any(pod.placed for pod in pods)


def requested_s(ask: Ask) -> float | None:
    """Return the time for which an ask says that it will run; None if it does not say."""
    return ask.requested_s if ask.requested_s is not None else ask.duration_s


class JobQueue:
    """A strict queue: its jobs in the order in which they were sorted last, the head if there is one, and its limit."""

    def __init__(self, path: str, rules: JobRules) -> None:
        self.path = path
        self.rules = rules
        self.jobs: list[Job] = []
        self.head: Job | None = None
        self.limit_ns: int | None = None
        self.gangs: dict[str, Job] = {}
        self.sorted = True

    def measure(self) -> None:
        """Compute anew what follows from the rules and from the pods of all jobs."""
        for job in self.jobs:
            job.measure(self.rules.order)
        self.sorted = False

    def next_head(self) -> Job:
        """Choose the head. The list keeps its order: equal keys stay as they were."""
        if not self.sorted:
            self.jobs.sort(key=attrgetter("key"))
            self.sorted = True
        self.head = self.jobs[0]
        self.limit_ns = None
        return self.head

    def later(self) -> list[Job]:
        """Return the other jobs in the order of their submission, which the list then has."""
        self.jobs.sort(key=attrgetter("submitted_ns"))
        self.sorted = False
        return [job for job in self.jobs if job is not self.head]

    def drop(self, gone: Callable[[Job], bool]) -> None:
        """Drop jobs that have started or are not wanted any more."""
        self.jobs = [job for job in self.jobs if not gone(job)]
        self.gangs = {app: job for app, job in self.gangs.items() if not gone(job)}
        if self.head is not None and gone(self.head):
            self.head = None


class JobQueues:
    """All strict queues of a simulation.

    `queue_of` are the queues of applications that were accepted; `knows` says whether the scheduler knows an application,
    `waits` whether an ask waits in it, by application and key. `send` submits messages to it, and `decide` lets it decide and
    returns the number of allocations. `place` returns where the workload has an ask, as `FILE:LINE`; "" if that is not known.
    """

    def __init__(
        self,
        model: ResourceManager,
        queue_of: Mapping[str, Queue],
        *,
        knows: Callable[[str], bool],
        waits: Callable[[str, str], bool],
        send: Send,
        decide: Callable[[], int],
        place: Callable[[str], str],
    ) -> None:
        self._model = model
        self._queue_of = queue_of
        self._knows = knows
        self._waits = waits
        self._send = send
        self._decide = decide
        self._place = place
        self._queues: dict[str, JobQueue] = {}
        self._held: dict[tuple[str, str], Job] = {}  # by application and key
        self._away: set[str] = set()  # applications that were taken back as a whole
        self._refused: dict[tuple[object, ...], list[tuple[Amounts, int]]] = {}
        self._touched = False
        self._stale = False

    # -- arrivals ------------------------------------------------------------------------------------------------

    def keep_back(self, batch: list[messages.Input]) -> list[messages.Input]:
        """Take the asks of strict queues out of what is to be submitted; return the rest.

        Raises:
            WorkloadError: an ask in a strict queue is of a kind that cannot be held back.
        """
        rest: list[messages.Input] = []
        added: set[str] = set()  # applications in the rest; one of the same name may have ended
        for message in batch:
            self._touched = True
            if isinstance(message, messages.Allocation) and not message.node_id:
                if rest and (message.application_id not in self._queue_of or message.application_id in added):
                    self._send(rest)  # the queue of an application is known when it was accepted
                    rest = []
                    added.clear()
                queue = self._queue_of.get(message.application_id)
                rules = job_rules(queue.properties) if queue is not None else None
                if queue is not None and rules is not None and self._hold(message, queue, rules):
                    continue
            elif not isinstance(message, messages.AddApplication):
                self._refused.clear()
                ended = (
                    isinstance(message, messages.Release)
                    and message.key
                    and (message.application_id, message.key) not in self._held
                )
                self._stale = self._stale or not ended
            else:
                added.add(message.application_id)
                if message.application_id in self._away:
                    self._return(message.application_id, rest)
            rest.append(message)
        return rest

    def _hold(self, message: messages.Allocation, queue: Queue, rules: JobRules) -> bool:
        """Put an ask into the strict order of its queue, and return whether it waits there for its turn.

        It does not, and goes to the scheduler now, if it was placed or is gone, if its application is gone, if its job has had its
        turn already, or if the scheduler has had it since before the queue had a strict order.
        """
        name = message.application_id, message.key
        pod = self._model.find(*name)
        if pod is None or pod.placed or pod.ask.app not in self._model.applications:
            return False
        known = self._held.get(name)
        if known is not None and any(one is pod for one in known.pods):
            known.queue.measure()
            return not known.handed_in
        if known is not None:  # one of the same key that is not wanted any more
            self._stale = True
            self._clean()
        if self._waits(*name):  # since before the queue had a strict order
            return False
        self._add(pod, queue, rules)
        return True

    def _add(self, pod: Pod, queue: Queue, rules: JobRules) -> None:
        ask = pod.ask
        strict = self._queues.setdefault(queue.path, JobQueue(queue.path, rules))
        line = self._model.applications[ask.app].line
        if ask.max > 1 or ask.ph or ((line.gang or line.ph_ask) and not line.atomic):
            what = "is placed several times" if ask.max > 1 else "is of a gang with placeholders"
            raise self._fault(
                ask,
                f"{what}, which cannot wait in {queue.path}: that queue has a strict order of jobs (an atomic gang can)",
            )
        job = strict.gangs.get(ask.app)
        if job is not None and not job.handed_in:
            job.pods.append(pod)
        else:
            tags = (*sorted((ask.tags or {}).items()), "", *sorted((line.tags or {}).items()))
            rest = (ask.prio, ask.pre_self, ask.pre_other, bool(line.gang))
            job = Job(strict, ask.app, pod, (queue.path, line.user, line.groups, tags, rest))
            strict.jobs.append(job)
            if line.atomic:
                strict.gangs[ask.app] = job
        if rules.order in NEED_ESTIMATE and requested_s(ask) is None:
            raise self._without_time(ask, rules.order)
        job.measure(rules.order)
        strict.sorted = False
        self._held[ask.app, ask.key] = job

    def _without_time(self, ask: Ask, order: str) -> WorkloadError:
        return self._fault(ask, f"has neither requested_s nor duration_s, which the order {order} needs")

    def _fault(self, ask: Ask, what: str) -> WorkloadError:
        """Return the error of an ask, with its place if it is in the workload."""
        place = self._place(ask.key)
        return WorkloadError(f"{place}: ask {ask.key} {what}" if place else f"ask {ask.key} {what}")

    def configuration_changed(self) -> None:
        """Read the rules of the queues anew; the jobs of a queue that has no strict order any more are handed in.

        Raises:
            WorkloadError: a new order needs requested times, and an ask has none.
        """
        self._touched = self._stale = True
        self._clean()
        self._refused.clear()
        for strict in list(self._queues.values()):
            job = next(iter(strict.jobs), None)
            queue = self._queue_of.get(job.app) if job is not None else None
            rules = job_rules(queue.properties) if queue is not None else None
            if rules is not None and rules != strict.rules:
                for pod in (pod for one in strict.jobs for pod in one.pods):
                    if rules.order in NEED_ESTIMATE and requested_s(pod.ask) is None:
                        raise self._without_time(pod.ask, rules.order)
                strict.rules, strict.limit_ns = rules, None
                strict.measure()
            elif rules is None:
                del self._queues[strict.path]
                for one in strict.jobs:
                    if not one.handed_in:
                        self._hand_in(one)
                    for pod in one.pods:
                        self._held.pop((pod.ask.app, pod.ask.key), None)

    def withdrawn(self) -> None:
        """Note that pods may have been dropped: asks that were refused, or whose application has ended."""
        self._touched = self._stale = True

    def held_back(self) -> Iterator[tuple[str, Pod]]:
        """Yield the pods that the scheduler does not know of, with the path of their queue."""
        self._clean()
        for path, strict in sorted(self._queues.items()):
            for job in strict.jobs:
                if not job.handed_in:
                    for pod in job.pods:
                        yield path, pod

    # -- starting ------------------------------------------------------------------------------------------------

    def serve(self, now_ns: int) -> int:
        """Start what the orders allow now; return the number of allocations. Queues come in the order of their paths."""
        if not self._touched:
            return 0
        self._clean()
        made = sum(self._serve(strict, now_ns) for _, strict in sorted(self._queues.items()))
        self._touched = False
        return made

    def _serve(self, queue: JobQueue, now_ns: int) -> int:
        made = 0
        while queue.jobs:
            head = queue.head
            if head is None:
                head = queue.next_head()
                made += self._try(head)
                if queue.head is not head:
                    continue
            if head.started:
                self._drop(queue, [head])
                continue
            if queue.rules.backfill:
                if queue.limit_ns is None:
                    queue.limit_ns = self._limit_ns(head, now_ns)
                made += self._backfill(queue, queue.limit_ns, now_ns)
            break
        return made

    def _backfill(self, queue: JobQueue, limit_ns: int, now_ns: int) -> int:
        """Go once through the jobs behind the head and start those that fit and end before its limit."""
        made = 0
        started: list[Job] = []
        for job in queue.later():
            if job.requested_ns is None or now_ns + job.requested_ns >= limit_ns or self._hopeless(job):
                continue
            made += self._try(job)
            if job.pods and job.started:
                started.append(job)
            elif job.pods:
                self._take_back(job)
        if started:
            self._drop(queue, started)
        return made

    def _try(self, job: Job) -> int:
        """Hand a job to the scheduler and let it decide; return the number of allocations."""
        self._hand_in(job)
        made = self._decide()
        self._clean()  # it may have been refused for good; then it has no pods any more
        return made

    def _hand_in(self, job: Job) -> None:
        batch: list[messages.Input] = []
        if not self._knows(job.app):  # it was taken back, or it has run, and is over because it asked for nothing
            self._return(job.app, batch)
        batch += [self._model.message(pod.ask) for pod in job.pods]
        job.handed_in = True
        self._send(batch)

    def _return(self, app: str, batch: list[messages.Input]) -> None:
        """Report an application again that was taken back."""
        self._away.discard(app)
        batch.append(self._model.message(self._model.applications[app].line))

    def _take_back(self, job: Job) -> None:
        """Take a job back that was not placed.

        Its application goes with it if it has nothing else: without asks it would be completed, and gone, after a while.
        """
        job.handed_in = False
        if len(job.needs) == 1:
            # Those that need as much or more are refused as well, and need not be remembered.
            kind = self._kind(job)
            others = [one for one in self._refused.get(kind, ()) if not _at_least(one, job.needs[0])]
            self._refused[kind] = [*others, job.needs[0]]
        if not self._has_others(job):
            self._away.add(job.app)
            self._send([messages.RemoveApplication(application_id=job.app)])
        else:
            self._send([messages.Release(application_id=job.app, key=pod.ask.key) for pod in job.pods])

    def _hopeless(self, job: Job) -> bool:
        """Whether the scheduler has refused a job that needs no more than this one, and nothing was released since."""
        if not self._refused or len(job.needs) != 1:
            return False
        return any(_at_least(job.needs[0], one) for one in self._refused.get(self._kind(job), ()))

    def _kind(self, job: Job) -> tuple[object, ...]:
        """Return what is equal for jobs of which the scheduler refuses the larger if it refuses the smaller.

        An application that runs may still get what one more is refused, because of the maximum of applications.
        """
        return (job.alike, job.app if self._has_others(job) else "")

    def _has_others(self, job: Job) -> bool:
        """Whether the application of a job has other pods."""
        return len(self._model.keys_of[job.app]) > len(job.pods)

    def _drop(self, queue: JobQueue, jobs: Iterable[Job]) -> None:
        """Drop jobs that have started."""
        for job in jobs:
            queue.jobs.remove(job)
            if queue.head is job:
                queue.head = None
            queue.gangs.pop(job.app, None)
            for pod in job.pods:
                self._held.pop((pod.ask.app, pod.ask.key), None)

    def _clean(self) -> None:
        """Drop what is not wanted any more: asks that were released or refused, applications that have ended."""
        if not self._stale:
            return
        self._stale = False
        find = self._model.find
        gone = [name for name, job in self._held.items() if not any(find(*name) is pod for pod in job.pods)]
        for name in gone:
            job = self._held.pop(name)
            job.pods = [pod for pod in job.pods if pod.ask.key != name[1]]
        if gone:
            for queue in self._queues.values():
                queue.drop(lambda job: not job.pods)
                queue.measure()

    # -- the limit -----------------------------------------------------------------------------------------------

    def _limit_ns(self, head: Job, now_ns: int) -> int:
        """Return the expected end at which the nodes have room for the head; the present if they have it already."""
        free: dict[str, Amounts] = {node.id: dict(node.res) for node in self._model.nodes.values() if not node.drain}
        for one in self._model.foreign.values():
            _add(free.get(one.node), one.res, -1)
        ends: list[tuple[int, str, Amounts]] = []
        for run in (*self._model.running.values(), *(run for _, _, run in self._model.going)):
            _add(free.get(run.node), run.pod.ask.res, -1)
            time_s = requested_s(run.pod.ask)
            if time_s is not None:
                ends.append((run.since_ns + to_ns(time_s), run.node, run.pod.ask.res))
        if _fits(head.needs, free.values()):
            return now_ns
        ends.sort(key=lambda end: end[0])
        for place, (end_ns, node, amounts) in enumerate(ends):
            _add(free.get(node), amounts, 1)
            last = place + 1 == len(ends) or ends[place + 1][0] > end_ns
            if last and _fits(head.needs, free.values()):
                return end_ns
        return NEVER_NS


def _at_least(needs: tuple[Amounts, int], other: tuple[Amounts, int]) -> bool:
    """Whether equal pods are as many as others, or more, and each needs as much of everything, or more."""
    if needs[1] < other[1]:
        return False
    amounts = needs[0]
    return all(amounts.get(name, 0) >= amount for name, amount in other[0].items())


def _add(room: Amounts | None, amounts: Amounts, sign: int) -> None:
    if room is not None:
        for name, amount in amounts.items():
            room[name] = room.get(name, 0) + sign * amount


def _fits(needs: list[tuple[Amounts, int]], nodes: Iterable[Amounts]) -> bool:
    """Whether pods fit on nodes with this much free: exact for pods that are all alike, first fit for others."""
    rooms = [dict(room) for room in nodes] if len(needs) > 1 else list(nodes)
    for amounts, number in needs:
        left = number
        for room in rooms:
            fit = min(
                (max(room.get(name, 0), 0) // amount for name, amount in amounts.items() if amount > 0), default=left
            )
            taken = min(fit, left)
            left -= taken
            if len(needs) > 1:
                _add(room, {name: amount * taken for name, amount in amounts.items()}, -1)
            if not left:
                break
        if left:
            return False
    return True
