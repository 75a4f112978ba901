"""Puts into words why an ask waits; the reasons themselves are data, and the core's (`licorne.core.explain`).

Only what many asks have in common is said (the queue or user, and the kind of thing that is missing), so that equal
reasons can be counted. Amounts and numbers of nodes differ from ask to ask, and are left to whoever looks at one.
"""

from __future__ import annotations

from collections.abc import Iterable

from licorne.core import explain


def describe(reasons: Iterable[explain.Reason]) -> str:
    """All reasons of an ask in one line."""
    return "; ".join(dict.fromkeys(_describe(reason) for reason in reasons))


def _describe(reason: explain.Reason) -> str:
    match reason:
        case explain.QueueQuota():
            return f"max of queue {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.UserLimit():
            return f"limit of {reason.kind} {reason.name} at {reason.queue} reached ({', '.join(reason.missing)})"
        case explain.MaxApplications(kind="queue"):
            return f"queue {reason.queue} runs as many applications as it may"
        case explain.MaxApplications():
            return f"{reason.kind} {reason.name} runs as many applications at {reason.queue} as allowed"
        case explain.StateOrder():
            return f"another application of {reason.queue} starts first"
        case explain.Backoff():
            return "its application backs off after too many asks that fit no node"
        case explain.Nodes():
            return f"no node will do ({'; '.join(reason.failed)})" if reason.failed else "there is no node"
        case explain.RequiredNode():
            missing = f" ({', '.join(reason.missing)})" if reason.missing else ""
            return f"the node that it requires: {reason.state}{missing}"
        case explain.Reserved():
            return "waits for the node that is reserved for it"
        case explain.NotTried():
            return "not tried yet"
