"""What happened, as a record for the resource manager's event plugin: the core's own, and the two dialects' forms.

The core's record speaks the enums of 1.9, whose records say more than those of the first interface, which has one text,
`reason`, where 1.9 has a kind of change and a detail (docs/spec/events.md, section 1). So one way loses nothing and the
other does; what the first interface has no word for at all, users and groups, is left out there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from licorne.si import first, v19
from licorne.si.v19 import ChangeDetail, ChangeType, EventType

MESSAGE_MAX = 1024
"""Characters of a message; a longer one is cut, and ends with three dots (docs/spec/events.md, section 1)."""

_FIRST_TYPES = {
    EventType.REQUEST: first.EventType.REQUEST,
    EventType.APP: first.EventType.APP,
    EventType.NODE: first.EventType.NODE,
    EventType.QUEUE: first.EventType.QUEUE,
}


class Event(msgspec.Struct, gc=False):
    """Something that happened to `object_id` at `time_ns`.

    `reference_id` is the other side of it (docs/spec/events.md, section 1). `group_id` is of the first interface: the
    application of a request, the queue of an application. `resource` is shared with others and must not be changed.
    """

    count: ClassVar[int] = 1
    """As of the records that stand for several events (`licorne.core.events.runs`)."""
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
    """The message, no longer than `MESSAGE_MAX`."""
    return message if len(message) <= MESSAGE_MAX else message[: MESSAGE_MAX - 3] + "..."


def v19_records(events: Iterable[Event]) -> list[v19.EventRecord]:
    """The events in the 1.9 interface."""
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
    """The events in the first interface, without those of users and groups.

    `reason` is the change and its detail by their names in 1.9 (`ADD APP_ALLOC`), a change without a detail alone.
    `message` names the other side of the event where it says nothing else: there is no field for that.
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
