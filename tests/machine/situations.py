"""Counts the interesting situations of a run: a check that never met them has shown nothing.

Situations are seen from outside: in the scheduler's messages, or in its state before and after a step.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from licorne.si import messages
from licorne.si.messages import Termination

if TYPE_CHECKING:
    from machine.driver import Driver
    from machine.things import App, Ask, Node

WANTED = (
    "reservation made",
    "reservation used",
    "reservation left for another node",
    "reservation expired",
    "allocated to a required node",
    "made room on a required node",
    "made room for a guarantee",
    "victims needed",
    "replacement decided",
    "placeholder replaced",
    "changed in flight",
    "placed elsewhere in flight",
    "soft style resumes",
    "hard style fails",
    "waits: placeholder",
    "quota enforced",
    "quota enforced below a parent",
    "drained with allocations",
    "node removed with allocations",
    "re-registered with pending asks",
    "reload below usage",
    "reload refused",
    "reload drains a queue with applications",
    "partition dropped with applications",
    "back-off entered",
    "dynamic queue created",
    "dynamic queue cleaned",
    "draining queue removed",
    "placed by constraint",
    "allocation timed out",
    "application timed out",
    "Starting left by time",
    "Completing left by time",
    "waiting for resources reported",
    "recovered allocation",
    "pending ask placed outside",
    "ask changed",
    "ask repeated",
    "independent ask",
    "bad input refused",
    "predicate refused",
    "waits: maximum applications",
    "waits: maximum applications of a limit",
    "waits: stateaware order",
    "waits: back-off",
    "waits: quota",
    "waits: limit of a user",
    "waits: limit of a group",
    "waits: node",
    "waits: required node",
    "waits: queue serves nobody",
    "limit of the schedule call reached",
    "quiet until the deadline",
    "order checked",
)


class Situations:
    """How often each was met."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()
        self.steps = 0
        self._queues: dict[tuple[str, str], dict[str, tuple[bool, bool]]] = {}
        self._states: dict[tuple[str, str, str], str] = {}
        self._backoff: dict[tuple[str, str, str], int] = {}
        self._reserved: dict[tuple[str, str], dict[str, list[str]]] = {}

    def count(self, what: str) -> None:
        """Once more."""
        self.met[what] += 1

    def missing(self) -> list[str]:
        """The situations that were never met."""
        return [what for what in WANTED if not self.met[what]]

    def heard(self, output: messages.Output) -> None:
        """Count the situations of a message of the scheduler."""
        if isinstance(output, messages.Released):
            if output.termination is Termination.PLACEHOLDER_REPLACED:
                self.count("replacement decided")
            elif output.termination is Termination.TIMEOUT:
                self.count("allocation timed out")
            elif output.termination is Termination.PREEMPTED_BY_SCHEDULER:
                self.met["made room on a required node"] += "daemon set ask" in output.message
                self.met["made room for a guarantee"] += "to run ask" in output.message
        elif isinstance(output, messages.WaitingForResources):
            self.count("waiting for resources reported")
        elif isinstance(output, messages.UpdatedApplication):
            self.met["application timed out"] += output.message == "ExecutionTimeout"
            self.met["soft style resumes"] += output.state == "Resuming"
            self.met["hard style fails"] += output.message == "ResourceReservationTimeout" and output.state == "Failing"

    def allocated(self, app: App, ask: Ask, node: Node, reserved: dict[str, list[str]]) -> None:
        """Count the situations of an allocation; `reserved` maps nodes to the asks that had reserved them before the call."""
        if ask.key in reserved.get(node.id, []):
            self.count("reservation used")
        elif any(ask.key in keys for keys in reserved.values()):
            self.count("reservation left for another node")
        if ask.required:
            self.count("allocated to a required node")
        if ask.constraint and (node.tainted or node.labels):
            self.count("placed by constraint")
        if ask.left > 1:
            self.count("ask repeated")
        if app.independent:
            self.count("independent ask")

    def before_time(self, driver: Driver) -> None:
        """Note the state before time passes."""
        self._states = {
            (*key, app.id): app.state for key, expected in driver.expected.items() for app in expected.apps.values()
        }
        self._reserved = {key: driver.reservations(*key) for key in driver.expected}
        self._queues = {key: _queues(driver, key) for key in driver.expected}

    def after_time(self, driver: Driver) -> None:
        """Count the situations after time has passed."""
        for key, expected in driver.expected.items():
            for app in expected.apps.values():
                if self._states.get((*key, app.id)) == "Starting" and app.state == "Running":
                    self.count("Starting left by time")
            completing = [
                a for *where, a in self._states if tuple(where) == key and self._states[*key, a] == "Completing"
            ]
            self.met["Completing left by time"] += sum(app_id not in expected.apps for app_id in completing)
            if sum(map(len, driver.reservations(*key).values())) < sum(map(len, self._reserved[key].values())):
                self.count("reservation expired")
            left = _queues(driver, key)
            for path, (managed, draining) in self._queues[key].items():
                if path not in left:
                    self.count("draining queue removed" if managed and draining else "dynamic queue cleaned")

    def before_schedule(self, driver: Driver) -> None:
        """Decisions are about to be made."""
        self._backoff = {
            (*key, app.id): driver.partition(*key).applications[app.id].backoff_until
            for key, expected in driver.expected.items()
            for app in expected.apps.values()
        }

    def after_schedule(self, driver: Driver, reserved: dict[tuple[str, str], dict[str, list[str]]]) -> None:
        """Count the situations after decisions were made."""
        for key, expected in driver.expected.items():
            partition = driver.partition(*key)
            now = driver.reservations(*key)
            for node, keys in now.items():
                self.met["reservation made"] += len(set(keys) - set(reserved[key].get(node, [])))
            for app in expected.apps.values():
                until = partition.applications[app.id].backoff_until
                if until > self._backoff.get((*key, app.id), until):
                    self.count("back-off entered")

    def stepped(self) -> None:
        """A step is over."""
        self.steps += 1

    def report(self) -> str:
        """All counts, in columns."""
        return "\n".join(f"{count:8} {what}" for what, count in sorted(self.met.items()))


def _queues(driver: Driver, key: tuple[str, str]) -> dict[str, tuple[bool, bool]]:
    partition: Any = driver.partition(*key)
    return {queue.path: (queue.managed, queue.draining) for queue in partition.tree.queues()}
