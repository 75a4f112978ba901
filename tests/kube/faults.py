"""Faults to plant in the Kubernetes side, and in how nodes are kept: random schedules of a cluster must notice each of them.

Run as a program, `faults.py NAME`, this plants one fault, plays schedules until one fails, and prints what it was.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgspec

from common.planting import raised_by_a_law
from kube import books, ends, schedules, watched
from kube.kinds import Kind
from licorne.core.amounts.vectors import Vec
from licorne.core.gangs.atomic import LastingGang
from licorne.core.preemption import eviction_plans, evictions
from licorne.core.preemption.node_search import NodeSearch
from licorne.core.queues.tree import Tree
from licorne.core.scheduling.reservations import Reservations
from licorne.kube import configuring
from licorne.kube.binder import Binder
from licorne.kube.configmaps import Configuration
from licorne.kube.lease import HeldLease
from licorne.kube.manager import Manager, applications, gangs, lifecycle, records
from licorne.kube.manager import manager as managing
from licorne.kube.manager.budgets import Budgets
from licorne.kube.manager.decisions import Decisions
from licorne.kube.manager.foreign import ForeignPods
from licorne.kube.manager.gangs import Gangs
from licorne.kube.manager.holding import Holding
from licorne.kube.manager.lifecycle import PodLifecycle
from licorne.kube.manager.pod_groups import PodGroups
from licorne.kube.objects import Node
from licorne.kube.pauses import PauseGuard
from licorne.kube.pods import constraints, foreign, volumes, work
from licorne.kube.pods.work import ask_with
from licorne.kube.reflector import Reflector
from licorne.kube.results import Results
from licorne.kube.writer import Writer
from licorne.si.constants import TAG_WHOLE_TIMEOUT
from licorne.si.messages import AddApplication, NodeUpdate
from recording import recorded

ENOUGH = 400
"""A fault that is not caught in so many schedules is not caught."""
LAWS = (books, ends, recorded, schedules, watched)
"""The modules that hold what must be so in a schedule."""


def _given_back_without_looking(_sound: Any) -> Any:
    async def bind(self: Binder, binding: Any) -> str | None:
        command = binding.command
        try:
            await self._client.bind(command.namespace, command.name, command.uid, command.node)
        except Exception as error:  # noqa: BLE001  that is the fault
            return str(error)
        return None

    return bind


def _nothing(_sound: Any) -> Any:
    return lambda *_arguments: None


def _published_without_comparing(_sound: Any) -> Any:
    def publish(self: Reflector[Any], fresh: dict[tuple[str, str], Any], version: str) -> None:
        for new in fresh.values():
            self._put(new)
        self._advance(version)
        self._listed = True
        self.synced.set()

    return publish


def _read_whatever_happened(_sound: Any) -> Any:
    def was_read(self: PauseGuard, _pauses: int) -> None:
        self._paused.clear()
        self._recent.set()

    return was_read


def _counted_when_seen(_sound: Any) -> Any:
    def bound(self: PodLifecycle, uid: str) -> None:
        self._take_back(uid)

    return bound


class _Cached:
    """A source that is content with what a cache of the API server has."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def list_page(self, kind: Any, *, newest: bool, **more: Any) -> Any:
        return self._source.list_page(kind, **more)

    def watch(self, kind: Any, version: str = "", **more: Any) -> Any:
        return self._source.watch(kind, version or "0", **more)


def _read_from_caches(sound: Any) -> Any:
    async def run(self: Any) -> None:
        self._source = _Cached(self._source)
        await sound(self)

    return run


def _without_maxima(sound: Any) -> Any:
    def read(*arguments: Any) -> Configuration:
        found: Configuration = sound(*arguments)
        return msgspec.structs.replace(found, queues=re.sub(r"max: {.*?}(, )?", "", found.queues))

    return read


def _without_reservations(sound: Any) -> Any:
    return lambda configuration: sound(configuration) | {"reservation.enabled": "false"}


def _open_though_kept(sound: Any) -> Any:
    def mend_open(self: Reservations, node: Any) -> None:
        kept, node.reservations = node.reservations, {}
        sound(self, node)
        node.reservations = kept

    return mend_open


def _no_ports(_sound: Any) -> Any:
    return lambda _pod: []


def _without_taints(sound: Any) -> Any:
    def info(node: Node, *arguments: Any) -> NodeUpdate:
        bare = msgspec.structs.replace(node.spec, taints=None, unschedulable=False)
        told: NodeUpdate = sound(msgspec.structs.replace(node, spec=bare), *arguments)
        return told

    return info


def _as_at_first(sound: Any) -> Any:
    def seen(self: Manager, node: Node) -> None:
        sound(self, self.records.nodes.get(node.metadata.name, node))

    return seen


def _read_with(**changes: Any) -> Callable[[Any], Any]:
    """Return a fault of `read_pod`: what a pod asks for has other values."""

    def broken(sound: Any) -> Any:
        return lambda *arguments: msgspec.structs.replace(sound(*arguments), **changes)

    return broken


def _all_as_important(sound: Any) -> Any:
    def read(*arguments: Any) -> Any:
        work = sound(*arguments)
        return msgspec.structs.replace(work, ask=ask_with(work.ask, priority=10))

    return read


def _no_whole_gangs(sound: Any) -> Any:
    def read(*arguments: Any) -> Any:
        work = sound(*arguments)
        if work.gang is None or "whole" not in work.ask.application_id:
            return work
        names = [name for name in work.application.tags if "gang" in name or "group" in name]
        tags = {name: text for name, text in work.application.tags.items() if name not in names}
        application = msgspec.structs.replace(work.application, tags=tags)
        return msgspec.structs.replace(work, gang=None, application=application)

    return read


def _untold(sound: Any) -> Any:
    async def send(self: Writer, job: Any) -> None:
        job.reported = True
        await sound(self, job)

    return send


def _failed_on_sight(sound: Any) -> Any:
    def hold_or_ask(self: PodLifecycle, record: Any) -> None:
        if record.application.is_failing and not record.work.ask.placeholder:
            self.holding.fail(record, "ApplicationFailed", "")
        sound(self, record)

    return hold_or_ask


def _failed_like_members(sound: Any) -> Any:
    def remove_placeholder(self: Holding, record: Any, why: str) -> None:
        if record.pod.spec.node_name:
            sound(self, record, why)
        else:
            self.fail(record, "ApplicationFailed", why)

    return remove_placeholder


def _as_if_soft(sound: Any) -> Any:
    def not_created(self: Gangs, application_id: str, *more: Any) -> None:
        application = self._records.applications.get(application_id)
        if application is not None and application.gang is not None:
            application.gang = msgspec.structs.replace(application.gang, hard=False)
        sound(self, application_id, *more)

    return not_created


def _with_its_age(sound: Any) -> Any:
    def announcement(application: Any, work: Any) -> AddApplication:
        message: AddApplication = sound(application, work)
        message.tags.pop(TAG_WHOLE_TIMEOUT, None)
        return message

    return staticmethod(announcement)


def _beside_no_claims(_sound: Any) -> Any:
    def count_room(_self: NodeSearch, candidates: Any) -> None:
        for alloc in candidates.node.allocations:
            if alloc.preempted:
                candidates.room.plus(alloc.shape.amounts)

    return count_room


def _all_there_are(sound: Any) -> Any:
    def evict(partition: Any, ask: Any, victims: Any, *more: Any) -> Any:
        node = victims[0].node if victims else None
        others = [] if node is None else [one for one in node.allocations if one.app.queue is victims[0].app.queue]
        extra = [one for one in others if one not in victims and not (one.preempted or one.released)]
        return sound(partition, ask, [*victims, *extra], *more)

    return evict


FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "a binding whose answer was lost gives its place back": (Binder, "_bind", _given_back_without_looking),
    "pods that are gone keep their places": (PodLifecycle, "pod_gone", _nothing),
    "a list read anew removes nothing": (Reflector, "_publish", _published_without_comparing),
    "a pod that could not be bound is forgotten": (PodLifecycle, "ask_again", _nothing),
    "a place is counted when the API server shows the binding": (PodLifecycle, "bound", _counted_when_seen),
    "lists are read from a cache that may be behind": (Reflector, "run", _read_from_caches),
    "a pause goes unnoticed": (PauseGuard, "check", lambda _sound: lambda _self: True),
    "a pause while the cluster is read again goes unnoticed": (PauseGuard, "was_read", _read_whatever_happened),
    "a decision of before a pause is forgotten": (PodLifecycle, "outdated", _nothing),
    "queues have no maximum": (configuring, "read_configuration", _without_maxima),
    "a changed ConfigMap changes no queue": (configuring.ConfigMaps, "_reload", _nothing),
    "no node is kept for a pod that waits": (Configuration, "of_scheduler", _without_reservations),
    "others get a node that is kept": (Reservations, "mend_open", _open_though_kept),
    "host ports do not count": (constraints, "host_ports", _no_ports),
    "host ports of other schedulers' pods do not count": (foreign, "host_ports", _no_ports),
    "what pods demand of others does not count": (work, "terms_text", lambda _sound: lambda *_: ""),
    "what other schedulers' pods demand does not count": (foreign, "terms_text", lambda _sound: lambda *_: ""),
    "a running pod that is relabelled goes unnoticed": (lifecycle, "_is_alike", lambda _sound: lambda *_: True),
    "pods of other schedulers take nothing": (ForeignPods, "place", _nothing),
    "taints do not count, and cordons neither": (managing, "node_update", _without_taints),
    "a node stays as it was at first": (Manager, "node_seen", _as_at_first),
    "scheduling gates do not count": (lifecycle, "read_pod", _read_with(gates=())),
    "a scheduling gate that is removed goes unnoticed": (lifecycle, "asks_the_same", lambda _sound: lambda *_: True),
    "a gang without placeholders is placed one by one": (lifecycle, "read_pod", _no_whole_gangs),
    "disruption budgets are not told": (Budgets, "send", _nothing),
    "nobody is evicted": (Decisions, "_evict", _nothing),
    "all pods are as important": (lifecycle, "read_pod", _all_as_important),
    "a victim is deleted before it is told so": (Writer, "_send", _untold),
    "the age of its pods takes time from a gang": (Gangs, "announcement", _with_its_age),
    "a pod that comes while its gang fails is failed": (PodLifecycle, "hold_or_ask", _failed_on_sight),
    "a placeholder that comes while its gang fails is failed": (Holding, "remove_placeholder", _failed_like_members),
    "writes that fail are not counted": (Results, "failed", _nothing),
    "a gang begins without a member that is not decided": (gangs, "_undecided", lambda _sound: lambda *_: None),
    "a placeholder says whose its gang is": (applications, "_creator", lambda _sound: lambda record: record),
    "what a node has too much is taken from the others": (
        Tree,
        "bound_root",
        lambda sound: lambda self, _: sound(self, Vec()),
    ),
    "a victim that hangs is waited for without an end": (evictions, "OVERDUE_NS", lambda _sound: 10**18),
    "more are evicted than must be": (eviction_plans, "evict", _all_there_are),
    "what others claim on a node is there for everybody": (NodeSearch, "_count_room", _beside_no_claims),
    "a pod group that has begun may shrink": (LastingGang, "lacks_members", lambda _sound: lambda *_: False),
    "a pod group that changes changes nothing": (PodGroups, "_changed", _nothing),
    "volumes do not count on their nodes": (volumes, "_attached", lambda _sound: lambda *_: {}),
    "the lease of another process is no reason to wait": (HeldLease, "_may_write", lambda _sound: lambda *_: True),
    "a Hard gang goes on without a placeholder that is refused": (Gangs, "not_created", _as_if_soft),
    "a quota of a namespace waits for the next application": (applications.Applications, "tell_of_quota", _nothing),
    "pods that name no application have a driver": (records, "has_generated_id", lambda _sound: lambda _: False),
}


KINDS = {
    "no node is kept for a pod that waits": Kind(reservations=True),
    "others get a node that is kept": Kind(reservations=True),
    "a changed ConfigMap changes no queue": Kind(quotas=True, maps=True),
    "host ports of other schedulers' pods do not count": Kind(foreign=True, ports=True),
    "what pods demand of others does not count": Kind(together=True),
    "what other schedulers' pods demand does not count": Kind(together=True, foreign=True),
    "a running pod that is relabelled goes unnoticed": Kind(together=True),
    "disruption budgets are not told": Kind(preemption=True, budgets=True),
    "the age of its pods takes time from a gang": Kind(hard=True),
    "a pod that comes while its gang fails is failed": Kind(hard=True),
    "a placeholder that comes while its gang fails is failed": Kind(hard=True),
    "a gang begins without a member that is not decided": Kind(hard=True),
    "what a node has too much is taken from the others": Kind(preemption=True, shrinks=True),
    "a victim that hangs is waited for without an end": Kind(preemption=True, hangs=True),
    "more are evicted than must be": Kind(preemption=True),
    "what others claim on a node is there for everybody": Kind(preemption=True),
    "a pod group that has begun may shrink": Kind(groups=True),
    "a pod group that changes changes nothing": Kind(groups=True),
    "volumes do not count on their nodes": Kind(volumes=True),
    "the lease of another process is no reason to wait": Kind(beside=True),
    "a Hard gang goes on without a placeholder that is refused": Kind(hard=True, refuses=True),
    "a quota of a namespace waits for the next application": Kind(namespaces=True),
    "pods that name no application have a driver": Kind(preemption=True, namespaces=True),
}
"""Kinds of worlds for faults that few of the drawn ones can show; the others are looked for in those."""
HOT = {"what others claim on a node is there for everybody"}
"""Faults in modules that may be compiled, where no function can be replaced."""


def caught(name: str) -> str:
    """Plant the fault and say after how many schedules what showed it, or that nothing did.

    An error that is no broken law is raised.
    """
    where, method, broken = FAULTS[name]
    with patch.object(where, method, broken(getattr(where, method))):
        for seed in range(1, ENOUGH + 1):
            try:
                schedules.play(seed, KINDS.get(name))
            except Exception as error:
                if not raised_by_a_law(error, *LAWS):
                    raise
                return f"caught after {seed} schedules: {_first_line(error)}"
    return "not caught"


def _first_line(error: BaseException) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return str(error).partition("\n")[0] or type(error).__name__


if __name__ == "__main__":
    sys.stdout.write(f"{caught(sys.argv[1])}\n")
