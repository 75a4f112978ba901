"""All sums and orders of a partition, computed from its allocations and asks at one moment.

The reference takes a new `Sums` for every decision. Nothing in here is kept for the next one. Sections are those of
docs/spec/scheduling.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cached_property, cmp_to_key, lru_cache
from itertools import zip_longest
from typing import Any

from reference.model import (
    HIGHEST,
    LOWEST,
    Amounts,
    App,
    Ask,
    Key,
    Limit,
    Node,
    Partition,
    Queue,
    QueueLimits,
    fits_limit,
    lowest,
    minus,
    plus,
    rest,
)


class Sums:
    """The allocated, pending, used and free amounts of a partition now, and the orders that follow from them."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.allocated: dict[Queue, Amounts] = defaultdict(dict)
        self.pending: dict[Queue, Amounts] = defaultdict(dict)
        self.asks: dict[Queue, int] = defaultdict(int)
        self.slots: dict[Queue, int] = defaultdict(int)
        self.used: dict[Key, Amounts] = defaultdict(dict)
        self.on_node: dict[Node, Amounts] = defaultdict(dict)
        for app in partition.apps.values():
            self._add(app)
        self.cluster: Amounts = {}
        for node in partition.nodes.values():
            self.cluster = plus(self.cluster, node.capacity)
        self.bound: Amounts = dict.fromkeys(self.cluster, 0)
        for node in partition.nodes.values():
            for name in self.bound:  # what a node has too much is taken from no other
                self.bound[name] += max(node.capacity.get(name, 0), self.on_node[node].get(name, 0))

    def _add(self, app: App) -> None:
        allocated, pending = real(app), waiting(app)
        for queue in app.queue.lineage():
            self.allocated[queue] = plus(self.allocated[queue], allocated)
            self.pending[queue] = plus(self.pending[queue], pending)
            self.asks[queue] += len(app.asks)
            self.slots[queue] += app.holds_slot
        for key in trackers(app):
            self.used[key] = plus(self.used[key], allocated)
        for alloc in app.allocations.values():
            assert alloc.node is not None
            self.on_node[alloc.node] = plus(self.on_node[alloc.node], alloc.amounts)
        for ask in app.gang.flying:  # on another node than its placeholder's it counts there, and nowhere else
            if ask.node is not None and ask.place is not None and ask.node is not ask.place.node:
                self.on_node[ask.node] = plus(self.on_node[ask.node], ask.amounts)

    # -- quotas and limits (sections 8.1, 10, 11) --------------------------------------------------------

    def queue_headroom(
        self, queue: Queue, *, required: bool = False, more: dict[Queue | Key, Amounts] | None = None
    ) -> Amounts:
        """The amounts that the queue and its ancestors leave (section 8.1).

        The size of the cluster counts neither for an ask that requires its node nor with `more` in use (13).
        """
        room: Amounts = {}
        for level in queue.lineage():
            if level.parent is not None:
                used = plus(self.allocated[level], (more or {}).get(level, {}))
                room = lowest(room, rest(level.maximum, used))
            elif more is None and not required:
                room = lowest(room, rest(self.bound, self.allocated[level]))
        return room

    def user_headroom(self, app: App, *, more: dict[Queue | Key, Amounts] | None = None) -> Amounts:
        """The amounts that the limits of the application's user and group leave (section 11.3)."""
        room: Amounts = {}
        for key in trackers(app):
            limit = limit_of(self.partition, key)
            room = lowest(room, rest(limit.amounts, plus(self.used[key], (more or {}).get(key, {}))))
        return room

    def has_headroom(self, app: App, ask: Ask) -> bool:
        """For the queues, the user and the group."""
        return fits_limit(self.user_headroom(app), ask.amounts) and fits_limit(
            self.queue_headroom(app.queue, required=bool(ask.required)), ask.amounts
        )

    def may_run(self, app: App) -> bool:
        """Maximum applications of queues (section 10) and of users and groups (11.4), and the filter by state (5.1)."""
        if app.state == "Accepted":
            for queue in reversed(app.queue.lineage()):
                running = queue.running + self.slots[queue]
                if queue.max_apps and not app.holds_slot and running + 1 > queue.max_apps:
                    return False
            for key in trackers(app):
                most = limit_of(self.partition, key).apps
                if most and not app.in_sets and len(self.others(app, key)) + 1 > most:
                    return False
        return not self.stateaware(app.queue) or self._passes_state_filter(app)

    def others(self, app: App, key: Key) -> set[str]:
        """The other applications that count there now: one that claims room joins them in the middle of a pass."""
        apps = self.partition.apps.values()
        return {other.id for other in apps if other.in_sets and other is not app and key in trackers(other)}

    def stateaware(self, queue: Queue) -> bool:
        """It is fifo where there is no Starting (difference 35)."""
        return self.partition.starting and queue.settings.sort_policy == "stateaware"

    def _passes_state_filter(self, app: App) -> bool:
        """All Running, the one that is Starting, or if none is, the oldest that is Accepted."""
        if app.state not in ("Accepted", "Starting"):
            return True
        apps = self.partition.apps_of(app.queue)
        first = [a for a in apps if a.state == "Starting"] or [a for a in apps if a.state == "Accepted"]
        return app is min(first, key=lambda a: (a.submitted_ns, a.arrived))

    # -- the order of queues (section 4) -----------------------------------------------------------------

    def children_in_order(self, parent: Queue) -> list[Queue]:
        """The children with pending asks. Difference 3: a stable insertion sort that starts from name order."""
        found: list[Queue] = []
        for name in sorted(parent.children):
            child = parent.children[name]
            if self.asks[child]:
                place = len(found)
                while place and self._before(parent, child, found[place - 1]):
                    place -= 1
                found.insert(place, child)
        return found

    def _before(self, parent: Queue, one: Queue, other: Queue) -> bool:
        priority = self.priority(other) - self.priority(one)
        share = self.share(one) - self.share(other)
        first, second = (priority, share) if parent.settings.sort_by_priority else (share, priority)
        if first or second:
            return (first or second) < 0
        larger = minus(self.pending[one], self.pending[other]).values()
        return all(amount >= 0 for amount in larger) and any(larger)

    def share(self, queue: Queue) -> float:
        """Allocated by guaranteed, else by the fair maximum. Difference 1: by that of the queue itself."""
        weights = self._fair_max(queue) | queue.guaranteed
        shares = [0.0]
        for name, amount in self.allocated[queue].items():
            weight = weights.get(name)
            if weight is not None and amount >= 0:
                shares.append(float(amount) / float(weight) if weight > 0 else float(amount > 0))
        return max(shares)

    def _fair_max(self, queue: Queue) -> Amounts:
        above = self.fair_max_of_root if queue.parent is None else self._fair_max(queue.parent)
        return above | queue.maximum if above and queue.maximum else above

    @cached_property
    def fair_max_of_root(self) -> Amounts:
        return {name: amount for name, amount in self.cluster.items() if amount > 0}

    def priority(self, queue: Queue) -> int:
        """The priority that the queue shows to its parent (section 4.2; difference 5: of this moment)."""
        base = self.base(queue)
        if base == LOWEST:
            return LOWEST
        offset = queue.settings.priority_offset
        return offset if queue.settings.priority_fence else max(LOWEST, min(HIGHEST, base + offset))

    def base(self, queue: Queue) -> int:
        """The highest of what its applications and children show, before offset and fence."""
        apps = [app_priority(app) for app in self.partition.apps_of(queue)]
        return max([*apps, *map(self.priority, queue.children.values())], default=LOWEST)

    # -- the order of applications and asks (section 5) ---------------------------------------------------

    def apps_in_order(self, leaf: Queue) -> list[App]:
        """Those with pending asks (section 5.1). Difference 2: ties by arrival."""
        apps = [app for app in self.partition.apps_of(leaf) if app.asks]  # by arrival, and the sort is stable

        def compare(one: App, other: App) -> int:
            found = self._compare(leaf, one, other)
            return (found > 0) - (found < 0)

        return sorted(apps, key=cmp_to_key(compare))

    def _compare(self, leaf: Queue, one: App, other: App) -> float:
        settings = leaf.settings
        age = one.submitted_ns - other.submitted_ns
        if self.stateaware(leaf):
            return age
        priority = app_priority(other) - app_priority(one)
        policy = (
            compare_shares(members(one), members(other), leaf.guaranteed) if settings.sort_policy == "fair" else age
        )
        return priority or policy if settings.sort_by_priority else policy or priority

    @staticmethod
    def asks_in_order(app: App) -> list[Ask]:
        """Higher priority, then older, then arrival (section 5.2; difference 4)."""
        return sorted(app.asks.values(), key=lambda ask: (-ask.priority, ask.created_ns, ask.arrived))

    # -- nodes (section 7.5) -----------------------------------------------------------------------------

    def limit(self, queue: Queue) -> Amounts:
        """The queue's maximum; of root what the nodes have, and what more is allocated there than they have."""
        if queue.parent is not None:
            return queue.maximum
        return {name: self.bound[name] for name, amount in self.cluster.items() if amount > 0}

    def free(self, node: Node) -> Amounts:
        """total − allocated − occupied."""
        free = minus(minus(node.capacity, self.on_node[node]), node.occupied)
        for amounts in node.foreign.values():
            free = minus(free, amounts)
        return free

    @cached_property
    def nodes_in_order(self) -> list[Node]:
        """By score, then by id in byte order. Difference 6: the score is that of this moment."""
        return sorted(
            self.partition.nodes.values(), key=lambda node: (self.score(node, self.free(node)), node.id.encode())
        )

    def score(self, node: Node, free: Amounts) -> float:
        """The score of a node with the given free amount, by which nodes are ordered."""
        policy = self.partition.config.node_sort
        used = weighed = 0.0
        for name, weight in sorted(policy.weights.items()):
            if weight and node.capacity.get(name, 0) > 0:
                used += (1.0 - float(free.get(name, 0)) / float(node.capacity[name])) * weight
                weighed += weight
        usage = used / weighed if weighed else 0.0
        return usage if policy.policy == "fair" else 1.0 - usage


def real(app: App) -> Amounts:
    """The sum of an application's real allocations."""
    total: Amounts = {}
    for alloc in app.allocations.values():
        total = plus(total, alloc.amounts)
    return total


def members(app: App) -> Amounts:
    """The same without placeholders, which do not count in the order of applications (section 5.1)."""
    total: Amounts = {}
    for alloc in app.allocations.values():
        total = total if alloc.placeholder else plus(total, alloc.amounts)
    return total


def waiting(app: App) -> Amounts:
    """The sum of an application's pending asks."""
    total: Amounts = {}
    for ask in app.asks.values():
        total = plus(total, ask.amounts, ask.repeats)
    return total


def app_priority(app: App) -> int:
    """The highest of its pending asks."""
    return max((ask.priority for ask in app.asks.values()), default=LOWEST)


def compare_shares(one: Amounts, other: Amounts, total: Amounts) -> float:
    """CompareShares (section 1): below 0 if the first uses less."""
    for a, b in zip_longest(_shares(one, total), _shares(other, total), fillvalue=0.0):
        if a != b:
            return a - b
    return 0.0


def _shares(amounts: Amounts, total: Amounts) -> list[float]:
    shares = [float(a) / float(total[t]) if total.get(t) else float(a) for t, a in amounts.items()]
    return sorted(shares, reverse=True)


NO_LIMIT = Limit({}, 0)


# -- users and groups (section 11) -----------------------------------------------------------------------


def trackers(app: App) -> list[Key]:
    """Where the usage of an application counts: its user's levels from the leaf to root, then its group's."""
    if not app.group_chosen:
        return []
    paths = [queue.path for queue in app.queue.lineage()]
    keys: list[Key] = [("user", app.user, path) for path in paths]
    if app.group is not None:
        keys += [("group", app.group, path) for path in paths]
    return keys


def choose_group(partition: Partition, app: App) -> None:
    """Once, at the first look (section 11.2): the first configured group of the lowest queue that names one of his."""
    if not app.group_chosen:
        app.group_chosen = True
        app.group = matching_group(partition, app)


def matching_group(partition: Partition, app: App) -> str | None:
    """From the leaf upwards; a wildcard's is `*`, and counts where none of the queue's other groups does."""
    for queue in app.queue.lineage():
        if (limits := partition.limits.get(queue.path)) is not None:
            for group in limits.groups:
                if group in app.groups or group == "*":  # `*` stands last
                    return group
    return None


def limit_of(partition: Partition, key: Key) -> Limit:
    """The limit for a user or group at a queue; `*` is that of every user who has none by name (section 11.5)."""
    kind, name, path = key
    limits = partition.limits.get(path, QueueLimits())
    if kind == "group":
        return limits.groups.get(name, NO_LIMIT)
    return limits.users.get(name, limits.users.get("*", NO_LIMIT))


# -- asks and nodes --------------------------------------------------------------------------------------


def fit_in_score(ask: Amounts, free: Amounts) -> float:
    """FitInScore (section 7.1): smaller, the more completely the ask covers what is free.

    Floats are added up in one order, memory and vcore first.
    """
    score = 0.0
    for name in sorted(free, key=lambda n: (n not in ("memory", "vcore"), n)):
        left, wanted = free[name], ask.get(name, 0)
        if left > 0 and wanted <= 0:
            score += 1.0
        elif left > 0 and left > wanted:
            score += float(left - wanted) / float(left)
    return score


def meets(ask: Ask, node: Node) -> bool:
    """Node constraints, as far as the scenarios use them: nodeSelector, nodeAffinity with In, Exists and NotIn, taints."""
    wanted: dict[str, Any] = _read(ask.constraints or "{}")
    labels = {name.removeprefix("label/"): value for name, value in node.attributes.items() if name != "taints"}
    if any(labels.get(name) != value for name, value in wanted.get("nodeSelector", {}).items()):
        return False
    terms = wanted.get("nodeAffinity")
    if terms is not None and not any(term and all(_holds(e, labels) for e in term) for term in terms):
        return False
    taints = [t for t in _read(node.attributes.get("taints", "[]")) if t["effect"] != "PreferNoSchedule"]
    return all(any(t["key"] == borne["key"] for borne in wanted.get("tolerations", [])) for t in taints)


@lru_cache
def _read(text: str) -> Any:
    return json.loads(text)


def _holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case _:
            return value is not None
