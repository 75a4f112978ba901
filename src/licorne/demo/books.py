"""The state of the demonstration's resource manager: nodes, applications and pods, and their next events.

A resource manager knows what really runs, and reports it when the scheduler asks (resync); this is the state that it
needs for that, and nothing more. Pods and applications that have ended are dropped, so the size of the state follows
that of the cluster, however long the demonstration runs.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Literal

import msgspec

from licorne.sim import lines

Kind = Literal["ends", "gone", "gives up"]
"""A kind of event: a pod ends by itself; the grace period of an evicted pod is over; an application is withdrawn."""


class Pod(msgspec.Struct):
    """An ask and its pod. `node`: where the pod runs, empty while pending; `number`: distinguishes its incarnations."""

    ask: lines.Ask
    node: str = ""
    number: int = 0
    evicted: bool = False


class Job(msgspec.Struct):
    """An application. `asks`: held back until it is accepted; `pods`: their keys; `ran`: one of them has run."""

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
        """Apply a line about a node, or about an allocation of another scheduler."""
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
        """Add a pending pod."""
        self.pods[line.key] = Pod(line)
        self.jobs[line.app].pods[line.key] = None

    def place(self, pod: Pod, node: str) -> None:
        """Note that a pod runs on a node."""
        self._numbered += 1
        pod.node, pod.number = node, self._numbered
        job = self.jobs.get(pod.ask.app)
        if job is not None:
            job.ran = True

    def end(self, key: str) -> Pod | None:
        """Remove a pod and return it; None if there is none."""
        pod = self.pods.pop(key, None)
        job = None if pod is None else self.jobs.get(pod.ask.app)
        if job is not None:
            job.pods.pop(key, None)
        return pod

    def end_job(self, app: str) -> bool:
        """Remove an application and its pods. Returns whether there was one."""
        job = self.jobs.pop(app, None)
        for key in () if job is None else job.pods:
            self.pods.pop(key, None)
        return job is not None

    def stays(self, app: str) -> bool:
        """Whether an application is not to be withdrawn: it has a pod that never ends, or it is completing."""
        job = self.jobs.get(app)
        if job is None or not job.pods:
            return job is not None and job.ran
        return any(self.pods[key].ask.duration_s is None for key in job.pods)

    def busy(self) -> int:
        """Count the applications that have pods, or are not accepted yet."""
        return sum(bool(job.pods) or not job.accepted for job in self.jobs.values())

    def waiting(self) -> int:
        """Count the pending pods."""
        return sum(not pod.node for pod in self.pods.values())

    # -- events to come

    def plan(self, at_ns: int, kind: Kind, subject: str, number: int = 0) -> None:
        """Plan an event of an application, or of one incarnation of a pod."""
        heappush(self._plan, (at_ns, number, kind, subject))

    def due(self, now_ns: int) -> tuple[Kind, str, int] | None:
        """Remove the next event that is due, and return kind, subject and incarnation; None if there is none."""
        if not self._plan or self._plan[0][0] > now_ns:
            return None
        _, number, kind, subject = heappop(self._plan)
        return kind, subject, number

    def next_ns(self) -> int | None:
        """Return the time of the next event; None if there is none."""
        return self._plan[0][0] if self._plan else None


__all__ = ["Books", "Job", "Pod"]
