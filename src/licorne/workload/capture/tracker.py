"""What polls and events of a scheduler show, as lines of a workload; and what they do not show, counted.

Pure: states and events in, lines out. Polls and events overlap and come in any order, so everything here may be told twice:
a pod is known by its application and key, and one that has ended is remembered until polls that began before are over.

What cannot be known is not guessed but said in the notes. When a pod of which only polls tell began to run or ended is
known as exactly as polls follow each other: YuniKorn shows no time of placement (its `allocationTime` is that of the ask).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from licorne.si import constants
from licorne.si import rest_objects as objects
from licorne.si.v19 import ChangeDetail, ChangeType, EventType
from licorne.state.recording import Names
from licorne.state.recording.anonymous import AnonymityError
from licorne.workload import lines

NAMESPACE: Final = f"{constants.DOMAIN_K8S}{constants.GROUP_META}{constants.KEY_NAMESPACE}"
NOTES: Final = {
    "present": "pods ran already when the recording began; each goes on for as long as it ran from then on",
    "running": "pods still ran when the recording ended; how long they run is not known, and they run on",
    "unseen": "pods lived between two polls; their priority, tags and node constraints are not known",
    "started": "pods began to run between two polls, and no event says when; they count from the poll that showed them",
    "ended": "pods or asks ended between two polls, and no event says when; they count to the poll that did not show them any more",
    "evicted": "pods were evicted; each runs as long as it ran, and one that took its place is a pod of its own",
    "node": "nodes came and went between two polls; they are left out",
    "resized": "pods were resized; each keeps the amounts it had first",
    "gang": "applications are gangs; their style and the timeout of their placeholders are not known",
    "nobody": f"applications lived between two polls; their user is not known, and is {constants.NOBODY_USER}",
    "dynamic": "applications run in queues that are made for them; the quota that their namespace sets there is not known",
    "rejected": "applications were rejected; what they would have asked for is not known",
    "reload": "changes of the configuration are left out, since they depend on the names of users",
}
"""What the notes of the workload say of it, by the key under which the cases are counted."""
EVICTION_POLICY: Final = "whether a pod may be evicted, or may evict others, is not known; all may"
GONE: Final = frozenset(
    {
        ChangeDetail.ALLOC_CANCEL,
        ChangeDetail.ALLOC_PREEMPT,
        ChangeDetail.ALLOC_TIMEOUT,
        ChangeDetail.ALLOC_REPLACED,
        ChangeDetail.ALLOC_NODEREMOVED,
    }
)
"""How an allocation ends, in an event of its application."""
_BY_SCHEDULER: Final = (ChangeDetail.ALLOC_TIMEOUT, ChangeDetail.ALLOC_REPLACED)
"""Ends of placeholders that the scheduler itself decides about; a simulation decides anew."""

Id = tuple[str, str]
"""Application and key of a pod."""
Put = Callable[[int, lines.Line, int | None], object]


class _Pod(msgspec.Struct):
    """A pod that is there. Times in ns; 0: unknown, or it has not happened yet."""

    ask: lines.Ask
    asked_ns: int
    started_ns: int = 0
    present: bool = False
    """It ran already at the beginning."""
    start_is_late: bool = False
    """`started_ns` is that of the first poll that showed it running."""
    seen: bool = False
    """A poll has shown it."""
    missing_ns: int = 0
    """The time of the poll that did not show it any more."""

    @property
    def runs(self) -> bool:
        """Whether a node has been given to the pod, as far as polls and events have shown."""
        return self.present or bool(self.started_ns)


class _App(msgspec.Struct):
    line: lines.App
    submitted_ns: int
    described: bool = False
    gone: bool = False
    pods: int = 0
    missing_ns: int = 0


class Tracker:
    """Makes lines of what a scheduler shows from `begin_ns` on.

    Parameters:
        begin_ns: the time that is 0 in the workload, in ns since 1970.
        put: takes a line, its time since the beginning, and since when what it is about exists; both in ns.
        names: replaces names of users and groups; None: they are written.
    """

    def __init__(self, begin_ns: int, put: Put, names: Names | None = None) -> None:
        self.begin_ns = begin_ns
        self.missed: Counter[str] = Counter()
        self._put_line = put
        self._names = names
        self._pods: dict[Id, _Pod] = {}
        self._apps: dict[str, _App] = {}
        self._nodes: dict[str, objects.Node] = {}
        self._foreign: dict[str, objects.ForeignAllocation] = {}
        self._node_events: dict[tuple[str, int, int], int] = {}
        self._ended: dict[Id, int] = {}
        self._ended_before: dict[Id, int] = {}
        self._managed: set[str] = set()
        self._polls = 0
        self._config: str | None = None

    @property
    def pods(self) -> int:
        """How many pods are there now."""
        return len(self._pods)

    def _put(self, at_ns: int, line: lines.Line, since_ns: int | None = None) -> None:
        begin_ns = self.begin_ns
        self._put_line(at_ns - begin_ns, line, None if since_ns is None else since_ns - begin_ns)

    # -- polls -----------------------------------------------------------------------------------------------

    def configuration(self, text: str, now_ns: int) -> str:
        """Take the configuration in force; returns it as it is written. A later one than the first is a line `reload`.

        Raises:
            AnonymityError: names of users are to be replaced, and the first configuration depends on them.
        """
        if text == self._config:
            return text
        first, self._config = self._config is None, text
        try:
            written = text if self._names is None else self._names.configuration(text)
        except AnonymityError:
            if first:
                raise
            self.missed["reload"] += 1
            return text
        if not first:
            self._put(now_ns, lines.Reload(yaml=written))
        return written

    def queues(self, root: objects.Queue) -> None:
        """Take the queues: which of them the configuration names."""
        waiting = [root]
        self._managed.clear()
        while waiting:
            queue = waiting.pop()
            waiting += queue.children
            if queue.is_managed:
                self._managed.add(queue.queuename)

    def nodes(self, nodes: Iterable[objects.Node], now_ns: int) -> None:
        """Take the nodes that there are, with what other schedulers have on them."""
        found = {node.node_id: node for node in nodes}
        first = self._polls == 0
        for name, node in sorted(found.items()):
            before = self._nodes.get(name)
            if before is None:
                at_ns = self.begin_ns if first else self._when(name, ChangeType.ADD, ChangeDetail.DETAILS_NONE, now_ns)
                self._put(
                    at_ns, lines.Node(id=name, res=node.capacity, attrs=_attributes(node), drain=not node.schedulable)
                )
                continue
            if (node.capacity, node.attributes) != (before.capacity, before.attributes):
                at_ns = self._when(name, ChangeType.SET, ChangeDetail.NODE_CAPACITY, now_ns)
                self._put(at_ns, lines.NodeUpdate(id=name, res=node.capacity, attrs=_attributes(node)))
            if node.schedulable != before.schedulable:
                at_ns = self._when(name, ChangeType.SET, ChangeDetail.NODE_SCHEDULABLE, now_ns)
                self._put(at_ns, lines.NodeUndrain(id=name) if node.schedulable else lines.NodeDrain(id=name))
        for name in self._nodes.keys() - found.keys():
            at_ns = self._when(name, ChangeType.REMOVE, ChangeDetail.NODE_DECOMISSION, now_ns)
            self._put(at_ns, lines.NodeRemove(id=name))
        self._take_foreign(found, now_ns)
        added = (int(ChangeType.ADD), int(ChangeDetail.DETAILS_NONE))
        came = {name for name, *what in self._node_events if tuple(what) == added}
        self.missed["node"] += len(came - found.keys() - self._nodes.keys())
        self._nodes = found
        self._node_events.clear()

    def _when(self, node: str, change: ChangeType, detail: ChangeDetail, now_ns: int) -> int:
        """Return when something happened to a node since the last poll: by the event, or else now."""
        return self._node_events.get((node, int(change), int(detail)), now_ns)

    def _take_foreign(self, nodes: dict[str, objects.Node], now_ns: int) -> None:
        found = {each.allocation_key: each for node in nodes.values() for each in node.foreign_allocations}
        for key, each in found.items():
            before = self._foreign.get(key)
            if before is None or before.resource != each.resource:
                at_ns = now_ns if self._polls else self.begin_ns
                self._put(at_ns, lines.Foreign(key=key, node=each.node_id, res=each.resource))
        for key in self._foreign.keys() - found.keys():
            if self._foreign[key].node_id in nodes:  # otherwise it went with its node
                self._put(now_ns, lines.Release(app="", key=key))
        self._foreign = found

    def applications(self, applications: Iterable[objects.Application], now_ns: int) -> None:
        """Take the active applications with their asks and allocations, as a poll that ended at `now_ns` shows them."""
        there: set[str] = set()
        shown: set[Id] = set()
        for app in applications:
            there.add(app.application_id)
            self.describe(app)
            held: list[objects.Ask | objects.Allocation] = [*app.requests, *app.allocations]
            for each in held:
                shown.add((app.application_id, each.allocation_key))
                self._shown(app.application_id, each, now_ns)
        for name in [name for name in self._pods if name not in shown]:
            pod = self._pods[name]
            if pod.missing_ns:  # it may have come after the poll had begun, so two polls decide
                self.missed["ended"] += 1
                self._end(name, pod.missing_ns, ChangeDetail.ALLOC_CANCEL)
            else:
                pod.missing_ns = now_ns
        for known in [name for name in self._apps if name not in there]:
            app_known = self._apps[known]
            if app_known.pods == 0 and (app_known.gone or app_known.missing_ns):
                self._forget(known)
            else:
                app_known.missing_ns = now_ns
        self._ended_before, self._ended = self._ended, {}
        self._polls += 1

    def describe(self, app: objects.Application) -> None:
        """Take whose an application is, and in which queue."""
        known = self._app(app.application_id, app.submission_time)
        known.missing_ns = 0
        line = known.line
        if not known.described:
            known.described = True
            names = self._names
            line.user = app.user if names is None else names.of(app.user)
            line.groups = tuple(app.groups if names is None else map(names.of, app.groups))
            line.queue = app.queue_name
        if app.placeholder_data:
            self.missed["gang"] += not line.style
            line.style = "Soft"
            total: Counter[str] = Counter()
            for group in app.placeholder_data:
                total.update({name: amount * group.count for name, amount in group.min_resource.items()})
            line.ph_ask = dict(total)

    def rejected(self, applications: Iterable[objects.Application]) -> None:
        """Take applications that were rejected."""
        for app in applications:
            if app.submission_time >= self.begin_ns:
                self.missed["rejected"] += 1
                self.describe(app)
                self._forget(app.application_id)

    def undescribed(self) -> bool:
        """Return whether there are applications of which only events tell."""
        return any(not app.described for app in self._apps.values())

    def completed(self, applications: Iterable[objects.Application]) -> None:
        """Take applications that have ended, for those of which only events tell."""
        for app in applications:
            known = self._apps.get(app.application_id)
            if known is not None and not known.described:
                self.describe(app)

    def _shown(self, application_id: str, found: objects.Ask | objects.Allocation, now_ns: int) -> None:
        name = (application_id, found.allocation_key)
        ended_ns = self._ended.get(name) or self._ended_before.get(name, 0)
        if name not in self._pods and ended_ns and found.request_time <= ended_ns:
            return  # the poll is older than the event of its end
        pod = self._pods.get(name) or self._new(name, found.request_time or now_ns)
        pod.missing_ns = 0
        ask = pod.ask
        if not pod.seen:
            ask.res = found.resource
            self._read(pod, found)
        elif ask.res != found.resource:
            self.missed["resized"] += 1
        if isinstance(found, objects.Allocation) and not (pod.started_ns or pod.present):
            if found.allocation_time > found.request_time:
                pod.started_ns = found.allocation_time
            elif self._polls:
                pod.started_ns, pod.start_is_late = now_ns, True  # until its event comes, if one does
            pod.present = pod.started_ns < self.begin_ns
            ask.node = found.node_id if pod.present else ""
        pod.seen = True

    def _read(self, pod: _Pod, found: objects.Ask | objects.Allocation) -> None:
        """Take what only polls show of a pod."""
        ask, tags = pod.ask, dict(found.allocation_tags)
        if isinstance(found, objects.Ask) and found.required_node_id:
            tags[constants.TAG_REQUIRED_NODE] = found.required_node_id
        if namespace := tags.get(NAMESPACE):
            app = self._apps[ask.app].line
            app.tags = app.tags or {constants.TAG_NAMESPACE: namespace}
        ask.tags = (tags if self._names is None else self._names.tags(tags)) or None
        ask.prio = int(found.priority or 0)
        ask.group = found.task_group_name
        ask.ph = found.placeholder
        ask.originator = found.originator

    # -- events ----------------------------------------------------------------------------------------------

    def event(self, event: objects.EventRecord) -> None:
        """Take an event; one from before the beginning is passed over."""
        if event.timestamp_nano < self.begin_ns:
            return
        match event.type:
            case EventType.APP:
                self._event_of_app(event)
            case EventType.QUEUE if event.event_change_detail == ChangeDetail.QUEUE_APP:
                if event.event_change_type == ChangeType.ADD:
                    known = self._app(event.reference_id, event.timestamp_nano)
                    known.line.queue = known.line.queue or event.object_id
            case EventType.NODE:
                key = (event.object_id, event.event_change_type, event.event_change_detail)
                self._node_events[key] = event.timestamp_nano
            case _:
                pass

    def _event_of_app(self, event: objects.EventRecord) -> None:
        name = (event.object_id, event.reference_id)
        at_ns = event.timestamp_nano
        ended_ns = self._ended.get(name) or self._ended_before.get(name, 0)
        change, detail = event.event_change_type, event.event_change_detail
        if change == ChangeType.ADD and detail in (ChangeDetail.APP_REQUEST, ChangeDetail.APP_ALLOC):
            if at_ns <= ended_ns:
                return
            pod = self._pods.get(name) or self._new(name, at_ns)
            if not pod.seen:
                pod.ask.res = pod.ask.res or {name: each.value for name, each in event.resource.resources.items()}
            if detail == ChangeDetail.APP_REQUEST:
                pod.asked_ns = at_ns
            elif not pod.started_ns or pod.present or pod.started_ns > at_ns:
                pod.started_ns, pod.present, pod.start_is_late, pod.ask.node = at_ns, False, False, ""
        elif change == ChangeType.ADD and detail == ChangeDetail.APP_NEW:
            self._app(event.object_id, at_ns)
        elif change == ChangeType.SET and detail == ChangeDetail.APP_REJECT:
            self._apps.pop(event.object_id, None)  # the list of rejected applications tells more
        elif change == ChangeType.REMOVE and name in self._pods:
            if detail in GONE or (
                detail in (ChangeDetail.REQUEST_CANCEL, ChangeDetail.REQUEST_TIMEOUT) and not self._pods[name].runs
            ):
                self._end(name, at_ns, ChangeDetail(detail))
        elif change == ChangeType.REMOVE and detail == ChangeDetail.DETAILS_NONE and event.object_id in self._apps:
            self._apps[event.object_id].gone = True

    # -- what is there ---------------------------------------------------------------------------------------

    def _app(self, application_id: str, submitted_ns: int) -> _App:
        known = self._apps.get(application_id)
        if known is None:
            known = self._apps[application_id] = _App(lines.App(id=application_id), submitted_ns or self.begin_ns)
        return known

    def _new(self, name: Id, asked_ns: int) -> _Pod:
        app, key = name
        self._app(app, asked_ns).pods += 1
        pod = self._pods[name] = _Pod(
            lines.Ask(key=key, app=app, res={}, pre_self=True, pre_other=True), asked_ns=asked_ns
        )
        return pod

    def _end(self, name: Id, at_ns: int, how: ChangeDetail) -> None:
        pod = self._pods.pop(name)
        self._ended[name] = at_ns
        self._apps[name[0]].pods -= 1
        self.missed["unseen"] += not pod.seen
        self.missed["evicted"] += how == ChangeDetail.ALLOC_PREEMPT
        if pod.runs and how not in _BY_SCHEDULER:
            pod.ask.duration_s = lines.from_ns(max(at_ns - max(pod.started_ns, self.begin_ns), 0))
        self._asked(pod)
        if not pod.runs:
            self._put(at_ns, lines.Release(app=name[0], key=name[1]))

    def _asked(self, pod: _Pod) -> None:
        self.missed["present"] += pod.present
        self.missed["started"] += pod.start_is_late
        self._put(self.begin_ns if pod.present else pod.asked_ns, pod.ask, pod.asked_ns)

    def _forget(self, application_id: str) -> None:
        app = self._apps.pop(application_id)
        if not app.described:
            self.missed["nobody"] += 1
            app.line.user = constants.NOBODY_USER
        if self._managed and app.line.queue and app.line.queue not in self._managed:
            self.missed["dynamic"] += 1
        self._put(app.submitted_ns, app.line, app.submitted_ns)

    def finish(self) -> None:
        """Put everything that is still there."""
        for pod in self._pods.values():
            self.missed["running"] += pod.runs
            self.missed["unseen"] += not pod.seen
            self._asked(pod)
        self._pods.clear()
        for name in list(self._apps):
            self._forget(name)

    def notes(self) -> Iterator[str]:
        """Yield what is not known of the workload, in sentences."""
        for why, text in NOTES.items():
            if count := self.missed[why]:
                yield f"{text} ({count:,})"
        yield EVICTION_POLICY


def _attributes(node: objects.Node) -> dict[str, str] | None:
    return {key: text for key, text in node.attributes.items() if key != constants.NODE_PARTITION} or None
