"""The demonstration's resource manager: it sends lines as requests when they are due, and acts on decisions.

What it knows of its cluster, and how pods end, are confirmed and created again, is the model of `licorne.sim.model`. Here this is
connected to a scheduler behind gRPC: answers come whenever they come, perhaps twice, and after a lost connection
everything is reported anew. While the cluster is crowded, new applications are left out; what has ended is dropped, so
the size of the state follows that of the cluster, however long the demonstration runs.

This module has neither clock nor thread, which are in `run`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from licorne.core.api import SchedulerAPI
from licorne.grpc.client import SchedulerClient
from licorne.si import messages, v19
from licorne.si.constants import DOMAIN_K8S, GROUP_META, KEY_NAMESPACE, KEY_POD_NAME, TAG_NAMESPACE
from licorne.si.messages import CONFIRMED, Termination
from licorne.si.requests_v19 import requests
from licorne.sim.model import ResourceManager
from licorne.workload import lines

RM_ID = "demo"
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

Scheduler = SchedulerClient | SchedulerAPI
_OVER = frozenset(("Completed", "Failed", "Rejected"))


class Manager:
    """A resource manager that turns lines and answers into requests.

    `say` returns the scheduler to which a request is sent; None: nothing is sent, as the connection is lost. Times are nanoseconds of the demonstration's own clock,
    which runs `speed` times as fast as real time. Timeouts that the scheduler measures are converted to real time.
    """

    def __init__(self, say: Callable[[], Scheduler | None], speed: float = 1.0) -> None:
        self.model = ResourceManager(grace_ns=GRACE_NS, replaces=True)
        self.counts = self.model.counts
        self._say = say
        self._speed = speed
        self._withdrawals: deque[tuple[int, str]] = deque()

    # -- lines and time --------------------------------------------------------------------------------

    def hand_in(self, given: list[lines.Line], now_ns: int) -> None:
        """Send lines that are due. If one is an application and the cluster is crowded, all are left out."""
        new = [line.id for line in given if isinstance(line, lines.App)]
        if new and self._crowded():
            self.counts["stayed away"] += 1
            return
        self.counts["applications"] += len(new)
        self._withdrawals += ((now_ns + PATIENCE_NS, app) for app in new)
        taken = [self.model.take(line, now_ns) for line in given]
        self._send(message for message in taken if message is not None)

    def pass_time(self, now_ns: int) -> None:
        """End pods, and withdraw applications, whose time is over."""
        found = self.model.due(now_ns)
        while self._withdrawals and self._withdrawals[0][0] <= now_ns:
            app = self._withdrawals.popleft()[1]
            if not self._stays(app) and self._forget(app):
                self.counts["taken back"] += 1
                found.append(messages.RemoveApplication(application_id=app))
        self._send(found)

    def next_ns(self) -> int | None:
        """Return the time of the next event; None if there is none."""
        times = (self.model.next_ns(), self._withdrawals[0][0] if self._withdrawals else None)
        return min((time for time in times if time is not None), default=None)

    def busy(self) -> int:
        """Count the applications that have pods, or are not accepted yet."""
        known = self.model.applications.items()
        return sum(bool(self.model.keys_of.get(app)) or not application.state for app, application in known)

    def waiting(self) -> int:
        """Count the pending pods."""
        return sum(1 for _ in self.model.waiting())

    def _crowded(self) -> bool:
        too_many = self.busy() >= CROWD_BUSY or len(self.model.applications) >= CROWD_APPLICATIONS
        return too_many or self.waiting() >= CROWD_PODS

    def _stays(self, app: str) -> bool:
        """Whether an application is not to be withdrawn: it has a pod that never ends, or it is completing."""
        keys = self.model.keys_of.get(app)
        if keys:
            return any(self.model.pods[key].ask.duration_s is None for key in keys)
        known = self.model.applications.get(app)
        return known is not None and known.state in ("Running", "Completing")

    def _forget(self, app: str) -> bool:
        known = self.model.forget(app)
        self.model.gangs.known.pop(app, None)
        return known

    def _send(self, inputs: Iterable[messages.Input], to: Scheduler | None = None) -> None:
        """Send inputs; pods get the tags from which web pages make their names."""
        found = list(inputs)
        for message in found:
            if isinstance(message, messages.Allocation):
                shown = {
                    DOMAIN_K8S + GROUP_META + KEY_NAMESPACE: self._namespace(message.application_id),
                    DOMAIN_K8S + GROUP_META + KEY_POD_NAME: message.key,
                }
                message.tags = {**shown, **(message.tags or {})}
            elif isinstance(message, messages.AddApplication) and message.execution_timeout_ms:
                message.execution_timeout_ms = max(1, round(message.execution_timeout_ms / self._speed))
        scheduler = to or self._say()
        for method, request in requests(RM_ID, found) if scheduler is not None else ():
            getattr(scheduler, method)(request)

    def _namespace(self, app: str) -> str:
        known = self.model.applications.get(app)
        return "kube-system" if known is None else (known.line.tags or {}).get(TAG_NAMESPACE, known.line.user)

    # -- answers ---------------------------------------------------------------------------------------

    def take(self, response: Any, now_ns: int) -> None:
        """Act on a message of the scheduler."""
        answers: list[messages.Input] = []
        if isinstance(response, v19.ApplicationResponse):
            for accepted in response.accepted:
                answers += self._accepted(accepted.application_id, now_ns)
            for refused in response.rejected:
                known = self.model.applications.get(refused.application_id)
                if known is None or not known.state:  # else it was sent twice around a resync; the first answer counts
                    self.counts["applications refused"] += 1
                    self._forget(refused.application_id)
            for updated in response.updated:
                answers += self.model.entered(updated.application_id, updated.state, updated.message)
                if updated.state in _OVER and self._forget(updated.application_id):
                    self.counts[updated.state.lower()] += 1
        elif isinstance(response, v19.AllocationResponse):
            for new in response.new:
                answers += self._placed(new, now_ns)
            for released in response.released:
                answers += self._released(released, now_ns)
            for rejected in response.rejected_allocations:
                self.counts["asks refused"] += 1
                self.model.running.pop((rejected.application_id, rejected.allocation_key), None)
                self.model.drop(rejected.application_id, rejected.allocation_key)
        self._send(answers)

    def _accepted(self, app: str, now_ns: int) -> list[messages.Input]:
        known = self.model.applications.get(app)
        if known is None or known.state:
            return []  # withdrawn meanwhile, or accepted again after a resync
        gang = self.model.gangs.known.get(app)
        # The node of a placeholder must suit the member that replaces it.
        tags = {} if gang is None else {ask.group: ask.tags for ask in gang.kept.values()}
        return self.model.accepted(app, known.line.queue, now_ns, tags)

    def _placed(self, new: v19.Allocation, now_ns: int) -> list[messages.Input]:
        app, key = new.application_id, new.allocation_key
        if (app, key) in self.model.running:
            return []  # confirmed again after a resync
        pod = self.model.placed(new.application_id, key, "", new.node_id, now_ns)
        if pod is not None:
            self.counts["placeholders" if pod.ask.ph else "placed"] += 1
            return []
        withdrawn = app in self.model.applications
        return [messages.Release(application_id=app, key=key)] if withdrawn else []

    def _released(self, released: v19.AllocationRelease, now_ns: int) -> list[messages.Input]:
        app, key = released.application_id, released.allocation_key
        termination = Termination(released.termination_type)
        if (app, key) in self.model.running:
            return self.model.released(app, key, "", termination, now_ns)
        pod = self.model.find(app, key)
        if pod is None and termination in CONFIRMED:
            return [messages.Release(application_id=app, key=key, termination=termination)]
        if pod is not None and not pod.placed:  # an ask that the scheduler has withdrawn
            self.model.drop(app, key)
        return []

    # -- resync ----------------------------------------------------------------------------------------

    def report(self, to: Scheduler) -> None:
        """Report everything to a scheduler without state: nodes, applications, running pods, then pending ones."""
        self._send(self.model.report(), to)
