"""Invariant 12, work is conserved: an independent and naive answer to "why does this ask wait?".

After a call of `schedule` without limit every pending ask must have a reason, and the reasons are those that the
specification gives, each spelled out here over plain dicts. Read from the product, as data, are: what it was configured
to do, which accepted applications hold a slot, which asks have claims after an eviction, which group counts for an
application, until when it backs off and
which nodes are reserved; no sum, no comparison and no order of the product is used.
"""

from __future__ import annotations

from typing import Any

from machine import atomic, flights
from machine.amounts import Amounts, plus, within
from machine.expected import ExpectedState
from machine.things import App, Ask, Node

ACTIVE = ("Starting", "Running")


class Usage:
    """The usage at each queue and of each user and group there, added up from the records."""

    def __init__(self, expected: ExpectedState, partition: Any, queues: dict[str, Any]) -> None:
        self.expected = expected
        self.partition = partition
        self.queues = queues
        self.by_queue: dict[str, Amounts] = {}
        self.by_owner: dict[tuple[str, str, str], Amounts] = {}
        self.running: dict[str, int] = {}
        self.entered: dict[tuple[str, str, str], int] = {}
        for app in expected.apps.values():
            self._add(app)

    def _add(self, app: App) -> None:
        used = app.used()
        for path in paths(app.queue):
            self.by_queue[path] = plus(self.by_queue.get(path, {}), used)
            self.running[path] = self.running.get(path, 0) + (app.state in ACTIVE)
            for owner in self.owners(app):
                self.by_owner[*owner, path] = plus(self.by_owner.get((*owner, path), {}), used)
                self.entered[*owner, path] = self.entered.get((*owner, path), 0) + self.has_entered(app)

    def has_entered(self, app: App) -> bool:
        """Tell whether an application counts for its user, because it has run, or has evicted others."""
        core = self.partition.applications[app.id]
        return app.entered or any(core in tracker.apps for tracker in core.trackers)

    def owners(self, app: App) -> list[tuple[str, str]]:
        """The user and the group that count for an application."""
        group = self.partition.applications[app.id].group
        return [("user", app.user), *([("group", group)] if group is not None else [])]

    def allocated(self, app: App, resource: Amounts) -> None:
        """Add an allocation to the usage."""
        for path in paths(app.queue):
            self.by_queue[path] = plus(self.by_queue.get(path, {}), resource)
            for owner in self.owners(app):
                self.by_owner[*owner, path] = plus(self.by_owner.get((*owner, path), {}), resource)

    def maximum(self, path: str) -> Amounts | None:
        """A queue's own max; root's is the size of the cluster."""
        if path == "root":
            return None
        queue = self.partition.tree.find(path)
        most: Amounts | None = queue.max_resource()
        if path in self.queues and not queue.draining:
            assert most == self.queues[path]["max"], f"max of {path}: {most}"
        return most

    def limits(self, app: App) -> list[tuple[str, str, str, Amounts, int]]:
        """(kind, name, path, amounts, applications) of every limit that the application is under."""
        found = []
        for path in paths(app.queue):
            configured: Any = self.queues.get(path)
            for kind, name in self.owners(app) if configured is not None else ():
                limit = _limit_of(configured["limits"], kind, name)
                if limit is not None:
                    found.append((kind, name, path, limit.most, limit.apps))
        return found


def _limit_of(limits: Any, kind: str, name: str) -> Any:
    """A named limit goes before that of `*`, which is for users only: the group `*` is one like others."""
    names = [(n, limit) for limit in limits for n in (limit.users if kind == "user" else limit.groups)]
    for wanted in (name, "*") if kind == "user" else (name,):
        for n, limit in names:
            if n == wanted:
                return limit
    return None


def paths(path: str) -> list[str]:
    """A queue's path and those above it, leaf first."""
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def why_wait(usage: Usage, app: App, ask: Ask, predicate: Any, now: int) -> str:
    """The rule that keeps the ask waiting; empty if there is none, and then it is a fault that it waits."""
    if flights.waits(app, ask):
        could = flights.replaceable(usage.expected, app, ask, predicate)
        return "placeholder" if not could or not usage.partition.tree.find(app.queue).is_leaf else ""
    gang = atomic.why_wait(usage, app, _quota)
    if gang != "-":
        moody = "gang: predicate" if usage.partition.predicates is not None else ""
        return _app_waits(usage, app, now) or gang or moody
    waits = _app_waits(usage, app, now) or _quota(usage, app, ask) or _claimed(usage, app, ask)
    return waits or _nodes(usage, app, ask, predicate)


def _claimed(usage: Usage, app: App, ask: Ask) -> str:
    """Would it not fit beside what others claim, when the victims have gone? Order is not asked: it only allows more."""
    partition = usage.partition
    core = partition.applications[app.id]
    for level in [*core.queue.lineage(), *core.trackers]:
        mine = [
            a
            for a in partition.claims.by_ask
            if a.key != ask.key and level in [*a.app.queue.lineage(), *a.app.trackers]
        ]
        gone = [v for v in partition.accounting.victims if level in [*v.app.queue.lineage(), *v.app.trackers]]
        if not mine or level.limit is None:
            continue
        for name, amount in ask.resource.items():
            limit = level.limit.at(partition.types.slot(name))
            used = (level.allocated if hasattr(level, "allocated") else level.used).named(partition.types).get(name, 0)
            used += sum(a.shape.resource.get(name, 0) for a in mine) - sum(a.shape.resource.get(name, 0) for a in gone)
            if amount > 0 and limit < 2**63 - 1 and used + amount > limit:
                return "claimed"
    node = partition.nodes.get(ask.required)
    rivals = [] if node is None else [a for a in node.reservations if a in partition.claims.by_ask and a.key != ask.key]
    return "claimed" if rivals else ""


def _app_waits(usage: Usage, app: App, now: int) -> str:
    partition = usage.partition
    queue = partition.tree.find(app.queue)
    if not queue.is_leaf or any(upper.is_leaf for upper in queue.lineage()[1:]):
        return "queue serves nobody"
    core = partition.applications[app.id]
    if app.state == "Accepted":
        for upper in queue.lineage():
            waits = usage.running.get(upper.path, 0) + len(upper.accepted) >= upper.max_apps
            if upper.max_apps and core not in upper.accepted and waits:
                return "maximum applications"
        for kind, name, path, _, apps in usage.limits(app):
            if apps and not usage.has_entered(app) and usage.entered.get((kind, name, path), 0) >= apps:
                return "maximum applications of a limit"
    if queue.settings.sort_policy == "stateaware" and usage.expected.starting and _not_its_turn(usage, app):
        return "stateaware order"
    if core.backoff_until > now:
        assert core.backoff_until <= now + 30 * 10**9, "a back-off that is too long"
        return "back-off"
    return ""


def _not_its_turn(usage: Usage, app: App) -> bool:
    if app.state not in ("Accepted", "Starting"):
        return False
    peers = [other for other in usage.expected.apps.values() if other.queue == app.queue]
    chosen = [a for a in peers if a.state == "Starting"] or [a for a in peers if a.state == "Accepted"]
    cores = [usage.partition.applications[a.id] for a in chosen]
    oldest: str = min((core.submitted, core.seq, core.id) for core in cores)[2]
    return oldest != app.id


def _quota(usage: Usage, app: App, ask: Ask) -> str:
    for path in paths(app.queue):
        if not within(ask.resource, usage.maximum(path), usage.by_queue.get(path, {})):
            return "quota"
    for kind, name, path, most, _ in usage.limits(app):
        if not within(ask.resource, most, usage.by_owner.get((kind, name, path), {})):
            return f"limit of a {kind}"
    return ""


def _nodes(usage: Usage, app: App, ask: Ask, predicate: Any) -> str:
    core = usage.partition.applications[app.id].asks[ask.key]
    if ask.required:
        return _required(usage, ask, core, predicate)
    reserved = None if core.reserved is None else core.reserved.id
    for node in usage.expected.nodes.values():
        holders = usage.partition.nodes[node.id].reservations
        closed = not node.schedulable or (holders and node.id != reserved) or atomic.held(usage, node.id)
        if not closed and _would_do(usage.expected, ask, node, predicate):
            return ""
    return "node"


def _required(usage: Usage, ask: Ask, core: Any, predicate: Any) -> str:
    node = usage.expected.nodes.get(ask.required)
    if node is None:
        return "required node"
    holders = usage.partition.nodes[node.id].reservations
    if (holders and core not in holders) or not _would_do(usage.expected, ask, node, predicate):
        return "required node"
    return ""


def _would_do(expected: ExpectedState, ask: Ask, node: Node, predicate: Any) -> bool:
    return expected.has_room(ask, node) and expected.meets(ask, node) and predicate(ask.key, node.id, allocate=True)


def within_limits(usage: Usage, app: App, resource: Amounts) -> None:
    """Invariants 4 and 5: after an allocation by the scheduler nothing that it used more of is above its limit."""
    for path in paths(app.queue):
        for name, most in (usage.maximum(path) or {}).items():
            if resource.get(name):
                assert usage.by_queue[path].get(name, 0) <= most, f"invariant 4: {path} uses too much {name}"
    for kind, owner, path, limit, _ in usage.limits(app):
        for name, most in limit.items():
            if resource.get(name):
                used = usage.by_owner[kind, owner, path]
                assert used.get(name, 0) <= most, f"invariant 5: {kind} {owner} uses too much {name} at {path}"
