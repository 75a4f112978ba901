"""Laws of each decision of licorne, checked when it is made.

`Watched` follows one process: what its reflectors have read and which nodes it has chosen make a `View` that owes nothing
to the scheduler or to the manager. A binding, and an eviction, must be right in this view. What others have done and
licorne could not know is no fault of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from typing import Any, Protocol

import msgspec

from kube import books
from kube.books import Amounts, Limits, View
from kube.domains import SPREAD
from kube.kinds import GANG_S, LIMIT
from licorne.kube.manager.commands import AnyCommand, Bind, Evict, Fail, PostEvent
from licorne.kube.manager.records import PodRecord
from licorne.kube.manager.stages import Stage
from licorne.kube.manager.waiting import UNTIL
from licorne.kube.objects import ConfigMap, Pod
from licorne.kube.pods.groups import group_name
from licorne.kube.runner import Runner
from licorne.si.messages import NewAllocation

PATIENCE_S = 600.0
"""How long after its grace period the end of a victim is expected."""


class Decision(msgspec.Struct, frozen=True):
    """A node was chosen for a pod: when, and which pods that others have bound were known then."""

    node: str
    at: float
    others: frozenset[str]
    pod: Pod
    room: Amounts
    """What its process had read that the node has."""
    limits: Limits
    """Those that its process had read."""
    exchanged: bool
    """Whether it takes the place of a placeholder, perhaps one that others have made too small."""


class Notes(Protocol):
    """What `Watched` notes in the world, which outlives a process."""

    decisions: dict[str, Decision]
    limits_in_force: list[tuple[float, Limits]]
    evictions: list[float]
    bound: dict[str, str]
    gangs: dict[str, int]
    begun: set[str]
    unlimited: set[str]
    uncounted: set[str]

    @property
    def keeps_nodes(self) -> bool:
        """Whether nodes may be kept for pods that wait."""

    @property
    def disturbed(self) -> bool:
        """Whether a place that was right when it was given may be too much later: others bind pods, or quotas are lowered."""

    def limits_of(self, found: ConfigMap) -> Limits | None:
        """Return the limits of a ConfigMap; None if it is to be refused."""


class Watched:
    """One process of licorne, and its decisions."""

    def __init__(self, notes: Notes, runner: Runner) -> None:
        self._notes = notes
        self._runner = runner
        self._limits = self._in_force = Limits()  # those of the ConfigMap, and together with those of namespaces
        self._chosen: dict[str, str] = {}
        self._new: dict[str, str] = {}  # of pods that await claims: of the last go
        self._order: dict[str, int] = {}  # of the decisions on pods
        self._numbers = count()
        self._evicted: dict[
            str, tuple[str, str, float]
        ] = {}  # victims: for whom, where, and until when they are waited for
        self._victim = ""
        # the highest priority of what waited in each queue when a node was first kept for a pod, or others evicted for it
        self._waited: dict[str, dict[str, int]] = {}
        self._exchanges: Counter[str] = Counter()  # placeholders that make way for a pod, by application
        self._began = _now()
        self._counts_from: dict[str, float] = {}  # since when the placeholder timeout of a gang counts, at the earliest
        self._failed_at: dict[str, float] = {}  # when pods of an application were last failed
        self._reserved: set[str] = set()  # gangs that have had all their room, or may have had it before
        # when the first pod of a gang without placeholders got a node, and which pods of it had one then
        self._whole: dict[str, tuple[float, set[str]]] = {}
        binder, writer = runner.binder, runner.writer
        self._bind, self._write, self._map_changed = binder.bind, writer.write, runner.config_maps.map_changed
        binder.bind = self._on_bind  # type: ignore[method-assign]
        writer.write = self._on_write  # type: ignore[method-assign]
        runner.config_maps.map_changed = self._on_map  # type: ignore[method-assign]
        self._decided, runner.manager.decisions._decided = runner.manager.decisions._decided, self._on_decided  # type: ignore[method-assign]
        self._begin, runner._begin = runner._begin, self._on_begin  # type: ignore[method-assign]
        self._schedule = runner.api.schedule
        runner.api.schedule = self._on_schedule  # type: ignore[method-assign]
        self._not_bound, self._outdated = binder._not_bound, binder._outdated
        binder._not_bound = self._on_not_bound
        binder._outdated = self._on_outdated

    def view(self) -> View:
        """Return what the process knows."""
        store = self._runner.reading.reflectors
        pods: list[Pod] = [pod for pod in store["pods"].store.values() if not books.has_ended(pod)]
        chosen = self._chosen | self._awaiting()
        places = [(pod, pod.spec.node_name or chosen.get(pod.metadata.uid, "")) for pod in pods]
        limits = books.with_quotas(self._limits, store["namespaces"].store.values())
        if limits != self._in_force:
            self._in_force = limits
            self._notes.limits_in_force.append((_now(), limits))
        return View(store["nodes"].store.values(), places, limits, self._in_flight(), self._notes.uncounted)

    def _awaiting(self) -> dict[str, str]:
        """Return the nodes that were chosen for pods whose claims have not all yet."""
        records = self._runner.manager.records.pods.values()
        return {record.uid: record.node for record in records if record.stage is Stage.AWAITS_CLAIMS}

    # -- what it does -------------------------------------------------------------------------------------------

    def _on_schedule(self, **options: Any) -> int:
        """Check one go of decisions: what is free on a node that is kept for a pod goes to no other pod, and each victim is needed."""
        manager = self._runner.manager
        before, known, awaiting = self._kept(), len(manager.outbox.commands), self._awaiting()
        made = self._schedule(**options)
        new = self._new = {uid: node for uid, node in self._awaiting().items() if uid not in awaiting}
        if (
            made == len(new) == 1 and not self._notes.keeps_nodes
        ):  # beside others it counts on what they have taken before it
            view = self.view()
            (pod,) = [pod for pod, _ in view.places if pod.metadata.uid in new]
            alone = view.with_places([(one, node) for one, node in view.places if one is not pod])
            self._check_binding(alone, pod, new[pod.metadata.uid], exchanged=False)
        kept, evicted = self._kept(), self._evicted_in(manager.outbox.commands[known:])
        chosen = {command.uid: command.node for command in manager.outbox.commands[known:] if isinstance(command, Bind)}
        self._check_groups(chosen)
        self._check_attached(new | chosen)
        self._note_waiting({*evicted}.union(set().union(*kept.values()).difference(*before.values())))
        shared = {uid: before[node] & kept.get(node, set()) - {uid} for uid, node in chosen.items() if node in before}
        if evicted or shared:
            now = self.view()
            places = [(pod, node or chosen.get(pod.metadata.uid, "")) for pod, node in now.places]
            view, homes = now.with_places(places), {u: node for node, uids in kept.items() for u in uids}
            own = {uid for uid in shared if uid in before[chosen[uid]]}
            self._check_kept(view, shared, homes, self._going().union(*evicted.values()), own)
            freed = {name for name, uids in before.items() if any(chosen.get(uid, name) != name for uid in uids)}
            self._check_need(view, evicted, kept, homes, freed)
        return made

    def _on_decided(self, record: PodRecord, new: NewAllocation) -> None:
        """Note the order in which pods of a go are decided, of which some are bound at once, and others when their claims are."""
        self._order[record.uid] = next(self._numbers)
        self._decided(record, new)

    def _on_begin(self) -> None:
        """Note the gangs of which placeholders run when the process begins: for it their timeout counts from then on, also when those end.

        One of which a member runs, or was told another reason than its gang, has had its room.
        """
        self._begin()
        view = self.view()
        for pod, node in view.places:
            gang = books.application_of(pod)
            if not books.is_placeholder(pod):
                told = {one.message for one in pod.status.conditions or () if one.type == "PodScheduled"}
                if node or any(not message.startswith(UNTIL) for message in told):
                    self._reserved.add(gang)
            elif node:
                self._counts_from[gang] = _now()
                self._note_room(view, pod)

    def _check_groups(self, chosen: dict[str, str]) -> None:
        """Check that so many pods of a group have a node as it needs when one of them gets one."""
        store = self._runner.reading.reflectors
        for uid in chosen:
            pod = next((one for one in store["pods"].store.values() if one.metadata.uid == uid), None)
            assert pod is not None, f"{uid} gets a node, and is not there"
            if not (name := group_name(pod)):
                continue
            mates = [one for one, _ in self.view().places if group_name(one) == name]
            placed = sum(bool(one.spec.node_name) or one.metadata.uid in {*self._chosen, *chosen} for one in mates)
            group = store["podgroups"].store.get(("default", name))
            assert group is not None, f"{pod.metadata.name} gets a node, and its group {name} is not there"
            assert placed >= group.needed, f"{placed} pods of group {name} have a node, it needs {group.needed}"

    def _check_attached(self, placed: dict[str, str]) -> None:
        """Check that pods which get nodes bring none of them more volumes of the driver than it takes.

        How many these are is what the process has read: a node without a CSINode takes any number, as for kube-scheduler. The
        watch of CSINodes may be behind that of nodes, and a kubelet makes a node before its CSINode.
        """
        if not placed:
            return
        store = self._runner.reading.reflectors
        counted = {
            one.metadata.name for one in store["persistentvolumeclaims"].store.values() if one.storage_class == "made"
        }
        before: dict[str, set[str]] = {}
        after: dict[str, set[str]] = {}
        for pod, has in self.view().places:
            node = placed.get(pod.metadata.uid, has)
            used = counted.intersection(books.claims(pod)) if node else set()
            after.setdefault(node, set()).update(used)
            if pod.metadata.uid not in placed:
                before.setdefault(node, set()).update(used)
        for node in {*placed.values()}:
            if after.get(node, set()) <= before.get(node, set()):
                continue
            if ("", node) in store["csinodes"].store:
                assert len(after[node]) <= LIMIT, f"{node} gets {after[node]} beside {before.get(node)}"
            else:
                self._notes.unlimited.add(node)

    def _note_waiting(self, uids: set[str]) -> None:
        """Note for these pods, for each of which a node is kept from now on, what else waits for a decision."""
        if not uids:
            return
        asked = {one.uid for one in self._runner.manager.records.pods.values() if one.stage is Stage.ASKED}
        highest: dict[str, int] = {}
        for pod in self._runner.reading.reflectors["pods"].store.values():
            for queue in books.lineage(books.queue_of(pod)) if pod.metadata.uid in asked else ():
                highest[queue] = max(highest.get(queue, 0), pod.spec.priority or 0)
        self._waited.update(dict.fromkeys(uids, highest))

    def _is_above(self, pod: Pod, other: Pod) -> bool:
        """Return whether a pod is more important than all that waited, in the lowest queue above both, when a node was kept for the other."""
        waited, above = self._waited[other.metadata.uid], {*books.lineage(books.queue_of(other))}
        common = next(queue for queue in books.lineage(books.queue_of(pod)) if queue in above)
        return (pod.spec.priority or 0) > waited[common]

    def _check_kept(
        self, view: View, shared: dict[str, set[str]], homes: dict[str, str], gone: set[str], own: set[str]
    ) -> None:
        """Check that a pod which gets a node that is kept for others leaves them what they need when their victims have gone.

        One that is more important than all that waited when the node was kept, and so has come later, need not: it is
        not delayed by what was given without it. Nor need one for which the node was kept too (`own`), in what spread says:
        the others may have counted on a pod that has ended since.
        """
        places = {pod.metadata.uid: (pod, node) for pod, node in view.places}
        for uid, others in shared.items():
            pod, node = places[uid]
            for other in others & places.keys():
                if self._is_above(pod, places[other][0]):
                    continue
                why_not = self._when_gone(view, gone, other, homes).why_not(places[other][0], node)
                without = self._when_gone(view, {*gone, uid}, other, homes).why_not(places[other][0], node)
                spread = uid in own and why_not == SPREAD
                assert not why_not or without or spread, (
                    f"{pod.metadata.name} gets {node}, which is kept for {other}: {why_not}"
                )

    def _check_alike(self, what: str, view: View, victims: list[tuple[Pod, str]], gone: set[str]) -> None:
        """Check that none is more important than one like it that stays: of an application that nobody named, no pod is the driver."""
        for victim, node in victims:
            if not books.is_unnamed(victim):
                continue
            asked, gang = books.amounts(victim), books.application_of(victim)
            for other in view.on(node):
                stays = other.spec.node_name and other.metadata.uid not in {*gone, *self._evicted}
                alike = books.application_of(other) == gang and books.amounts(other) == asked
                less = (other.spec.priority or 0) < (victim.spec.priority or 0)
                assert not (stays and alike and less), f"{what}, and {other.metadata.name} stays, less important"

    @staticmethod
    def _evicted_in(commands: list[AnyCommand]) -> dict[str, list[str]]:
        """Return for which pods others are evicted, in this order, and which."""
        found: dict[str, list[str]] = {}
        for one in commands:
            if isinstance(one, PostEvent) and one.reason == "Preempted" and one.related is not None:
                found.setdefault(one.related[2], []).append(one.uid)
        return found

    def _check_need(
        self,
        view: View,
        evicted: dict[str, list[str]],
        kept: dict[str, set[str]],
        homes: dict[str, str],
        freed: set[str],
    ) -> None:
        """Check that a pod for which others are evicted fits nowhere now, nor on its node if one of them stayed.

        Room that is kept for others is not for it: whose it is, and which node a pod waits for, is the scheduler's choice. On
        nodes that are `freed`, one of these got another node in the same go, perhaps only after the eviction.
        """
        places = {pod.metadata.uid: (pod, node) for pod, node in view.places}
        gone = self._going()
        all_gone = gone.union(*evicted.values())
        for uid, victims in evicted.items():
            asking, what = places[uid][0], f"{victims} are evicted for {places[uid][0].metadata.name}"
            full = self._when_gone(view, set(), uid, homes).full_queue(asking)
            whole = books.application_of(asking) in self._notes.gangs
            unseen = bool(books.claims(asking))  # its volumes are in no view
            alone = view.with_places([(pod, "" if pod is asking else node) for pod, node in view.places])
            for node in () if whole or full or unseen or self._notes.keeps_nodes else view.nodes:
                assert kept.get(node) or alone.why_not(asking, node), f"{what}, which has room on {node}"
            gone |= {*victims}
            self._check_alike(what, view, [places[victim] for victim in victims], all_gone)
            home = homes.get(uid) or places[uid][1]
            if places[uid][1]:  # it has got its node at once: others are evicted lest it take what is kept there
                unseen = any(books.claims(places[other][0]) for other in kept.get(home, set()) & places.keys())
            if not home or unseen:
                continue
            after = self._when_gone(view, all_gone, uid, homes)
            why_not = after.why_not(asking, home) or after.full_queue(asking)
            assert not why_not or self._notes.keeps_nodes, f"{what}, and then it does not fit on {home}: {why_not}"
            for stays in () if home in freed else victims:
                # pods that wait take room that is kept for them, and help no topology spread
                spared = [self._when_gone(view, gone - {stays}, uid, having) for having in (homes, {})]
                needed = any(one.why_not(asking, home) or one.full_queue(asking) for one in spared)
                assert needed, f"{what}, without {places[stays][0].metadata.name} it would fit on {home}"

    @staticmethod
    def _when_gone(view: View, gone: set[str], asking: str, homes: dict[str, str]) -> View:
        """Return what there will be without these pods, and beside the pod that asks, when those that wait have what is kept for them."""
        left = [(pod.metadata.uid, pod, node) for pod, node in view.places if pod.metadata.uid not in {*gone, asking}]
        places = [(pod, node or homes.get(uid, "")) for uid, pod, node in left]
        return view.with_places(places)

    def _going(self) -> set[str]:
        """Return victims that are expected to end: until ten minutes after their grace period.

        And those that were being deleted when the scheduler was told of them, until it does not expect that any more.
        """
        evicted = {uid for uid, (_, _, until) in self._evicted.items() if _now() < until}
        if not self._runner.reading.begun:
            return evicted
        pods = self._runner.reading.reflectors["pods"].store.values()
        deleted = {pod.metadata.uid for pod in pods if pod.metadata.deletion_timestamp}
        victims = self._runner.api.cluster.partition(self._runner.manager.outbox.rm_id).accounting.victims
        return evicted | ({victim.key for victim in victims} & {*deleted, *self._evicted})

    def _kept(self) -> dict[str, set[str]]:
        """Return the pods by the node that is reserved for them."""
        nodes = (
            self._runner.api.cluster.partition(self._runner.manager.outbox.rm_id).nodes
            if self._runner.reading.begun
            else {}
        )
        return {name: {ask.key for ask in node.reservations} for name, node in nodes.items() if node.reservations}

    def _in_flight(self) -> dict[str, str]:
        """Return the members that wait on another node until the placeholder whose place they take has ended, with that node.

        Which node it is, is the scheduler's choice.
        """
        manager = self._runner.manager
        apps = (
            self._runner.api.cluster.partition(manager.outbox.rm_id).applications.values()
            if self._runner.reading.begun
            else ()
        )
        pairs = (pair for app in apps if app.gang is not None for pair in app.gang.replacing.items())
        return {real.key: real.node.id for place, real in pairs if real.node not in (None, place.node)}

    def _on_bind(self, command: Bind) -> None:
        lease = self._runner.lease
        if lease is not None and not lease.held():
            self._bind(command)  # nothing of it is sent (`World.check_writing`): another process decides by now
            return
        self.check_gangs()
        view = self.view()
        found = [pod for pod, _ in view.places if pod.metadata.uid == command.uid]
        assert found, f"{command.name} is to be bound, and is gone"
        assert not found[0].spec.node_name, f"{command.name} is to be bound, and has a node"
        self._check_gang(view, found[0])
        exchanged = self._is_exchange(found[0])
        if books.claims(found[0]):
            exchanged = True  # it has waited for its volumes: what it was checked by may have changed
        else:
            later = {uid for uid in self._new if self._order[uid] > self._order[command.uid]}
            then = view.with_places([(one, at) for one, at in view.places if one.metadata.uid not in later])
            self._check_binding(then, found[0], command.node, exchanged=exchanged)
        others = (pod for pod, _ in view.places if pod.spec.node_name in view.nodes)
        known = frozenset(pod.metadata.uid for pod in others if pod.metadata.uid not in self._notes.bound)
        self._chosen[command.uid] = command.node
        room = books.capacity(view.nodes[command.node])
        self._notes.decisions[command.uid] = Decision(
            command.node, _now(), known, found[0], room, view.limits, exchanged
        )
        self._bind(command)

    def _check_gang(self, view: View, pod: Pod) -> None:
        """Check that no gang begins with a member of which it is known that it cannot follow; note when it takes room first."""
        gang = books.application_of(pod)
        mates = [other for other in view.places if books.application_of(other[0]) == gang]
        if books.is_placeholder(pod):
            since = self._began if any(other.spec.node_name for other, _ in mates) else _now()
            self._counts_from.setdefault(gang, since)
            self._note_room(view, pod)
        elif books.is_member(pod) and not any(node for other, node in mates if not books.is_placeholder(other)):
            never = [other for other, _ in mates if books.is_undecided(other) and not other.metadata.deletion_timestamp]
            assert not never, f"{pod.metadata.name} is to be bound, and {never[0].metadata.name} of its gang never is"
            ready = gang in self._reserved or not books.hard_members(pod)
            assert ready, f"{pod.metadata.name} is to be bound, and its gang is Hard and has not had all its room"

    def _note_room(self, view: View, pod: Pod) -> None:
        """Note that a gang has all its room, if it has with this placeholder of it."""
        gang = books.application_of(pod)
        placed = {one.metadata.uid for one, node in view.places if node and books.application_of(one) == gang}
        if len(placed | {pod.metadata.uid}) >= books.hard_members(pod):
            self._reserved.add(gang)

    def _check_failure(self, command: Fail) -> None:
        """Check that pods are failed when the time of their gang is over, and not again before it is over once more."""
        pods = [pod for pod, _ in self.view().places if pod.metadata.uid == command.uid]
        for pod in pods if command.reason != "ApplicationRejected" else ():
            gang = books.application_of(pod)
            assert not books.is_placeholder(pod), f"placeholder {command.name} is failed, and stays"
            waited_s = _now() - self._counts_from.get(gang, self._began)
            with_others = self._failed_at.get(gang) == _now()
            assert with_others or waited_s > GANG_S - 0.01, (
                f"{command.name} is failed after {waited_s} s: {command.reason}"
            )
            self._failed_at[gang] = self._counts_from[gang] = _now()
            self._reserved.discard(gang)

    def _is_exchange(self, pod: Pod) -> bool:
        """Return whether a pod takes the place of a placeholder that has gone."""
        gang = books.application_of(pod)
        if books.is_placeholder(pod) or not self._exchanges[gang]:
            return False
        self._exchanges[gang] -= 1
        return True

    def _check_binding(self, view: View, pod: Pod, node: str, *, exchanged: bool) -> None:
        name = pod.metadata.name
        assert not pod.spec.scheduling_gates, f"{name} is to be bound, and has scheduling gates"
        assert pod.metadata.uid not in self._chosen, f"a node is chosen for {name} twice"
        if exchanged and self._notes.disturbed:
            return  # it takes what its placeholder had, whatever has become of node and quota since
        why_not = view.why_not(pod, node)
        assert not why_not, (
            f"{name} is to be bound to {node}: {why_not}, by {[one.metadata.name for one in view.on(node)]}"
        )
        queue = view.full_queue(pod)
        assert not queue, f"{name} is to be bound; {queue} has {view.in_queue.get(queue)} of {view.limits.max}"
        gang = books.application_of(pod)
        if gang in self._notes.gangs:
            there = {other.metadata.uid for other, at in view.places if at and books.application_of(other) == gang}
            self._whole.setdefault(gang, (_now(), there))

    def check_gangs(self, *, ends: bool = False) -> None:
        """Check that gangs without placeholders began as a whole; those that have begun just now, later."""
        for gang, (began, there) in list(self._whole.items()):
            if not ends and began == _now():
                continue
            del self._whole[gang]
            if gang in self._notes.begun:
                continue  # one of its members comes back, and others may have gone since
            members = self._notes.gangs.get(gang, 0)
            own = {uid for uid, one in self._notes.decisions.items() if books.application_of(one.pod) == gang}
            decided = len(own | there)
            assert decided >= members, f"{decided} of the {members} members of gang {gang} got a node"
            self._notes.begun.add(gang)

    def _on_not_bound(self, uid: str, reason: str) -> None:
        self._chosen.pop(uid, None)
        self._not_bound(uid, reason)

    def _on_outdated(self, uid: str) -> None:
        self._chosen.pop(uid, None)
        self._outdated(uid)

    def _on_map(self, name: str, found: ConfigMap | None) -> None:
        limits = None if found is None else self._notes.limits_of(found)
        if limits is not None:
            self._limits = limits
        self._map_changed(name, found)

    def has_begun(self) -> bool:
        """Return whether the process has read everything, so that a bad ConfigMap does not end it."""
        return self._runner.reading.begun

    # -- evictions ----------------------------------------------------------------------------------------------

    def _on_write(self, command: Any) -> None:
        self._check_writing(command)
        self._write(command)

    def _check_writing(self, command: AnyCommand) -> None:
        if isinstance(command, Fail):
            self._check_failure(command)
        elif isinstance(command, Evict) and command.reason == "PLACEHOLDER_REPLACED":
            pods = (pod for pod, _ in self.view().places if pod.metadata.uid == command.uid)
            self._exchanges.update(books.application_of(pod) for pod in pods)
        elif isinstance(command, Evict) and command.disruption:
            self._victim = command.uid
            self._notes.evictions.append(_now())
        elif isinstance(command, PostEvent) and command.reason == "CountedAsForeign":
            pods = (pod for pod, _ in self.view().places if pod.metadata.uid == command.uid)
            self._notes.uncounted.update(pod.metadata.uid for pod in pods if books.is_placeholder(pod))
        elif isinstance(command, PostEvent) and command.reason == "Preempted":
            assert command.uid == self._victim
            assert command.related is not None, f"{command.name} is evicted for nobody"
            view, asking = self.view(), command.related[2]
            # Of what was decided in one go, evictions are written first: its room may be free, and kept for one that waits.
            known = [(pod, "" if pod.metadata.uid == asking in self._new else node) for pod, node in view.places]
            self._check_eviction(view.with_places(known), command.uid, asking)

    def _check_eviction(self, view: View, uid: str, asking_uid: str) -> None:
        """Check that an eviction serves a guarantee, takes none away, and breaks no budget that need not be broken."""
        places = {pod.metadata.uid: (pod, node) for pod, node in view.places}
        assert asking_uid in places, f"{uid} is evicted for a pod that is not there"
        asking, asking_node = places[asking_uid]
        victim, node = places[uid]
        what = f"{victim.metadata.name} of {books.queue_of(victim)} is evicted for {asking.metadata.name}"
        assert not asking_node, f"{what}, which has a node"
        assert (victim.spec.priority or 0) <= (asking.spec.priority or 0), f"{what}, which is less important"
        assert books.queue_of(victim) != books.queue_of(asking), f"{what} of the same queue"
        going = {uid, *self._going()}
        left = [(pod, where) for pod, where in view.places if pod.metadata.uid not in going]
        after = view.with_places(left)
        assert after.is_entitled(asking), f"{what}, which is entitled to nothing"
        queue = books.queue_of(victim)
        bound = view.limits.guaranteed.get(queue, {})
        rest = books.plus(after.in_queue.get(queue, {}), self._claimed(queue, places))
        kept = all(rest.get(name, 0) >= amount for name, amount in bound.items())
        # One that is terminating goes anyway, and those evicted ten minutes ago that still run count as staying.
        assert kept or victim.metadata.deletion_timestamp, f"{what}, below its guarantee"
        broken = self._broken(uid, places)
        if broken and not self._notes.keeps_nodes:
            other = self._other_victims(view, asking, asking_uid)
            assert not other, f"{what}, and breaks budget {broken}; others on {other} would do"
        grace_s = victim.spec.termination_grace_period_seconds
        self._evicted[uid] = (asking_uid, node, _now() + (30 if grace_s is None else grace_s) + PATIENCE_S)

    def _claimed(self, queue: str, places: dict[str, tuple[Pod, str]]) -> Amounts:
        """Return what pods of a queue will use that wait for room which others were evicted to make."""
        total: Amounts = {}
        for uid in {asking for asking, _, _ in self._evicted.values()}:
            pod, node = places.get(uid, (None, ""))
            if pod is not None and not node and books.queue_of(pod) == queue:
                total = books.plus(total, books.amounts(pod))
        return total

    def _broken(self, uid: str, places: dict[str, tuple[Pod, str]]) -> str:
        """Return a budget that has no eviction left for a pod, after those that the API server has not shown yet.

        One that is terminating breaks none: a process before has evicted it.
        """
        if places[uid][0].metadata.deletion_timestamp:
            return ""
        for budget in self._runner.reading.reflectors["poddisruptionbudgets"].store.values():
            if books.means(budget, places[uid][0]):
                pending = {
                    other
                    for other in self._evicted
                    if other in places
                    and not places[other][0].metadata.deletion_timestamp
                    and books.means(budget, places[other][0])
                }
                if len({uid, *pending}) > books.allowed(budget):
                    return str(budget.metadata.name)
        return ""

    def _other_victims(self, view: View, asking: Pod, asking_uid: str) -> str:
        """Return a node where pods that no budget means are enough; "" if there is none.

        Nodes that are kept for pods for which others were evicted are left out, and victims whose end would keep these off.
        """
        if books.claims(asking):
            return ""
        waiting = {pod.metadata.uid: pod for pod, node in view.places if not node}
        kept = {other: node for other, node, _ in self._evicted.values() if other in waiting and other != asking_uid}
        budgets = list(self._runner.reading.reflectors["poddisruptionbudgets"].store.values())
        for node in view.nodes:
            victims = [
                pod
                for pod in view.evictable(asking, node)
                if pod.spec.node_name
                and pod.metadata.uid not in self._evicted
                and not any(books.means(budget, pod) for budget in budgets)
            ]
            gone = {pod.metadata.uid for pod in victims}
            if (
                victims
                and node not in kept.values()
                and view.makes_room(asking, node, victims)
                and not any(self._keeps_off(view, waiting[other], home, gone) for other, home in kept.items())
            ):
                return node
        return ""

    def _keeps_off(self, view: View, pod: Pod, home: str, victims: set[str]) -> bool:
        """Return whether a pod would not fit on the node that is kept for it if more victims than those that are going went."""
        gone, uid = self._going(), pod.metadata.uid
        after, before = (self._when_gone(view, one, uid, {}).why_not(pod, home) for one in (gone | victims, gone))
        return bool(after) and not before


def _now() -> float:
    return asyncio.get_running_loop().time()
