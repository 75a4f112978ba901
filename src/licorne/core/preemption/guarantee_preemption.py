"""Guarantee preemption: the conditions under which an ask whose queue is below its guarantee tries to preempt.

Source: docs/spec/preemption.md, section 2.

An ask of a queue with `preemption.within-queue: priority` tries it under the same conditions, whatever is guaranteed.

Preemption is tried when the scheduler is idle, that is when nothing more can be placed: so free room is used before
anything is evicted. An ask that has no claim (`licorne.core.preemption.claims`) may preempt when it is as old as its
leaf's `preemption.delay`. An ask for which no victims were found is tried again 15 seconds later at the earliest, and
only if an allocation, a node, a reservation or the configuration has changed.

Members of a gang that wait, placeholders or the asks of a gang without them, preempt together: for all of them nodes
and victims are found, or none of them evicts.

Searches are expensive and asks are many, so no ask is visited without a reason: the descent notes the applications in
which nothing could be placed (`Descent.unplaced`), and each leaf has one deadline, for the first of its asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS, TIME_MAX_NS
from licorne.core.constants import AWAITS_NODE
from licorne.core.queues.application import in_order
from licorne.core.queues.ask import total_amounts

from .eviction_plans import NO_SEARCH, EvictionPlans
from .planned_usage import can_preempt, user_room
from .retries import FailedSearch, LeafRetries

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .retries import LeafRetry

RETRY_NS = 15 * SECOND_NS
"""How long after a search without result an ask may try again."""
ATTEMPTS_MAX = 10
"""How many searches without result a leaf may make at one moment; its other asks then wait for `PAUSE_NS`."""
PAUSE_NS = SECOND_NS // 10
"""How long a leaf makes no search after `ATTEMPTS_MAX` of them had no result."""
GAVE_UP = -1
"""As `FailedSearch.generation`: the search found victims, but the ask gave up its claim. Real ones are not negative."""


class GuaranteePreemption:
    """Preemption for guarantees in one partition."""

    TRANSIENT = ("attempt",)  # a method of its plans

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self.retries: LeafRetries = LeafRetries(partition.timers)
        self.seen: dict[Application, int] = {}  # at its last review; asks with a larger `seq` are new
        self._ready: dict[Queue, None] = {}  # leaves to visit when the scheduler is idle
        self._failed: dict[Queue, None] = {}  # leaves with asks that can try again when something has changed
        self.has_retries: bool = False  # a leaf is to be visited, or will be when something has changed
        self._generation: int = 0  # of the node index, at the last visit
        self._skipped: dict[Application, None] = {}  # due, but not allowed to be tried at that time
        self._blocked_by_claims: dict[Queue, None] = {}  # leaves where claims leave no room to a user or group
        self.plans: EvictionPlans = EvictionPlans(partition)
        self.attempt: Callable[[list[Ask]], str] = self.plans.attempt  # a host that measures preemption may wrap it

    def configure(self, *, enabled: bool) -> None:
        """Start anew after a change of the configuration, with every ask untried; or stop, if `enabled` is false."""
        partition = self._partition
        self.retries.clear()
        self.seen.clear()
        self._ready.clear()
        self._failed.clear()
        self._skipped.clear()
        self._blocked_by_claims.clear()
        self.has_retries = False
        self.plans.forget()
        partition.descent.unplaced = {} if enabled else None
        partition.parking.may_preempt = enabled

    def quota_changed(self, leaf: Queue) -> None:
        """Look at all applications of a leaf anew, after an application's tags have changed its quota or guarantee."""
        partition = self._partition
        if partition.descent.unplaced is None:
            if not partition.config.preemption_enabled or not can_preempt(leaf):
                return
            partition.descent.unplaced = {}
        partition.wakeups.victims_changed()  # asks of other leaves that found none may find some now
        for app in leaf.apps.values():
            self.seen.pop(app, None)
            partition.descent.unplaced[app] = None

    # -- removal -----------------------------------------------------------------------------------------

    def forget(self, app: Application) -> None:
        """Forget an application that has left its queue."""
        self.seen.pop(app, None)
        self._skipped.pop(app, None)
        unplaced = self._partition.descent.unplaced
        if unplaced is not None:
            unplaced.pop(app, None)

    def queues_removed(self) -> None:
        """Forget queues that the cleaner has removed."""
        find = self._partition.tree.find
        for queue in self.retries.drop(lambda queue: find(queue.path) is not queue):
            self._ready.pop(queue, None)
            self._failed.pop(queue, None)
            self._blocked_by_claims.pop(queue, None)
        self.plans.forget()

    # -- when --------------------------------------------------------------------------------------------

    def on_idle(self) -> bool:
        """Try preemption for all asks that are due; called when nothing more can be placed.

        True if evictions may let other asks be placed or preempt, so that another pass is needed.
        """
        partition = self._partition
        if partition.descent.unplaced:
            self._review_unplaced()
        if self._failed and partition.index.generation != self._generation:
            self._something_changed()
        for leaf in self._blocked_by_claims:
            if self.retries.find(leaf) is not None:
                self._ready[leaf] = None
        self._blocked_by_claims.clear()
        if not self._ready:
            self.has_retries = bool(self._failed)
            return False
        self._generation = partition.index.generation
        for leaf in self._ready_in_order(partition.tree.root, self._above_ready()):
            self._visit(self.retries.of(leaf))
        self._ready.clear()
        self.has_retries = bool(self._failed or self._blocked_by_claims)
        return partition.wakeups.must_try_reserved()  # as after any eviction

    def due(self, retry: LeafRetry) -> None:
        """Note that the first ask of the leaf may try now; called by the leaf's timer."""
        retry.timer = None
        if self.retries.find(retry.leaf) is retry:
            self._ready[retry.leaf] = None
            self.has_retries = True

    def retry_after_giving_up(self, ask: Ask, tried_ns: int, why: str) -> None:
        """Let an ask that gave up its claim preempt again, from 15 seconds after its eviction (`tried_ns`) on."""
        leaf = ask.app.queue
        if self._partition.descent.unplaced is not None and may_ever_preempt(ask) and can_preempt(leaf):
            retry = self.retries.of(leaf)
            retry.failed_searches[ask] = FailedSearch(tried_ns, GAVE_UP, why)
            self._schedule(retry, max(ask.created + delay_ns(leaf), tried_ns + RETRY_NS))
            self.has_retries = True

    def _review_unplaced(self) -> None:
        partition = self._partition
        unplaced = list(partition.descent.unplaced or ())
        partition.descent.unplaced = {}
        for app in unplaced:
            leaf = app.queue
            if not leaf.is_leaf or not can_preempt(leaf):
                continue
            if app in self._skipped:
                del self._skipped[app]
                self._ready[leaf] = None
            seen = 0 if app.ask_reentered else self.seen.get(app, 0)
            app.ask_reentered = False
            retry = self.retries.find(leaf)
            scheduled = {} if retry is None else retry.failed_searches  # these try again when something has changed
            first: int | None = None
            self.seen[app] = partition.accounting.asks_seen
            # Asks stand in the order of their arrival, unless one was entered again: those that are new are the last ones.
            for ask in reversed(app.asks.values()):
                if ask.seq <= seen:
                    break
                if ask in scheduled:
                    continue
                if may_preempt(ask) or (app.atomic is not None and may_ever_preempt(ask)):
                    first = ask.created if first is None else min(first, ask.created)
                elif may_ever_preempt(ask):
                    self.look_again(ask)
            if first is not None:
                self._schedule(self.retries.of(leaf), first + delay_ns(leaf))

    def look_again(self, ask: Ask) -> None:
        """Count an ask as new at the next review.

        It waits for its placeholder or its gang now, and may wait for room later; or it repeats, and one of it is placed.
        """
        app = ask.app
        self.seen[app] = min(self.seen.get(app, 0), ask.seq - 1)

    def _something_changed(self) -> None:
        """Schedule the leaves with failed searches, 15 seconds after the earliest of these searches."""
        self._generation = self._partition.index.generation
        for leaf in self._failed:
            retry = self.retries.find(leaf)
            if retry is not None and retry.failed_searches:
                self._schedule(retry, min(check.at_ns for check in retry.failed_searches.values()) + RETRY_NS)
        self._failed.clear()

    def _schedule(self, retry: LeafRetry, due_ns: int) -> None:
        """Visit the leaf at this time, or earlier if an earlier visit is scheduled."""
        partition = self._partition
        if due_ns <= partition.now:
            self._ready[retry.leaf] = None
            return
        if retry.timer is None or due_ns < retry.due_ns:
            partition.timers.cancel(retry.timer)
            retry.due_ns = due_ns
            retry.timer = partition.timers.add(due_ns, "preemption", retry)

    def _above_ready(self) -> dict[Queue, None]:
        return {queue: None for leaf in self._ready for queue in leaf.lineage()}

    def _ready_in_order(self, queue: Queue, wanted: dict[Queue, None]) -> Iterator[Queue]:
        if queue.is_leaf:  # nobody comes to what is below one that a reload has made a leaf
            if queue in self._ready:
                yield queue
            return
        for child in queue.in_order(None):
            if child in wanted:
                yield from self._ready_in_order(child, wanted)

    def reason(self, ask: Ask) -> tuple[str, str, int | None] | None:
        """The state of preemption by this ask: state, detail, and time of the next try in ns (`explain.Preemption`).

        None if the ask may not preempt at all.
        """
        partition = self._partition
        leaf = ask.app.queue
        claim = partition.claims.by_ask.get(ask)
        if claim is not None:
            return "victims are going" if claim.going() else "victims have gone", claim.node.id, None
        if partition.descent.unplaced is None or not ask.allow_other or ask.required or ask.parked > AWAITS_NODE:
            return None
        if not can_preempt(leaf):
            return None
        retry = self.retries.find(leaf)
        check = None if retry is None else retry.failed_searches.get(ask)
        if check is not None:
            changed = check.generation != partition.index.generation
            state = "gave up" if check.generation == GAVE_UP else "attempted"
            return state, check.why, max(check.at_ns + RETRY_NS, partition.now) if changed else None
        due_ns = ask.created + delay_ns(leaf)
        return ("too young", "", due_ns) if due_ns > partition.now else ("not tried", "", None)

    # -- a leaf ------------------------------------------------------------------------------------------

    def _visit(self, retry: LeafRetry) -> None:
        """Try all asks of the leaf that are due, and schedule its next visit."""
        partition = self._partition
        now = partition.now
        leaf = retry.leaf
        if now < retry.pause_ns:
            self._schedule(retry, retry.pause_ns)
            return
        delay = delay_ns(leaf)
        failed_searches: dict[Ask, FailedSearch] = {}
        answers: dict[object, str] = {}  # equal asks have equal answers, so one search serves all of them
        attempts = ATTEMPTS_MAX
        later: list[int] = []
        for app in in_order([app for app in leaf.apps.values() if app.asks_pending]):
            allowed: bool | None = None
            for asks in self._together(app):
                ask = asks[0]
                due_ns = max(each.created for each in asks) + delay
                check = retry.failed_searches.get(ask)
                if check is not None:
                    failed_searches |= dict.fromkeys(asks, check)
                    if check.generation == partition.index.generation:
                        continue
                    due_ns = max(due_ns, check.at_ns + RETRY_NS)
                if due_ns > now:
                    later.append(due_ns)
                    continue
                if allowed is None:
                    allowed = self._may_be_tried(app)
                if not allowed:
                    self._skipped[app] = None
                    continue
                amounts = total_amounts(asks)
                if not user_room(app, amounts):
                    self._skipped[app] = None
                    # The application may sleep for want of a node alone, and is to hear of room there.
                    partition.parking.block_at(app, app.trackers)
                    continue
                if not partition.claims.fits_user(app, amounts):
                    self._blocked_by_claims[leaf] = None
                    continue
                # A gang has an answer of its own.
                key = app if len(asks) > 1 else (tuple(amounts.values()), ask.shape.need, ask.priority)
                why = answers.get(key)
                if why is None:
                    if attempts == 0:
                        retry.pause_ns = now + PAUSE_NS
                        later.append(retry.pause_ns)
                        continue
                    why = self.attempt(asks)
                    if not why:
                        for each in asks:
                            failed_searches.pop(each, None)
                        continue
                    answers[key] = why
                    attempts -= why not in NO_SEARCH
                failed_searches |= dict.fromkeys(asks, FailedSearch(now, partition.index.generation, why))
        retry.failed_searches = failed_searches
        if failed_searches:
            self._failed[leaf] = None
        if later:
            self._set_later(retry, min(later))

    def _together(self, app: Application) -> Iterator[list[Ask]]:
        """Yield the asks of the application that may preempt now, those that do so together in one list."""
        if app.atomic is not None:
            members = self._partition.atomic.may_preempt(app)
            if members and len({*members}) == len(members) and all(may_ever_preempt(ask) for ask in members):
                yield members
            else:
                for ask in app.asks.values():
                    self.look_again(ask)
            return
        placeholders: list[Ask] = []
        for ask in app.requests.in_order():
            if not may_preempt(ask):
                if may_ever_preempt(ask):
                    self.look_again(ask)
            elif ask.placeholder:
                placeholders.append(ask)
            else:
                yield [ask]
        if placeholders:
            yield placeholders

    def _set_later(self, retry: LeafRetry, due_ns: int) -> None:
        partition = self._partition
        partition.timers.cancel(retry.timer)
        retry.timer = None
        self._schedule(retry, max(due_ns, partition.now + 1))

    def _may_be_tried(self, app: Application) -> bool:
        partition = self._partition
        if not app.group_chosen:
            partition.limits.attach(app)
        return app.backoff_until <= partition.now and partition.lifecycle.may_be_tried(app)


def may_ever_preempt(ask: Ask) -> bool:
    """May the ask preempt at some time, by its own properties (section 2.2)?"""
    return bool(ask.allow_other) and not ask.triggered and not ask.required


def may_preempt(ask: Ask) -> bool:
    """May the ask preempt now, by its own properties? An ask that waits for something other than room may not."""
    return may_ever_preempt(ask) and ask.parked <= AWAITS_NODE


def delay_ns(leaf: Queue) -> int:
    """How old, in ns, an ask of this leaf must be before it may preempt."""
    return min(leaf.settings.preemption_delay_ns, TIME_MAX_NS)
