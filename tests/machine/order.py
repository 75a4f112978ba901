"""Invariant 13, order within a queue: no ask is passed over that should have been placed first.

Checked where it can be without repeating the scheduler's work. When an ask is allocated in the regular pass, no ask
that comes before it may be pending that would have been just as possible: equal in resources and constraints, in the
same application, or in one of the same queue that is ahead, needs no slot to run and is under the same limits. Such an ask
would have fitted every limit, and the same node.
"""

from __future__ import annotations

from typing import Any

from machine.flights import waits
from machine.things import App, Ask
from machine.work import Usage


def passed_over(usage: Usage, app: App, ask: Ask, now: int) -> tuple[App, Ask] | None:
    """An ask that should have been allocated in the place of this one (which is pending still); None: there is none."""
    partition = usage.partition
    for other in app.asks.values():
        if other is not ask and _alike(other, ask) and _rank(other) < _rank(ask) and not waits(app, other):
            return app, other
    queue = partition.tree.find(app.queue)
    if queue.settings.sort_policy not in ("fifo", "fair"):
        return None
    for rival in usage.expected.apps.values():
        same_limits = (rival.user, rival.groups) == (app.user, app.groups)
        if rival is app or rival.queue != app.queue or not rival.asks or not same_limits:
            continue
        if rival.state == "Accepted" and (any(q.max_apps for q in queue.lineage()) or usage.limits(rival)):
            continue
        core = partition.applications[rival.id]
        if core.atomic is not None:
            continue  # a gang that has not started: its asks wait for each other, see `atomic.why_wait`
        if core.group != partition.applications[app.id].group or core.backoff_until > now or queue.settings.backoff:
            continue
        if _ahead(partition, rival, app, queue.settings, queue.guaranteed_resource() or {}):
            for other in rival.asks.values():
                if _alike(other, ask) and not waits(rival, other):
                    return rival, other
    return None


def _alike(other: Ask, ask: Ask) -> bool:
    return other.resource == ask.resource and other.constraint == ask.constraint and not other.required


def _rank(ask: Ask) -> tuple[int, int, int]:
    """Request order (docs/spec/scheduling.md, section 5.2)."""
    return -ask.priority, ask.created, ask.seq


def _ahead(partition: Any, rival: App, app: App, settings: Any, guaranteed: dict[str, int]) -> bool:
    """Tell whether the rival comes before the application (docs/spec/scheduling.md, section 5.1)."""
    ours, theirs = partition.applications[app.id], partition.applications[rival.id]
    by_priority = (-_top(rival), -_top(app))
    if settings.sort_policy == "fair":
        by_policy: tuple[Any, Any] = (_shares(rival, guaranteed), _shares(app, guaranteed))
    else:
        by_policy = (theirs.submitted, ours.submitted)
    both = [by_priority, by_policy] if settings.sort_by_priority else [by_policy, by_priority]
    both.append((theirs.seq, ours.seq))
    return [pair[0] for pair in both] < [pair[1] for pair in both]


def _top(app: App) -> int:
    return max(ask.priority for ask in app.asks.values())


def _shares(app: App, guaranteed: dict[str, int]) -> list[float]:
    """CompareShares of docs/spec/scheduling.md, section 1: largest first; an absent share is 0."""
    used = app.used()
    shares = [amount / guaranteed[name] if guaranteed.get(name) else amount for name, amount in used.items() if amount]
    return sorted((float(share) for share in shares), reverse=True)
