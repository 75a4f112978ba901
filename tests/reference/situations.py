"""Counts the interesting situations of the scenarios: an agreement that never met them has shown nothing.

What is counted is seen in the reference's records and sums, before and after each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import (
    Allocation,
    Input,
    NewAllocation,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    Released,
    Termination,
    UpdatedApplication,
    WaitingForResources,
)
from reference import gangsituations
from reference.cluster import ReferenceCluster
from reference.model import App, Ask, Node, Partition, Queue, fits_limit, rest
from reference.quotatrees import QUOTAS
from reference.sums import Sums, app_priority, limit_of, trackers

WANTED: Final = (
    "allocated",
    "allocated by constraints",
    "allocated to a required node",
    "allocated to the reserved node",
    "allocated elsewhere than reserved",
    "ask repeated",
    "reservation made",
    "reservation of a required node made",
    "reservation displaced by a required node",
    "reservation too old",
    "reservation gone with its ask or node",
    "back-off entered",
    "back-off ended",
    "made room on a required node",
    "queues: priority decides",
    "queues: share decides",
    "queues: larger pending or name decides",
    "queues: a fence hides a priority",
    "queues: an offset counts",
    "applications: priority decides",
    "applications: share decides",
    "applications: age decides",
    "waits: maximum applications of a queue",
    "waits: maximum applications of a user",
    "waits: maximum applications of a group",
    "waits: stateaware order",
    "waits: quota of a queue",
    "waits: quota of root",
    "a node has less than is allocated there",
    "waits: limit of a user",
    "waits: limit of a user at a middle level",
    "waits: limit of every user (*)",
    "waits: limit of a group",
    "waits: limit of other groups (*)",
    "waits: nodes",
    "slot held while accepted",
    "waits: a slot that an accepted application holds elsewhere",
    "limit of a call reached",
    "predicates asked",
    "several partitions",
    "several resource managers",
    "the first interface",
    "priority class",
    "message: allocation released",
    "message: ask released",
    "message: all released",
    "message: foreign allocation",
    "message: foreign allocation ended",
    "message: size changed",
    "message: existing allocation",
    "message: pending ask placed outside",
    "message: node drained with allocations",
    "message: node serves again",
    "message: node removed with allocations",
    "message: node removed that was reserved",
    "message: node updated",
    "reload",
    "reload: quota below usage",
    "reload: fewer applications than run",
    "reload: queue drains with applications",
    "reload: leaf with applications becomes a parent",
    "reload: partition gone with applications",
    "reload: group lost its limit",
    "queue created",
    "queue removed",
    "time: Starting left",
    "time: Completing left",
    "time: allocation timed out",
    "time: application timed out",
    "application completed",
    "application failed",
    "waiting for resources reported",
    *QUOTAS,
    "deadline followed",
    "slept until a deadline",
    *gangsituations.WANTED,
)


class Situations:
    """How often each was met."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()
        self._states: dict[App, str] = {}
        self._paths: dict[Partition, set[str]] = {}
        self._backoff: dict[App, int] = {}
        self._reserved: dict[Ask, Node] = {}
        self._slots: set[App] = set()
        self._groups: dict[App, str] = {}
        self._leaves: set[Queue] = set()

    def count(self, what: str, times: int = 1) -> None:
        """Once more, or several times."""
        self.met[what] += times

    def missing(self) -> list[str]:
        """The situations that were never met."""
        return [what for what in WANTED if not self.met[what]]

    def report(self) -> str:
        """All counts."""
        return "".join(f"{self.met[what]:8} {what}\n" for what in WANTED)

    # -- inputs ------------------------------------------------------------------------------------------

    def messages(self, reference: ReferenceCluster, rm_id: str, inputs: Iterable[Input]) -> None:
        """Messages are about to be handed in."""
        for message in inputs:
            partition = reference.managers[rm_id].get(message.partition)
            if partition is None:
                continue
            match message:
                case Release():
                    self._release(partition, message)
                case Allocation():
                    self._allocation(partition, message)
                case NodeUpdate():
                    self._node(partition, message)

    def _release(self, partition: Partition, message: Release) -> None:
        if not message.application_id:
            self.count("message: foreign allocation ended")
        elif not message.key and not message.uuid:
            self.count("message: all released")
        elif (app := partition.apps.get(message.application_id)) is not None:
            self.met["message: ask released"] += message.key in app.asks
            self.met["message: allocation released"] += (message.uuid or message.key) in app.allocations

    def _allocation(self, partition: Partition, message: Allocation) -> None:
        if message.tags and TAG_FOREIGN in message.tags:
            self.count("message: foreign allocation")
            return
        app = partition.apps.get(message.application_id)
        known = app is not None and (message.key in app.asks or (message.uuid or message.key) in app.allocations)
        if message.node_id and app is not None and (message.uuid or message.key) not in app.allocations:
            self.count("message: pending ask placed outside" if known else "message: existing allocation")
        elif known:
            self.count("message: size changed")
        self.met["priority class"] += message.priority_class in partition.priority_classes

    def _node(self, partition: Partition, message: NodeUpdate) -> None:
        node = partition.nodes.get(message.node_id)
        if node is None:
            return
        loaded = any(alloc.node is node for alloc in partition.allocations())
        match message.action:
            case NodeAction.DRAIN_NODE:
                self.met["message: node drained with allocations"] += loaded
            case NodeAction.DRAIN_TO_SCHEDULABLE:
                self.met["message: node serves again"] += not node.schedulable
            case NodeAction.DECOMISSION:
                self.met["message: node removed with allocations"] += loaded
                self.met["message: node removed that was reserved"] += bool(node.reserved_by)
            case NodeAction.UPDATE:
                self.count("message: node updated")

    def before_change(self, reference: ReferenceCluster) -> None:
        """Messages, a configuration or time are about to change something."""
        partitions = reference.partitions()
        self._states = {app: app.state for p in partitions for app in p.apps.values()}
        self._paths = {p: {queue.path for queue in p.root.walk()} for p in partitions}
        self._reserved = dict(_reserved(partitions))
        self._groups = {app: app.group for p in partitions for app in p.apps.values() if app.group is not None}
        self._leaves = {queue for p in partitions for queue in p.root.walk() if queue.leaf and p.apps_of(queue)}

    def after_change(self, reference: ReferenceCluster, what: str) -> None:
        """They have."""
        partitions = reference.partitions()
        for partition in partitions:
            paths = {queue.path for queue in partition.root.walk()}
            before = self._paths.get(partition, paths)
            self.met["queue created"] += len(paths - before)
            self.met["queue removed"] += len(before - paths)
            for name in QUOTAS:
                self.met[name] += partition.numbers.pop(name, 0)
        gone = len(self._reserved.keys() - dict(_reserved(partitions)).keys())
        self.met["reservation too old" if what == "time" else "reservation gone with its ask or node"] += gone
        if what == "time":
            apps = [app for p in partitions for app in p.apps.values()]
            self.met["time: Starting left"] += sum(
                self._states.get(a) == "Starting" and a.state == "Running" for a in apps
            )
            self.met["time: Completing left"] += sum(
                state == "Completing" and app.state == "Completed" for app, state in self._states.items()
            )
        if what == "reload":
            self._reloaded(partitions)

    def _reloaded(self, partitions: list[Partition]) -> None:
        self.count("reload")
        for partition in partitions:
            sums = Sums(partition)
            for queue in partition.root.walk():
                over = any(left < 0 for left in rest(queue.maximum, sums.allocated[queue]).values())
                self.met["reload: quota below usage"] += over
                self.met["reload: fewer applications than run"] += 0 < queue.max_apps < queue.running
                self.met["reload: queue drains with applications"] += queue.draining and bool(partition.apps_of(queue))
        apps = {app for p in partitions for app in p.apps.values()}
        self.met["reload: partition gone with applications"] += len(self._states.keys() - apps)
        self.met["reload: group lost its limit"] += sum(app.group != g for app, g in self._groups.items())
        self.met["reload: leaf with applications becomes a parent"] += sum(not queue.leaf for queue in self._leaves)

    # -- decisions ---------------------------------------------------------------------------------------

    def before_schedule(self, reference: ReferenceCluster) -> None:
        """Decisions are about to be made."""
        partitions = reference.partitions()
        self._reserved = dict(_reserved(partitions))
        self._backoff = {app: app.backoff_until_ns for p in partitions for app in p.apps.values()}
        self._slots = {app for p in partitions for app in p.apps.values() if app.holds_slot}
        for partition in partitions:
            sums = Sums(partition)
            self.met["a node has less than is allocated there"] += sums.bound != sums.cluster
            for queue in partition.root.walk():
                if queue.leaf:
                    self._compare_apps(sums, queue)
                else:
                    self._compare_queues(sums, queue)
            ended = [app for app in partition.apps.values() if 0 < app.backoff_until_ns <= partition.now_ns]
            self.met["back-off ended"] += len(ended)
        self.met["several partitions"] += len(partitions) > 1
        self.met["several resource managers"] += len(reference.managers) > 1
        self.met["the first interface"] += any(p.first_interface for p in partitions)
        self.met["predicates asked"] += any(p.predicate is not None for p in partitions)

    def _compare_queues(self, sums: Sums, parent: Queue) -> None:
        children = sums.children_in_order(parent)
        for one, other in pairwise(children):
            if sums.priority(one) != sums.priority(other) and parent.settings.sort_by_priority:
                self.count("queues: priority decides")
            elif sums.share(one) != sums.share(other):
                self.count("queues: share decides")
            elif sums.priority(one) == sums.priority(other):
                self.count("queues: larger pending or name decides")
        for child in children if len(children) > 1 else ():
            if child.settings.priority_fence:
                self.met["queues: a fence hides a priority"] += sums.priority(child) != sums.base(child)
            else:
                self.met["queues: an offset counts"] += child.settings.priority_offset != 0

    def _compare_apps(self, sums: Sums, leaf: Queue) -> None:
        apps = sums.apps_in_order(leaf)
        for one, other in pairwise(apps):
            if app_priority(one) != app_priority(other) and leaf.settings.sort_by_priority:
                self.count("applications: priority decides")
            elif leaf.settings.sort_policy == "fair":
                self.count("applications: share decides")
            else:
                self.count("applications: age decides")

    def after_schedule(self, reference: ReferenceCluster, said: list[tuple[str, Output]], limit: int | None) -> None:
        """They were made."""
        partitions = reference.partitions()
        now = dict(_reserved(partitions))
        for ask in now.keys() - self._reserved.keys():
            self.count("reservation of a required node made" if ask.required else "reservation made")
        made = sum(isinstance(output, NewAllocation) for _, output in said)
        self.met["limit of a call reached"] += made == limit
        for partition in partitions:
            for app in partition.apps.values():
                self.met["back-off entered"] += app.backoff_until_ns > self._backoff.get(app, 0)
                self.met["slot held while accepted"] += app.holds_slot and app not in self._slots
            for alloc in partition.allocations():
                self._allocated(
                    alloc, {output.uuid or output.key for _, output in said if isinstance(output, NewAllocation)}
                )
        for ask, node in self._reserved.items():
            if ask not in now and ask.key in ask.app.asks and any(a.required == node.id for a in _on(partitions, node)):
                self.count("reservation displaced by a required node")
        if limit is None:
            for partition in partitions:
                self._waits(partition)

    def _allocated(self, alloc: Ask, new: set[str]) -> None:
        if alloc.id not in new or alloc.node is None:
            return
        self.count("allocated")
        self.met["allocated by constraints"] += bool(alloc.constraints)
        self.met["allocated to a required node"] += bool(alloc.required)
        self.met["ask repeated"] += alloc.key in alloc.app.asks
        reserved = {ask.key: node for ask, node in self._reserved.items() if ask.app is alloc.app}.get(alloc.key)
        if reserved is not None:
            same = reserved is alloc.node
            self.count("allocated to the reserved node" if same else "allocated elsewhere than reserved")

    def _waits(self, partition: Partition) -> None:
        """Everything was tried: why does what is still pending wait?"""
        sums = Sums(partition)
        for app in partition.apps.values():
            for ask in app.asks.values():
                for why in set(_reasons(sums, app, ask)) or {"nodes"}:
                    self.count(f"waits: {why}")

    # -- outputs -----------------------------------------------------------------------------------------

    def said(self, reference: ReferenceCluster, said: list[tuple[str, Output]]) -> None:
        """Count the situations of a message that both have sent."""
        gangsituations.count(self, reference, said)
        for _, output in said:
            match output:
                case Released(termination=Termination.TIMEOUT):
                    self.count("time: allocation timed out")
                case Released(termination=Termination.PREEMPTED_BY_SCHEDULER):
                    self.count("made room on a required node")
                case UpdatedApplication(state="Completed"):
                    self.count("application completed")
                case UpdatedApplication(state="Failed"):
                    self.count("application failed")
                case UpdatedApplication(message="ExecutionTimeout"):
                    self.count("time: application timed out")
                case WaitingForResources():
                    self.count("waiting for resources reported")


def _reserved(partitions: list[Partition]) -> Iterator[tuple[Ask, Node]]:
    for partition in partitions:
        for node in partition.nodes.values():
            yield from ((ask, node) for ask in node.reserved_by)


def _on(partitions: list[Partition], node: Node) -> list[Ask]:
    """The allocations on the node, and the asks that have reserved it."""
    return [a for p in partitions for a in p.allocations() if a.node is node] + node.reserved_by


def _reasons(sums: Sums, app: App, ask: Ask) -> Iterator[str]:
    partition = sums.partition
    if app.state == "Accepted" and not app.holds_slot:
        for queue in app.queue.lineage():
            if queue.max_apps and queue.running + sums.slots[queue] >= queue.max_apps:
                yield "maximum applications of a queue"
                if queue.running < queue.max_apps and not any(a.holds_slot for a in partition.apps_of(app.queue)):
                    yield "a slot that an accepted application holds elsewhere"
        for key in trackers(app):
            most = limit_of(partition, key).apps
            if most and len(sums.others(app, key)) >= most:
                yield f"maximum applications of a {key[0]}"
    if not sums.may_run(app) and sums.stateaware(app.queue):
        yield "stateaware order"
    for queue in app.queue.lineage():
        limit = sums.bound if queue.parent is None else queue.maximum
        if ask.required and queue.parent is None:
            continue
        if not fits_limit(rest(limit, sums.allocated[queue]), ask.amounts):
            yield "quota of root" if queue.parent is None else "quota of a queue"
    for key in trackers(app):
        kind, name, path = key
        if not fits_limit(rest(limit_of(partition, key).amounts, sums.used[key]), ask.amounts):
            named = kind == "group" or name in partition.limits[path].users
            yield f"limit of a {kind}" if named and name != "*" else f"limit of {_EVERY[kind]} (*)"
            if kind == "user" and path not in ("root", app.queue.path):
                yield "limit of a user at a middle level"


_EVERY: Final = {"user": "every user", "group": "other groups"}
