"""Events: records of what happened, for the resource manager's event plugin, in the core's form and in both dialects.

The core's record has the enums of the 1.9 interface, whose records say more: where 1.9 has a kind of change and a
detail, the first interface has one text, `reason` (docs/spec/events.md, section 1). So the translation to 1.9 loses
nothing and the one to the first interface does. Events of users and groups, which do not exist there, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from licorne.si import first, v19
from licorne.si.v19 import ChangeDetail, ChangeType, EventType

MESSAGE_MAX = 1024
"""The most characters of a message; a longer one is cut and ends with three dots (docs/spec/events.md, section 1)."""

_FIRST_TYPES = {EventType[each.name]: each for each in first.EventType}


class Event(msgspec.Struct, gc=False):
    """Something that happened to `object_id` at `time_ns`.

    `reference_id` names the other object concerned (docs/spec/events.md, section 1). `group_id` serves the first
    interface: the application of a request, the queue of an application. `resource` may be shared with other objects
    and must not be changed.
    """

    count: ClassVar[int] = 1
    """The number of events that this record stands for; records of several are in `licorne.core.events.runs`."""
    type: EventType
    object_id: str
    time_ns: int
    change: ChangeType
    detail: ChangeDetail = ChangeDetail.DETAILS_NONE
    reference_id: str = ""
    message: str = ""
    resource: dict[str, int] | None = None
    group_id: str = ""


def cut(message: str) -> str:
    """Cut a message to `MESSAGE_MAX` characters."""
    return message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 3] + "..."


def v19_records(events: Iterable[Event]) -> list[v19.EventRecord]:
    """Translate events to the 1.9 interface."""
    return [
        v19.EventRecord(
            type=event.type,
            object_id=event.object_id,
            message=cut(event.message),
            timestamp_nano=event.time_ns,
            event_change_type=event.change,
            event_change_detail=event.detail,
            reference_id=event.reference_id,
            resource=None if event.resource is None else dict(event.resource),
        )
        for event in events
    ]


def first_records(events: Iterable[Event]) -> list[first.EventRecord]:
    """Translate events to the first interface, without those of users and groups.

    `reason` is the change and its detail by their names in 1.9 (`ADD APP_ALLOC`), or the change alone if there is no
    detail. An empty `message` is replaced by the id of the other object concerned, which has no field of its own.
    """
    return [
        first.EventRecord(
            type=_FIRST_TYPES[event.type],
            object_id=event.object_id,
            group_id=event.group_id,
            reason=_reason(event),
            message=cut(event.message or event.reference_id),
            timestamp_nano=event.time_ns,
        )
        for event in events
        if event.type in _FIRST_TYPES
    ]


def _reason(event: Event) -> str:
    if event.detail is ChangeDetail.DETAILS_NONE:
        return event.change.name
    return f"{event.change.name} {event.detail.name}"
