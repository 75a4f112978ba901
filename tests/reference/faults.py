"""Faults to plant in the product: the comparison must notice each of them within some hundred scenarios.

The functions are replaced in the interpreted core, where also what is a C function otherwise can be. Run as a program,
`faults.py NAME`, this plants one fault, compares until something differs, and prints what it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from licorne.core.constants import UNLIMITED
from licorne.core.gangs import atomic, timeout
from licorne.core.gangs.atomic import AtomicGang, AtomicGangs
from licorne.core.gangs.placeholders import Gangs
from licorne.core.gangs.plans import short_of
from licorne.core.gangs.replacement import Replacement
from licorne.core.inputs import node_changes
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.nodes.node import ScorePolicy
from licorne.core.preemption import leaf_victims, quota_cut
from licorne.core.preemption.candidates import QueueBudget
from licorne.core.preemption.quota_start import QuotaChanges
from licorne.core.queues.ask import Ask, total_amounts
from licorne.core.queues.limits import Limits
from licorne.core.queues.queue import Queue
from licorne.core.queues.tree import Tree
from licorne.core.scheduling import deadlines
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.reservations import Reservations
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps
from reference.clusters import Scenario
from reference.contests import Contest

ENOUGH = 400
"""A fault that is not caught in so many scenarios is not caught."""


class Fault(NamedTuple):
    """A fault to plant: `broken` gets the sound function and returns the broken one. `kind` names the scenarios that show it."""

    where: Any
    name: str
    broken: Callable[[Any], Any]
    kind: type[Scenario] = Scenario


def _nothing(_sound: Any) -> Any:
    return lambda *_arguments: None


def _no_limit_at_middle_levels(_sound: Any) -> Any:
    def headroom(self: Any, app: Any) -> None:
        self.headroom_left.set_all(UNLIMITED)
        for queue in app.queue.lineage():
            self.headroom_left.lower_to_rest(queue.limit, queue.allocated)
        for tracker in app.trackers:
            if tracker.limit is not None and tracker.path in ("root", app.queue.path):
                self.headroom_left.lower_to_rest(tracker.limit, tracker.used)

    return headroom


def _fence_without_offset(sound: Any) -> Any:
    return lambda self: 0 if self.fence and sound(self) == self.offset else sound(self)


def _offset_of_before(sound: Any) -> Any:
    known: dict[str, int] = {}

    def _set_properties(self: Any, queue: Any, properties: dict[str, str]) -> None:
        sound(self, queue, properties)
        queue.offset = known.setdefault(f"{id(self)} {queue.path}", queue.offset)

    return _set_properties


def _share_of_before(sound: Any) -> Any:
    def _use(self: Any, app: Any, amounts: Any, more: bool) -> None:
        shares = {queue: queue.share for queue in app.queue.lineage()}
        sound(self, app, amounts, more)
        for queue, share in shares.items() if not more else ():
            queue.share = share

    return _use


def _queues_tie_by_name_alone(sound: Any) -> Any:
    def in_order(self: Any, rank_of: Any) -> list[Any]:
        found = sound(self, rank_of)
        return found if rank_of is None else sorted(found, key=lambda child: child.name)

    return in_order


def _youngest_of_equals_first(_sound: Any) -> Any:
    def before(self: Any, other: Any) -> bool:
        return (-self.priority, self.created, -self.seq) < (-other.priority, other.created, -other.seq)

    return before


def _nodes_tie_by_arrival(sound: Any) -> Any:
    def create(partition: Any, message: Any) -> bool:
        made: bool = sound(partition, message)
        for rank, node in enumerate(partition.nodes.values()):
            node.rank = rank
        partition.index.rebuild(partition.index.width)
        return made

    return create


def _score_without_others(sound: Any) -> Any:
    def score(self: Any, node: Any) -> float:
        free = node.free
        node.free = free.clone()
        node.free.plus(node.occupied)
        found: float = sound(self, node)
        node.free = free
        return found

    return score


def _no_other_groups(sound: Any) -> Any:
    def _matching_group(self: Any, app: Any) -> str | None:
        group: str | None = sound(self, app)
        return None if group == "*" else group

    return _matching_group


def _back_off_never_ends(sound: Any) -> Any:
    def due(partition: Any, kind: str, subject: object) -> None:
        if kind != "backoff":
            sound(partition, kind, subject)

    return due


def _slots_of_the_leaf_alone(_sound: Any) -> Any:
    def accept(_self: Any, app: Any) -> None:
        app.queue.accepted[app] = None

    return accept


def _two_places_for_one(sound: Any) -> Any:
    def _count_running(self: Any, app: Any, change: int) -> None:
        sound(self, app, change)
        if change < 0:
            sound(self, app, change)

    return _count_running


def _drained_nodes_reserved(sound: Any) -> Any:
    def mend_open(self: Any, node: Any) -> None:
        schedulable, node.schedulable = node.schedulable, True
        sound(self, node)
        node.schedulable = schedulable

    return mend_open


def _without_delay(sound: Any) -> Any:
    def start_after(self: Any, queue: Any, old: Any) -> Any:
        start = sound(self, queue, old)
        return start if start is None else min(start, self._partition.now + 1)

    return start_after


def _distances(queue: Any) -> dict[int, int]:
    """The amounts that the original counts, including those that a queue lacks of its guarantee."""
    most = quota_cut.used(queue)
    if not queue.guaranteed_config:
        return dict(enumerate(most))
    least = enumerate(queue.guaranteed.values())
    return {d: abs((most[d] if d < len(most) else 0) - amount) for d, amount in least if amount >= 0}


def _one_victim_more(sound: Any) -> Any:
    def choose(candidates: Any, *more: Any) -> Any:
        return [*(found := sound(candidates, *more)), *[a for a in candidates if a not in found][:1]]

    return choose


def _any_placeholder_will_do(_sound: Any) -> Any:
    def _place_for(self: Any, group: Any, ask: Any, own_node: bool) -> Any:
        for place in group.held[group.start :] if group.has_placeholder() else ():
            if not place.released and not place.preempted and (not own_node or self._may_stay(ask, place)):
                self.fits = True
                return place
        return None

    return _place_for


def _as_many_as_the_quota_holds(sound: Any) -> Any:
    def members(self: Any, app: Any) -> Any:
        found = sound(self, app)
        while found and len(found) > 1 and short_of(app, total_amounts(found)):
            found.pop()
        return found

    return members


def _short_of_one(sound: Any) -> Any:
    return lambda app, _total: sound(app, next(iter(app.asks.values())).shape.amounts)


def _gang_waits_for_no_quota(sound: Any) -> Any:
    def visit(self: Any, app: Any) -> int:
        done: int = sound(self, app)
        for queue in app.queue.lineage():
            queue.blocked.pop(app, None)
        return done

    return visit


def _no_guarantee(sound: Any) -> Any:
    def settle(self: Any, ask: Any) -> None:
        sound(self, ask)
        self.slack.set_all(UNLIMITED)

    return settle


FAULTS: dict[str, Fault] = {
    "a wake-up is skipped": Fault(Parking, "wake_blocked", lambda _: lambda _self, blocked: blocked.clear()),
    "a freed node wakes no application": Fault(WakeUps, "node_freed", _nothing),
    "a node that opens wakes no application": Fault(WakeUps, "node_opened", _nothing),
    "age wakes no application": Fault(Parking, "aged", _nothing),
    "a back-off never ends": Fault(deadlines, "due", _back_off_never_ends),
    "a reservation never ends": Fault(Reservations, "too_old", _nothing),
    "no limit at middle levels": Fault(Descent, "headroom", _no_limit_at_middle_levels),
    "no limit for other groups": Fault(Limits, "_matching_group", _no_other_groups),
    "a fence without its offset": Fault(Queue, "exported", _fence_without_offset),
    "offsets of before a reload": Fault(Tree, "_set_properties", _offset_of_before),
    "shares of before a release": Fault(Accounting, "_use", _share_of_before),
    "queues that tie go by name": Fault(Queue, "in_order", _queues_tie_by_name_alone),
    "a tie is kept when it has changed": Fault(Queue, "changed", _nothing),
    "asks that tie go backwards": Fault(Ask, "before", _youngest_of_equals_first),
    "nodes that tie go by arrival": Fault(node_changes, "_create", _nodes_tie_by_arrival),
    "scores without foreign allocations": Fault(ScorePolicy, "score", _score_without_others),
    "drained nodes are used": Fault(Reservations, "mend_open", _drained_nodes_reserved),
    "slots count at the leaf alone": Fault(Descent, "accept", _slots_of_the_leaf_alone),
    "an ended application leaves two slots": Fault(Lifecycle, "_count_running", _two_places_for_one),
    "a running application may be another": Fault(Lifecycle, "_leave_accepted", _nothing),
    "a lowered quota counts at once": Fault(QuotaChanges, "_start_after", _without_delay),
    "candidates that refuse go first": Fault(
        leaf_victims, "is_reluctant", lambda sound: lambda alloc: not sound(alloc)
    ),
    "a lowered quota breaks guarantees": Fault(quota_cut, "_spare", lambda _: lambda _queue: {}),
    "lacking amounts count as above": Fault(quota_cut, "_surplus", lambda _: _distances),
    "a lowered quota takes one victim too many": Fault(quota_cut, "choose", _one_victim_more),
    "a lowered quota takes victims that do not fit": Fault(
        leaf_victims.VictimGroup, "max_count", lambda _: lambda self, _rest: len(self.members)
    ),
    "forced usage starts no clock": Fault(QuotaChanges, "usage_forced", _nothing),
    "no timeout runs for placeholders": Fault(Gangs, "_start_clock", _nothing),
    "pending placeholders outlive their timeout": Fault(timeout, "_drop_pending", _nothing),
    "a replacement in flight is forgotten": Fault(Replacement, "_unlink", _nothing),
    "a release of a replacement in flight is ignored": Fault(Replacement, "withdraw", _nothing),
    "any placeholder will do": Fault(Replacement, "_place_for", _any_placeholder_will_do),
    "a quota splits a gang": Fault(AtomicGang, "members", _as_many_as_the_quota_holds),
    "a gang is within any quota": Fault(atomic, "short_of", lambda _: lambda _app, _total: []),
    "one member is within the quota": Fault(atomic, "short_of", _short_of_one),
    "a quota that frees wakes no gang": Fault(AtomicGangs, "visit", _gang_waits_for_no_quota),
    "victims' queues lose their guarantee": Fault(QueueBudget, "recompute", _no_guarantee, Contest),
    "what one node has too much is charged to the others": Fault(
        Tree, "bound_root", lambda _: lambda *_arguments: False
    ),
    "a state never ends": Fault(Lifecycle, "timer_due", _nothing),
}


if __name__ == "__main__":
    from reference.compare import DisagreementError, run
    from reference.situations import Situations

    chosen = FAULTS[sys.argv[1]]
    setattr(chosen.where, chosen.name, chosen.broken(getattr(chosen.where, chosen.name)))
    for seed in range(1, ENOUGH + 1):
        try:
            run(seed, Situations(), kind=chosen.kind)
        except DisagreementError as error:
            sys.stdout.write(f"caught after {seed} scenarios: {str(error).splitlines()[0]}")
            break
    else:
        sys.stdout.write("not caught")
