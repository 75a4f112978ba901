"""Event records of users and groups: their limits, and which group an application counts for.

Source: docs/spec/events.md, section 2.

Changes of usage are recorded together with the allocations (`licorne.core.events.runs`), except in two rare cases that
are handled here: an allocation is resized, and an application counts for another group after a reload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec
from licorne.core.queues.limits import GROUP, USER
from licorne.si.v19 import ChangeDetail, ChangeType

if TYPE_CHECKING:
    from licorne.core.contents import PartitionContents
    from licorne.core.queues.application import Application
    from licorne.core.queues.limits import Maxima

    from .records import Records
    from .runs import Owner

_LIMITS = {USER: ChangeDetail.UG_USER_LIMIT, GROUP: ChangeDetail.UG_GROUP_LIMIT}
_Limit = tuple[dict[str, int] | None, int]
_Place = tuple[str, str, str]  # user or group, its name, the queue's path


class UserEvents:
    """Makes the records of type USERGROUP of one partition."""

    def __init__(self, partition: PartitionContents, records: Records) -> None:
        self._partition = partition
        self._records = records
        self._limits: dict[_Place, _Limit] = {}
        self.unlinked: list[tuple[str, str]] = []  # (group, id of an application that no longer counts for it)

    def look_at_limits(self, *, tell: bool = True) -> None:
        """Record the limits that a configuration has set, changed or removed; `tell=False`: only remember them."""
        now: dict[_Place, _Limit] = {}
        for path, limits in self._partition.limits.configured.items():
            for kind, named in ((USER, limits.users), (GROUP, limits.groups)):
                for name, maxima in named.items():
                    now[kind, name, path] = self._facts(maxima)
        if tell:
            for place in self._limits:
                if place not in now:
                    self._limit(place, ChangeType.REMOVE)
            for place, limit in now.items():
                if self._limits.get(place) != limit:
                    self._limit(place, ChangeType.SET)
        self._limits = now

    def _facts(self, maxima: Maxima) -> _Limit:
        resources = maxima.resources
        return None if resources is None else resources.named(self._partition.types), maxima.max_apps

    def _limit(self, place: _Place, change: ChangeType) -> None:
        kind, name, path = place
        self._records.owner(name, change, _LIMITS[kind], path)

    # -- called by `Limits` ----------------------------------------------------------------------------

    def regrouped(self, app: Application, old: str | None, new: str | None) -> None:
        """Record that the application counts for group `new` instead of `old` (None: no group), with its usage."""
        uses = Vec()
        uses.plus(app.allocated)
        uses.plus(app.placeholders)
        moved = uses.named(self._partition.types)
        path = app.queue.path
        if old is not None:
            if moved:
                self._records.owner(old, ChangeType.REMOVE, ChangeDetail.UG_GROUP_RESOURCE, path, moved)
            self.unlinked.append((old, app.id))
            if new is not None:
                self.settle()
        if new is not None:
            self._records.owner(new, ChangeType.SET, ChangeDetail.UG_APP_LINK, app.id)
            if moved:
                self._records.owner(new, ChangeType.ADD, ChangeDetail.UG_GROUP_RESOURCE, path, moved)

    def settle(self) -> None:
        """Record the links to groups that have ended; this comes after the records of the usage that was taken back."""
        for group, app_id in self.unlinked:
            self._records.owner(group, ChangeType.REMOVE, ChangeDetail.UG_APP_LINK, app_id)
        self.unlinked.clear()

    # -- effects of an input ---------------------------------------------------------------------------

    def resized(self, app: Application, before: Mapping[str, int], now: Mapping[str, int]) -> None:
        """Record the difference in usage after an allocation was resized."""
        names = sorted({*before, *now})
        more = {name: now.get(name, 0) - before.get(name, 0) for name in names}
        owners = [(app.user, ChangeDetail.UG_USER_RESOURCE)]
        if app.group is not None:
            owners.append((app.group, ChangeDetail.UG_GROUP_RESOURCE))
        for change, sign in ((ChangeType.ADD, 1), (ChangeType.REMOVE, -1)):
            part = {name: sign * value for name, value in more.items() if sign * value > 0}
            if part:
                for name, detail in owners:
                    self._records.owner(name, change, detail, app.queue.path, part)


def owner_of(app: Application) -> Owner:
    """The user and the group that the application's usage counts for."""
    return app.user, app.group
