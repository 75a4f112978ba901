"""What may be done about a reason for which an ask waits: the least change that is known of each kind.

What is found here is a proposal for a trial (`licorne.answers.trials`), no more: whether it helps, and whether less would,
only the trial can say, because other asks compete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final, Literal, NamedTuple

from licorne.answers import changes
from licorne.answers.applied import HOSTNAMES
from licorne.answers.asks import elsewhere
from licorne.answers.pods import pod_name
from licorne.core.constants import PRIORITY_HIGHEST
from licorne.core.inspection import explain
from licorne.core.nodes.constraints import CORDON, FEATURE, HOST_PORT, LABEL_PREFIX, Expression, NodeLabels
from licorne.core.nodes.node import Need, Node
from licorne.core.partition import Partition
from licorne.core.placement.placer import PlacementRequest
from licorne.core.preemption.ranking import is_reluctant, victim_order
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.bounds import missing
from licorne.core.queues.usage import Tracker

QUEUES_MAX: Final = 3
"""More queues than this are not tried for an ask that might go to another one."""
ROOT: Final = "root"
OWN_TAINT: Final = "licorne/only-for"
"""The key of the taint of a node that is proposed for one ask alone."""
Kind = Literal["grow", "open", "end", "ask"]
"""The kinds of changes about a reason.

`grow`: the configuration allows more, there are more nodes, or more members of a gang. `open`: a node takes asks that it did
not take. `end`: allocations end. `ask`: the ask wants less, or other nodes, or its gang needs fewer members.
"""
Order = tuple[Kind, ...]
"""Which kinds are preferred."""
SIZE_MAX: Final = 64
"""More new nodes, or ends of allocations, are not proposed: each takes, or makes room for, asks that are decided in each trial."""


class Present(NamedTuple):
    """What was there before a trial began, by name: only that can be changed."""

    nodes: frozenset[str]
    allocations: frozenset[str]


class Obstacle(NamedTuple):
    """A reason why an ask waits, or why the ask waits for which it waits."""

    ask: Ask
    reason: explain.Reason


def obstacles(partition: Partition, ask: Ask) -> list[Obstacle]:
    """Return the reasons why an ask waits, and those of the asks that must go before it.

    An ask that is to replace a placeholder waits for one that is placed; in a `stateaware` queue, for an application that
    starts first.
    """
    found: list[Obstacle] = []
    waiting = [ask]
    for each in waiting:
        for reason in explain.reasons(partition, each.app, each):
            found.append(Obstacle(each, reason))
            first = _goes_before(partition, each.app, reason)
            if first is not None and first not in waiting:
                waiting.append(first)
    return found


def _goes_before(partition: Partition, app: Application, reason: explain.Reason) -> Ask | None:
    match reason:
        case explain.Placeholder():
            pending = app.requests.in_order()
            return next((ask for ask in pending if ask.placeholder and ask.task_group == reason.task_group), None)
        case explain.StateOrder():
            others = sorted((each for each in app.queue.apps.values() if each.asks), key=attrgetter("submitted", "seq"))
            other = next((each for each in others if partition.lifecycle.passes_state_filter(each)), None)
            return None if other is None else next(iter(other.requests.in_order()))
        case _:
            return None


def repairs(
    partition: Partition, present: Present, obstacle: Obstacle, order: Order, rooms: int = 1
) -> Iterator[changes.Change]:
    """Yield what may be done about a reason, of the first kind in an order that there is; more where all of that may be necessary.

    `rooms`: for how many asks of this size allocations are to end, since others may take what is freed.
    """
    ask, reason = obstacle
    match reason:
        case explain.QueueQuota() | explain.Claimed(kind="queue") if reason.queue != ROOT:
            queue = partition.tree.find(reason.queue)
            assert queue is not None, "a reason names a queue that is there"
            below = (each for leaf in queue.walk() for each in leaf.apps.values())
            yield from _first(
                order,
                grow=lambda: changes.QueueMax(reason.queue, reason.missing, dynamic=not queue.managed),
                end=lambda: _ends_of(present, below, _for_all(ask, reason.missing, rooms)),
                ask=lambda: _less(ask, reason.missing),
            )
        case explain.UserLimit() | explain.Claimed(kind="user" | "group"):
            tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
            wildcard = tracker is not None and tracker.wildcard
            apps = () if tracker is None else tracker.apps
            yield from _first(
                order,
                grow=lambda: changes.LimitMax(reason.kind, reason.name, reason.queue, reason.missing, wildcard),
                end=lambda: _ends_of(present, apps, _for_all(ask, reason.missing, rooms)),
                ask=lambda: _less(ask, reason.missing),
            )
        case explain.MaxApplications():
            yield from _first(order, grow=lambda: _one_application_more(partition, reason))
        case explain.ClusterFull() | explain.Claimed():
            yield from _first(
                order,
                grow=lambda: _more_nodes(partition, present, ask),
                end=lambda: _end_on_nodes(partition, present, ask, rooms),
                ask=lambda: _less(ask, reason.missing),
            )
        case explain.Nodes():
            yield from _first(
                order,
                grow=lambda: _more_nodes(partition, present, ask),
                open=lambda: next(openings(partition, present, ask), None),
                end=lambda: _end_on_nodes(partition, present, ask, rooms),
                ask=lambda: _nearer(partition, present, ask),
            )
        case explain.RequiredNode():
            yield from _on_the_required_node(partition, present, ask, reason, order)
        case explain.Gang():
            yield from _of_gang(partition, present, ask.app, reason, order, rooms)


def _first(order: Order, **made: Callable[[], changes.Change | None]) -> Iterator[changes.Change]:
    """Yield the change of the first kind in an order that there is; `made` makes one of each kind, which may look at all nodes."""
    found = (made[kind]() for kind in order if kind in made)
    yield from islice((change for change in found if change is not None), 1)


def _on_the_required_node(
    partition: Partition, present: Present, ask: Ask, reason: explain.RequiredNode, order: Order
) -> Iterator[changes.Change]:
    node = partition.nodes.get(reason.node)
    if node is None or node.id not in present.nodes:
        attributes = _attributes_for(ask.shape.need, reason.node) or {}
        capacity = dict(sorted((reason.missing or ask.shape.resource).items()))
        yield from _first(order, grow=lambda: changes.MoreNodes(1, "", capacity, attributes, reason.node))
        return
    mismatch = ask.shape.need.mismatch(node)
    yield from _first(
        order,
        grow=lambda: None if mismatch else changes.BiggerNode(node.id, reason.missing or dict(ask.shape.resource)),
        open=lambda: _opened(partition, ask, node),
        end=lambda: _end_on(partition, present, ask, node),
        ask=lambda: _met(ask, node, mismatch) if mismatch else _less(ask, reason.missing),
    )


def _of_gang(
    partition: Partition, present: Present, app: Application, reason: explain.Gang, order: Order, rooms: int
) -> Iterator[changes.Change]:
    """Yield what may be done for a gang that starts as a whole: members that it lacks, or room for each kind of member."""
    before = {name: need for name, (_, need) in reason.groups.items()}
    if not reason.ready:
        lacking = {name: need - there for name, (there, need) in reason.groups.items() if there < need}
        yield from _first(
            order, grow=lambda: changes.MoreMembers(app.id, lacking), ask=lambda: _fewer_members(app, lacking, before)
        )
        return
    gang, room = app.atomic, list[changes.Change]()
    members = (gang.members(app) if gang is not None and reason.fits_quota else None) or ()
    for member in {(each.shape, each.required): each for each in members}.values():
        if member.required:
            for lack in explain.on_required_node(partition, member):
                room += _on_the_required_node(partition, present, member, lack, order)
        else:
            room += repairs(partition, present, Obstacle(member, explain.Nodes({})), order, rooms)
    yield from room
    if order[0] != "grow" or (reason.fits_quota and not room):  # else more room alone may do
        largest = max(before, key=lambda name: before[name])
        yield from _first(order, ask=lambda: _fewer_members(app, {largest: 1}, before))


def _fewer_members(app: Application, less: dict[str, int], before: dict[str, int]) -> changes.FewerMembers | None:
    if app.allocations or any(number >= before[name] for name, number in less.items()):
        return None
    return changes.FewerMembers(app.id, less, before)


# -- the ask itself ------------------------------------------------------------------------------------------------


def _less(ask: Ask, missing: dict[str, int]) -> changes.LessAsked | None:
    """Return the ask without what is missing; None if nothing would be left, or if a gang counts on its amounts."""
    resource = ask.shape.resource
    if not missing or not is_alone(ask):
        return None
    if any(amount >= resource.get(name, 0) for name, amount in missing.items()):
        return None
    return changes.LessAsked(missing)


def _nearer(partition: Partition, present: Present, ask: Ask) -> changes.Change | None:
    """Return the change of the ask that brings it nearest to a node: one that takes it then, if there is any."""
    if not is_alone(ask):
        return None
    best: tuple[float, int, changes.Change] | None = None
    constraints = ask.shape.need.constraints
    for node in partition.nodes.values():
        if node.id not in present.nodes or explain.taken_up(partition, ask, node):
            continue
        mismatch = constraints.mismatch(node.labels)
        missing = explain.lack(partition, node.free, ask.shape.amounts)
        change = _met(ask, node, mismatch) if mismatch else _less(ask, missing)
        if change is None or any(amount >= ask.shape.resource.get(name, 0) for name, amount in missing.items()):
            continue
        share = sum(amount / ask.shape.resource[name] for name, amount in missing.items())
        distance = (2 * share + 1 if mismatch and share else share + bool(mismatch) / 2, node.rank)
        if best is None or distance < best[:2]:
            best = *distance, change
    return None if best is None else best[2]


def _met(ask: Ask, node: Node, mismatch: str) -> changes.Change | None:
    """Return the change of an ask, such as a toleration, with which a mismatch no longer keeps it off a node; None if there is none."""
    if mismatch.startswith("taint "):
        return changes.Tolerates(mismatch.removeprefix("taint "))
    if mismatch == "nodeAffinity":
        return changes.Unconstrained()
    if mismatch == "nodeSelector":
        labels = dict(node.labels.pairs)
        key, value = next(pair for pair in ask.shape.need.constraints.selector if labels.get(pair[0]) != pair[1])
        return changes.Unconstrained(key, value)
    return None


def is_alone(ask: Ask) -> bool:
    """Return whether an ask is changed by itself: it is no member of a gang, whose pods have to stay together."""
    return ask.app.atomic is None and not ask.task_group and ask.repeats <= 1


def own_node(partition: Partition, present: Present, ask: Ask) -> Iterator[changes.OwnNode]:
    """Yield a node for an ask alone, if one can be made."""
    new = _more_nodes(partition, present, ask) if is_alone(ask) and not ask.required else None
    if new is not None:
        yield changes.OwnNode(new.like, f"{OWN_TAINT}={ask.key[:63]}:NoSchedule", new.capacity, new.attributes)


def above_all(partition: Partition, ask: Ask) -> list[changes.Change]:
    """Return the change that makes the priority of an ask the highest of all; none for a member of a gang, or if it is.

    None too where a maximum of running applications is reached, which no priority raises. An ask that is submitted again runs
    past it, because its application has become Completing without the ask; so it would with the priority that it has.
    """
    if not is_alone(ask) or ask.app.independent:
        return []
    if any(isinstance(reason, explain.MaxApplications) for reason in explain.quick_reasons(partition, ask.app, ask)):
        return []
    others = (
        each.priority
        for other in partition.applications.values()
        for items in (other.asks, other.allocations)
        for each in items.values()
        if each is not ask
    )
    most = max(others, default=ask.priority)
    return [changes.Priority(most + 1, ask.priority)] if ask.priority <= most < PRIORITY_HIGHEST else []


def other_queues(partition: Partition, ask: Ask) -> Iterator[changes.OtherQueue]:
    """Yield some queues that the placement rules let the application into, and whose max leaves room for the ask."""
    app, found = ask.app, 0
    if not is_alone(ask) or app.independent:
        return
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
            yield changes.OtherQueue(queue.path, app.queue.path)


def _tracker(partition: Partition, kind: str, name: str, path: str) -> Tracker | None:
    named = partition.limits.tracked_users if kind == "user" else partition.limits.tracked_groups
    return named.get(name, {}).get(path)


def _one_application_more(partition: Partition, reason: explain.MaxApplications) -> changes.MaxApplications:
    if reason.kind == "queue":
        queue = partition.tree.find(reason.queue)
        return changes.MaxApplications(reason.queue, 1, dynamic=queue is not None and not queue.managed)
    tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
    return changes.MaxApplications(
        reason.queue, 1, reason.kind, reason.name, wildcard=tracker is not None and tracker.wildcard
    )


# -- nodes -------------------------------------------------------------------------------------------------------


def _more_nodes(partition: Partition, present: Present, ask: Ask) -> changes.MoreNodes | None:
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
        return changes.MoreNodes(1, best[1].id)
    attributes = _attributes_for(ask.shape.need)
    if attributes is None or ask.required:
        return None
    return changes.MoreNodes(1, "", dict(sorted(ask.shape.resource.items())), attributes)


def _takes_when_new(ask: Ask, node: Node) -> bool:
    """Return whether a new node like this one would take the ask: it has another name, and no ports and devices are in use."""
    if not node.capacity.covers(ask.shape.amounts):
        return False
    names = {key.removeprefix(LABEL_PREFIX) for key in HOSTNAMES if key in node.attributes}
    pairs = tuple((key, f"{node.id}~1" if key in names else value) for key, value in node.labels.pairs)
    labels = NodeLabels(pairs, node.labels.taints, (), node.labels.devices.unused())
    return not ask.shape.need.mismatch_when_new(labels)


def _attributes_for(need: Need, name: str = "") -> dict[str, str] | None:
    """Return labels with which a new node meets a need, None if there are none: the selected ones, and a term of affinity.

    `name`: what the node is called; if that is not said, it has a name that no constraint asks for.
    """
    terms = ((),) if need.constraints.affinity is None else need.constraints.affinity
    for term in terms:
        found = _attributes_by(need, term, name)
        if found is not None:
            return found
    return None


def _attributes_by(need: Need, term: tuple[Expression, ...], name: str) -> dict[str, str] | None:
    """Return labels with which a new node meets a need by this term of its affinity; None if there are none."""
    found = dict(need.constraints.selector) | {FEATURE + feature: "" for feature in need.constraints.features}
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
    if need.mismatch_when_new(NodeLabels(tuple(sorted(found.items())))):
        return None
    if any(found.get(key.removeprefix(LABEL_PREFIX), "") not in ("", name) for key in HOSTNAMES):  # "": any will do
        return None
    return {LABEL_PREFIX + key: value for key, value in sorted(found.items())}


def openings(partition: Partition, present: Present, ask: Ask) -> Iterator[changes.NoTaint | changes.Schedulable]:
    """Yield for each node that has room for the ask, but does not take it, the change with which it does."""
    for node in sorted(partition.nodes.values(), key=attrgetter("rank")):
        if node.id in present.nodes and node.free.covers(ask.shape.amounts):
            change = _opened(partition, ask, node)
            if change is not None:
                yield change


def _opened(partition: Partition, ask: Ask, node: Node) -> changes.NoTaint | changes.Schedulable | None:
    """Return the change without which the node takes no ask, or not this one; None if that is not the reason."""
    if partition.atomic.backfill.holds(node):
        return None
    mismatch = ask.shape.need.constraints.mismatch(node.labels)
    if mismatch == f"taint {CORDON}":
        return changes.Schedulable(node.id)
    if mismatch.startswith("taint "):
        return changes.NoTaint(node.id, mismatch.removeprefix("taint "))
    return changes.Schedulable(node.id) if not node.schedulable and not mismatch else None


# -- the end of allocations --------------------------------------------------------------------------------------


def _ends_of(present: Present, apps: Iterable[Application], missing: dict[str, int]) -> changes.End | None:
    """Return the fewest allocations of these applications that make up what is missing, the largest first."""
    return _fewest(present, (alloc for app in apps for alloc in app.allocations.values()), missing)


def _for_all(ask: Ask, missing: dict[str, int], rooms: int) -> dict[str, int]:
    """Return what is missing for so many asks of this size where `missing` is for one."""
    return {name: amount + (rooms - 1) * ask.shape.resource.get(name, 0) for name, amount in missing.items()}


def _end_on_nodes(partition: Partition, present: Present, ask: Ask, rooms: int) -> changes.End | None:
    """Return the fewest allocations of any one node, or of each of so many, whose end gives the ask its room there.

    The node that the ask reserves comes first, as nobody else is let on; those that others reserve come last.
    """
    if ask.reserved is not None and ask.reserved.id in present.nodes and ask.reserved.schedulable:
        own = _end_on(partition, present, ask, ask.reserved)
        if own is not None:
            return own
    found: list[tuple[bool, int, changes.End]] = []  # whether another ask reserves the node, and how many end
    single = 0
    for node in sorted(partition.nodes.values(), key=lambda node: (bool(node.reservations), node.rank)):
        reserved = bool(node.reservations)
        if single >= rooms or (reserved and len(found) >= rooms):  # none is better
            break
        if node.id in present.nodes and node.schedulable and not partition.atomic.backfill.holds(node):
            end = _end_on(partition, present, ask, node)
            if end is not None:
                found.append((reserved, len(end.allocations), end))
                single += len(end.allocations) == 1
    best = sorted(found, key=itemgetter(0, 1))[:rooms]
    return changes.End(tuple(sorted({each for *_, end in best for each in end.allocations}))) if best else None


def _end_on(partition: Partition, present: Present, ask: Ask, node: Node) -> changes.End | None:
    shape = ask.shape
    if not node.capacity.covers(shape.amounts):
        return None
    constraints = shape.need.constraints
    mismatch = constraints.mismatch(node.labels)
    if mismatch and not mismatch.startswith(HOST_PORT):
        return None
    in_the_way = [alloc for alloc in node.allocations if constraints.excludes(alloc.shape.need.constraints)]
    terms = _against_terms(partition, present, ask, node)
    if terms is None:
        return None
    in_the_way += [alloc for alloc in terms if alloc not in in_the_way]
    missing = {
        partition.types.names[d]: amount - node.free.at(d)
        for d, amount in enumerate(shape.amounts.values())
        if amount > node.free.at(d) and amount > 0
    }
    return _fewest(present, iter(node.allocations), missing, in_the_way)


def _against_terms(partition: Partition, present: Present, ask: Ask, node: Node) -> list[Ask] | None:
    """Return allocations without which no term of pods shuts the ask out of the node; None if they do not suffice, or are many."""
    found: dict[Ask, None] = {}
    ways = partition.needs.topology.pods_to_end(ask.shape.need, node.slot)
    if ways is None:
        return None
    for number, count, nodes in ways:
        there = [
            alloc
            for one in nodes
            for alloc in one.allocations
            if alloc.shape.need.pods in count.members and alloc.key in present.allocations and alloc not in found
        ]
        gone = sum(alloc.shape.need.pods in count.members for alloc in found)
        if number - gone > min(len(there), SIZE_MAX):
            return None
        there.sort(key=lambda alloc: victim_order(alloc, is_reluctant(alloc), alloc.priority))
        found |= dict.fromkeys(there[: max(0, number - gone)])
    return [*found]


def _fewest(
    present: Present, candidates: Iterator[Ask], missing: dict[str, int], chosen: Iterable[Ask] = ()
) -> changes.End | None:
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
        if best is None or _covered(left, best) == 0 or len(taken) >= SIZE_MAX:
            return None
        rest.remove(best)
        taken.append(best)
        _take(left, best)
    if not taken:
        return None
    return changes.End(tuple(sorted(map(running, taken))))


def running(alloc: Ask) -> changes.Running:
    """Return an allocation as changes name it."""
    return changes.Running(
        alloc.key, alloc.app.queue.path, "" if alloc.node is None else alloc.node.id, pod_name(alloc)
    )


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
