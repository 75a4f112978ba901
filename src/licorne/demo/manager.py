"""The demonstration's resource manager: it sends lines as requests when they are due, and acts on decisions.

It works like a real one. Asks are sent when their application is accepted, those of a gang's members when its
placeholders are placed. A pod ends after its duration. An evicted pod ends after a grace period and is created again,
and so is a pod whose node is removed. While the cluster is crowded, new applications are left out.

This module has neither clock nor thread, which are in `run`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Protocol

from licorne.demo import requests
from licorne.demo.books import Books, Job, Pod
from licorne.demo.requests import RM_ID
from licorne.si import v19
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.sim import lines
from licorne.sim.gangs import Gangs

SECOND_NS = 1_000_000_000
GRACE_NS = 2 * SECOND_NS
"""The grace period, from the eviction of a pod until its end."""
PATIENCE_NS = 180 * SECOND_NS
"""Time after which an application that has not ended is withdrawn; one with a pod that never ends stays."""
CROWD_PODS = 150
CROWD_BUSY = 45
CROWD_APPLICATIONS = 1000
"""At this number of pending pods, busy applications, or applications in all (each is completing for 30 s), new
applications are left out."""

_Termination = v19.TerminationType
_NODE_CHANGES = (lines.NodeUpdate, lines.NodeDrain, lines.NodeUndrain, lines.NodeRemove)
_OVER = frozenset(("Completed", "Failed", "Rejected"))


class Scheduler(Protocol):
    """The part of `SchedulerClient`, or of `SchedulerAPI`, that a resource manager calls."""

    def update_node(self, request: v19.NodeRequest) -> None:
        """Send new, changed and removed nodes."""

    def update_application(self, request: v19.ApplicationRequest) -> None:
        """Send new and removed applications."""

    def update_allocation(self, request: v19.AllocationRequest) -> None:
        """Send asks, running allocations and releases."""


class Manager:
    """A resource manager that turns lines and answers into requests.

    `say` returns the scheduler to which a request is sent. Times are nanoseconds of the demonstration's own clock,
    which runs `speed` times as fast as real time. Timeouts that the scheduler measures are converted to real time.
    """

    def __init__(self, say: Callable[[], Scheduler], speed: float = 1.0) -> None:
        self.books = Books()
        self.gangs = Gangs()
        self.counts: Counter[str] = Counter()
        self._say = say
        self._speed = speed
        self._allocations: list[v19.Allocation] = []
        self._releases: list[v19.AllocationRelease] = []

    # -- lines -----------------------------------------------------------------------------------------

    def hand_in(self, given: list[lines.Line], now_ns: int) -> None:
        """Send lines that are due, in order. If one is an application and the cluster is crowded, all are left out."""
        if any(type(line) is lines.App for line in given) and self._crowded():
            self.counts["stayed away"] += 1
            return
        for is_node, some in groupby(given, lambda line: isinstance(line, (lines.Node, *_NODE_CHANGES))):
            if is_node:
                self._change_nodes(some)
            else:
                for line in some:
                    self._take_line(line, now_ns)
        self._send()

    def _crowded(self) -> bool:
        books = self.books
        too_many = books.busy() >= CROWD_BUSY or len(books.jobs) >= CROWD_APPLICATIONS
        return too_many or books.waiting() >= CROWD_PODS

    def _change_nodes(self, given: Iterable[lines.Line]) -> None:
        told: list[v19.NodeInfo] = []
        for line in given:
            self.books.change_nodes(line)
            told.append(requests.node(line) if isinstance(line, lines.Node) else requests.node_change(line))  # type: ignore[arg-type]
        self._say().update_node(v19.NodeRequest(rm_id=RM_ID, nodes=told))

    def _take_line(self, line: lines.Line, now_ns: int) -> None:
        if isinstance(line, lines.App):
            self.books.jobs[line.id] = Job(line)
            self.books.plan(now_ns + PATIENCE_NS, "gives up", line.id)
            self.gangs.submitted(line, now_ns)
            request = requests.application(line, self._speed)
            self._say().update_application(v19.ApplicationRequest(rm_id=RM_ID, new=[request]))
            self.counts["applications"] += 1
        elif isinstance(line, lines.Ask):
            job = self.books.jobs.get(line.app)
            if job is None:
                return
            if not job.accepted:
                job.asks.append(line)
            else:
                self._ask(line)
        elif isinstance(line, lines.Foreign):
            self.books.change_nodes(line)
            self._allocations.append(requests.foreign(line))
        elif isinstance(line, lines.ReleaseApp):
            self._take_back(line.app)

    def _ask(self, line: lines.Ask) -> None:
        if self.gangs.keeps(line):
            return
        self.books.ask(line)
        self._allocations.append(self._request(line))

    def _request(self, line: lines.Ask, node: str = "") -> v19.Allocation:
        return requests.allocation(line, self.books.jobs[line.app].line, node)

    def _take_back(self, app: str) -> None:
        if self._forget(app):
            self.counts["taken back"] += 1
            gone = v19.RemoveApplicationRequest(application_id=app)
            self._say().update_application(v19.ApplicationRequest(rm_id=RM_ID, remove=[gone]))

    def _forget(self, app: str) -> bool:
        self.gangs.known.pop(app, None)
        return self.books.end_job(app)

    def _send(self) -> None:
        """Send the collected requests, releases first: a pod that is created again has the key of the one that ends."""
        releases, self._releases = self._releases, []
        allocations, self._allocations = self._allocations, []
        if releases:
            ended = v19.AllocationReleasesRequest(allocations_to_release=releases)
            self._say().update_allocation(v19.AllocationRequest(rm_id=RM_ID, releases=ended))
        if allocations:
            self._say().update_allocation(v19.AllocationRequest(rm_id=RM_ID, allocations=allocations))

    # -- time ------------------------------------------------------------------------------------------

    def pass_time(self, now_ns: int) -> None:
        """Handle the events that are due."""
        while (due := self.books.due(now_ns)) is not None:
            kind, subject, number = due
            if kind == "gives up":
                if not self.books.stays(subject):
                    self._take_back(subject)
                continue
            pod = self.books.pods.get(subject)
            if pod is None or pod.number != number:
                continue  # the event was that of an earlier incarnation
            if kind == "ends" and not pod.evicted:
                self._releases.append(requests.release(pod.ask.app, subject))
                self._ended(subject, pod)
                self.counts["ended"] += 1
            elif kind == "gone":
                self._releases.append(requests.release(pod.ask.app, subject, _Termination.PREEMPTED_BY_SCHEDULER))
                self._ended(subject, pod)
                self._again(pod.ask)
        self._send()

    def _ended(self, key: str, pod: Pod) -> None:
        self.books.end(key)
        self.gangs.ended(pod.ask)

    def _again(self, ask: lines.Ask) -> None:
        """Create a lost pod again, as its controller would. A placeholder, or a pod with a required node, is not."""
        if ask.ph or ask.app not in self.books.jobs or TAG_REQUIRED_NODE in (ask.tags or {}):
            return
        self.counts["created again"] += 1
        self._ask(ask)

    # -- answers ---------------------------------------------------------------------------------------

    def take(self, response: Any, now_ns: int) -> None:
        """Act on a message of the scheduler."""
        if isinstance(response, v19.ApplicationResponse):
            self._take_applications(response)
        elif isinstance(response, v19.AllocationResponse):
            for new in response.new:
                self._placed(new, now_ns)
            for released in response.released:
                self._released(released, now_ns)
            for refused in response.rejected_allocations:
                self.counts["asks refused"] += 1
                self.books.end(refused.allocation_key)
        self._send()

    def _take_applications(self, response: v19.ApplicationResponse) -> None:
        for accepted in response.accepted:
            job = self.books.jobs.get(accepted.application_id)
            if job is None or job.accepted:
                continue  # withdrawn meanwhile, or accepted again after a resync
            job.accepted = True
            asks, job.asks = job.asks, []
            tags = {ask.group: ask.tags for ask in asks}
            for place in self.gangs.accepted(job.line.id, job.line.queue):
                place.tags = tags.get(place.group)  # its node must suit the member that replaces it
                self._ask(place)
            for ask in asks:
                self._ask(ask)
        for refused in response.rejected:
            known = self.books.jobs.get(refused.application_id)
            if known is not None and known.accepted:
                continue  # the scheduler got it twice around a resync; the first answer counts
            self.counts["applications refused"] += 1
            self._forget(refused.application_id)
        for updated in response.updated:
            for ask in self.gangs.entered(updated.application_id, updated.state, updated.message):
                self._ask(ask)
            if updated.state in _OVER and self._forget(updated.application_id):
                self.counts[updated.state.lower()] += 1

    def _placed(self, new: v19.Allocation, now_ns: int) -> None:
        pod = self.books.pods.get(new.allocation_key)
        if pod is None:
            if new.application_id in self.books.jobs:  # the ask was withdrawn meanwhile
                self._releases.append(requests.release(new.application_id, new.allocation_key))
            return
        if pod.node:
            return  # confirmed again after a resync
        self.books.place(pod, new.node_id)
        self.gangs.placed(pod.ask, now_ns)
        self.counts["placeholders" if pod.ask.ph else "placed"] += 1
        if pod.ask.duration_s is not None:
            self.books.plan(now_ns + lines.to_ns(pod.ask.duration_s), "ends", new.allocation_key, pod.number)

    def _released(self, released: v19.AllocationRelease, now_ns: int) -> None:
        key, kind = released.allocation_key, released.termination_type
        pod = self.books.pods.get(key)
        if pod is None:
            if kind in (_Termination.TIMEOUT, _Termination.PLACEHOLDER_REPLACED, _Termination.PREEMPTED_BY_SCHEDULER):
                self._releases.append(requests.release(released.application_id, key, kind))
            return
        if kind == _Termination.PREEMPTED_BY_SCHEDULER:
            self.counts["evicted"] += 1
            pod.evicted = True
            self.books.plan(now_ns + GRACE_NS, "gone", key, pod.number)
            return
        self._ended(key, pod)
        if kind in (_Termination.TIMEOUT, _Termination.PLACEHOLDER_REPLACED):
            self.counts[_Termination(kind).name.lower()] += 1
            if pod.node:
                self._releases.append(requests.release(released.application_id, key, _Termination(kind)))
        elif pod.node:
            self.counts["lost"] += 1
            self._again(pod.ask)

    # -- resync ----------------------------------------------------------------------------------------

    def report(self, to: Scheduler) -> None:
        """Report everything to a scheduler without state: nodes, applications, running pods, then pending ones."""
        books = self.books
        self._allocations, self._releases = [], []
        nodes = [requests.node(line, drained=line.id in books.drained) for line in books.nodes.values()]
        to.update_node(v19.NodeRequest(rm_id=RM_ID, nodes=nodes))
        new = [requests.application(job.line, self._speed) for job in books.jobs.values()]
        to.update_application(v19.ApplicationRequest(rm_id=RM_ID, new=new))
        allocations = [requests.foreign(line) for line in books.foreign.values()]
        allocations += [self._request(pod.ask, pod.node) for pod in books.pods.values() if pod.node]
        allocations += [self._request(pod.ask) for pod in books.pods.values() if not pod.node]
        to.update_allocation(v19.AllocationRequest(rm_id=RM_ID, allocations=allocations))


__all__ = ["Manager", "Scheduler"]
