"""What may be done about a reason for which an ask waits: for each reason, the least change of each kind that is known.

What is found here is a proposal for a trial (`licorne.answers.trials`), no more: whether it helps, and whether less would,
only the trial can say, because other asks compete.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from licorne.answers.applied import HOSTNAMES
from licorne.answers.asks import elsewhere
from licorne.answers.changes import (
    BiggerNode,
    Change,
    End,
    FewerMembers,
    LessAsked,
    LimitMax,
    MaxApplications,
    MoreMembers,
    MoreNodes,
    NoTaint,
    OtherQueue,
    OwnNode,
    Priority,
    QueueMax,
    Running,
    Schedulable,
    Tolerates,
    Unconstrained,
)
from licorne.answers.pods import pod_name
from licorne.core.constants import PRIORITY_HIGHEST
from licorne.core.inspection import explain
from licorne.core.nodes.constraints import (
    ANTI_AFFINITY,
    CORDON,
    HOST_PORT,
    LABEL_PREFIX,
    MARK,
    Expression,
    NodeConstraints,
    NodeLabels,
)
from licorne.core.placement.placer import PlacementRequest
from licorne.core.preemption.ranking import is_reluctant, victim_order
from licorne.core.queues.bounds import missing

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.usage import Tracker

QUEUES_MAX: Final = 3
"""More queues than this are not tried for an ask that might go to another one."""
ROOT: Final = "root"
OWN_TAINT: Final = "licorne/only-for"
"""The key of the taint of a node that is proposed for one ask alone."""
Kind = Literal["grow", "open", "end", "ask"]
"""The kinds of changes, as the fields of `Repairs`."""
ENDED_MAX: Final = 64
"""More allocations than this are not proposed to end."""


class Repairs(msgspec.Struct, frozen=True):
    """The least change of each kind about one reason; None where there is none.

    `grow`: the configuration allows more, there are more nodes, or more members of a gang. `open`: a node takes asks that
    it did not take. `end`: allocations end. `ask`: the ask wants less, or other nodes, or its gang needs fewer members.
    """

    grow: Change | None = None
    open: Change | None = None
    end: Change | None = None
    ask: Change | None = None


class Suggest(NamedTuple):
    """Which repairs are wanted, of each reason: the first kind of `order` that there is, or all kinds if that is empty.

    Where `open` follows it is told too, so that one trial serves a search that prefers either of them.

    `rooms`: for how many asks of this size allocations are to end, since others may take what is freed.
    """

    order: tuple[Kind, ...] = ()
    rooms: int = 1

    def choose(self, **made: Callable[[], Change | None]) -> Repairs:
        """Return the repairs that are wanted; `made` makes one of each kind, which may take a look at all nodes."""
        found: dict[str, Change] = {}
        for kind in self.order or made:
            if found and self.order and kind != "open":  # for which one look is enough
                break
            change = made[kind]() if kind in made else None
            if change is not None:
                found[kind] = change
        return Repairs(**found)


class Present(NamedTuple):
    """What was there before a trial began, by name: only that can be changed."""

    nodes: frozenset[str]
    allocations: frozenset[str]


class Obstacle(NamedTuple):
    """A reason why an ask waits, or why the ask waits for which it waits."""

    app: Application
    ask: Ask
    reason: explain.Reason


def obstacles(partition: Partition, app: Application, ask: Ask) -> list[Obstacle]:
    """Return the reasons why an ask waits, and those of the asks that must go before it.

    An ask that is to replace a placeholder waits for one that is placed; in a `stateaware` queue, for an application that
    starts first.
    """
    found: list[Obstacle] = []
    waiting: list[tuple[Application, Ask]] = [(app, ask)]
    for each_app, each in waiting:
        for reason in explain.reasons(partition, each_app, each):
            found.append(Obstacle(each_app, each, reason))
            first = _goes_before(partition, each_app, reason)
            if first is not None and first not in waiting:
                waiting.append(first)
    return found


def _goes_before(partition: Partition, app: Application, reason: explain.Reason) -> tuple[Application, Ask] | None:
    match reason:
        case explain.Placeholder():
            pending = (
                ask for ask in app.requests.in_order() if ask.placeholder and ask.task_group == reason.task_group
            )
            first = next(pending, None)
            return None if first is None else (app, first)
        case explain.StateOrder():
            others = sorted(
                (other for other in app.queue.apps.values() if other.asks), key=attrgetter("submitted", "seq")
            )
            other = next((other for other in others if partition.lifecycle.passes_state_filter(other)), None)
            return None if other is None else (other, next(iter(other.requests.in_order())))
        case _:
            return None


def repairs(partition: Partition, present: Present, obstacle: Obstacle, suggest: Suggest) -> Iterator[Repairs]:
    """Yield what may be done about a reason; more than once where all of that may be necessary."""
    app, ask, reason = obstacle
    match reason:
        case explain.QueueQuota() | explain.Claimed(kind="queue") if reason.queue != ROOT:
            path = reason.queue
            queue = partition.tree.find(path)
            assert queue is not None, "a reason names a queue that is there"
            below = [each for leaf in queue.walk() for each in leaf.apps.values()]
            grow = QueueMax(path, reason.missing, dynamic=not queue.managed)
            yield suggest.choose(
                grow=lambda: grow,
                end=lambda: _ends_of(present, below, _for_all(ask, reason.missing, suggest.rooms)),
                ask=lambda: _less(app, ask, reason.missing),
            )
        case explain.UserLimit() | explain.Claimed(kind="user" | "group"):
            tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
            wildcard = tracker is not None and tracker.wildcard
            limit = LimitMax(reason.kind, reason.name, reason.queue, reason.missing, wildcard)
            apps = () if tracker is None else tracker.apps
            yield suggest.choose(
                grow=lambda: limit,
                end=lambda: _ends_of(present, apps, _for_all(ask, reason.missing, suggest.rooms)),
                ask=lambda: _less(app, ask, reason.missing),
            )
        case explain.MaxApplications():
            yield suggest.choose(grow=lambda: _one_application_more(partition, reason))
        case explain.ClusterFull() | explain.Claimed():
            yield suggest.choose(
                grow=lambda: _more_nodes(partition, present, ask),
                end=lambda: _end_on_nodes(partition, present, ask, suggest.rooms),
                ask=lambda: _less(app, ask, reason.missing),
            )
        case explain.Nodes():
            yield suggest.choose(
                grow=lambda: _more_nodes(partition, present, ask),
                open=lambda: _open_node(partition, present, ask),
                end=lambda: _end_on_nodes(partition, present, ask, suggest.rooms),
                ask=lambda: _nearer(partition, present, app, ask),
            )
        case explain.RequiredNode():
            yield _on_the_required_node(partition, present, ask, reason)
        case explain.Gang():
            yield from _of_gang(partition, present, app, reason)


def _on_the_required_node(partition: Partition, present: Present, ask: Ask, reason: explain.RequiredNode) -> Repairs:
    node = partition.nodes.get(reason.node)
    if node is None or node.id not in present.nodes:
        attributes = _attributes_for(partition, ask.shape.need.constraints, reason.node) or {}
        capacity = dict(sorted((reason.missing or ask.shape.resource).items()))
        return Repairs(MoreNodes(1, "", capacity, attributes, reason.node))
    mismatch = ask.shape.need.constraints.mismatch(node.labels)
    return Repairs(
        None if mismatch else BiggerNode(node.id, reason.missing or dict(ask.shape.resource)),
        open=_opened(partition, ask, node),
        end=_end_on(partition, present, ask, node),
        ask=_met(ask, node, mismatch) if mismatch else _less(ask.app, ask, reason.missing),
    )


def _of_gang(partition: Partition, present: Present, app: Application, reason: explain.Gang) -> Iterator[Repairs]:
    """Yield what may be done for a gang that starts as a whole: members that it lacks, or room for each kind of member."""
    before = {name: need for name, (_, need) in reason.groups.items()}
    if not reason.ready:
        lacking = {name: need - there for name, (there, need) in reason.groups.items() if there < need}
        fewer = FewerMembers(app.id, lacking, before)
        yield Repairs(MoreMembers(app.id, lacking), ask=fewer if _can_be_fewer(app, fewer) else None)
        return
    largest = max(before, key=lambda name: before[name])
    fewer = FewerMembers(app.id, {largest: 1}, before)
    yield Repairs(ask=fewer if _can_be_fewer(app, fewer) else None)
    gang = app.atomic
    members = (gang.members(app) if gang is not None else None) or ()
    if reason.fits_quota:
        for member in {(each.shape, each.required): each for each in members}.values():
            if member.required:
                for lack in explain.on_required_node(partition, member):
                    yield _on_the_required_node(partition, present, member, lack)
                continue
            yield Repairs(
                _more_nodes(partition, present, member),
                _open_node(partition, present, member),
                _end_on_nodes(partition, present, member),
            )


def _can_be_fewer(app: Application, change: FewerMembers) -> bool:
    return not app.allocations and all(number < change.before[name] for name, number in change.less.items())


# -- the ask itself ------------------------------------------------------------------------------------------------


def _less(app: Application, ask: Ask, missing: dict[str, int]) -> LessAsked | None:
    """Return the ask without what is missing; None if nothing would be left, or if a gang counts on its amounts."""
    resource = ask.shape.resource
    if not missing or not is_alone(app, ask):
        return None
    if any(amount >= resource.get(name, 0) for name, amount in missing.items()):
        return None
    return LessAsked(missing)


def _nearer(partition: Partition, present: Present, app: Application, ask: Ask) -> Change | None:
    """Return the change of the ask that brings it nearest to a node: one that takes it then, if there is any."""
    if not is_alone(app, ask):
        return None
    best: tuple[float, int, Change] | None = None
    constraints = ask.shape.need.constraints
    for node in partition.nodes.values():
        if node.id not in present.nodes or explain.taken_up(partition, ask, node):
            continue
        mismatch = constraints.mismatch(node.labels)
        missing = explain.lack(partition, node.free, ask.shape.amounts)
        change = _met(ask, node, mismatch) if mismatch else _less(app, ask, missing)
        if change is None or any(amount >= ask.shape.resource.get(name, 0) for name, amount in missing.items()):
            continue
        share = sum(amount / ask.shape.resource[name] for name, amount in missing.items())
        distance = (2 * share + 1 if mismatch and share else share + bool(mismatch) / 2, node.rank)
        if best is None or distance < best[:2]:
            best = *distance, change
    return None if best is None else best[2]


def _met(ask: Ask, node: Node, mismatch: str) -> Change | None:
    """Return the change of an ask, such as a toleration, with which a mismatch no longer keeps it off a node; None if there is none."""
    if mismatch.startswith("taint "):
        return Tolerates(mismatch.removeprefix("taint "))
    if mismatch == "nodeAffinity":
        return Unconstrained()
    if mismatch == "nodeSelector":
        labels = dict(node.labels.pairs)
        key, value = next(pair for pair in ask.shape.need.constraints.selector if labels.get(pair[0]) != pair[1])
        return Unconstrained(key, value)
    return None


def alternatives(partition: Partition, app: Application, ask: Ask) -> Iterator[Change]:
    """Yield changes that may help without regard to any reason: a queue with more room, and the highest priority.

    They concern an ask that is not a member of a gang, whose pods have to stay together.
    """
    if not is_alone(app, ask) or app.independent:
        return
    yield from _other_queues(partition, app, ask)
    highest = above_all(partition, app, ask)
    if highest is not None:
        yield highest


def is_alone(app: Application, ask: Ask) -> bool:
    """Return whether an ask is changed by itself: it is no member of a gang, whose pods have to stay together."""
    return app.atomic is None and not ask.task_group and ask.repeats <= 1


def own_node(change: MoreNodes, ask: Ask) -> OwnNode:
    """Return a node for an ask alone in place of nodes that others may take."""
    return OwnNode(change.like, f"{OWN_TAINT}={ask.key[:63]}:NoSchedule", change.capacity, change.attributes)


def above_all(partition: Partition, app: Application, ask: Ask) -> Priority | None:
    """Return the change that makes the priority of an ask the highest of all; None for a member of a gang, or if it is.

    None too where a maximum of running applications is reached, which no priority raises. An ask that is submitted again runs
    past it, because its application has become Completing without the ask; so it would with the priority that it has.
    """
    if not is_alone(app, ask) or app.independent:
        return None
    if any(isinstance(reason, explain.MaxApplications) for reason in explain.quick_reasons(partition, app, ask)):
        return None
    others = (
        each.priority
        for other in partition.applications.values()
        for items in (other.asks, other.allocations)
        for each in items.values()
        if each is not ask
    )
    most = max(others, default=ask.priority)
    return Priority(most + 1, ask.priority) if ask.priority <= most < PRIORITY_HIGHEST else None


def _other_queues(partition: Partition, app: Application, ask: Ask) -> Iterator[OtherQueue]:
    """Yield some queues that the placement rules let the application into, and whose max leaves room for the ask."""
    found = 0
    for queue in partition.tree.queues():
        if found == QUEUES_MAX:
            return
        if not queue.is_leaf or not queue.managed or queue is app.queue:
            continue
        if any(
            level.parent is not None and missing(partition.types, level.limit, level.allocated, ask.shape.amounts)
            for level in queue.lineage()
        ):
            continue
        request = PlacementRequest(elsewhere(app), queue.path, app.user, app.groups, app.tags, app.forced)
        if partition.placer.place(request, partition.tree).queue == queue.path:
            found += 1
            yield OtherQueue(queue.path, app.queue.path)


def _tracker(partition: Partition, kind: str, name: str, path: str) -> Tracker | None:
    named = partition.limits.tracked_users if kind == "user" else partition.limits.tracked_groups
    return named.get(name, {}).get(path)


def _one_application_more(partition: Partition, reason: explain.MaxApplications) -> MaxApplications:
    if reason.kind == "queue":
        queue = partition.tree.find(reason.queue)
        return MaxApplications(reason.queue, 1, dynamic=queue is not None and not queue.managed)
    tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
    return MaxApplications(reason.queue, 1, reason.kind, reason.name, wildcard=tracker is not None and tracker.wildcard)


# -- nodes -------------------------------------------------------------------------------------------------------


def _more_nodes(partition: Partition, present: Present, ask: Ask) -> MoreNodes | None:
    """Return one node more like the smallest that would take the ask if it were empty; else one made for it."""
    total = partition.total
    best: tuple[float, Node] | None = None
    sizes: dict[tuple[int, ...], float] = {}
    for node in partition.nodes.values():  # the cheap checks first: there are thousands
        amounts, occupied = node.capacity.values(), node.occupied
        if node.id not in present.nodes:
            continue
        capacity = tuple(amounts)
        size = sizes.get(capacity)
        if size is None:
            size = sum(amount / total.at(d) for d, amount in enumerate(amounts) if total.at(d) > 0)
            sizes[capacity] = size
        if best is not None and size >= best[0]:
            continue
        wanted = enumerate(ask.shape.amounts.values())
        if any(amount > node.capacity.at(d) - occupied.at(d) for d, amount in wanted if amount):
            continue
        if _takes_when_new(ask, node):
            best = size, node
    if best is not None:
        return MoreNodes(1, best[1].id)
    attributes = _attributes_for(partition, ask.shape.need.constraints)
    if attributes is None or ask.required:
        return None
    return MoreNodes(1, "", dict(sorted(ask.shape.resource.items())), attributes)


def _takes_when_new(ask: Ask, node: Node) -> bool:
    """Return whether a new node like this one would take the ask: it has another name, and no ports and devices are in use."""
    if not node.capacity.covers(ask.shape.amounts):
        return False
    constraints = ask.shape.need.constraints
    names = {key.removeprefix(LABEL_PREFIX) for key in HOSTNAMES if key in node.attributes}
    pairs = tuple((key, f"{node.id}~1" if key in names else value) for key, value in node.labels.pairs)
    return not constraints.mismatch(NodeLabels(pairs, node.labels.taints, (), node.labels.devices.unused()))


def _attributes_for(partition: Partition, constraints: NodeConstraints, name: str = "") -> dict[str, str] | None:
    """Return labels with which a new node meets the constraints, None if there are none: the selected ones, and a term of affinity.

    `name`: what the node is called; if that is not said, it has a name that no constraint asks for.
    """
    terms = ((),) if constraints.affinity is None else constraints.affinity
    for term in terms:
        found = _attributes_by(constraints, term, name)
        if found is not None and not _is_kept_off(partition, constraints, found):
            return found
    return None


def _attributes_by(constraints: NodeConstraints, term: tuple[Expression, ...], name: str) -> dict[str, str] | None:
    """Return labels with which a new node meets the constraints by this term of their affinity; None if there are none."""
    found = dict(constraints.selector)
    for expression in term:
        match expression.operator:
            case "In":
                found.setdefault(expression.key, expression.values[0])
            case "Exists":
                found.setdefault(expression.key, "")
            case "Gt":
                found.setdefault(expression.key, str(int(expression.values[0]) + 1))
            case "Lt":
                found.setdefault(expression.key, str(int(expression.values[0]) - 1))
    if constraints.mismatch(NodeLabels(tuple(sorted(found.items())))):
        return None
    if any(found.get(key.removeprefix(LABEL_PREFIX), "") not in ("", name) for key in HOSTNAMES):  # "": any will do
        return None
    return {LABEL_PREFIX + key: value for key, value in sorted(found.items())}


def _is_kept_off(partition: Partition, constraints: NodeConstraints, attributes: dict[str, str]) -> bool:
    """Return whether a new node would get a mark that the ask has to keep off: that of a node with which it shares a label."""
    for mark in (one.key for one in constraints.apart if one.key.startswith(MARK)):
        shared = LABEL_PREFIX + mark.removeprefix(MARK).rpartition(":")[0]
        marked = (node.attributes for node in partition.nodes.values() if LABEL_PREFIX + mark in node.attributes)
        if shared in attributes and any(each.get(shared) == attributes[shared] for each in marked):
            return True
    return False


def _open_node(partition: Partition, present: Present, ask: Ask) -> Change | None:
    """Return the change that makes the first node take the ask that has room for it, but does not take it."""
    return next(openings(partition, present, ask), None)


def openings(partition: Partition, present: Present, ask: Ask) -> Iterator[NoTaint | Schedulable]:
    """Yield for each node that has room for the ask, but does not take it, the change with which it does."""
    for node in sorted(partition.nodes.values(), key=attrgetter("rank")):
        if node.id in present.nodes and node.free.covers(ask.shape.amounts):
            change = _opened(partition, ask, node)
            if change is not None:
                yield change


def _opened(partition: Partition, ask: Ask, node: Node) -> NoTaint | Schedulable | None:
    """Return the change without which the node takes no ask, or not this one; None if that is not the reason."""
    if partition.atomic.backfill.holds(node):
        return None
    mismatch = ask.shape.need.constraints.mismatch(node.labels)
    if mismatch == f"taint {CORDON}":
        return Schedulable(node.id)
    if mismatch.startswith("taint "):
        return NoTaint(node.id, mismatch.removeprefix("taint "))
    return Schedulable(node.id) if not node.schedulable and not mismatch else None


# -- the end of allocations --------------------------------------------------------------------------------------


def _ends_of(present: Present, apps: Iterable[Application], missing: dict[str, int]) -> End | None:
    """Return the fewest allocations of these applications that make up what is missing, the largest first."""
    return _fewest(present, (alloc for app in apps for alloc in app.allocations.values()), missing)


def _end_on_nodes(partition: Partition, present: Present, ask: Ask, number: int = 1) -> End | None:
    """Return the fewest allocations of any one node, or of each of so many, whose end gives the ask its room there.

    The node that the ask reserves comes first, as nobody else is let on; those that others reserve come last.
    """
    if ask.reserved is not None and ask.reserved.id in present.nodes and ask.reserved.schedulable:
        own = _end_on(partition, present, ask, ask.reserved)
        if own is not None:
            return own
    best: list[tuple[bool, int, int, End]] = []  # whether another ask reserves the node, how many end, and its rank
    for node in sorted(partition.nodes.values(), key=lambda node: (bool(node.reservations), node.rank)):
        reserved = bool(node.reservations)
        if len(best) == number and (best[-1][0] < reserved or best[-1][1] == 1):
            break
        if node.id in present.nodes and node.schedulable and not partition.atomic.backfill.holds(node):
            found = _end_on(partition, present, ask, node)
            if found is not None:
                insort(best, (reserved, len(found.allocations), node.rank, found), key=_without_end)
                del best[number:]
    return End(tuple(sorted({each for *_, end in best for each in end.allocations}))) if best else None


def _without_end(found: tuple[bool, int, int, End]) -> tuple[bool, int, int]:
    return found[:3]


def _for_all(ask: Ask, missing: dict[str, int], rooms: int) -> dict[str, int]:
    """Return what is missing for so many asks of this size where `missing` is for one."""
    return {name: amount + (rooms - 1) * ask.shape.resource.get(name, 0) for name, amount in missing.items()}


def nodes_to_free(partition: Partition, present: Present, ask: Ask) -> Iterator[str]:
    """Yield the nodes that do not take the ask now, and may do so when allocations end that were there before the trial."""
    for node, reason, unfit in explain.survey(partition, ask):
        if not reason or unfit or reason == ANTI_AFFINITY or node.id not in present.nodes:
            continue
        if node.schedulable and not partition.atomic.backfill.holds(node) and _can_be_freed(present, ask, node, reason):
            yield node.id


def _can_be_freed(present: Present, ask: Ask, node: Node, reason: str) -> bool:
    """Return whether what keeps the ask off a node is allocations that may be ended, and not what other schedulers have there."""
    own = [alloc.shape for alloc in node.allocations if alloc.key in present.allocations]
    excludes = ask.shape.need.constraints.excludes
    if not own or (reason.startswith(HOST_PORT) and not any(excludes(shape.need.constraints) for shape in own)):
        return False
    wanted = enumerate(ask.shape.amounts.values())
    return all(amount <= node.free.at(d) + sum(shape.amounts.at(d) for shape in own) for d, amount in wanted if amount)


def _end_on(partition: Partition, present: Present, ask: Ask, node: Node) -> End | None:
    shape = ask.shape
    if not node.capacity.covers(shape.amounts):
        return None
    constraints = shape.need.constraints
    mismatch = constraints.mismatch(node.labels)
    if mismatch and not mismatch.startswith(HOST_PORT):
        return None
    in_the_way = [alloc for alloc in node.allocations if constraints.excludes(alloc.shape.need.constraints)]
    missing = {
        partition.types.names[d]: amount - node.free.at(d)
        for d, amount in enumerate(shape.amounts.values())
        if amount > node.free.at(d) and amount > 0
    }
    return _fewest(present, iter(node.allocations), missing, in_the_way)


def _fewest(
    present: Present, candidates: Iterator[Ask], missing: dict[str, int], chosen: Iterable[Ask] = ()
) -> End | None:
    """Return `chosen` and the fewest others that make up what is missing: each time the one that covers most of it."""
    taken = list(chosen)
    left = dict(missing)
    for alloc in taken:
        _take(left, alloc)
    rest = sorted(
        (alloc for alloc in candidates if alloc.key in present.allocations and alloc not in taken),
        key=lambda alloc: victim_order(alloc, is_reluctant(alloc), alloc.priority),
    )
    while left:
        best = max(rest, key=lambda alloc: _covered(left, alloc), default=None)
        if best is None or _covered(left, best) == 0 or len(taken) >= ENDED_MAX:
            return None
        rest.remove(best)
        taken.append(best)
        _take(left, best)
    if not taken:
        return None
    return End(tuple(sorted(map(running, taken))))


def running(alloc: Ask) -> Running:
    """Return an allocation as changes name it."""
    return Running(alloc.key, alloc.app.queue.path, "" if alloc.node is None else alloc.node.id, pod_name(alloc))


def _covered(missing: dict[str, int], alloc: Ask) -> float:
    """Return how much of what is missing an allocation makes up, as the sum of shares."""
    resource = alloc.shape.resource
    return sum(min(resource.get(name, 0), amount) / amount for name, amount in missing.items())


def _take(missing: dict[str, int], alloc: Ask) -> None:
    for name, amount in alloc.shape.resource.items():
        if name in missing:
            missing[name] -= amount
            if missing[name] <= 0:
                del missing[name]


__all__ = [
    "Kind",
    "Obstacle",
    "Present",
    "Repairs",
    "Suggest",
    "above_all",
    "alternatives",
    "is_alone",
    "obstacles",
    "own_node",
    "repairs",
    "running",
]
