"""Why an ask waits, as data: the rules on which its last attempt failed, with the amounts that are missing.

Source: docs/spec/design.md, rule 4.

Nothing that matters to a waiting ask has changed since its last attempt, or it would have been tried again. So the
reasons are derived from the same state as in that attempt, by the same comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from licorne.core.amounts.vectors import new_sum
from licorne.core.base.states import ApplicationState
from licorne.core.constants import AWAITS_PLACEHOLDER
from licorne.core.nodes.constraints import passes
from licorne.core.queues.ask import total_amounts
from licorne.core.queues.bounds import missing, queue_bounds, user_bounds
from licorne.core.queues.usage import Tracker

if TYPE_CHECKING:
    from licorne.core.amounts.vectors import Vec
    from licorne.core.nodes.node import Need, Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

TOO_SMALL: Final = "too small"
"""The reason of a node that would not have room for the ask even if nothing ran there."""


class _Passing(msgspec.Struct, frozen=True):
    """Base of the reasons that the end of other work, or time, may remove."""

    @property
    def never(self) -> bool:
        """Never true: this reason may pass without any change."""
        return False


class QueueQuota(msgspec.Struct, tag="queue-quota", frozen=True):
    """The queue's max leaves too little; `missing` is the lacking amount, by type.

    `never`, here and in other reasons: whatever else ends, the ask cannot run unless the configuration or the nodes
    change. Here it is larger than the max itself.
    """

    queue: str
    missing: dict[str, int]
    never: bool = False


class ClusterFull(msgspec.Struct, tag="cluster-full", frozen=True):
    """All nodes together leave too little; `missing` is the lacking amount, by type."""

    missing: dict[str, int]
    never: bool = False


class UserLimit(msgspec.Struct, tag="user-limit", frozen=True):
    """The limit of a user or group (`kind`, `name`) at a queue leaves too little; `missing` is the lacking amount."""

    kind: str
    name: str
    queue: str
    missing: dict[str, int]
    never: bool = False


class Claimed(_Passing, tag="claimed", frozen=True):
    """Claims of other asks take the room under a quota or limit; `missing` is the amount that is lacking beside them.

    `kind`: `queue` (`name` is its path), or the limit of a `user` or `group` at `queue`.
    """

    kind: str
    name: str
    queue: str
    missing: dict[str, int]


class MaxApplications(_Passing, tag="max-applications", frozen=True):
    """The maximum of running applications of a queue, or of a user or group there, is reached."""

    queue: str
    kind: str = "queue"
    name: str = ""


class StateOrder(_Passing, tag="state-order", frozen=True):
    """In a `stateaware` queue, another application must start first."""

    queue: str


class Backoff(_Passing, tag="backoff", frozen=True):
    """The application backs off, because too many of its asks fit no node; it is tried again at `until_ns`."""

    until_ns: int


class Nodes(msgspec.Struct, tag="nodes", frozen=True, omit_defaults=True):
    """No node takes the ask; `failed` counts the nodes by the reason why they do not.

    Reasons: `not schedulable`, `reserved`, `held for a gang`, `too small` (even when empty), `lack of <types>`,
    `taint …`, `nodeSelector`, `nodeAffinity`, `anti-affinity of running pods`, `hostPort …`, `predicate` (the node has room
    and meets the constraints, but the resource manager refused it). A node that would not take the ask empty counts as
    such, reserved or not schedulable as it may be besides. `never`: each node is too small or does not meet the
    constraints, so none would take the ask if it were empty; this is told also while a quota, or a full cluster, keeps the
    ask waiting. `absent`: the types that the ask wants and no node has.
    """

    failed: dict[str, int]
    never: bool = False
    absent: tuple[str, ...] = ()


class RequiredNode(msgspec.Struct, tag="required-node", frozen=True):
    """The required node does not take the ask: it is unknown, too small, has too little free (`missing`), or the like.

    `state` says which.
    """

    node: str
    state: str
    missing: dict[str, int]
    never: bool = False


class Reserved(_Passing, tag="reserved", frozen=True):
    """A node is reserved for the ask."""

    node: str
    since_ns: int


class Preemption(_Passing, tag="preemption", frozen=True):
    """The ask may preempt; `state` and `detail` say why it has not, or with which result.

    States, with the detail: `too young`; `attempted` (why it failed); `victims are going` and `victims have gone`
    (which node is reserved); `gave up` (why no node is reserved any more); `not tried`. `next_ns`: when preemption is tried
    next; None if that is unknown.
    """

    state: str
    detail: str
    next_ns: int | None


class Placeholder(_Passing, tag="placeholder", frozen=True):
    """The ask's task group has `live` placeholders; the ask replaces one of them, or is tried when they are gone."""

    task_group: str
    live: int


class Gang(_Passing, tag="gang", frozen=True):
    """The application is an atomic gang that has not started; all its asks have the same reason (docs/understand/gangs-atomic.md).

    `groups`: for each task group, the number of members that are pending or running, and the number that is needed.
    `ready`: no member is missing. `fits_quota`: queues, user and group leave room for all members. `start_ns`: the
    earliest start by its plan, None if it has no plan or the start is unknown. `held`: the nodes that it holds.
    """

    ready: bool
    groups: dict[str, tuple[int, int]]
    fits_quota: bool
    start_ns: int | None
    held: tuple[str, ...]


class NotTried(_Passing, tag="not-tried", frozen=True):
    """Nothing is in the way of the ask: it has not had its turn yet."""


Reason = (
    QueueQuota
    | ClusterFull
    | UserLimit
    | Claimed
    | MaxApplications
    | StateOrder
    | Backoff
    | Nodes
    | RequiredNode
    | Reserved
    | Preemption
    | Placeholder
    | Gang
    | NotTried
)

QUOTAS = (QueueQuota, ClusterFull, UserLimit, Claimed)
"""Reasons that say how much is lacking under a quota; those of an atomic gang count all its members."""
Counted = dict[tuple["Need", tuple[int, ...]], Nodes | None]
"""Why the nodes do not take asks with a need and amounts; a cache for the reasons of many asks at one moment."""


def waiting(partition: Partition) -> Iterator[tuple[str, str, list[Reason]]]:
    """Yield for each pending ask its key, its application's id, and why it waits (rule 4 of the design).

    Read it to the end before anything changes: the nodes are compared with a shape once for all its asks.
    """
    counted: Counted = {}
    for app in sorted(partition.applications.values(), key=attrgetter("seq")):
        for ask in app.requests.in_order():
            yield ask.key, app.id, reasons(partition, app, ask, counted)


def reasons(partition: Partition, app: Application, ask: Ask, counted: Counted | None = None) -> list[Reason]:
    """Return all reasons why the ask waits now, at least one; `counted` caches those of nodes.

    They are in the order in which they matter: application, quotas, nodes, and last that a node is reserved for the ask, and
    its preemption. A reservation says that its turn comes there, but not what keeps it off all nodes now.
    """
    found: list[Reason] = []
    if ask.parked == AWAITS_PLACEHOLDER:  # a replacement is checked against neither quotas nor nodes
        return [_placeholder(app, ask)]
    found += _application(partition, app)
    preemption = partition.guarantee_preemption.reason(ask)
    coming = [] if preemption is None else [Preemption(*preemption)]
    if app.atomic is not None:
        return found + _gang(partition, app) + coming
    found += _quotas_of(partition, app, ask)
    if ask.required:
        found += on_required_node(partition, ask)
    else:
        within_quotas = not any(isinstance(reason, QUOTAS) for reason in found)
        failed = _counted(partition, ask, counted)
        if failed is not None and (within_quotas or failed.never):
            found.append(failed)
    if ask.reserved is not None:
        found.append(Reserved(ask.reserved.id, ask.reserved_ns))
    return (found or [NotTried()]) + coming


def gang_reasons(partition: Partition, app: Application) -> list[Reason]:
    """Return the reasons, common to all its asks, why an atomic gang that has not started waits."""
    return [*_application(partition, app), *_gang(partition, app)]


def _placeholder(app: Application, ask: Ask) -> Placeholder:
    assert app.gang is not None, "the application has to do with placeholders"
    return Placeholder(ask.task_group, app.gang.groups[ask.task_group].live())


def _gang(partition: Partition, app: Application) -> list[Reason]:
    gang = app.atomic
    assert gang is not None, "the application starts as a whole"
    members = gang.members(app)
    running = gang.running(app)
    there = {name: min(need, running[name] + len(gang.pending(app)[name])) for name, need in gang.needs.items()}
    groups = {name: (there[name], need) for name, need in sorted(gang.needs.items())}
    total = None if members is None else total_amounts(members)
    quotas = [] if total is None else _quotas(partition, app, total)
    if members and total is not None and not quotas and not app.reservations:
        quotas = _claimed(partition, app, min(members, key=attrgetter("priority")), total)
    fits = total is None or not partition.atomic.short_of(app, members or [], total)
    hold = partition.atomic.backfill.hold_of(gang)
    start = None if hold is None or hold.plan.start_ns is None else max(hold.plan.start_ns, partition.now)
    held = () if hold is None else tuple(sorted(node.id for node in hold.nodes))
    return [*quotas, Gang(members is not None, groups, fits, start, held)]


def quick_reasons(partition: Partition, app: Application, ask: Ask) -> list[Reason]:
    """Return the reasons that are cheap to find, that is, neither those of nodes nor of preemption; may be empty.

    The reasons of an atomic gang cost more, and are common to all its asks: see `gang_reasons`.
    """
    if ask.parked == AWAITS_PLACEHOLDER:
        return [_placeholder(app, ask)]
    return [*_application(partition, app), *_quotas_of(partition, app, ask)]


def _application(partition: Partition, app: Application) -> list[Reason]:
    found: list[Reason] = []
    if app.state is ApplicationState.ACCEPTED:
        queue = partition.lifecycle.refusing_queue(app)
        if queue is not None:
            found.append(MaxApplications(queue.path))
        tracker = partition.limits.first_refusal(app) if app.group_chosen else None
        if tracker is not None:
            found.append(MaxApplications(tracker.path, tracker.kind, tracker.name))
    if app.queue.stateaware and not partition.lifecycle.passes_state_filter(app):
        found.append(StateOrder(app.queue.path))
    if app.backoff_until > partition.now:
        found.append(Backoff(app.backoff_until))
    return found


def _quotas_of(partition: Partition, app: Application, ask: Ask) -> list[Reason]:
    wanted, cluster = ask.shape.amounts, not ask.required
    return _quotas(partition, app, wanted, cluster=cluster) or _claimed(partition, app, ask, wanted, cluster=cluster)


def _quotas(partition: Partition, app: Application, wanted: Vec, *, cluster: bool = True) -> list[Reason]:
    found: list[Reason] = []
    for level, limit, used in (*queue_bounds(app, cluster=cluster), *user_bounds(app)):
        lacking = missing(partition.types, limit, used, wanted)
        if not lacking:
            continue
        never = bool(missing(partition.types, limit, new_sum(), wanted))
        if isinstance(level, Tracker):
            found.append(UserLimit(level.kind, level.name, level.path, lacking, never))
        elif level.parent is None:  # root has no max of its own: its limit follows from the size of the cluster
            never = level.size is not None and bool(missing(partition.types, level.size, new_sum(), wanted))
            found.append(ClusterFull(lacking, never))
        else:
            found.append(QueueQuota(level.path, lacking, never))
    return found


def _claimed(partition: Partition, app: Application, ask: Ask, wanted: Vec, *, cluster: bool = True) -> list[Reason]:
    """Return where claims of other asks leave too little; a lack that exists without claims is found by `_quotas`."""
    found: list[Reason] = []
    if ask in partition.claims.by_ask:
        return found
    for level, limit, planned in partition.claims.levels(app, ask.priority):
        if level is partition.tree.root and not cluster:
            continue
        lacking = missing(partition.types, limit, planned, wanted)
        if lacking and isinstance(level, Tracker):
            found.append(Claimed(level.kind, level.name, level.path, lacking))
        elif lacking:
            found.append(Claimed("queue", level.path, level.path, lacking))
    return found


def on_required_node(partition: Partition, ask: Ask) -> list[RequiredNode]:
    """Return why an ask is not placed on the node that it requires; an empty list if nothing is known that speaks against it."""
    node = partition.nodes.get(ask.required)
    if node is None:
        return [RequiredNode(ask.required, "unknown", {}, True)]
    wanted = ask.shape.amounts
    if not node.capacity.covers(wanted):
        lacking = missing(partition.types, node.capacity, new_sum(), wanted)
        return [RequiredNode(node.id, TOO_SMALL, lacking, True)]
    mismatch = ask.shape.need.mismatch(node)
    if mismatch:
        return [RequiredNode(node.id, mismatch, {}, not passes(mismatch))]
    lacking = lack(partition, node.free, wanted)
    if lacking:
        return [RequiredNode(node.id, "full", lacking)]
    if node.reservations and ask not in node.reservations:
        return [RequiredNode(node.id, "reserved", {})]
    return [RequiredNode(node.id, "predicate", {})] if partition.predicates is not None else []


def lack(partition: Partition, free: Vec, wanted: Vec) -> dict[str, int]:
    """Return what is missing of `wanted` where `free` is left, by type."""
    lacking = {}
    for d, amount in enumerate(wanted.values()):
        if amount > max(0, free.at(d)):
            lacking[partition.types.names[d]] = amount - max(0, free.at(d))
    return dict(sorted(lacking.items()))


def _counted(partition: Partition, ask: Ask, counted: Counted | None) -> Nodes | None:
    if counted is None:
        return _nodes(partition, ask)
    like = alike(ask)
    if like not in counted:
        counted[like] = count(partition, ask, survey(partition, ask, own=False))
    found = counted[like]
    if ask.reserved is None or found is None:
        return found
    # The node that it reserves counts otherwise for it than for others.
    failed = dict(found.failed)
    [(_, others, _)] = survey(partition, ask, [ask.reserved], own=False)
    [(_, mine, _)] = survey(partition, ask, [ask.reserved])
    if not mine and partition.predicates is None:
        return None
    failed[others] -= 1
    failed[mine or "predicate"] = failed.get(mine or "predicate", 0) + 1
    return Nodes({why: number for why, number in sorted(failed.items()) if number}, found.never, found.absent)


def alike(ask: Ask) -> tuple[Need, tuple[int, ...]]:
    """Return what is equal for asks which nodes take, or refuse, for the same reasons: not their shape, of which many may be equal."""
    return ask.shape.need, tuple(ask.shape.amounts.values())


def _nodes(partition: Partition, ask: Ask) -> Nodes | None:
    """Count the nodes by why they do not take the ask; return None if one would, so that the ask was not tried yet."""
    return count(partition, ask, survey(partition, ask))


def count(partition: Partition, ask: Ask, found: Iterable[tuple[Node, str, bool]]) -> Nodes | None:
    """Count the nodes of a survey for an ask by their reasons; return None if one of them takes the ask."""
    failed: dict[str, int] = {}
    never = True
    for _, reason, unfit in found:
        if not reason and partition.predicates is None:
            return None
        why = reason or "predicate"
        failed[why] = failed.get(why, 0) + 1
        never = never and unfit
    absent = _absent(partition, ask) if failed.keys() == {TOO_SMALL} else ()
    return Nodes(dict(sorted(failed.items())), never, absent)


def _absent(partition: Partition, ask: Ask) -> tuple[str, ...]:
    """Return the types that the ask wants and no node has, by name."""
    wanted = [d for d, amount in enumerate(ask.shape.amounts.values()) if amount > 0]
    nodes = partition.nodes.values()
    return tuple(sorted(partition.types.names[d] for d in wanted if all(node.capacity.at(d) <= 0 for node in nodes)))


def survey(
    partition: Partition, ask: Ask, nodes: Iterable[Node] | None = None, *, own: bool = True
) -> Iterator[tuple[Node, str, bool]]:
    """Yield each node with the reason why it does not take the ask now, "" if it has room, and whether it would not empty.

    `nodes`: these alone; None: all. `own`: a node that the ask reserves is open to it, as it is not to asks that are alike.
    """
    asking = ask if own else None
    amounts, need = ask.shape.amounts, ask.shape.need
    wanted = [(d, amount) for d, amount in enumerate(amounts.values()) if amount > 0]
    mismatches: dict[int, str] = {}  # by labels, which nodes share
    lacks: dict[tuple[int, ...], str] = {}
    for node in partition.nodes.values() if nodes is None else nodes:
        free = node.free
        labels = id(node.labels)
        if labels not in mismatches:
            mismatches[labels] = need.constraints.mismatch(node.labels)
        unfit = mismatches[labels]
        among = "" if need.pods is None else need.mismatch_of_pods(node)
        if not unfit or passes(unfit):
            if not node.capacity.covers(amounts):
                unfit = TOO_SMALL
            elif among and not passes(among):
                unfit = among
        never = unfit != "" and not passes(unfit)
        # What nothing but a change removes comes first: that a node is reserved, too, would promise that it opens.
        why = unfit if node.open or never else taken_up(partition, asking, node) or unfit
        if not why and not free.covers(amounts):
            types = tuple([d for d, amount in wanted if amount > free.at(d)])
            if types not in lacks:
                lacks[types] = "lack of " + ", ".join(sorted(partition.types.names[d] for d in types))
            why = lacks[types]
        yield node, why or among, never


def taken_up(partition: Partition, ask: Ask | None, node: Node) -> str:
    """Return why a node takes no ask, or not this one, for the time being; "" if nothing is in the way."""
    if not node.schedulable:
        return "not schedulable"
    if partition.atomic.backfill.holds(node):
        return "held for a gang"
    return "reserved" if node.reservations and ask not in node.reservations else ""
