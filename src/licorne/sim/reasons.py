"""Why asks wait, for many asks: reasons from the core (`licorne.core.inspection.explain`) as summaries that can be counted.

Explaining one ask takes a look at every node. For a hundred thousand waiting asks and ten thousand nodes that would be far
more work than all decisions were. So asks that must have the same reasons (equal shape, queue, user and state of the
application) are explained once, and when even those are too many, the remaining asks are counted as not looked into.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from licorne.core.constants import AWAITS_PLACEHOLDER
from licorne.core.inspection import explain
from licorne.core.inspection.sentences import summary
from licorne.core.partition import Partition
from licorne.core.queues.ask import Ask

LOOKS_MAX = 1_000_000
"""Most nodes that are looked at for all reasons together."""
NOT_LOOKED_INTO = "not looked into: too many different asks wait"


def waiting(partition: Partition) -> Iterator[tuple[Ask, str]]:
    """Yield each pending ask with its reason, in order of application and request."""
    known: dict[tuple[Any, ...], str] = {}
    looks = 0
    for app in sorted(partition.applications.values(), key=attrgetter("seq")):
        for ask in app.requests.in_order():
            alike = (
                ask.shape,
                ask.required,
                ask.reserved,
                app.queue,
                app.user,
                tuple(app.groups),
                app.state,
                app.backoff_until,
                ask.parked == AWAITS_PLACEHOLDER and ask.task_group,
            )
            text = known.get(alike)
            if text is None:
                if looks > LOOKS_MAX:
                    text = NOT_LOOKED_INTO
                else:
                    looks += len(partition.nodes)
                    found = explain.reasons(partition, app, ask)
                    text = describe(found)
                    known[alike] = text
            yield ask, text


def describe(reasons: Iterable[explain.Reason]) -> str:
    """Return all reasons of an ask in one line."""
    return "; ".join(dict.fromkeys(summary(reason) for reason in reasons))
