"""A resource manager that listens to events, and the received events as short lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.bench import Bench
from licorne import ResourceManagerCallback
from licorne.si import first, v19


class Listener(ResourceManagerCallback):
    def __init__(self) -> None:
        self.batches: list[list[v19.EventRecord | first.EventRecord]] = []

    def send_event(self, events: Sequence[v19.EventRecord] | Sequence[first.EventRecord]) -> None:
        self.batches.append(list(events))

    @property
    def records(self) -> list[v19.EventRecord | first.EventRecord]:
        return [record for batch in self.batches for record in batch]


def listening(
    text: str, *, first_interface: bool = False, settings: Mapping[str, str] | None = None
) -> tuple[Bench, Listener]:
    """A bench whose resource manager has received the events of its queues already."""
    bench = Bench(text, first_interface=first_interface, settings=settings)
    listener = Listener()
    bench.register(listener)
    bench.run(after=2)
    listener.batches.clear()
    return bench, listener


def heard(bench: Bench, listener: Listener, *, users: bool = False) -> list[str]:
    """The events since the last call, after the two seconds until a batch is sent; with `users`, those of users too."""
    bench.run(after=2)
    lines = [line(record) for record in listener.records]
    listener.batches.clear()
    return [text for text in lines if users or not text.startswith("USERGROUP")]


def line(record: v19.EventRecord | first.EventRecord) -> str:
    """A record: `TYPE object CHANGE DETAIL reference {resource} message`, without what is empty."""
    if isinstance(record, first.EventRecord):
        parts = [record.type.name, record.object_id, record.group_id, record.reason, record.message]
    else:
        change = f"{record.event_change_type.name} {record.event_change_detail.name}".removesuffix(" DETAILS_NONE")
        resource = "" if record.resource is None else str(record.resource).replace("'", "")
        parts = [record.type.name, record.object_id, change, record.reference_id, resource, record.message]
    return " ".join(part for part in parts if part)
