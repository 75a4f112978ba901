"""Log the resource usage of an application when it ends, for accounting and billing.

Source: docs/spec/events.md, section 6.

The line is the original's, to the letter. It is written only for applications that have started. The usage is summed by
`licorne.core.queues.usage_history`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.queues.usage_history import PastUsage
from licorne.host.log import Log

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.usage_history import Usage

LOGGER = "core.scheduler.application.usage"


def tell_usage(log: Log, partition: Partition, app: Application) -> None:
    """Log the usage of an application that is Completed or Failed, if it ever started."""
    if app.started_ns:
        log.info(summary(partition.owner, app), logger=LOGGER)


def summary(rm_id: str, app: Application) -> str:
    """Return the line; times are in milliseconds since 1970, usage is amount times seconds by instance type of the node."""
    past: PastUsage = app.past or PastUsage()
    fields = {
        "ApplicationID": _printable(app.id),
        "SubmissionTime": app.submitted // 1_000_000,
        "StartTime": app.started_ns // 1_000_000,
        "FinishTime": app.finished_ns // 1_000_000,
        "User": _printable(app.user),
        "Queue": app.queue.path,
        "State": app.state,
        "RmID": _printable(rm_id),
        "ResourceUsage": _text(past.used),
        "PreemptedResource": _text(past.preempted),
        "PlaceholderResource": _text(past.placeholders),
    }
    return f"YK_APP_SUMMARY: {{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}"


def _text(usage: Usage) -> str:
    items = [
        f"{_printable(kind)}:{_printable(name)}={number}"
        for kind, amounts in sorted(usage.items())
        for name, number in sorted(amounts.items())
    ]
    return f"TrackedResource{{{','.join(items)}}}"


def _printable(text: str) -> str:
    """Return the text if it is printable, else escaped, so that no resource manager can break the line."""
    return text if text.isprintable() else ascii(text)
