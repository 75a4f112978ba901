"""Records of events that come by the thousand, kept together and as short as they can be until somebody reads them.

New asks, new allocations and ended allocations are told by two to five events each. Making all of these costs more than
what they tell of, and most of them are never read. So what is kept is a *run*: what the events are made of. It holds
nothing that may change: keys, amounts that are shared with messages, and the scheduler's own answers.
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
"""Asks or allocations of one run."""

Owner = tuple[str, str | None]
"""Whose usage an application's allocations are: its user, and the group that counts for it."""


class AskRun(msgspec.Struct, gc=False):
    """New asks of applications in the queues `paths`."""

    count: int
    time_ns: int
    application_ids: list[str]
    paths: list[str]
    keys: list[str]
    resources: list[dict[str, int]]

    def events(self) -> Iterator[Event]:
        """APP ADD APP_REQUEST for each."""
        now = self.time_ns
        for app_id, path, key, resource in zip(
            self.application_ids, self.paths, self.keys, self.resources, strict=True
        ):
            yield Event(_APP, app_id, now, _ADD, _ASK, key, "", resource, path)


class AllocationRun(msgspec.Struct, gc=False):
    """New allocations; `owners` by application. `on_node` is False if their nodes keep what they have."""

    count: int
    time_ns: int
    outputs: list[NewAllocation]
    owners: dict[str, Owner]
    on_node: bool

    def events(self) -> Iterator[Event]:
        """NODE ADD NODE_ALLOC, USERGROUP ADD for the user and the group, APP ADD APP_ALLOC."""
        now = self.time_ns
        for output in self.outputs:
            key, app_id, path, resource = output.key, output.application_id, output.queue, output.resource
            if self.on_node:
                yield Event(_NODE, output.node_id, now, _ADD, _ON_NODE, key, "", resource)
            yield from usage(now, _ADD, self.owners[app_id], path, resource)
            yield Event(_APP, app_id, now, _ADD, _ON_APP, key, "", resource, path)


class EndedRun(msgspec.Struct, gc=False):
    """An allocation that has ended. `node_id` is empty if the node keeps what it has; `cancels`: its ask is gone too.

    `owner` is None if what the user and the group use less is told elsewhere.
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
        """USERGROUP REMOVE for the user and the group, APP REMOVE with the reason, NODE and APP REMOVE."""
        now, app_id, path, key, resource = self.time_ns, self.application_id, self.path, self.key, self.resource
        if self.owner is not None:
            yield from usage(now, _REMOVE, self.owner, path, resource)
        yield Event(_APP, app_id, now, _REMOVE, self.detail, key, "", resource, path)
        if self.node_id:
            yield Event(_NODE, self.node_id, now, _REMOVE, _ON_NODE, key, "", resource)
        if self.cancels:
            yield Event(_APP, app_id, now, _REMOVE, _CANCEL, key, "", resource, path)


Record = Event | AskRun | AllocationRun | EndedRun
"""What is kept of one event or of several; `count` says of how many."""


def usage(now: int, change: ChangeType, owner: Owner, path: str, resource: dict[str, int]) -> Iterator[Event]:
    """The usage of a user, and of the group that counts, goes up or down."""
    user, group = owner
    yield Event(_USERGROUP, user, now, change, _USER_RESOURCE, path, "", resource)
    if group is not None:
        yield Event(_USERGROUP, group, now, change, _GROUP_RESOURCE, path, "", resource)


def expand(records: Iterable[Record]) -> Iterator[Event]:
    """The events of records, in order."""
    for record in records:
        if isinstance(record, Event):
            yield record
        else:
            yield from record.events()
