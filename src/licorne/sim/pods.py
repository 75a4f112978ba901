"""What became of each pod: one record, made when that is known, and the sums over all pods that the report shows.

A pod that is evicted and created again is one pod here, and one record: it waits, runs, loses its work, waits again. So from
its arrival to its end

    arrival + waiting + lost work + run = end.

Records are handed on one by one and not kept, so a file of a million pods takes no more memory than the pods that are
alive. The sums are kept even if nobody wants records.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from licorne.workload.lines import App, Ask
from licorne.workload.measure import NANOSECONDS, seconds

if TYPE_CHECKING:
    from licorne.core.queues.queue import Queue
    from licorne.sim.model import Pod, Running

Outcome = Literal[
    "ended", "released", "timeout", "evicted", "stopped", "running", "placed", "waiting", "withdrawn", "refused"
]
"""What became of a pod:

ended       its duration was over
released    a line of the workload ended it
timeout     it exceeded a limit of its running time
evicted     it was evicted, and not created again
stopped     the scheduler ended it otherwise: its node was removed, or its application failed
running     it runs at the end of the simulation
placed      it was placed, in a workload without times, where nothing is followed further
waiting     it was never placed, or not again after an eviction
withdrawn   the workload took it back before it was placed
refused     the scheduler refused the ask, or its application
"""
COMPLETED = ("ended", "released")
SHORT_NS = 10 * NANOSECONDS
"""What a shorter run is taken for in a bounded slowdown."""


class PodRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one pod; times in seconds of virtual time, to the microsecond.

    `queue`: where its application was placed, or the queue that a refused application asked for. `start_s`, `end_s` and
    `node` are those of its last run; None if it was never placed, or not again after an eviction, and `end_s` also if it
    runs to the end. `waiting_s`: from its arrival, and from each time that it was created again, until it was placed, or
    else until the outcome or the end of the simulation. `run_s`: the length of the last run so far, 0 if that was lost to an
    eviction. `evictions` counts the runs that were lost so, `lost_s` adds up their lengths, grace periods included. `pods`
    is 1, except for the part of an ask that repeats which was never placed: one record then stands for that many pods.
    """

    key: str
    application: str
    queue: str
    user: str
    outcome: Outcome
    arrival_s: float
    start_s: float | None
    end_s: float | None
    node: str | None
    waiting_s: float
    run_s: float
    evictions: int
    lost_s: float
    pods: int


class _Past(msgspec.Struct, gc=False):
    """The past of a pod that was evicted and created again."""

    arrived_ns: int
    evictions: int
    lost_ns: int


class PodRecords:
    """Follows pods from their arrival to their end.

    `queues` are the queues of the applications that have one. The sums, by path of queue, are of pods that arrive in
    the window, from `from_ns` and before `to_ns`; a pod that was running already when it was reported counts for none.
    `completed`: times from arrival to end, and lengths of the last runs; `not_completed`: the number of all others;
    `never_placed`: of those that were not placed, or not again, since they came or were created again; `unplaced`: of these, those
    that were not refused, and `unplaced_ns` how long they waited. Records are made of all pods.
    """

    def __init__(self, queues: Mapping[str, Queue], from_ns: int = 0, to_ns: int | None = None) -> None:
        self.sink: Callable[[PodRecord], None] | None = None
        self.completed: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        self.not_completed: Counter[str] = Counter()
        self.never_placed: Counter[str] = Counter()
        self.unplaced: Counter[str] = Counter()
        self.unplaced_ns: Counter[str] = Counter()
        self.from_ns = from_ns
        self.to_ns = sys.maxsize if to_ns is None else to_ns
        self._queues = queues
        self._applications: dict[str, App] = {}
        self._past: dict[tuple[str, str], _Past] = {}  # by application and key

    def submitted(self, line: App) -> None:
        """Note a new application, which may have the name of one that has ended."""
        self._applications[line.id] = line

    def queue_of(self, app: str) -> str:
        """Return the queue of an application, or the one that it asked for if it was refused; "" if there is neither."""
        queue = self._queues.get(app)
        if queue is not None:
            return queue.path
        line = self._applications.get(app)
        return line.queue if line is not None else ""

    def counts(self, arrived_ns: int) -> bool:
        """Return whether a pod that arrives at this time is in the window."""
        return self.from_ns <= arrived_ns < self.to_ns

    def created_again(self, run: Running, key: str, now_ns: int) -> None:
        """Note that an evicted pod is created again, under `key`."""
        past = self._past.pop((run.pod.ask.app, run.pod.ask.key), None) or _Past(run.arrived_ns, 0, 0)
        past.evictions += 1
        past.lost_ns += now_ns - run.since_ns
        self._past[run.pod.ask.app, key] = past

    def ended(self, run: Running, now_ns: int, outcome: Outcome) -> None:
        """Take a run that has ended and is not followed by another."""
        ask = run.pod.ask
        if ask.ph:
            return
        past = self._past.pop((ask.app, ask.key), None) if self._past else None
        arrived_ns, evictions, lost_ns = _history(run.arrived_ns, past)
        queue = self.queue_of(ask.app)
        if not ask.node and self.counts(arrived_ns):
            if outcome in COMPLETED:
                times, runs = self.completed[queue]
                times.append(now_ns - arrived_ns)
                runs.append(now_ns - run.since_ns)
            else:
                self.not_completed[queue] += 1
        if self.sink is None:
            return
        ran_ns, waiting_ns = now_ns - run.since_ns, run.since_ns - arrived_ns - lost_ns
        if outcome == "evicted":
            evictions, lost_ns, ran_ns = evictions + 1, lost_ns + ran_ns, 0
        record = self._made(
            ask,
            queue,
            outcome,
            arrived_ns,
            start_ns=run.since_ns,
            end_ns=None if outcome == "running" else now_ns,
            node=run.node,
            waiting_ns=waiting_ns,
            ran_ns=ran_ns,
            evictions=evictions,
            lost_ns=lost_ns,
        )
        self.sink(record)

    def never(self, pod: Pod, now_ns: int, outcome: Outcome) -> None:
        """Take a pod that is not placed any more; of an ask that repeats, those that were not."""
        ask = pod.ask
        number = ask.max - pod.placed
        if number <= 0 or ask.ph or ask.node:
            return
        past = self._past.pop((ask.app, ask.key), None) if self._past else None
        queue = self.queue_of(ask.app)
        arrived_ns, evictions, lost_ns = _history(pod.arrived_ns, past)
        if self.counts(pod.arrived_ns):
            self.never_placed[queue] += number
            if outcome != "refused":
                self.unplaced[queue] += number
                self.unplaced_ns[queue] += number * (now_ns - pod.arrived_ns)
        if self.counts(arrived_ns):
            self.not_completed[queue] += number
        if self.sink is not None:
            waited_ns = now_ns - arrived_ns - lost_ns
            record = self._made(
                ask, queue, outcome, arrived_ns, waiting_ns=waited_ns, evictions=evictions, lost_ns=lost_ns, pods=number
            )
            self.sink(record)

    def placed(self, pod: Pod, node: str, now_ns: int) -> None:
        """Take a pod that was placed where time stands still."""
        if self.sink is not None and not pod.ask.ph:
            queue = self.queue_of(pod.ask.app)
            self.sink(self._made(pod.ask, queue, "placed", pod.arrived_ns, start_ns=now_ns, node=node))

    def _made(
        self,
        ask: Ask,
        queue: str,
        outcome: Outcome,
        arrived_ns: int,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
        node: str | None = None,
        waiting_ns: int = 0,
        ran_ns: int = 0,
        evictions: int = 0,
        lost_ns: int = 0,
        pods: int = 1,
    ) -> PodRecord:
        application = self._applications.get(ask.app)
        return PodRecord(
            key=ask.key,
            application=ask.app,
            queue=queue,
            user=application.user if application is not None else "",
            outcome=outcome,
            arrival_s=seconds(arrived_ns),
            start_s=None if start_ns is None else seconds(start_ns),
            end_s=None if end_ns is None else seconds(end_ns),
            node=node,
            waiting_s=seconds(waiting_ns),
            run_s=seconds(ran_ns),
            evictions=evictions,
            lost_s=seconds(lost_ns),
            pods=pods,
        )


def _history(arrived_ns: int, past: _Past | None) -> tuple[int, int, int]:
    """Return the first arrival of a pod, its evictions so far, and the time that it ran in vain."""
    return (arrived_ns, 0, 0) if past is None else (past.arrived_ns, past.evictions, past.lost_ns)


def bounded_slowdown(completion_ns: float, run_ns: float) -> float:
    """Return max(1, (wait + run) / max(run, 10 s)): how much longer a pod took than alone, short ones taken for 10 s."""
    slowdown = completion_ns / (max(SHORT_NS, run_ns))
    return max(1.0, slowdown)
