"""What users and groups may use: who is tracked where, and which limit applies to whom (spec scheduling.md, section 11).

An application is *attached* once: from then on it holds the trackers that it counts with, its user's from its leaf to
root, then its group's, if a configured group counts for it. What the hot path does with them is plain:

* `Books.take` (licorne.core.accounting): for each tracker of the application `used += amounts`, `apps[app] = None`;
* `Books.give_back`: for each tracker `used -= amounts`, and whoever is in `blocked` is woken;
* `Descent.visit` attaches; `Parking.block` puts an application into `blocked` of the trackers that bind it.

Everything else is done here: trackers are made and dropped, limits are set, applications leave the sets of running
ones, groups are matched, and matched again when a reload takes the limit of a group away (section 16.3).

**Who holds a tracker.** A tracker lives as long as an application is attached to it, or a configured limit names its
user or group at its queue. Counting the holders, not the usage, is what keeps two applications of a user from
counting with two trackers of one name: one that has nothing allocated yet holds its trackers all the same.

Paths are lower-cased queue paths, whatever the configuration's spelling (the original never applies a limit to a
queue that is spelled with capitals).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from licorne.config.model import LimitConfig, QueueConfig

from .application import Application
from .states import TERMINATED_STATES
from .usage import Tracker
from .vectors import UNLIMITED, Types, Vec

WILDCARD: Final = "*"
USER: Final = "user"
GROUP: Final = "group"
_MOST: Final = 2**63 - 1


class _Limit(NamedTuple):
    """The maxima of one configured limit. `resources` None and `max_apps` 0: no limit of this kind."""

    resources: Vec | None
    max_apps: int


_NO_LIMIT: Final = _Limit(None, 0)


class _QueueLimits(NamedTuple):
    """The limits of one queue by name, in the order of the configuration; `*` stands among them."""

    users: dict[str, _Limit]
    groups: dict[str, _Limit]


class Limits:
    """The trackers of all users and groups of a partition."""

    types: Types

    def __init__(self, types: Types) -> None:
        self.types = types
        self._configured: dict[str, _QueueLimits] = {}
        self._trackers: dict[str, dict[str, dict[str, Tracker]]] = {USER: {}, GROUP: {}}  # kind -> name -> path
        self._holders: dict[Tracker, int] = {}  # attached applications

    # -- reading ---------------------------------------------------------------------------------------

    def users(self) -> dict[str, list[Tracker]]:
        """Each tracked user's trackers by path; users in byte order."""
        return self._listed(USER)

    def groups(self) -> dict[str, list[Tracker]]:
        """Each tracked group's trackers by path; groups in byte order. `*` is the group of a wildcard limit."""
        return self._listed(GROUP)

    def _listed(self, kind: str) -> dict[str, list[Tracker]]:
        named = self._trackers[kind]
        return {name: [named[name][path] for path in sorted(named[name])] for name in sorted(named)}

    def first_refusal(self, app: Application) -> Tracker | None:
        """The tracker that forbids the application to run, leaf first, user before group; None if it may (11.4)."""
        if not app.group_chosen:
            self.attach(app)
        return next((tracker for tracker in app.trackers if not tracker.may_run(app)), None)

    # -- the life of an application --------------------------------------------------------------------

    def attach(self, app: Application) -> None:
        """Choose the application's group, and give it the trackers that it counts with (11.2).

        To be called before the first headroom, refusal or allocation; a second call changes nothing.
        """
        if app.group_chosen:
            return
        assert app.allocated.zero() and app.placeholders.zero(), f"{app.id}: has allocations that no tracker counts"
        paths = _paths(app)
        app.group = self._matching_group(app, paths)
        app.group_chosen = True
        app.trackers = self._hold(USER, app.user, paths)
        if app.group is not None:
            app.trackers += self._hold(GROUP, app.group, paths)

    def counted(self, app: Application) -> None:
        """The application has its first allocation: enter it everywhere. (`Books.take` does this by itself.)"""
        for tracker in app.trackers:
            tracker.apps[app] = None

    def left(self, app: Application, *, gone: bool = False) -> list[Application]:
        """Nothing of the application is allocated or pending any more: it leaves all sets, and its group (16.11, 16.12).

        An application that never had an allocation keeps its group and trackers, unless it is removed (`gone`) or has
        terminated. Returned are those who waited at its trackers: they may run now. They are taken out of `blocked`.
        """
        if not app.group_chosen:
            return []
        gone = gone or app.state in TERMINATED_STATES
        if not gone and not any(app in tracker.apps for tracker in app.trackers):
            return []
        assert app.allocated.zero() and app.placeholders.zero(), f"{app.id}: leaves its trackers with allocations"
        woken: dict[Application, None] = {}
        for tracker in app.trackers:
            _leave(tracker, app, woken)
        trackers = app.trackers
        app.trackers = []
        app.group = None
        app.group_chosen = False
        self._let_go(trackers)
        return list(woken)

    # -- the configuration -----------------------------------------------------------------------------

    def configure(self, root: QueueConfig, apps: Iterable[Application]) -> list[Application]:
        """Set the limits of the first configuration, or of a reload (11.6, 16.3, 16.10).

        `apps` are all applications of the partition by arrival. Returned are those that may run now where they could
        not before: who waited at a tracker that changed, and who is in another group. They are taken out of `blocked`.
        """
        old = self._configured
        self._configured = dict(self._read(root, root.name.lower()))
        woken: dict[Application, None] = {}
        for path, limits in self._configured.items():
            for kind, names in ((USER, limits.users), (GROUP, limits.groups)):
                for name in names:
                    if kind == GROUP or name != WILDCARD:
                        self._tracker(kind, name, path)
        for tracker in list(self._each()):
            if self._set_limit(tracker):
                _wake(tracker, woken)
        lost = [(path, group) for path, limits in old.items() for group in limits.groups if not self._has(path, group)]
        lost_groups = {group for _, group in lost}
        for app in apps:
            if app.group in lost_groups:
                paths = _paths(app)
                if any(app.group == group and path in paths for path, group in lost):
                    self._match_again(app, paths, woken)
        self._let_go([tracker for tracker in self._each() if not self._holders[tracker]], held=False)
        return list(woken)

    def _read(self, config: QueueConfig, path: str) -> Iterator[tuple[str, _QueueLimits]]:
        limits = _QueueLimits({}, {})
        for configured in config.limits:
            limit = self._limit(configured)
            for user in configured.users:
                limits.users.setdefault(user, limit)
            for group in configured.groups:
                limits.groups.setdefault(group, limit)
        if limits.users or limits.groups:
            yield path, limits
        for child in config.children:
            yield from self._read(child, f"{path}.{child.name.lower()}")

    def _limit(self, config: LimitConfig) -> _Limit:
        resources = config.max_resources
        usable = resources is not None and any(resources.values())
        vector = self.types.vector(resources, UNLIMITED) if usable else None
        return _Limit(vector, min(config.max_applications, _MOST))

    def _has(self, path: str, group: str) -> bool:
        return path in self._configured and group in self._configured[path].groups

    def _match_again(self, app: Application, paths: list[str], woken: dict[Application, None]) -> None:
        """The application's group lost a limit that it was under: all it uses moves to the group that counts now."""
        group = self._matching_group(app, paths)
        if group == app.group:
            return
        before = app.trackers[len(paths) :]
        after = self._hold(GROUP, group, paths) if group is not None else []
        running = any(app in tracker.apps for tracker in app.trackers)
        uses = _uses(app)
        for tracker in before:
            tracker.used.minus(uses)
            _leave(tracker, app, woken)
        for tracker in after:
            tracker.used.plus(uses)
            if running:
                tracker.apps[app] = None
        app.trackers = app.trackers[: len(paths)] + after
        app.group = group
        woken[app] = None
        self._let_go(before)

    # -- groups and trackers ---------------------------------------------------------------------------

    def _matching_group(self, app: Application, paths: list[str]) -> str | None:
        """The configured group that counts for the application, from its leaf upwards; None for none (11.2)."""
        for path in paths:
            limits = self._configured.get(path)
            if limits is None:
                continue
            for group in limits.groups:
                if group != WILDCARD and group in app.groups:
                    return group
            if WILDCARD in limits.groups:
                return WILDCARD
        return None

    def _applying(self, kind: str, name: str, path: str) -> tuple[_Limit, bool]:
        """The limit for this user or group at this queue, and whether it is that of `*` for users (11.5)."""
        limits = self._configured.get(path)
        if limits is None:
            return _NO_LIMIT, False
        names = limits.users if kind == USER else limits.groups
        if name in names and (kind == GROUP or name != WILDCARD):
            return names[name], False
        if kind == USER and WILDCARD in names:
            return names[WILDCARD], True
        return _NO_LIMIT, False

    def _set_limit(self, tracker: Tracker) -> bool:
        """Give the tracker the limit that applies; did it change?"""
        limit, wildcard = self._applying(tracker.kind, tracker.name, tracker.path)
        same = _same(tracker.limit, limit.resources) and tracker.max_apps == limit.max_apps
        tracker.limit = limit.resources
        tracker.max_apps = limit.max_apps
        tracker.wildcard = wildcard
        return not same

    def _tracker(self, kind: str, name: str, path: str) -> Tracker:
        by_path = self._trackers[kind].setdefault(name, {})
        tracker = by_path.get(path)
        if tracker is None:
            tracker = by_path[path] = Tracker(kind, name, path)
            self._holders[tracker] = 0
            self._set_limit(tracker)
        return tracker

    def _each(self) -> Iterator[Tracker]:
        for named in self._trackers.values():
            for by_path in named.values():
                yield from by_path.values()

    def _hold(self, kind: str, name: str, paths: list[str]) -> list[Tracker]:
        trackers = [self._tracker(kind, name, path) for path in paths]
        for tracker in trackers:
            self._holders[tracker] += 1
        return trackers

    def _let_go(self, trackers: list[Tracker], *, held: bool = True) -> None:
        """Forget trackers that nobody holds any more, but for those whose user or group a limit names."""
        for tracker in trackers:
            self._holders[tracker] -= held
            limit, wildcard = self._applying(tracker.kind, tracker.name, tracker.path)
            if self._holders[tracker] or not (limit is _NO_LIMIT or wildcard):
                continue
            assert tracker.used.zero() and not tracker.apps and not tracker.blocked, f"{_named(tracker)} is in use"
            del self._holders[tracker]
            by_path = self._trackers[tracker.kind][tracker.name]
            del by_path[tracker.path]
            if not by_path:
                del self._trackers[tracker.kind][tracker.name]

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self, apps: Iterable[Application]) -> None:
        """Prove that each tracker counts what its applications use and nothing else; raises AssertionError."""
        used: dict[Tracker, Vec] = {tracker: Vec() for tracker in self._each()}
        holders: dict[Tracker, int] = dict.fromkeys(used, 0)
        running: dict[Tracker, set[Application]] = {tracker: set() for tracker in used}
        assert list(self._holders) == list(used) or set(self._holders) == set(used), "holders of trackers"
        for app in apps:
            uses = _uses(app)
            self._validate_trackers(app, uses)
            for tracker in app.trackers:
                assert tracker in used, f"{app.id}: holds {_named(tracker)}, which is not registered"
                used[tracker].plus(uses)
                holders[tracker] += 1
                if app in app.trackers[0].apps:
                    running[tracker].add(app)
        for tracker, sum_ in used.items():
            name = _named(tracker)
            assert tracker.used.same(sum_), f"{name}: used {tracker.used.values()}, sum {sum_.values()}"
            assert self._holders[tracker] == holders[tracker], f"{name}: {self._holders[tracker]} holders"
            assert set(tracker.apps) == running[tracker], f"{name}: applications"
            assert all(tracker in app.trackers for app in tracker.blocked), f"{name}: blocks a stranger"
            limit, wildcard = self._applying(tracker.kind, tracker.name, tracker.path)
            assert _same(tracker.limit, limit.resources), f"{name}: limit on resources"
            assert (tracker.max_apps, tracker.wildcard) == (limit.max_apps, wildcard), f"{name}: limit"

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


def _paths(app: Application) -> list[str]:
    """The paths of the application's queue and its ancestors, leaf first."""
    return [queue.path for queue in app.queue.lineage()]


def _uses(app: Application) -> Vec:
    """All that the application has allocated, placeholders and real (11.1)."""
    uses = Vec()
    uses.plus(app.allocated)
    uses.plus(app.placeholders)
    return uses


def _same(one: Vec | None, other: Vec | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.same(other)


def _wake(tracker: Tracker, woken: dict[Application, None]) -> None:
    woken.update(tracker.blocked)
    tracker.blocked.clear()


def _leave(tracker: Tracker, app: Application, woken: dict[Application, None]) -> None:
    tracker.apps.pop(app, None)
    tracker.blocked.pop(app, None)
    _wake(tracker, woken)


def _named(tracker: Tracker) -> str:
    return f"{tracker.kind} {tracker.name} at {tracker.path}"
