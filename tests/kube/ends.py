"""What must be so when a cluster is at rest: everything is done that can be done, and a new process sees the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kube import books
from kube.books import View
from licorne.core.amounts.vectors import Vec
from licorne.core.preemption.evictions import Outcome
from licorne.kube.manager.records import GangStage, PodRecord
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Pod, PodGroup
from licorne.kube.objects.pods import Condition
from licorne.kube.pods.groups import group_name
from licorne.kube.runner import Runner

if TYPE_CHECKING:
    from kube.schedules import World

SETTLED_S: Final = 200.0
"""Controllers replace no pods for so long before the end, or longer by `turns_s`, or where victims hang."""
LAST_TRY_S: Final = 100.0
"""Within this time, and that of `turns_s`, the last try of a gang ends, and what it leaves lets others evict: then nobody is."""
TURN_S: Final = 40.0
"""How long a gang may keep room that others wait for: its timeout, and until the kubelet has ended its placeholders."""
NEEDS: Final = {
    Outcome.VICTIM: ("hangs",),
    Outcome.GANG: ("atomic",),
    Outcome.CONFIGURATION: ("maps",),
    Outcome.FOREIGN: ("foreign",),
    Outcome.TERMS: ("together",),
    Outcome.CHANGED: ("volumes", "together"),  # a claim gets a volume, of other nodes; a pod gets another label
}
"""What may become of an eviction only in a world with one of these features."""
NEVER: Final = {Outcome.WAITING, Outcome.REQUIRED_NODE, Outcome.AGE}
"""What no eviction comes to in the end: no pod of a schedule requires a node."""
PARTS: Final = ("pods", "nodes", "applications", "users", "queues", "unconfirmed")


# -- what a process knows ----------------------------------------------------------------------------------------


def state(runner: Runner) -> dict[str, Any]:
    """Return what licorne knows: stage and node of each pod, and what the scheduler counts for nodes, applications, queues.

    The queue of an application is that of the first of its pods that was seen: where they name several, as in plain worlds,
    it may be another one after a restart.
    Pods of gangs that wait are left out: whether a gang has given up reserving room is remembered by the process alone. And
    a gang is too large for a quota, and refused, by the quota of when it is seen first.
    """
    manager = runner.manager
    partition = runner.api.cluster.partition(manager.outbox.rm_id)

    def used(amounts: Vec) -> dict[str, int]:
        return {name: amount for name, amount in amounts.named(partition.types).items() if amount}

    applications = {app.id: amounts for app in partition.applications.values() if (amounts := used(app.allocated))}
    queues: dict[str, dict[str, int]] = {}
    for app in partition.applications.values():
        if amounts := used(app.allocated):
            queues[app.queue.path] = books.plus(queues.get(app.queue.path, {}), amounts)
    return {
        "pods": {
            record.pod.metadata.name: (_stage(record), record.node)
            for record in manager.records.pods.values()
            if record.node or (record.application.gang is None and record.work.gang is None)
        },
        "nodes": {node.id: used(node.allocated) for node in partition.nodes.values()},
        "occupied": {node.id: used(node.occupied) for node in partition.nodes.values()},
        "applications": applications,
        "users": {app.id: app.user for app in partition.applications.values() if app.id in applications},
        "queues": queues,
        "unconfirmed": [name for name, r in manager.records.pods.items() if r.stage is Stage.ASSUMED],
    }


def _stage(record: PodRecord) -> str:
    """Return the stage of a pod; whose turn it is of pods that have claims in common, the process alone remembers."""
    return "waits" if books.claims(record.pod) and not record.node else record.stage


def is_at_rest(world: World, runner: Runner) -> bool:
    """Return whether a process has read the present state, and waits for no answer, no victim, nor a time to try again."""
    manager = runner.manager
    if not runner.reading.begun or not runner.guard.check() or len(runner.binder):
        return False
    if any(pod.metadata.uid in world.hanging for pod in world.server.pods()):
        return False  # for whom the room is that it leaves, the process alone remembers
    for plural in ("pods", "nodes", "poddisruptionbudgets", "podgroups"):
        there = world.server.objects.get(plural, {}).items()
        known = runner.reading.reflectors[plural].store
        wanted = {key: one for key, one in there if not (isinstance(one, Pod) and books.has_ended(one))}
        if {key: one.metadata.resource_version for key, one in known.items()} != {
            key: one.metadata.resource_version for key, one in wanted.items()
        }:
            return False
    for app in manager.records.applications.values():
        placeholders = {record.pod.metadata.name for record in app.pods.values() if record.work.ask.placeholder}
        lacks = not placeholders or not app.creations.keys() <= placeholders
        if app.gang_stage is GangStage.RESERVING and lacks and app.undecided is None:
            return False  # nobody has seen those that it had made, or they are refused; they are made again in a while
    return all(
        record.stage not in (Stage.AWAITS_CLAIMS, Stage.ASSUMED, Stage.UNBOUND)
        for record in manager.records.pods.values()
    )


def check_same(world: World, fresh: dict[str, Any], known: dict[str, Any]) -> None:
    """Check that a process which has just begun sees what the one before knows.

    Reservations, and nodes that are held for a gang, are remembered by the process alone. Where there are such, the new one
    may give pods a node that the other kept for somebody else, so only pods that have a node are compared. So it is where a
    provisioner makes no volume: whose turn it is to wait for one is chance.
    """
    awaits = Stage.AWAITS_CLAIMS
    if world.keeps_nodes or any(place[0] is awaits for both in (known, fresh) for place in both["pods"].values()):
        placed = {name: place for name, place in known["pods"].items() if place[1] and place[0] is not awaits}
        others = {name: fresh["pods"].get(name) for name in placed}
        assert others == placed, f"a fresh process sees other pods: {_difference({'pods': others}, {'pods': placed})}"
        return
    parts = [part for part in PARTS if part != "queues" or world.has_fixed_queues]
    one, other = ({part: told[part] for part in parts} for told in (fresh, known))
    assert one == other, f"a fresh process sees another state: {_difference(one, other)}"


def _difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        part: (
            {
                key: (one[part].get(key), other[part].get(key))
                for key in {*one[part], *other[part]}
                if one[part].get(key) != other[part].get(key)
            }
            if isinstance(one[part], dict)
            else (one[part], other[part])
        )
        for part in one
    }


def turns_s(world: World) -> float:
    """Return how much longer the calm end takes for the gangs with placeholders that wait when it begins.

    The timeout of such a gang counts from the first placeholder that gets a node. Where there is room for one placeholder,
    and not for a gang, one gang after the other takes that room, waits for the rest in vain, and leaves it to the next.
    What the last one leaves lets a pod evict whose queue is guaranteed room for it, and not for both.
    """
    waiting = (pod for pod in world.server.pods() if not pod.spec.node_name and books.is_member(pod))
    return TURN_S * len({books.application_of(pod) for pod in waiting} - {*world.gangs})


# -- what must be done -------------------------------------------------------------------------------------------


def check_end(world: World, runner: Runner) -> None:
    """Check that everything is done that can be done."""
    told = state(runner)
    assert told["unconfirmed"] == []
    assert not runner.manager.lifecycle.asides, "an exception was raised for a pod"
    known = {record.pod.metadata.name for record in runner.manager.records.pods.values()}
    there = {pod.metadata.name for pod in world.server.pods() if books.is_ours(pod) and not books.has_ended(pod)}
    assert known == there, f"known {known - there}, forgotten {there - known}"
    awaiting = {one.uid: one.node for one in runner.manager.records.pods.values() if one.stage is Stage.AWAITS_CLAIMS}
    view = world.view()  # a provisioner that makes no volume is waited for again and again
    view = view.with_places([(pod, node or awaiting.get(pod.metadata.uid, "")) for pod, node in view.places])
    for node in view.nodes:
        counted = told["nodes"].get(node, {}), told["occupied"].get(node, {})
        used = view.used(node, ours=True), view.used(node, ours=False)
        assert counted == used, f"{node}: counted {counted}, used {used}"
    for watched in world.alive:
        watched.check_gangs(ends=True)
    settled = asyncio.get_running_loop().time() - SETTLED_S + LAST_TRY_S
    assert not [at for at in world.evictions if at > settled], "pods are evicted for ever"
    _check_evictions(world, runner)
    waiting = [
        pod for pod, node in view.places if not node and not pod.metadata.deletion_timestamp and books.is_ours(pod)
    ]
    for pod in waiting:
        _check_waiting(world, runner, view, pod)
    if world.kind is not None and world.kind.reservations:
        _check_reservations(world, runner, view, waiting)


def check_counted(runner: Runner, sent: int) -> None:
    """Check that no request that writes is without a result in the metrics, in which those that fail must be seen.

    There may be more results: a binding that was not answered counts once more when the pod is found on its node.
    """
    results = runner.results.counts.items()
    counted = sum(number for (kind, result), number in results if kind != "lease" and result != "left_out")
    assert counted >= sent, f"{sent} requests were sent that write, and {counted} results are counted"


def _check_evictions(world: World, runner: Runner) -> None:
    """Check what became of those for whom others were evicted: placed, ended, or given up for a cause that this world has."""
    for one in runner.api.cluster.partition(runner.manager.outbox.rm_id).evictions:
        sound = one.outcome not in NEVER and (
            one.outcome not in NEEDS or any(getattr(world.kind, name, False) for name in NEEDS[one.outcome])
        )
        assert sound, f"{one.victim} was evicted for {one.ask}: {one.outcome}"


def _check_waiting(world: World, runner: Runner, view: View, pod: Pod) -> None:
    """Check that a pod has a reason to wait, and that the right one is told."""
    record = runner.manager.records.pods[pod.metadata.uid]
    conditions = {one.type: one for one in pod.status.conditions or ()}
    told = conditions.get("PodScheduled")
    if pod.spec.scheduling_gates:
        assert told is None, f"{pod.metadata.name} has scheduling gates, and is told {told}"
        return
    mates = [other for other in view.places if books.application_of(other[0]) == books.application_of(pod)]
    if books.is_undecided(pod) or any(books.is_undecided(other) and not node for other, node in mates):
        assert told is not None, f"{pod.metadata.name} is told nothing, {_why(runner, pod)}"
        reason = "Unschedulable" if books.is_undecided(pod) else "SchedulingSkipped"
        assert told.reason == reason, f"{pod.metadata.name}: {told}, {_why(runner, pod)}"
        return
    if record.application.gang_stage is GangStage.RESERVING and not books.is_placeholder(pod):
        lacking = [other for other, node in mates if books.is_placeholder(other) and not node]
        assert lacking, f"{pod.metadata.name} waits for room that nobody looks for, {_why(runner, pod)}"
        return  # some of its placeholders find no room, for which they are looked at themselves
    if books.claims(pod):  # whether it fits is told by a process that is started anew (`check_same`)
        assert told is not None, f"{pod.metadata.name} is told nothing, {_why(runner, pod)}"
        return
    if group_name(pod):
        _check_group(world, runner, view, pod, told)
        return
    full = view.full_queue(pod)
    if books.application_of(pod) in world.gangs:
        _check_gang(world, runner, view, pod)
    elif not full:
        for node in view.nodes:
            fits = not view.why_not(pod, node)
            assert not fits or _is_kept(world, runner, record, node), (
                f"{pod.metadata.name} fits on {node}, {_why(runner, pod)}"
            )
        _check_guarantee(world, runner, view, pod)
    assert told is not None, f"{pod.metadata.name} is told nothing, {_why(runner, pod)}"
    expected = _expected(world, view, record, full)
    assert (told.status, told.reason) in [("False", one) for one in expected], (
        f"{pod.metadata.name}: {told}, {_why(runner, pod)}"
    )


def _is_kept(world: World, runner: Runner, record: PodRecord, node: str) -> bool:
    """Return whether a node is kept for another pod that waits, so that what is free there is not for everybody.

    Only in a world with reservations, or where gangs hold nodes. Which node is kept is the scheduler's choice, so it is
    asked; that the pod for which it keeps one is there, and has no node, is for the world to know.
    """
    if not world.keeps_nodes or not runner.reading.begun:
        return False
    known = runner.api.cluster.partition(runner.manager.outbox.rm_id).nodes[node]
    waiting = [pod for pod in world.server.pods() if not pod.spec.node_name and books.is_ours(pod)]
    others = {pod.metadata.uid for pod in waiting if pod.metadata.uid != record.uid}
    return not known.open and bool(others) and {ask.key for ask in known.reservations} <= others


def _check_reservations(world: World, runner: Runner, view: View, waiting: list[Pod]) -> None:
    """Check that a node is kept for somebody, where pods wait for room that one would have if nothing ran there.

    For which of the pods, and which node, is the scheduler's choice. One that requires more than its queue has left
    reserves nothing, neither does a gang or a pod group that is placed as a whole.
    """
    partition = runner.api.cluster.partition(runner.manager.outbox.rm_id)
    for pod in waiting:
        stage = runner.manager.records.pods[pod.metadata.uid].stage
        whole = books.application_of(pod) in world.gangs or group_name(pod)
        if books.claims(pod) or stage is not Stage.ASKED or whole or view.full_queue(pod) or view.is_full(pod):
            continue
        large = [name for name in view.nodes if partition.nodes[name].open and view.may_be_kept(name, pod)]
        assert not large or len(partition.reservations), (
            f"no node is kept, {pod.metadata.name} may reserve {large}, {_why(runner, pod)}"
        )


def _check_gang(world: World, runner: Runner, view: View, pod: Pod) -> None:
    """Check that a gang without placeholders does not wait for room that is there.

    It waits while it has fewer pods than members: those that have ended do not count, nor those that are not there yet.
    Its members are equal, so it fits exactly if the nodes have room for as many pods as have no node. Others whose turn comes
    first may not be there, since they would have taken that room.
    """
    gang = books.application_of(pod)
    members = [one for one in view.places if books.application_of(one[0]) == gang]
    alive = [one for one in members if not one[0].metadata.deletion_timestamp]
    waiting = [one for one, node in alive if not node]
    full = view.full_queue(pod, len(waiting)) or view.is_full(pod, len(waiting))
    if len(alive) < world.gangs[gang] or world.keeps_nodes or full:
        return
    room = view.copies(pod)
    assert room < len(waiting), f"gang {gang}: {len(waiting)} wait, room for {room}, {_why(runner, pod)}"


def _check_group(world: World, runner: Runner, view: View, pod: Pod, told: Condition | None) -> None:
    """Check that a pod waits because its group is not there, has too few pods, or finds no room for as many as it needs.

    The pods of a group are equal here.
    """
    name, why = group_name(pod), _why(runner, pod)
    assert told is not None, f"{pod.metadata.name} of group {name} is told nothing, {why}"
    assert name in told.message or told.reason == "Unschedulable", f"{pod.metadata.name} of group {name}: {told}, {why}"
    group = world.server.objects.get("podgroups", {}).get(("default", name))
    if not isinstance(group, PodGroup) or world.keeps_nodes:
        return
    mates = [(one, node) for one, node in view.places if group_name(one) == name]
    waiting = [one for one, node in mates if not (node or one.metadata.deletion_timestamp)]
    lacking = max(group.needed - sum(bool(node) for _, node in mates), 1)
    if len(waiting) < lacking or view.full_queue(pod, lacking) or view.is_full(pod, lacking):
        return
    room = view.copies(pod)
    assert room < lacking, f"group {name}: {lacking} of {len(waiting)} are lacking, room for {room}, {why}"


def _check_guarantee(world: World, runner: Runner, view: View, pod: Pod) -> None:
    """Check that a pod does not wait whose guarantee covers it, while others that must give way run where it could.

    That is as much as can be said without searching as the scheduler does: there may be victims on several nodes, and in
    queues with guarantees of their own. Where nodes are kept for other pods, nothing can be said.
    """
    if world.keeps_nodes or pod.spec.preemption_policy == "Never" or not view.is_entitled(pod):
        return
    gang = books.application_of(pod)
    waiting = [one for one, node in view.places if not node and books.application_of(one) == gang]
    if len(waiting) > 1 and any(map(books.is_placeholder, waiting)):
        return  # placeholders preempt together, or not at all, and a member takes the place of one
    for node in view.nodes:
        if any(other.metadata.uid in world.hanging for other in view.on(node)):
            continue  # nobody is evicted there any more
        victims = view.evictable(pod, node)
        assert not (victims and view.makes_room(pod, node, victims)), (
            f"{pod.metadata.name} is entitled to room on {node}, {_why(runner, pod)}"
        )


def _expected(world: World, view: View, record: PodRecord, full: str) -> list[str]:
    """Return what a pod that waits may be told.

    A pod is unschedulable if it would run on another node, so not if a queue is full. Of several pods that a queue has room
    for one by one, and not together, it depends on the scheduler's order which would.
    """
    if full:
        return ["SchedulingSkipped"]
    gang = [one.work.ask for one in record.application.pods.values() if not one.node]
    if any(ask.placeholder for ask in gang) and not record.work.ask.placeholder:
        # A member whose placeholder waits for room waits for that one, and only the placeholder needs more of the cluster.
        return ["SchedulingSkipped"]
    both = ["Unschedulable", "SchedulingSkipped"]
    if view.is_full(record.pod) or books.application_of(record.pod) in world.gangs:
        return both
    queues = {*books.lineage(books.queue_of(record.pod))}
    for queue in queues & {*view.limits.max}:
        total = view.in_queue.get(queue, {})
        for pod, node in view.places:
            if not node and queue in books.lineage(books.queue_of(pod)):
                total = books.plus(total, books.amounts(pod))
        if not books.within(total, view.limits.max[queue]):
            return both
    return ["Unschedulable"]


def _why(runner: Runner, pod: Pod) -> str:
    """Return what is known of a pod that waits."""
    record = runner.manager.records.pods[pod.metadata.uid]
    application = record.application
    partition = runner.api.cluster.partition(runner.manager.outbox.rm_id)
    reasons = [why for key, _, why in partition.waiting() if key == pod.metadata.uid]
    nodes = {node.id: node.free.named(partition.types) for node in partition.nodes.values()}
    return f"{record.stage} {application.id} is {application.state}, gang {application.gang_stage}: {reasons}, free {nodes}"
