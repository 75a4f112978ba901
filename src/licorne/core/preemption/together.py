"""Applications whose allocations are evicted all together or not at all, as a native pod group may say of its pods.

The search for victims (`licorne.core.preemption.node_search`) counts an allocation of such an application as one. So what
it finds is completed here by the others of the application, and loses what is then not needed any more. A set with such an
application is compared with the best one without, and the better of both is taken (`licorne.core.preemption.ranking`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec

from .candidates import Candidate, enough
from .disruption_budgets import DisruptionBudget
from .ranking import VictimRank, rank_of
from .verdicts import passes_without

if TYPE_CHECKING:
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

    from .candidates import NodeCandidates, QueueBudget
    from .disruption_budgets import DisruptionBudgets
    from .node_search import NodeSearch

    Found = tuple[NodeCandidates, list[Candidate]]

TOGETHER_TAG = "eviction.together"
"""Tag of an application whose allocations are evicted together or not at all; the value "true"."""


def goes_together(app: Application) -> bool:
    """Return whether the allocations of the application are evicted together or not at all."""
    return app.tags.get(TOGETHER_TAG) == "true"


def may_be_evicted(app: Application, highest: int | None) -> bool:
    """Return whether no allocation of the application keeps the others; `highest`: none may have a higher priority.

    True for an application whose allocations do not go together.
    """
    if not goes_together(app):
        return True
    staying = [alloc for alloc in app.allocations.values() if not (alloc.preempted or alloc.released)]
    return all(alloc.may_go and (highest is None or alloc.priority <= highest) for alloc in staying)


def with_the_others(victims: Iterable[Ask]) -> list[Ask]:
    """Return the victims, and all that are evicted together with one of them."""
    found: dict[Ask, None] = {}
    for victim in victims:
        found[victim] = None
        if goes_together(victim.app):
            found |= dict.fromkeys(alloc for alloc in victim.app.allocations.values() if alloc.may_go)
    return list(found)


def broken_by_all(app: Application, budgets: DisruptionBudgets) -> tuple[DisruptionBudget, ...]:
    """Return a budget with nothing left, if all allocations of an application that go together break one; else none.

    It makes each of them a candidate that breaks a budget.
    """
    if not budgets.by_id or not goes_together(app):
        return ()
    going = [alloc for alloc in app.allocations.values() if alloc.may_go]
    return (DisruptionBudget(),) if budgets.refusing(going) else ()


def better(search: NodeSearch, ask: Ask, found: Found, without: Found | None) -> Found | None:
    """Return the better of two findings: `found` completed, and the one without applications that go together."""
    whole = _completed(search, ask, *found)
    if whole is None or without is None:
        return without if whole is None else (found[0], whole)
    if not without[1] or (_breaks_budgets(search, whole) and not _breaks_budgets(search, without[1])):
        return without
    ours: VictimRank = rank_of(whole, found[0].order)
    theirs: VictimRank = rank_of(without[1], without[0].order)
    return without if theirs.precedes(ours) else (found[0], whole)


def _completed(search: NodeSearch, ask: Ask, node: NodeCandidates, chosen: list[Candidate]) -> list[Candidate] | None:
    """Return a victim set with the others of its applications, without what is not needed.

    None if a guarantee forbids it, or the end of the others keeps the ask off the node.
    """
    parts: dict[object, list[Candidate]] = {}
    for c in chosen:
        app = c.alloc.app
        if not goes_together(app):
            parts[c] = [c]
        elif app not in parts:
            known = {one.alloc: one for one in c.leaf_group.members if one.alloc.app is app}
            parts[app] = [
                known.get(alloc) or _another(search, c, alloc) for alloc in app.allocations.values() if alloc.may_go
            ]
    for key in sorted(parts, key=lambda key: max(c.order for c in parts[key]), reverse=True):
        rest = [c for other, part in parts.items() if other is not key for c in part]
        if rest and _suffice(search, ask, node, rest):
            del parts[key]
    found = [c for part in parts.values() for c in part]
    return found if _keeps_guarantees(found) and _suffice(search, ask, node, found) else None


def _suffice(search: NodeSearch, ask: Ask, node: NodeCandidates, victims: list[Candidate]) -> bool:
    """Return whether the ask fits on the node, and within its quotas, when these have ended."""
    here, total, over = Vec(), Vec(), search.over_quota(ask.shape.amounts)
    for c in victims:
        total.plus(c.amounts)
        if c.node_group is node:
            here.plus(c.amounts)
    fits = enough(node.room, here, ask.shape.amounts) and over is not None and total.covers(over)
    return fits and passes_without(node.node, ask, [c.alloc for c in victims])


def _breaks_budgets(search: NodeSearch, victims: list[Candidate]) -> bool:
    budgets: DisruptionBudgets = search.disruption_budgets
    return bool(budgets.refusing([c.alloc for c in victims]))


def _another(search: NodeSearch, c: Candidate, alloc: Ask) -> Candidate:
    """Return an allocation that goes with a candidate, and is none itself: it uses nothing that is wanted."""
    leaf_group, budgets = c.leaf_group, search.disruption_budgets.of(alloc)
    return Candidate(alloc, leaf_group, search.by_node[alloc.node], leaf_group.priority_of(alloc), budgets)


def _keeps_guarantees(victims: list[Candidate]) -> bool:
    taken: dict[QueueBudget, Vec] = {}
    for c in victims:
        for budget in c.leaf_group.budgets:
            total: Vec = taken.setdefault(budget, Vec())
            total.plus(c.amounts)
    return all(budget.allows(total) for budget, total in taken.items())
