"""Preemption for asks whose queue is below its guarantee: when it is tried, and what then happens.

Source: docs/spec/preemption.md, section 2.

It is tried at rest: when nothing more can be placed. An ask that has no claim (`licorne.core.claims`) may preempt when it
is as old as its leaf's `preemption.delay`. One that found nothing is tried again 15 seconds later at the earliest, and only if an
allocation, a node, a reservation or the configuration has changed. Nobody is looked at without a reason: applications in
which nothing could be placed are noted (`Descent.hungry`), and each leaf has one deadline, for the first of its asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .application import in_order
from .constants import AWAITS_NODE
from .guarantees import Ledger, below_guarantee, user_room
from .hunt import Hunt
from .preemption import evict
from .states import SECOND_NS, TIME_MAX_NS, ApplicationState
from .watches import Check, Watches

if TYPE_CHECKING:
    from .application import Application
    from .asks import Ask
    from .herds import Candidate, Site
    from .partition import Partition
    from .queue import Queue
    from .watches import Watch

RETRY_NS = 15 * SECOND_NS
"""How long after a search without result an ask may try again."""
ATTEMPTS_MAX = 10
"""How many searches without result a leaf may make before the others have to wait."""
PAUSE_NS = SECOND_NS // 10
"""How long they wait."""
REFUSALS_MAX = 100
"""How many nodes the resource manager may refuse an ask (10 batches of 10 in the original)."""
HUNTS_MAX = 4
"""How many pictures of victims are kept (by leaf, priority, root of the search and types)."""

NOT_ENTITLED = "the queue is not below its guarantee by what is asked for"
ROOM_IS_COMING = "enough is free when the victims have gone that are going"
NO_VICTIMS = "no victims help"
GAVE_UP = -1
"""So many changes there never were: not a search without result, but one whose result was given up."""


class Guaranteed:
    """Guaranteed-quota preemption in one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.watches = Watches(partition.timers)
        self.seen: dict[Application, int] = {}  # the number of its newest ask that has been looked at
        self._ready: dict[Queue, None] = {}
        self._failed: dict[Queue, None] = {}  # with asks that can try again when something has changed
        self.watchful = False  # a leaf is to be visited, or will be when something has changed
        self._changes = 0
        self._skipped: dict[Application, None] = {}  # which were not to be tried when they were due
        self._crowded: dict[Queue, None] = {}  # where claims leave nothing to a user or group
        self._ledger: Ledger | None = None
        self._hunts: dict[object, Hunt] = {}
        self._pictured: tuple[object, ...] = ()
        self.searches = 0  # counted work
        self.attempt = self._attempt  # a host that measures puts itself in front of it

    def configure(self, *, enabled: bool) -> None:
        """The configuration is another: look at everything anew, or at nothing."""
        partition = self._partition
        self.watches.clear()
        self.seen.clear()
        self._ready.clear()
        self._failed.clear()
        self._skipped.clear()
        self._crowded.clear()
        self.watchful = False
        self._forget()
        partition.index.changes += 1
        partition.descent.hungry = {} if enabled else None
        partition.parking.may_preempt = enabled

    def quota_changed(self, leaf: Queue) -> None:
        """An application's tags have changed what this leaf may have, or is guaranteed: look at everybody there anew."""
        partition = self._partition
        if partition.descent.hungry is None:
            if not partition.config.preemption_enabled or not below_guarantee(leaf):
                return
            partition.descent.hungry = {}
        partition.index.changes += 1  # who found nothing elsewhere may find something now
        for app in leaf.apps.values():
            self.seen.pop(app, None)
            partition.descent.hungry[app] = None

    # -- what goes ---------------------------------------------------------------------------------------

    def forget(self, app: Application) -> None:
        """The application has nothing left."""
        self.seen.pop(app, None)
        self._skipped.pop(app, None)
        hungry = self._partition.descent.hungry
        if hungry is not None:
            hungry.pop(app, None)

    def queues_removed(self) -> None:
        """The cleaner has removed queues: nobody looks at them any more."""
        find = self._partition.tree.find
        for queue in self.watches.drop(lambda queue: find(queue.path) is not queue):
            self._ready.pop(queue, None)
            self._failed.pop(queue, None)
            self._crowded.pop(queue, None)
        self._forget()

    # -- when --------------------------------------------------------------------------------------------

    def at_rest(self) -> bool:
        """Nothing more can be placed: may somebody preempt? True if that may let others be placed, or preempt."""
        partition = self._partition
        if partition.descent.hungry:
            self._look_at_the_hungry()
        if self._failed and partition.index.changes != self._changes:
            self._something_changed()
        for leaf in self._crowded:
            if self.watches.find(leaf) is not None:
                self._ready[leaf] = None
        self._crowded.clear()
        if not self._ready:
            self.watchful = bool(self._failed)
            return False
        self._changes = partition.index.changes
        for leaf in self._ready_in_order(partition.tree.root, self._above_ready()):
            self._visit(self.watches.of(leaf))
        self._ready.clear()
        self.watchful = bool(self._failed or self._crowded)
        return partition.parking.reserved_stale and partition.parking.reservations > 0  # as after any eviction

    def due(self, watch: Watch) -> None:
        """The moment has come at which an ask of the leaf may try."""
        watch.timer = None
        if self.watches.find(watch.leaf) is watch:
            self._ready[watch.leaf] = None
            self.watchful = True

    def may_again(self, ask: Ask, tried_ns: int, why: str) -> None:
        """The ask, for which others were evicted then, has given up what it claimed: it may preempt again."""
        leaf = ask.app.queue
        if self._partition.descent.hungry is not None and may_ever_preempt(ask) and below_guarantee(leaf):
            watch = self.watches.of(leaf)
            watch.checks[ask] = Check(tried_ns, GAVE_UP, why)
            self._set(watch, max(ask.created + delay_ns(leaf), tried_ns + RETRY_NS))
            self.watchful = True

    def _look_at_the_hungry(self) -> None:
        partition = self._partition
        hungry = list(partition.descent.hungry or ())
        partition.descent.hungry = {}
        for app in hungry:
            leaf = app.queue
            if not leaf.is_leaf or not below_guarantee(leaf):
                continue
            if app in self._skipped:
                del self._skipped[app]
                self._ready[leaf] = None
            seen = self.seen.get(app, 0)
            first: int | None = None
            for ask in reversed(app.asks.values()):
                if ask.seq <= seen:
                    break
                if may_ever_preempt(ask):
                    first = ask.created if first is None else min(first, ask.created)
            self.seen[app] = partition.books.asks_seen
            if first is not None:
                self._set(self.watches.of(leaf), first + delay_ns(leaf))

    def _something_changed(self) -> None:
        """Who found nothing may find something now, 15 seconds after."""
        self._changes = self._partition.index.changes
        for leaf in self._failed:
            watch = self.watches.find(leaf)
            if watch is not None and watch.checks:
                self._set(watch, min(check.at_ns for check in watch.checks.values()) + RETRY_NS)
        self._failed.clear()

    def _set(self, watch: Watch, due_ns: int) -> None:
        """The leaf is to be visited then, if not before."""
        partition = self._partition
        if due_ns <= partition.now:
            self._ready[watch.leaf] = None
            return
        if watch.timer is None or due_ns < watch.due_ns:
            partition.timers.cancel(watch.timer)
            watch.due_ns = due_ns
            watch.timer = partition.timers.add(due_ns, "preemption", watch)

    def _above_ready(self) -> dict[Queue, None]:
        return {queue: None for leaf in self._ready for queue in leaf.lineage()}

    def _ready_in_order(self, queue: Queue, wanted: dict[Queue, None]) -> Iterator[Queue]:
        if queue in self._ready:
            yield queue
            return
        for child in queue.in_order(None):
            if child in wanted:
                yield from self._ready_in_order(child, wanted)

    def reason(self, ask: Ask) -> tuple[str, str, int | None] | None:
        """What there is to say about preemption by this ask (`explain.Preemption`); None: it is none that may preempt."""
        partition = self._partition
        leaf = ask.app.queue
        claim = partition.claims.of.get(ask)
        if claim is not None:
            return "victims are going" if claim.going() else "victims have gone", claim.node.id, None
        if partition.descent.hungry is None or not ask.allow_other or ask.required or ask.parked > AWAITS_NODE:
            return None
        if not below_guarantee(leaf):
            return None
        if ask.triggered:
            return "preempted once", "", None
        watch = self.watches.find(leaf)
        check = None if watch is None else watch.checks.get(ask)
        if check is not None:
            changed = check.changes != partition.index.changes
            state = "gave up" if check.changes == GAVE_UP else "attempted"
            return state, check.why, max(check.at_ns + RETRY_NS, partition.now) if changed else None
        due_ns = ask.created + delay_ns(leaf)
        return ("too young", "", due_ns) if due_ns > partition.now else ("not tried", "", None)

    # -- a leaf ------------------------------------------------------------------------------------------

    def _visit(self, watch: Watch) -> None:
        """Try all asks of the leaf that are due."""
        partition = self._partition
        now = partition.now
        leaf = watch.leaf
        if now < watch.pause_ns:
            self._set(watch, watch.pause_ns)
            return
        delay = delay_ns(leaf)
        checks: dict[Ask, Check] = {}
        answers: dict[object, str] = {}
        attempts = ATTEMPTS_MAX
        later: list[int] = []
        for app in in_order([app for app in leaf.apps.values() if app.asks_pending]):
            allowed: bool | None = None
            for ask in app.requests.in_order():
                if not may_preempt(ask):
                    continue
                due_ns = ask.created + delay
                check = watch.checks.get(ask)
                if check is not None:
                    checks[ask] = check
                    if check.changes == partition.index.changes:
                        continue
                    due_ns = max(due_ns, check.at_ns + RETRY_NS)
                if due_ns > now:
                    later.append(due_ns)
                    continue
                if allowed is None:
                    allowed = self._may_be_tried(app)
                if not allowed or not user_room(app, ask.shape.amounts):
                    self._skipped[app] = None
                    continue
                if not partition.claims.leave_user(app, ask.shape.amounts):
                    self._crowded[leaf] = None
                    continue
                key = (tuple(ask.shape.amounts.values()), ask.shape.need, ask.priority)
                why = answers.get(key)
                if why is None:
                    if attempts == 0:
                        watch.pause_ns = now + PAUSE_NS
                        later.append(watch.pause_ns)
                        continue
                    why = self.attempt(ask)
                    if not why:
                        checks.pop(ask, None)
                        continue
                    answers[key] = why
                    attempts -= why != NOT_ENTITLED
                checks[ask] = Check(now, partition.index.changes, why)
        watch.checks = checks
        if checks:
            self._failed[leaf] = None
        if later:
            self._set_later(watch, min(later))

    def _set_later(self, watch: Watch, due_ns: int) -> None:
        partition = self._partition
        partition.timers.cancel(watch.timer)
        watch.timer = None
        self._set(watch, max(due_ns, partition.now + 1))

    def _may_be_tried(self, app: Application) -> bool:
        partition = self._partition
        if not app.group_chosen:
            partition.limits.attach(app)
        return app.backoff_until <= partition.now and partition.lifecycle.may_be_tried(app)

    # -- an ask ------------------------------------------------------------------------------------------

    def _attempt(self, ask: Ask) -> str:
        """Preempt for the ask: why not, empty if victims go."""
        partition = self._partition
        leaf = ask.app.queue
        ledger = self._picture()
        missing = ledger.shortfall(ask, leaf)
        if missing is None:
            return NOT_ENTITLED
        self.searches += 1
        hunt = self._hunt(ledger, ask)
        refused: dict[Site, None] = {}
        while len(refused) < REFUSALS_MAX:
            found = hunt.find(ask, partition.now, refused)
            if found is None:
                return NO_VICTIMS
            site, chosen = found
            if not chosen and partition.predicate_holds(ask, site.node, False):
                return ROOM_IS_COMING
            if chosen and self._allowed(ask, site, chosen):
                self._execute(ask, site, chosen, missing)
                return ""
            refused[site] = None
        return NO_VICTIMS

    def _picture(self) -> Ledger:
        """The ledger, made anew if anything but this kind of preemption has happened since it was."""
        pictured = self._now_pictured()
        if self._ledger is None or self._pictured != pictured:
            self._forget()
            self._ledger = Ledger(self._partition.claims)
            self._pictured = pictured
        return self._ledger

    def _now_pictured(self) -> tuple[object, ...]:
        """What tells whether anything has happened: other kinds of preemption change nothing but what is preempting."""
        partition = self._partition
        return partition.index.changes, partition.claims.changes, tuple(partition.tree.root.preempting.values())

    def _forget(self) -> None:
        self._ledger = None
        self._hunts.clear()

    def _hunt(self, ledger: Ledger, ask: Ask) -> Hunt:
        top, seen = ledger.fence_root(ask)
        types = tuple(amount > 0 for amount in ask.shape.amounts.values())
        key = (ask.app.queue, ask.priority, top, types)
        hunt = self._hunts.pop(key, None)
        if hunt is None:
            if len(self._hunts) >= HUNTS_MAX:
                del self._hunts[next(iter(self._hunts))]
            hunt = Hunt(ledger, ask, top, seen, self._partition.index.ordered())
        self._hunts[key] = hunt
        return hunt

    def _allowed(self, ask: Ask, site: Site, chosen: list[Candidate]) -> bool:
        """What the resource manager says of the node (section 2.9)."""
        partition = self._partition
        on_node = [c.alloc for c in chosen if c.site is site]
        if on_node and partition.preemption_predicates is not None:
            return partition.preemption_predicates(ask.key, site.node.id, [a.key for a in on_node])
        return partition.predicate_holds(ask, site.node, False)

    def _execute(self, ask: Ask, site: Site, chosen: list[Candidate], missing: dict[int, int]) -> None:
        """The victims go, and the node is kept for the ask."""
        partition = self._partition
        leaf = ask.app.queue
        names = partition.types.names
        victims = [c.alloc for c in chosen]
        lacking = dict(sorted((names[d], amount) for d, amount in missing.items()))
        rule = (
            f"queue {leaf.path} is below its guarantee, and others are above theirs"
            " (docs/spec/preemption.md, section 2)"
        )
        records = evict(
            partition,
            ask,
            victims,
            "guaranteed",
            lacking,
            f"preempting allocations to free up resources to run ask: {ask.key}",
            rule,
        )
        for other in [a for a in site.node.reservations if a is not ask]:
            partition.reservations.cancel(other)  # it is old, and of lower priority (section 2.7)
            partition.parking.retry(other)
        if ask.reserved is not site.node:
            partition.reservations.reserve(ask, site.node)
        partition.claims.made(ask, victims, records)
        assert self._ledger is not None
        changed = self._ledger.trade(ask, victims)
        for hunt in self._hunts.values():
            hunt.traded(changed, victims, site.node)
        self._pictured = self._now_pictured()
        if (
            ask.app.state is ApplicationState.ACCEPTED
        ):  # it has a result, and so holds a slot (docs/spec/scheduling.md, section 10)
            partition.descent.accept(ask.app)


def may_ever_preempt(ask: Ask) -> bool:
    """Is it one that may preempt at all, some time (section 2.2)?"""
    return bool(ask.allow_other) and not ask.triggered and not ask.required


def may_preempt(ask: Ask) -> bool:
    """Is it one that may preempt now, as far as it alone is concerned? Who awaits something else than room does not."""
    return may_ever_preempt(ask) and ask.parked <= AWAITS_NODE


def delay_ns(leaf: Queue) -> int:
    """How old an ask of this leaf must be."""
    return min(leaf.settings.preemption_delay_ns, TIME_MAX_NS)
