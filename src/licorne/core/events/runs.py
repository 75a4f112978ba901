"""Runs: compact records of the events that come by the thousand, expanded into events only when they are read.

New asks, new allocations and ended allocations make one to five events each. Making all of these would cost more than
the changes themselves, and most of them are never read. So a *run* is kept instead, which holds what the events are
made of. It holds nothing that may change later: keys, amounts that are shared with messages, and the scheduler's
outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from licorne.si.events import Event
from licorne.si.messages import NewAllocation
from licorne.si.v19 import ChangeDetail, ChangeType, EventType

_ADD, _REMOVE = ChangeType.ADD, ChangeType.REMOVE
_APP, _NODE, _USERGROUP = EventType.APP, EventType.NODE, EventType.USERGROUP
_USER_RESOURCE, _GROUP_RESOURCE = ChangeDetail.UG_USER_RESOURCE, ChangeDetail.UG_GROUP_RESOURCE
_ASK, _CANCEL = ChangeDetail.APP_REQUEST, ChangeDetail.REQUEST_CANCEL
_ON_APP, _ON_NODE = ChangeDetail.APP_ALLOC, ChangeDetail.NODE_ALLOC
RUN_MAX = 1_000
"""The largest number of asks or allocations in one run."""

Owner = tuple[str, str | None]
"""The user of an application, and the group that counts for it (None: no group), to which its usage belongs."""


class AskRun(msgspec.Struct, gc=False):
    """New asks; `application_ids`, `paths` (of the queues), `keys` and `resources` have an entry for each ask."""

    count: int
    time_ns: int
    application_ids: list[str]
    paths: list[str]
    keys: list[str]
    resources: list[dict[str, int]]

    def events(self) -> Iterator[Event]:
        """The events: APP ADD APP_REQUEST for each ask."""
        now = self.time_ns
        for app_id, path, key, resource in zip(
            self.application_ids, self.paths, self.keys, self.resources, strict=True
        ):
            yield Event(_APP, app_id, now, _ADD, _ASK, key, "", resource, path)


class AllocationRun(msgspec.Struct, gc=False):
    """New allocations, with their owners by application id.

    `on_node` is False if the usage of the nodes does not change, as each allocation replaces a placeholder there.
    """

    count: int
    time_ns: int
    outputs: list[NewAllocation]
    owners: dict[str, Owner]
    on_node: bool

    def events(self) -> Iterator[Event]:
        """The events of each allocation: NODE ADD NODE_ALLOC, USERGROUP ADD for user and group, APP ADD APP_ALLOC."""
        now = self.time_ns
        for output in self.outputs:
            key, app_id, path, resource = output.key, output.application_id, output.queue, output.resource
            if self.on_node:
                yield Event(_NODE, output.node_id, now, _ADD, _ON_NODE, key, "", resource)
            yield from usage(now, _ADD, self.owners[app_id], path, resource)
            yield Event(_APP, app_id, now, _ADD, _ON_APP, key, "", resource, path)


class EndedRun(msgspec.Struct, gc=False):
    """An allocation that has ended.

    `owner` is None if the usage of the user and the group is recorded elsewhere. `node_id` is empty if the node has no
    record here. `cancels`: the ask is removed with its allocation.
    """

    count: int
    time_ns: int
    application_id: str
    path: str
    owner: Owner | None
    key: str
    resource: dict[str, int]
    detail: ChangeDetail
    node_id: str
    cancels: bool

    def events(self) -> Iterator[Event]:
        """The events: USERGROUP REMOVE for user and group, APP REMOVE with the reason, NODE REMOVE, and the ask's."""
        now, app_id, path, key, resource = self.time_ns, self.application_id, self.path, self.key, self.resource
        if self.owner is not None:
            yield from usage(now, _REMOVE, self.owner, path, resource)
        yield Event(_APP, app_id, now, _REMOVE, self.detail, key, "", resource, path)
        if self.node_id:
            yield Event(_NODE, self.node_id, now, _REMOVE, _ON_NODE, key, "", resource)
        if self.cancels:
            yield Event(_APP, app_id, now, _REMOVE, _CANCEL, key, "", resource, path)


Record = Event | AskRun | AllocationRun | EndedRun
"""One event, or a run that stands for `count` of them."""


def usage(now: int, change: ChangeType, owner: Owner, path: str, resource: dict[str, int]) -> Iterator[Event]:
    """The events of a user, and of the group that counts, whose usage changes by `resource`."""
    user, group = owner
    yield Event(_USERGROUP, user, now, change, _USER_RESOURCE, path, "", resource)
    if group is not None:
        yield Event(_USERGROUP, group, now, change, _GROUP_RESOURCE, path, "", resource)


def expand(records: Iterable[Record]) -> Iterator[Event]:
    """The events that the records stand for, in order."""
    for record in records:
        if isinstance(record, Event):
            yield record
        else:
            yield from record.events()
