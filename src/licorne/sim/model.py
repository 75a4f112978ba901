"""A model of a resource manager: what it asked for, what it was given, what it was told to stop, and what it confirms.

Like a real one it knows its cluster: nodes, applications, and pods with the moment at which each ends by itself. It confirms
a release that the scheduler starts (a timeout, a replaced placeholder) by the same release. A preemption victim first has a
grace period, and is then created again, as a controller would do. Gangs are handled in `gangs.py`.

The model has neither scheduler nor clock: it is told lines, the scheduler's decisions and the time, and returns what is to be
submitted. The simulator (`simulation.py`) connects it to a scheduler in this process, the demonstration (`licorne.grpc.demo`)
to one behind gRPC.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from licorne.si import messages
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.si.messages import CONFIRMED, Termination
from licorne.sim.gangs import Gangs
from licorne.sim.inputs import convert
from licorne.workload import lines
from licorne.workload.devices import Devices

if TYPE_CHECKING:
    from licorne.sim.pods import PodRecords

AllocationName = str | tuple[str, str]
"""What names an allocation in the scheduler: its UUID, or where it has none its application and key.

All allocations of an ask that repeats have a UUID, except for the last.
"""


class Pod(msgspec.Struct, gc=False):
    """An ask, when it came, how many allocations were made of it, and whether one that has its key for a name, no UUID, lives."""

    ask: lines.Ask
    arrived_ns: int
    placed: int = 0
    last_lives: bool = False

    @property
    def pending(self) -> bool:
        """Whether allocations of it are still to be made."""
        return self.placed < self.ask.max

    @property
    def counted(self) -> bool:
        """Whether it is among the asks that are counted: placeholders, and what runs already, are not."""
        return not (self.ask.ph or self.ask.node)


class Running(msgspec.Struct, gc=False):
    """A live allocation: its pod, its node, its number among all allocations, its start, and whether its release was sent.

    `arrived_ns` is when it was asked for: the same key may have been asked for once more since.
    """

    pod: Pod
    uuid: str
    node: str
    number: int
    since_ns: int
    arrived_ns: int
    ended: bool = False

    @property
    def name(self) -> AllocationName:
        """The name of the allocation in the scheduler."""
        return self.uuid or (self.pod.ask.app, self.pod.ask.key)


OVER = ("", "Completed", "Failed")
"""States of applications whose names are free for others; the first: it was refused, if it was submitted earlier."""


class Application(msgspec.Struct):
    """An application and its state, which is empty until it is accepted."""

    line: lines.App
    state: str = ""


class ResourceManager:
    """Takes lines and decisions, and returns what is to be submitted to the scheduler, in order.

    `follows`: pods end by themselves and releases are confirmed, as in time. `resubmits`: an evicted pod is created again
    after its grace period; `replaces`: so is a pod whose node is removed.

    `pods` are all asks by key, also those that gangs keep back, until they have ended or are not wanted any more; `others` are
    those whose key another application has used since, by application and key; `keys_of` are the keys of each application.
    `running` are allocations until the scheduler releases them; an evicted one is in `going` instead, until its end.
    `records`, if given, is told what becomes of pods. `devices`, if given, are those of the nodes, for a model that follows
    its pods.
    """

    def __init__(
        self,
        *,
        grace_ns: int,
        follows: bool = True,
        resubmits: bool = True,
        replaces: bool = False,
        devices: Devices | None = None,
    ) -> None:
        self.nodes: dict[str, lines.Node] = {}
        self.foreign: dict[str, lines.Foreign] = {}
        self.applications: dict[str, Application] = {}
        self.pods: dict[str, Pod] = {}
        self.others: dict[tuple[str, str], Pod] = {}
        self.keys_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.running: dict[AllocationName, Running] = {}
        self.ends: list[tuple[int, int, AllocationName]] = []
        self.going: list[tuple[int, int, Running]] = []
        self.gangs = Gangs()
        self.counts: Counter[str] = Counter()
        self.grace_ns = grace_ns
        self.follows = follows
        self.resubmits = resubmits
        self.replaces = replaces
        self.devices = devices
        self.records: PodRecords | None = None
        self._numbered = 0

    # -- what it wants -------------------------------------------------------------------------------------------

    def take(self, line: lines.Line, now_ns: int) -> messages.Input | None:
        """Take a line other than a reload or a run; return its message, None for an ask that is kept back."""
        if type(line) is lines.Ask:
            new = self._note_ask(line, now_ns)
            if self.follows and self.gangs.known and self.gangs.keeps(line, new=new):
                return None
        elif type(line) is lines.App:
            known = self.applications.get(line.id)
            if known is None or known.state in OVER:
                self.applications[line.id] = Application(line)
                self.gangs.submitted(line, now_ns)
                if self.records is not None:
                    self.records.submitted(line)
        elif isinstance(line, lines.Release):
            pod = self.find(line.app, line.key)
            if pod is not None:
                self._withdrawn(pod, now_ns)
                self.drop(line.app, line.key)
            self.gangs.forget(line.app, line.key)
            if not line.app:
                self.foreign.pop(line.key, None)
            elif not line.key:
                self._withdraw_pods(line.app, now_ns)
                self._drop_pods(line.app)
        elif isinstance(line, lines.ReleaseApp):
            self._withdraw_pods(line.app, now_ns)
            self.forget(line.app)
        else:
            self._note_node(line)
        return self.message(line)

    def forget(self, app: str) -> bool:
        """Drop an application that has ended, and its pods; return whether there was one."""
        self._drop_pods(app)
        self.gangs.given_up(app)
        return self.applications.pop(app, None) is not None

    def find(self, app: str, key: str) -> Pod | None:
        """Return the pod of an application with this key."""
        pod = self.pods.get(key)
        return pod if pod is not None and pod.ask.app == app else self.others.get((app, key))

    def drop(self, app: str, key: str) -> Pod | None:
        """Drop a pod that is not wanted any more; if it runs, the scheduler will say when it has ended."""
        self.keys_of.get(app, {}).pop(key, None)
        return self._remove(app, key)

    def _remove(self, app: str, key: str) -> Pod | None:
        pod = self.pods.get(key)
        return self.pods.pop(key) if pod is not None and pod.ask.app == app else self.others.pop((app, key), None)

    def all_pods(self) -> Iterator[Pod]:
        """Yield all pods."""
        yield from self.pods.values()
        yield from self.others.values()

    def waiting(self) -> Iterator[Pod]:
        """Yield the pods of which the scheduler has asks to place; gangs keep others back."""
        for pod in self.all_pods():
            gang = self.gangs.known.get(pod.ask.app)
            if pod.pending and (gang is None or pod.ask.key not in gang.kept):
                yield pod

    def report(self) -> list[messages.Input]:
        """Return everything for a scheduler that knows nothing; pods that run come with their nodes, and before the others.

        A pod is known by its key, so no ask may repeat, as none does in the 1.9 interface.
        """
        self.running = {
            name: run for name, run in self.running.items() if not run.ended and run.pod.ask.app in self.applications
        }
        evicted = (run for _, _, run in self.going if run.pod.ask.app in self.applications)
        return [
            *map(self.message, self.nodes.values()),
            *(convert(application.line) for application in self.applications.values()),
            *map(convert, self.foreign.values()),
            *(self.message(replace(run.pod.ask, node=run.node)) for run in (*self.running.values(), *evicted)),
            *(self.message(pod.ask) for pod in self.waiting()),
        ]

    def message(self, line: lines.Line) -> messages.Input:
        """Return the message of a line, with what the scheduler must know of devices."""
        if self.devices is not None:
            if isinstance(line, lines.Ask):
                line = self.devices.marked(line)
            elif isinstance(line, lines.Node | lines.NodeUpdate):
                node = self.nodes.get(line.id)
                attributes = line.attrs if node is None or line.attrs is not None else node.attrs
                resources = line.res if node is None else node.res
                line = replace(line, attrs={**(attributes or {}), **self.devices.attributes(resources or {})})
        return convert(line)

    def _note_ask(self, line: lines.Ask, now_ns: int) -> bool:
        """Remember a new ask, or the new resources of a known one; return whether it is new, as the scheduler sees it.

        A key is known while an ask of it is pending, or its allocation without a UUID lives. An ask that repeats may be asked
        for again after that, while others of its allocations run. A placeholder, or an allocation that runs already, takes the
        place of an ask of the same key that is kept back.
        """
        known = self.find(line.app, line.key)
        if known is not None and (line.ph or line.node) and self.gangs.forget(line.app, line.key):
            self._withdrawn(known, now_ns)
            self.drop(line.app, line.key)
            known = None
        if known is None:
            other = self.pods.get(line.key)
            if other is not None:
                self.others[other.ask.app, line.key] = other
            # What runs already is one allocation, also of an ask that repeats.
            ask = replace(line, max=1) if line.node and line.max > 1 else line
            self.pods[line.key] = Pod(ask, now_ns)
            self.keys_of[line.app][line.key] = None
        elif known.pending or known.last_lives or line.node:
            if known.last_lives or not line.node or known.placed + 1 == known.ask.max:
                known.ask = replace(known.ask, res=line.res)
            # Else one more allocation runs already, beside those that are asked for.
            return False
        else:
            known.ask = replace(line, max=known.placed + line.max)
            known.arrived_ns = now_ns
        if not line.node and not line.ph:
            self.counts["asked"] += line.max
        return True

    def _withdrawn(self, pod: Pod, now_ns: int) -> None:
        if self.records is not None:
            self.records.never(pod, now_ns, "withdrawn")

    def _withdraw_pods(self, app: str, now_ns: int) -> None:
        for key in self.keys_of.get(app, ()):
            pod = self.find(app, key)
            if pod is not None:
                self._withdrawn(pod, now_ns)

    def _drop_pods(self, app: str) -> None:
        self.gangs.forget(app, "")
        for key in self.keys_of.pop(app, ()):
            self._remove(app, key)

    def _note_node(self, line: lines.Line) -> None:
        """Remember a line about a node, or about an allocation of another scheduler."""
        if isinstance(line, lines.Node):
            self.nodes[line.id] = line
        elif isinstance(line, lines.Foreign):
            self.foreign[line.key] = line
        elif isinstance(line, lines.NodeRemove):
            self.nodes.pop(line.id, None)
            self.foreign = {key: one for key, one in self.foreign.items() if one.node != line.id}
        elif isinstance(line, lines.NodeUpdate | lines.NodeDrain | lines.NodeUndrain) and line.id in self.nodes:
            node = self.nodes[line.id]
            if isinstance(line, lines.NodeUpdate):
                changes = {"res": line.res, "attrs": line.attrs}
                node = replace(node, **{name: value for name, value in changes.items() if value is not None})
            else:
                node = replace(node, drain=isinstance(line, lines.NodeDrain))
            self.nodes[line.id] = node

    # -- what it is given ----------------------------------------------------------------------------------------

    def accepted(
        self, app: str, queue: str, now_ns: int, tags: Mapping[str, dict[str, str] | None] | None = None
    ) -> list[messages.Input]:
        """Note that an application was accepted; return the placeholders to submit, with the `tags` of their task group."""
        application = self.applications.get(app)
        if application is None:
            return []
        application.state = "Accepted"
        placeholders = self.gangs.accepted(app, queue, tags) if self.follows else []
        for ask in placeholders:
            self._note_ask(ask, now_ns)
        return list(map(self.message, placeholders))

    def give_up_pending(self, app: str) -> list[Pod]:
        """Keep no ask of a failed application back any more, and return all its pods that wait; the caller drops them."""
        self.gangs.given_up(app)
        pods = (self.find(app, key) for key in self.keys_of.get(app, ()))
        return [pod for pod in pods if pod is not None and pod.pending]

    def give_up_kept(self, app: str) -> list[Pod]:
        """Keep no ask of an ended application back any more, and return the pods that were; the caller drops them."""
        pods = (self.find(app, ask.key) for ask in self.gangs.given_up(app))
        return [pod for pod in pods if pod is not None]

    def refused(self, pod: Pod) -> None:
        """Note that a pending ask was refused or dropped. The pod is dropped too, unless other allocations of it were made."""
        if pod.placed:
            pod.ask = replace(pod.ask, max=pod.placed)
        else:
            self.drop(pod.ask.app, pod.ask.key)

    def entered(self, app: str, state: str, message: str) -> list[messages.Input]:
        """Note the new state of an application; return the asks that were kept back and are to be submitted now."""
        application = self.applications.get(app)
        if application is not None:
            application.state = state
        return [
            self.message(ask) for ask in self.gangs.entered(app, state, message) if self.find(app, ask.key) is not None
        ]

    def placed(self, app: str, key: str, uuid: str, node: str, now_ns: int, *, reported: bool = False) -> Pod | None:
        """Note an allocation; return its pod, None if it is not wanted any more.

        `reported`: the workload told the scheduler of it. It is then one more than was asked for, unless it is the ask itself.
        """
        pod = self.find(app, key)
        if pod is None:
            return None
        if reported and (uuid or not pod.pending):
            pod.ask = replace(pod.ask, max=pod.ask.max + 1)
        pod.placed += 1
        pod.last_lives = pod.last_lives or not uuid
        if self.follows:
            self._numbered += 1
            name = uuid or (app, key)
            self.running[name] = Running(pod, uuid, node, self._numbered, now_ns, pod.arrived_ns)
            self.gangs.placed(pod.ask, now_ns)
            if pod.ask.duration_s is not None:
                heappush(self.ends, (now_ns + lines.to_ns(pod.ask.duration_s), self._numbered, name))
        return pod

    # -- what it is told to stop, and what it confirms -------------------------------------------------------------

    def released(self, app: str, key: str, uuid: str, termination: Termination, now_ns: int) -> list[messages.Input]:
        """Note that the scheduler releases an allocation; return the answers that are due at once."""
        if not self.follows:
            if termination not in CONFIRMED:
                self._ended(app, key, uuid)
            return []
        name = uuid or (app, key)
        run = self.running.get(name)
        if run is None:
            return self._ended_in_grace(name, now_ns)
        evicted = termination is Termination.PREEMPTED_BY_SCHEDULER
        if evicted and run.ended:
            return []  # at the same moment; its own release is on its way
        del self.running[name]
        self.gangs.ended(run.pod.ask)
        if evicted:
            self.counts["preempted_by_scheduler"] += 1
            if not self.grace_ns:
                return self._gone(run, now_ns)
            heappush(self.going, (now_ns + self.grace_ns, run.number, run))
            return []
        wanted = self._drop_ended(run)
        if termination in CONFIRMED:
            if not run.pod.ask.ph:
                self.counts[termination.name.lower()] += 1
            if self.records is not None:
                self.records.ended(run, now_ns, "timeout")
            return [_release(run, termination)]
        if wanted and self.replaces and not run.ended and not self._failed(run.pod.ask.app):
            self.counts["lost"] += 1
            if TAG_REQUIRED_NODE not in (run.pod.ask.tags or {}):
                return self._again(run, now_ns)
        if self.records is not None:
            self.records.ended(run, now_ns, "ended" if run.ended else "stopped" if wanted else "released")
        return []

    def _failed(self, app: str) -> bool:
        """Whether an application has failed, and so takes no pods any more."""
        application = self.applications.get(app)
        return application is not None and application.state in ("Failing", "Failed")

    def due(self, now_ns: int, *, one: bool = False) -> list[messages.Input]:
        """Return the releases of pods whose duration or grace period is over, and the asks of those created again.

        `one`: of the pods whose duration is over only the one that ends first, and those of its application that follow it
        at the same time.
        """
        found: list[messages.Input] = []
        first: tuple[int, str] | None = None
        ends = self.ends
        while ends and ends[0][0] <= now_ns:
            end_ns, number, name = ends[0]
            run = self.running.get(name)
            if run is None or run.number != number:
                heappop(ends)
                continue
            if one:
                first = first or (end_ns, run.pod.ask.app)
                if first != (end_ns, run.pod.ask.app):
                    break
            heappop(ends)
            run.ended = True
            self.counts["ended"] += 1
            found.append(_release(run, Termination.STOPPED_BY_RM))
        while self.going and self.going[0][0] <= now_ns:
            found += self._gone(heappop(self.going)[2], now_ns)
        return found

    def next_ns(self) -> int | None:
        """Return when the next pod ends, by itself or because its grace period is over; None if none will."""
        end_ns = self.ends[0][0] if self.ends else None
        if self.going and (end_ns is None or self.going[0][0] < end_ns):
            return self.going[0][0]
        return end_ns

    def _drop_ended(self, run: Running) -> bool:
        """Drop the pod of an allocation that has ended, if no other is of its ask; return whether it was still wanted."""
        ask = run.pod.ask
        return self._ended(ask.app, ask.key, run.uuid) is run.pod

    def _ended(self, app: str, key: str, uuid: str) -> Pod | None:
        """Note that an allocation has ended; return the pod of its key, which is dropped if it was its only one."""
        pod = self.find(app, key)
        if pod is not None and pod.last_lives and not uuid:
            pod.last_lives = False
            if pod.ask.max == 1:
                self.drop(app, key)
        return pod

    def _ended_in_grace(self, name: AllocationName, now_ns: int) -> list[messages.Input]:
        """Note that an evicted pod ended before its grace period was over, with its node or by a line; it may be created again."""
        for place, (_, _, run) in enumerate(self.going):
            if run.name == name:
                del self.going[place]
                heapify(self.going)
                return self._gone(run, now_ns)[1:]  # without a confirmation
        return []

    def _gone(self, run: Running, now_ns: int) -> list[messages.Input]:
        """Confirm that an evicted pod has ended, and create it again unless the pod was released meanwhile."""
        confirmed = _release(run, Termination.PREEMPTED_BY_SCHEDULER)
        again = self._drop_ended(run) and self.resubmits
        asks = self._again(run, now_ns) if again else []
        if not asks and self.records is not None:
            self.records.ended(run, now_ns, "evicted")
        return [confirmed, *asks]

    def _again(self, run: Running, now_ns: int) -> list[messages.Input]:
        """Create a pod again, as its controller would do; a placeholder is not."""
        line = run.pod.ask
        if line.ph:
            return []
        if line.max > 1 or line.node:
            key = line.key if line.max == 1 else f"{line.key}~{run.number}"
            line = replace(line, key=key, max=1, node="")
        self.counts["resubmitted"] += 1
        if self.records is not None:
            self.records.created_again(run, line.key, now_ns)
        self._note_ask(line, now_ns)
        return [self.message(line)]


def _release(run: Running, termination: Termination) -> messages.Release:
    ask = run.pod.ask
    return messages.Release(
        application_id=ask.app,
        key=ask.key,
        uuid=run.uuid,
        termination=termination,
        # A release of an allocation without a UUID would end all of the application.
        what="allocation" if run.uuid else "both",
    )
