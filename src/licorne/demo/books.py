"""The books of the demonstration's resource manager: what there is, and what is to happen to it next.

Real resource managers know what really runs, and can report it when the scheduler asks. So does this one; it is all that is
kept. What is over is forgotten, so the books are as large as the cluster, however long it runs.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Literal

import msgspec

from licorne.sim import lines

Kind = Literal["ends", "gone", "gives up"]
"""What is to happen: a pod ends by itself; an evicted pod's time of grace is over; an application is taken back."""


class Pod(msgspec.Struct):
    """An ask, and where its pod runs (`node` empty: it waits). `number` tells its incarnations apart."""

    ask: lines.Ask
    node: str = ""
    number: int = 0
    evicted: bool = False


class Job(msgspec.Struct):
    """An application, the asks that wait until it is accepted, and the keys of its pods. `ran`: one of them has run."""

    line: lines.App
    asks: list[lines.Ask] = []
    accepted: bool = False
    ran: bool = False
    pods: dict[str, None] = {}


class Books:
    """Nodes, other schedulers' allocations, applications and pods by id."""

    def __init__(self) -> None:
        self.nodes: dict[str, lines.Node] = {}
        self.drained: dict[str, None] = {}
        self.foreign: dict[str, lines.Foreign] = {}
        self.jobs: dict[str, Job] = {}
        self.pods: dict[str, Pod] = {}
        self._plan: list[tuple[int, int, Kind, str]] = []
        self._numbered = 0

    # -- nodes

    def change_nodes(self, line: lines.Line) -> None:
        """Note a line that is about a node or about what others run there."""
        if isinstance(line, lines.Node):
            self.nodes[line.id] = line
        elif isinstance(line, lines.NodeUpdate):
            self.nodes[line.id] = msgspec.structs.replace(self.nodes[line.id], res=line.res)
        elif isinstance(line, lines.NodeDrain):
            self.drained[line.id] = None
        elif isinstance(line, lines.NodeUndrain):
            self.drained.pop(line.id, None)
        elif isinstance(line, lines.NodeRemove):
            self.nodes.pop(line.id, None)
            self.drained.pop(line.id, None)
            self.foreign = {key: one for key, one in self.foreign.items() if one.node != line.id}
        elif isinstance(line, lines.Foreign):
            self.foreign[line.key] = line

    # -- applications and pods

    def ask(self, line: lines.Ask) -> None:
        """A pod waits from now on."""
        self.pods[line.key] = Pod(line)
        self.jobs[line.app].pods[line.key] = None

    def place(self, pod: Pod, node: str) -> None:
        """It runs."""
        self._numbered += 1
        pod.node, pod.number = node, self._numbered
        job = self.jobs.get(pod.ask.app)
        if job is not None:
            job.ran = True

    def end(self, key: str) -> Pod | None:
        """A pod is no more; None if it was not there."""
        pod = self.pods.pop(key, None)
        job = None if pod is None else self.jobs.get(pod.ask.app)
        if job is not None:
            job.pods.pop(key, None)
        return pod

    def end_job(self, app: str) -> bool:
        """An application is no more, nor are its pods; was it there?"""
        job = self.jobs.pop(app, None)
        for key in () if job is None else job.pods:
            self.pods.pop(key, None)
        return job is not None

    def stays(self, app: str) -> bool:
        """Is it not to be taken back: has the application a pod without an end, or is it done, and completing?"""
        job = self.jobs.get(app)
        if job is None or not job.pods:
            return job is not None and job.ran
        return any(self.pods[key].ask.duration_s is None for key in job.pods)

    def busy(self) -> int:
        """How many applications have pods, or are not accepted yet."""
        return sum(bool(job.pods) or not job.accepted for job in self.jobs.values())

    def waiting(self) -> int:
        """How many pods wait."""
        return sum(not pod.node for pod in self.pods.values())

    # -- what is to come

    def plan(self, at_ns: int, kind: Kind, subject: str, number: int = 0) -> None:
        """Something will happen: to an application, or to this incarnation of a pod."""
        heappush(self._plan, (at_ns, number, kind, subject))

    def due(self, now_ns: int) -> tuple[Kind, str, int] | None:
        """Take the next thing that is due: kind, subject, incarnation; None if there is none."""
        if not self._plan or self._plan[0][0] > now_ns:
            return None
        _, number, kind, subject = heappop(self._plan)
        return kind, subject, number

    def next_ns(self) -> int | None:
        """When the next thing is due."""
        return self._plan[0][0] if self._plan else None


__all__ = ["Books", "Job", "Pod"]
