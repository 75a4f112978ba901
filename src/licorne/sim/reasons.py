"""Put into words why an ask waits; the reasons themselves are data from the core (`licorne.core.inspection.explain`).

The text has only what many asks have in common (the queue or user, and the resource types that are missing), so that equal
reasons can be counted. Amounts and numbers of nodes differ from ask to ask and are left out.

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
from licorne.core.partition import Partition

LOOKS_MAX = 1_000_000
"""Most nodes that are looked at for all reasons together."""
NOT_LOOKED_INTO = "not looked into: too many different asks wait"


def waiting(partition: Partition) -> Iterator[tuple[str, str]]:
    """Yield key and reason for each pending ask, in order of application and request."""
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
                    text = describe(explain.reasons(partition, app, ask))
                    known[alike] = text
            yield ask.key, text


def describe(reasons: Iterable[explain.Reason]) -> str:
    """Return all reasons of an ask in one line."""
    return "; ".join(dict.fromkeys(_describe(reason) for reason in reasons))


def _describe(reason: explain.Reason) -> str:
    match reason:
        case explain.QueueQuota():
            return f"max of queue {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.UserLimit():
            return f"limit of {reason.kind} {reason.name} at {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.Claimed():
            return f"what {reason.kind} {reason.name} may use is claimed by asks that have preempted ({', '.join(reason.missing)})"
        case explain.MaxApplications(kind="queue"):
            return f"queue {reason.queue} runs as many applications as it may"
        case explain.MaxApplications():
            return f"{reason.kind} {reason.name} runs as many applications at {reason.queue} as allowed"
        case explain.StateOrder():
            return f"another application of {reason.queue} starts first"
        case explain.Backoff():
            return "its application backs off after too many asks that fit no node"
        case explain.Nodes():
            return f"no node will do ({'; '.join(_short(reason.failed))})" if reason.failed else "there is no node"
        case explain.Preemption():
            return f"preemption: {reason.state}" + (f" ({reason.detail})" if reason.detail else "")
        case explain.RequiredNode():
            missing = f" ({', '.join(reason.missing)})" if reason.missing else ""
            return f"the node that it requires: {reason.state}{missing}"
        case explain.Reserved():
            return "waits for the node that is reserved for it"
        case explain.Placeholder():
            return "waits for a placeholder of its task group"
        case explain.Gang(ready=False):
            return "its gang is not complete"
        case explain.Gang():
            return "its gang waits to start as a whole"
        case explain.NotTried():
            return "not tried yet"


def _short(failed: Iterable[str]) -> list[str]:
    """Summarise why nodes failed: first all missing resource types as one entry, then the other reasons."""
    lack = "lack of "
    types = {name for why in failed if why.startswith(lack) for name in why.removeprefix(lack).split(", ")}
    others = sorted(why for why in failed if not why.startswith(lack))
    return [lack + " or ".join(sorted(types)), *others] if types else others
