"""The limits of users and groups: which applications count for whom, and which limit applies.

Source: docs/spec/scheduling.md, section 11.

An application is *attached* once: from then on it holds the trackers that it counts with, those of its user from its
leaf to root, then those of its group, if a configured group counts for it. The hot path uses them plainly:

* `Accounting.add_allocation` (licorne.core.waiting.accounting): for each tracker of the application
  `used += amounts`, `apps[app] = None`;
* `Accounting.remove_allocation`: for each tracker `used -= amounts`, and those in `blocked` that may fit now are woken;
* `Descent.visit` attaches; `Parking.block` puts an application into `blocked` of the trackers that bind it.

Everything else is done here: trackers are made and dropped, limits are set, applications are taken out of the sets of
running ones, groups are matched, and matched again when a reload removes the limit of a group (section 16.3).

**The life of a tracker.** A tracker exists as long as an application is attached to it, or a configured limit names its
user or group at its queue. Counting holders, not usage, is what keeps two applications of a user from counting with two
trackers of one name: an application that has nothing allocated yet holds its trackers all the same.
Paths are in lower case (the original never applies a limit to a queue that is spelled with capitals).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from licorne._plain import cython
from licorne.config.model import LimitConfig, QueueConfig
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.states import TERMINATED_STATES
from licorne.core.constants import UNLIMITED

from .application import Application
from .queue import Queue
from .usage import Tracker

WILDCARD = "*"
USER = "user"
GROUP = "group"


@cython.cclass
class Maxima:
    """The maxima of one configured limit. `resources` None and `max_apps` 0: no limit of this kind.

    `wildcard`: it is the limit of `*` for users. The one of `*` for groups belongs to a group of this name (section
    11.5).
    """

    resources: Vec | None
    max_apps: cython.longlong
    wildcard: cython.bint

    def __init__(self, resources: Vec | None, max_apps: int, wildcard: bool) -> None:
        self.resources = resources
        self.max_apps = max_apps
        self.wildcard = wildcard


NO_MAXIMA = Maxima(None, 0, False)


@cython.cclass
class LimitsOfQueue:
    """The limits of one queue by name, in the order of the configuration; `*` is one of the names."""

    users: dict[str, Maxima]
    groups: dict[str, Maxima]

    def __init__(self) -> None:
        self.users = {}
        self.groups = {}


@cython.cclass
class Limits:
    """The trackers of all users and groups of a partition, and the configured limits."""

    types: Types
    configured: dict[str, LimitsOfQueue]  # by path
    tracked_users: dict[str, dict[str, Tracker]]  # name -> path
    tracked_groups: dict[str, dict[str, Tracker]]
    # Called with an application, the group that counted for it, and the one that does now.
    regrouped: Callable[[Application, str | None, str | None], object] | None

    TRANSIENT = ("regrouped",)  # for records of events, which decide nothing

    def __init__(self, types: Types) -> None:
        self.types = types
        self.configured = {}
        self.tracked_users = {}
        self.tracked_groups = {}
        self.regrouped = None

    # -- reading ---------------------------------------------------------------------------------------

    def users(self) -> dict[str, list[Tracker]]:
        """Return each tracked user's trackers by path; users in byte order."""
        return _listed(self.tracked_users)

    def groups(self) -> dict[str, list[Tracker]]:
        """Return each tracked group's trackers by path; groups in byte order. `*` is the group of a wildcard limit."""
        return _listed(self.tracked_groups)

    @cython.ccall
    def first_refusal(self, app: Application) -> Tracker | None:
        """Return the tracker that forbids the application to run; None if it may (11.4).

        The user's trackers are asked before the group's, both from the leaf up.
        """
        tracker: Tracker
        if not app.group_chosen:
            self.attach(app)
        for tracker in app.trackers:
            if tracker.max_apps and not tracker.may_run(app):
                return tracker
        return None

    # -- the life of an application --------------------------------------------------------------------

    @cython.ccall
    def attach(self, app: Application) -> cython.void:
        """Choose the application's group, and give it the trackers that it counts with (11.2).

        It must be called before the first headroom, refusal or allocation; a second call changes nothing.
        """
        if app.group_chosen:
            return
        assert app.allocated.zero() and app.placeholders.zero(), f"{app.id}: has allocations that no tracker counts"
        trackers: list[Any] = []
        app.group = self._matching_group(app)
        app.group_chosen = True
        self._retain(USER, app.user, app.queue, trackers)
        if app.group is not None:
            self._retain(GROUP, app.group, app.queue, trackers)
            if self.regrouped is not None:
                self.regrouped(app, None, app.group)
        app.trackers = trackers

    def left(self, app: Application, *, gone: bool = False) -> list[Application]:
        """Detach an application of which nothing is allocated or pending any more (16.11, 16.12).

        It is taken out of all sets of running applications, and loses its group and trackers. One that never had an
        allocation keeps group and trackers, unless it is removed (`gone`) or has terminated. Returned are the
        applications that waited at its trackers, which may run now; they are taken out of `blocked`.
        """
        if not app.group_chosen:
            return []
        gone = gone or app.state in TERMINATED_STATES
        if not gone and not any(app in tracker.apps for tracker in app.trackers):
            return []
        assert app.allocated.zero() and app.placeholders.zero(), f"{app.id}: leaves its trackers with allocations"
        woken: dict[Application, Vec | None] = {}
        for tracker in app.trackers:
            _leave(tracker, app, woken)
        trackers, app.trackers = app.trackers, []
        if self.regrouped is not None and app.group is not None:
            self.regrouped(app, app.group, None)
        app.group = None
        app.group_chosen = False
        self._release(trackers)
        return list(woken)

    # -- the configuration -----------------------------------------------------------------------------

    def configure(self, root: QueueConfig, apps: Iterable[Application]) -> list[Application]:
        """Set the limits of the first configuration, or of a reload (11.6, 16.3, 16.10).

        `apps` are all applications of the partition by arrival. Returned are those that may run now where they could
        not before: those that waited at a tracker that changed, and those that count for another group now. They are
        taken out of `blocked`.
        """
        old = self.configured
        self.configured = {}
        self._read(root, root.name.lower())
        woken: dict[Application, Vec | None] = {}
        for path, limits in self.configured.items():
            for kind, names in ((USER, limits.users), (GROUP, limits.groups)):
                for name in names:
                    if (kind == GROUP or name != WILDCARD) and path not in self._by_path(kind, name):
                        self._add(kind, name, path)
        for tracker in self._each():
            if self._set_limit(tracker):
                _wake(tracker, woken)
        lost = [(path, group) for path, limits in old.items() for group in limits.groups if not self._has(path, group)]
        lost_groups = {group for _, group in lost}
        for app in apps:
            if app.group in lost_groups:
                paths = _paths(app)
                if any(app.group == group and path in paths for path, group in lost):
                    self._match_again(app, woken)
        for tracker in self._each():
            self._forget_unused(tracker)
        return list(woken)

    def _read(self, config: QueueConfig, path: str) -> None:
        """Read the limits of this queue and those below; the first limit that names a user or group counts."""
        limits = LimitsOfQueue()
        for configured in config.limits:
            of_all = self._maxima(configured, wildcard=True)
            of_named = self._maxima(configured, wildcard=False)
            for user in configured.users:
                limits.users.setdefault(user, of_all if user == WILDCARD else of_named)
            for group in configured.groups:
                limits.groups.setdefault(group, of_named)
        if limits.users or limits.groups:
            self.configured[path] = limits
        for child in config.children:
            self._read(child, f"{path}.{child.name.lower()}")

    def _maxima(self, config: LimitConfig, *, wildcard: bool) -> Maxima:
        resources = config.max_resources
        usable = resources is not None and any(resources.values())
        vector = self.types.vector(resources, UNLIMITED) if usable else None
        return Maxima(vector, min(config.max_applications, UNLIMITED), wildcard)

    def _has(self, path: str, group: str) -> bool:
        limits: LimitsOfQueue | None = self.configured.get(path)
        return limits is not None and group in limits.groups

    def _match_again(self, app: Application, woken: dict[Application, Vec | None]) -> None:
        """Move what the application uses to the group that counts now, after its group lost a limit it was under."""
        group = self._matching_group(app)
        if group == app.group:
            return
        levels = len(app.trackers) // 2  # one of the user and one of the group for each queue up to root
        before = app.trackers[levels:]
        if self.regrouped is not None:
            self.regrouped(app, app.group, group)
        after: list[Any] = []
        if group is not None:
            self._retain(GROUP, group, app.queue, after)
        # All of its trackers count it as running, or none does; so must the new ones.
        running = any(app in tracker.apps for tracker in app.trackers)
        uses = _uses(app)
        for tracker in before:
            tracker.used.add_sum(uses, -1)
            _leave(tracker, app, woken)
        for tracker in after:
            tracker.used.add_sum(uses, 1)
            if running:
                tracker.apps[app] = None
        app.trackers = app.trackers[:levels] + after
        app.group = group
        woken[app] = None
        self._release(before)

    # -- groups and trackers ---------------------------------------------------------------------------

    @cython.cfunc
    def _matching_group(self, app: Application) -> str | None:
        """Return the configured group that counts for the application, from its leaf upwards; None for none (11.2)."""
        queue: Queue | None = app.queue
        limits: LimitsOfQueue | None
        while queue is not None:
            limits = self.configured.get(queue.path)
            if limits is not None and limits.groups:
                for group in limits.groups:
                    if group != WILDCARD and group in app.groups:
                        return group
                if WILDCARD in limits.groups:
                    return WILDCARD
            queue = queue.parent
        return None

    @cython.cfunc
    def _applying(self, kind: str, name: str, path: str) -> Maxima:
        """Return the limit for this user or group at this queue: its own, or for a user the one of `*` (11.5)."""
        limits: LimitsOfQueue | None = self.configured.get(path)
        found: Maxima | None = None
        if limits is None:
            return NO_MAXIMA
        if kind == GROUP:
            found = limits.groups.get(name)
        else:
            found = limits.users.get(name)
            if found is None:
                found = limits.users.get(WILDCARD)
        return NO_MAXIMA if found is None else found

    @cython.cfunc
    def _set_limit(self, tracker: Tracker) -> cython.bint:
        """Give the tracker the limit that applies; True if that changed."""
        limit: Maxima = self._applying(tracker.kind, tracker.name, tracker.path)
        same: cython.bint = _same(tracker.limit, limit.resources) and tracker.max_apps == limit.max_apps
        tracker.limit = limit.resources
        tracker.max_apps = limit.max_apps
        tracker.wildcard = limit.wildcard
        return not same

    @cython.cfunc
    def _by_path(self, kind: str, name: str) -> dict[str, Any]:
        """Return all trackers of this user or group by path, as the dict that may be added to."""
        named: dict[str, Any] = self.tracked_users if kind == USER else self.tracked_groups
        found: dict[str, Any] | None = named.get(name)
        if found is None:
            found = named[name] = {}
        return found

    @cython.cfunc
    def _add(self, kind: str, name: str, path: str) -> Tracker:
        tracker: Tracker = Tracker(kind, name, path)
        self._set_limit(tracker)
        self._by_path(kind, name)[path] = tracker
        return tracker

    def _each(self) -> list[Tracker]:
        """Return all trackers."""
        both = (self.tracked_users, self.tracked_groups)
        return [tracker for named in both for by_path in named.values() for tracker in by_path.values()]

    @cython.cfunc
    def _retain(self, kind: str, name: str, leaf: Queue, held: list[Any]) -> cython.void:
        """Append to `held` the trackers of this user or group from the leaf up to root, each with one more holder."""
        by_path: dict[str, Any] = self._by_path(kind, name)
        queue: Queue | None = leaf
        tracker: Tracker | None
        while queue is not None:
            tracker = by_path.get(queue.path)
            if tracker is None:
                tracker = self._add(kind, name, queue.path)
            tracker.holders += 1
            held.append(tracker)
            queue = queue.parent

    @cython.cfunc
    def _release(self, trackers: list[Any]) -> cython.void:
        """Count one holder less of each of these trackers."""
        tracker: Tracker
        for tracker in trackers:
            tracker.holders -= 1
            self._forget_unused(tracker)

    @cython.cfunc
    def _forget_unused(self, tracker: Tracker) -> cython.void:
        """Drop a tracker without holders, unless a limit names its user or group."""
        limit: Maxima
        if tracker.holders:
            return
        limit = self._applying(tracker.kind, tracker.name, tracker.path)
        if limit is not NO_MAXIMA and not limit.wildcard:
            return
        assert tracker.used.zero() and not tracker.apps and not tracker.blocked, f"{_said(tracker)} is in use"
        by_path: dict[str, Any] = self._by_path(tracker.kind, tracker.name)
        del by_path[tracker.path]
        if not by_path:
            del (self.tracked_users if tracker.kind == USER else self.tracked_groups)[tracker.name]

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self, apps: Iterable[Application]) -> None:
        """Prove that each tracker counts what its applications use and nothing else; raises AssertionError."""
        used: dict[Tracker, Vec] = {tracker: new_sum() for tracker in self._each()}
        holders: dict[Tracker, int] = dict.fromkeys(used, 0)
        running: dict[Tracker, set[Application]] = {tracker: set() for tracker in used}
        for app in apps:
            uses = _uses(app)
            self._validate_trackers(app, uses)
            for tracker in app.trackers:
                assert tracker in used, f"{app.id}: holds {_said(tracker)}, which is not registered"
                used[tracker].add_sum(uses, 1)
                holders[tracker] += 1
                if app in app.trackers[0].apps:
                    running[tracker].add(app)
        for tracker, sum_ in used.items():
            name = _said(tracker)
            assert tracker.used.agrees(sum_), f"{name}: used {tracker.used.values()}, sum {sum_.values()}"
            assert tracker.holders == holders[tracker], f"{name}: {tracker.holders} holders"
            assert set(tracker.apps) == running[tracker], f"{name}: applications"
            assert all(tracker in app.trackers for app in tracker.blocked), f"{name}: blocks a stranger"
            limit = self._applying(tracker.kind, tracker.name, tracker.path)
            assert _same(tracker.limit, limit.resources), f"{name}: limit on resources"
            assert (tracker.max_apps, tracker.wildcard) == (limit.max_apps, limit.wildcard), f"{name}: limit"

    def _validate_trackers(self, app: Application, uses: Vec) -> None:
        if not app.group_chosen:
            assert not app.trackers and app.group is None, f"{app.id}: trackers before its group was chosen"
            assert uses.zero(), f"{app.id}: uses {uses.values()}, which no tracker counts"
            return
        paths = _paths(app)
        expected = [(USER, app.user, path) for path in paths]
        if app.group is not None:
            expected += [(GROUP, app.group, path) for path in paths]
        assert [(t.kind, t.name, t.path) for t in app.trackers] == expected, f"{app.id}: trackers"
        entered = [app in tracker.apps for tracker in app.trackers]
        assert all(entered) or not any(entered), f"{app.id}: is in some sets of applications only"
        assert uses.zero() or all(entered), f"{app.id}: has allocations, but is in no set of applications"


def _listed(named: dict[str, dict[str, Tracker]]) -> dict[str, list[Tracker]]:
    return {name: [named[name][path] for path in sorted(named[name])] for name in sorted(named)}


def _paths(app: Application) -> list[str]:
    """Return the paths of the application's queue and its ancestors, leaf first."""
    return [queue.path for queue in app.queue.lineage()]


def _uses(app: Application) -> Vec:
    """Return all that the application has allocated, placeholders and real allocations (11.1)."""
    uses = new_sum()
    uses.add_sum(app.allocated, 1)
    uses.add_sum(app.placeholders, 1)
    return uses


@cython.cfunc
def _same(one: Vec | None, other: Vec | None) -> cython.bint:
    return one is other if one is None or other is None else one.same(other)


def _wake(tracker: Tracker, woken: dict[Application, Vec | None]) -> None:
    woken.update(tracker.blocked)
    tracker.blocked.clear()


def _leave(tracker: Tracker, app: Application, woken: dict[Application, Vec | None]) -> None:
    tracker.apps.pop(app, None)
    tracker.blocked.pop(app, None)
    _wake(tracker, woken)


def _said(tracker: Tracker) -> str:
    return f"{tracker.kind} {tracker.name} at {tracker.path}"
