"""The smallest changes with which an ask would run, each proved by a trial.

The search begins without any change, and adds what may be done about the reasons that are left at the end of each trial,
until the ask is placed. So it finds every reason, also those that show only when others are gone, and what other asks
take first. Then it looks for less: each part is left out, and each number lowered, as long as the ask is still placed.
Where thousands of asks come before it, no change lets all of these run. So where no number of nodes, or of allocations that
end, is enough, a node for the ask alone is looked for, or ends with the highest priority of all.

Nodes are many, so of each kind of change only the nearest node is a candidate: the one that needs the fewest allocations to
end, the first that has room and takes the ask after one change, the smallest to have one more of. Another one helps no
sooner, unless asks of others are in the way. What a bound or the budget (`licorne.answers.budget`) has cut is told in
`Proposals.untried`, and is never called the smallest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import comb, gcd
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from licorne._wording import counted
from licorne.answers.asks import Wanted
from licorne.answers.budget import Budget, WorkSpentError
from licorne.answers.changes import (
    Change,
    Counted,
    End,
    FewerMembers,
    MaxApplications,
    MoreMembers,
    MoreNodes,
    NoTaint,
    OtherQueue,
    Priority,
    Running,
    Schedulable,
    amounts,
    text,
    with_amounts,
)
from licorne.answers.copies import on_a_copy
from licorne.answers.repairs import (
    ENDED_MAX,
    Suggest,
    above_all,
    alternatives,
    is_alone,
    nodes_to_free,
    openings,
    own_node,
)
from licorne.answers.searches import (
    NODES_MAX,
    OTHERWISE_SHARE,
    SEARCHES,
    ChangeSearch,
    all_merged,
    ended_in,
    next_changes,
    rooms,
    with_more_nodes,
)
from licorne.answers.trials import RUNNING_MAX, Home, Outcome, Trials
from licorne.core.base.states import SECOND_NS
from licorne.core.inspection import explain

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask, Shape

ROUNDS_MAX: Final = 24
"""How often a search adds changes."""
EXACT_ROUNDS: Final = 6
"""For so many rounds what is missing is added; then amounts double."""
SMALLER_MAX: Final = RUNNING_MAX
"""How many smaller sets of allocations are tried at most, before one is called the smallest."""
EACH_MAX: Final = 8
"""Up to this number, all lower ones are tried, and a higher one is not called the smallest."""


class Proposal(msgspec.Struct, frozen=True):
    """Changes with which the ask is placed, as a trial has shown.

    `text`: the changes in words. `node`: where the ask was placed, `after_s` seconds after the changes. `smallest`: trials
    have shown that no part can be left out, that no lower number does (each was tried, of amounts each step, see `_lower`),
    and that no fewer allocations or opened nodes do. Otherwise the changes are enough, and perhaps less would do.
    """

    changes: tuple[Change, ...]
    text: str
    node: str
    after_s: float
    smallest: bool


class Proposals(msgspec.Struct, frozen=True):
    """What would let an ask run.

    `by_itself`: it is placed without any change, after `after_s` seconds, on `node`. `reasons`: all that stand in its way,
    also those that show only when others are gone. `trials`: how many were made. `complete`: no search was cut short by the
    budget or the time. `untried`: what a bound or the budget has left out, in words.
    """

    by_itself: bool = False
    node: str = ""
    after_s: float = 0.0
    reasons: tuple[explain.Reason, ...] = ()
    found: tuple[Proposal, ...] = ()
    trials: int = 0
    complete: bool = True
    untried: tuple[str, ...] = ()


_NOT_PLACED: Final = Outcome()


class _OutOfTimeError(Exception):
    """No more trials may be made."""


def propose(home: Home, wanted: Wanted, *, more: Callable[[], bool] = lambda: True, effort: float = 1.0) -> Proposals:
    """Return the smallest changes with which the ask would run.

    `more`: asked before each trial whether to go on. `effort`: the budget, as a multiple of `WORK_MAX`.

    Raises:
        CopyError: a trial could not be made.
    """
    asking = os.getpid()

    def wanted_still() -> bool:
        return more() and os.getppid() == asking  # where the process that asked has ended, nobody waits for the answer

    return on_a_copy(lambda: _Search(home, wanted, wanted_still, effort).run(), Proposals)


class _Search:
    def __init__(self, home: Home, wanted: Wanted, more: Callable[[], bool], effort: float) -> None:
        self.trials = Trials(home, wanted)
        self.more = more
        self.known: dict[bytes, Outcome] = {}
        self.suggested: dict[tuple[bytes, Suggest], Outcome] = {}  # of those, the trials with repairs
        self.untried: dict[str, None] = {}
        self.opened: set[str] = set()  # nodes of the changes that were tried
        self.freed: set[str] = set()
        self.reasons: dict[str, explain.Reason] = {}
        self.openable = False  # a node takes the ask, or another one before it, after a change of the node
        self.complete = True
        self.enough: tuple[Change, ...] | None = None  # what is known to do, while less is looked for
        self.partition = home.partition(wanted.partition)
        self.budget = Budget(self.partition, effort)
        self.wanted = wanted
        self.running = self.trials.running

    @cached_property
    def least_wanted(self) -> dict[str, int]:
        """For each type of resource the least that any pending ask of the partition wants of it, in base units."""
        least: dict[str, int] = {}
        for shape in _distinct_shapes(app.asks for app in self.partition.applications.values()):
            for name, amount in shape.resource.items():
                if amount > 0:
                    least[name] = min(amount, least.get(name, amount))
        return least

    @cached_property
    def divisors(self) -> dict[str, int]:
        """For each type of resource the greatest common divisor of what asks and allocations of the partition want of it."""
        divisors: dict[str, int] = {}
        applications = self.partition.applications.values()
        for shape in _distinct_shapes(items for app in applications for items in (app.asks, app.allocations)):
            for name, amount in shape.resource.items():
                if amount > 0:
                    divisors[name] = gcd(amount, divisors.get(name, 0))
        return divisors

    def run(self) -> Proposals:
        found: list[Proposal] = []
        try:
            first = self.trials.first
            if first.placed:
                return Proposals(True, first.node, first.after_ns / SECOND_NS, trials=1)
            self._note(first)
            self._search_all(first, found)
        except _OutOfTimeError:
            self.complete = False
        self._note_nodes(first)
        found.sort(key=lambda proposal: (len(proposal.changes), sum(map(_size, proposal.changes)), proposal.text))
        return Proposals(
            reasons=tuple(self.reasons.values()),
            found=tuple(found),
            trials=1 + len(self.known),
            complete=self.complete,
            untried=tuple(self.untried),
        )

    def _search_all(self, first: Outcome, found: list[Proposal]) -> None:
        """Make all searches, each with its share of what is left of the budget."""
        weights = sum(search.weight for search in SEARCHES) + OTHERWISE_SHARE

        def share(weight: int) -> None:
            nonlocal weights
            self.budget.share(weight, weights)
            weights -= weight

        proposed = False
        for search in SEARCHES:
            share(search.weight)
            if search.order[0] == "open" and not self.openable:
                continue  # it is the one that adds nodes
            if not (proposed and (search.own or search.first)):
                proposed = self._search(first, search, found)
            if search.order[0] == "ask":
                share(OTHERWISE_SHARE)
                self._search_otherwise(found)

    def _search(self, first: Outcome, search: ChangeSearch, found: list[Proposal]) -> bool:
        """Add the proposal of a search, if it has one that is new; return whether it has one."""
        proposal: Proposal | None = None
        before = len(self.known)
        try:
            self.enough = self._sufficient(first, search)
            if self.enough is not None:
                proposal = self._smallest(self.enough)
        except (WorkSpentError, _OutOfTimeError) as error:
            if self.enough is not None:  # less may do, but this does
                proposal = self._proposal(self.enough, smallest=False)
            self.complete = False
            number = len(self.known) - before
            self.untried[f"the search that {search} was cut short after {counted(number, 'trial')}"] = None
            if isinstance(error, _OutOfTimeError):
                raise
        finally:
            self.enough = None
            if proposal is not None and all(proposal.text != other.text for other in found):
                found.append(proposal)
        return proposal is not None

    def _search_otherwise(self, found: list[Proposal]) -> None:
        """Add the proposals that regard no reason."""
        try:
            for proposal in self._otherwise():
                found.append(proposal)  # noqa: PERF402  one that was found before the cut stays
        except WorkSpentError:
            self.complete = False
            self.untried["the search for another queue or priority was cut short"] = None

    def _note_nodes(self, first: Outcome) -> None:
        """Tell how many nodes were no candidates, of the kinds of change where there was a choice of nodes."""
        ask = self._ask()
        if ask is None or ask.app.atomic is not None:
            return
        if not any(isinstance(reason, explain.Nodes | explain.ClusterFull) for reason in first.reasons):
            return
        opened = {change.node for change in openings(self.partition, self.trials.present, ask)}
        freed = set(nodes_to_free(self.partition, self.trials.present, ask))
        for nodes, what in (
            (opened - self.opened, "that could take the ask after one change"),
            (freed - self.freed, "on which allocations could end"),
        ):
            if nodes:
                number = "one further node" if len(nodes) == 1 else f"{len(nodes):,} further nodes"
                self.untried[f"{number} {what}"] = None

    def _note_changes(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            match change:
                case NoTaint() | Schedulable():
                    self.opened.add(change.node)
                case End():
                    self.freed.update(each.node for each in change.allocations)

    def _ask(self) -> Ask | None:
        app = self.partition.applications.get(self.wanted.application)
        return None if app is None else app.asks.get(self.wanted.key)

    def _try(self, changes: tuple[Change, ...], suggest: Suggest | None = None) -> Outcome:
        """Return what becomes of the ask with these changes. `suggest`: with these repairs."""
        name = msgspec.json.encode(changes)
        outcome = self.known.get(name)
        if outcome is not None and suggest is not None and not outcome.placed and not outcome.refused:
            outcome = self.suggested.get((name, suggest))
        if outcome is not None:
            return outcome
        if suggest is None and self.trials.cannot_do(changes):
            return _NOT_PLACED
        if not self.more():
            raise _OutOfTimeError
        looks = suggest is not None
        outcome = self.trials.run(list(changes), suggest, work_max=self.budget.work_max(suggest=looks))
        self.budget.spend(outcome.work, suggest=looks, refused=bool(outcome.refused))
        if outcome.cut:
            raise WorkSpentError
        self.known[name] = outcome
        self._note_changes(changes)
        if suggest is not None:
            self.suggested[name, suggest] = outcome
        self._note(outcome)
        return outcome

    def _note(self, outcome: Outcome) -> None:
        self.openable = self.openable or any(each.open is not None for each in outcome.repairs)
        for reason in outcome.reasons:
            self.reasons.setdefault(_what(reason), reason)

    # -- enough --------------------------------------------------------------------------------------------------

    def _sufficient(self, first: Outcome, search: ChangeSearch) -> tuple[Change, ...] | None:
        """Return changes with which the ask is placed; None if none are known."""
        changes = self._begin(search)
        if changes is None:
            return None
        outcome = self._try(tuple(changes), Suggest(search.suggested)) if changes else first
        if outcome.placed:
            return None  # that is proposed already
        for number in range(ROUNDS_MAX):
            before = changes
            new = [self._own(change) if search.own else change for change in next_changes(outcome, search.order)]
            exact = all_merged(changes, new, doubled=False)
            changes = all_merged(changes, new, doubled=True) if number >= EXACT_ROUNDS else exact
            changes = [with_more_nodes(change) for change in changes]
            if changes == before or self._is_beyond(changes, ended_in(before)):
                return None
            suggest = Suggest(search.suggested, rooms(changes))
            outcome = self._try(tuple(changes), suggest)
            if outcome.refused:  # such as a limit that would be higher than the max of its queue
                changes = exact
                outcome = self._try(tuple(changes), suggest)
            if outcome.placed:
                return tuple(changes)
        return None

    def _begin(self, search: ChangeSearch) -> list[Change] | None:
        """Return the changes with which a search begins; None if it is of no use for this ask."""
        if not search.own and not search.first:
            return []
        ask = self._ask()
        if ask is None or not is_alone(ask.app, ask):
            return None
        if search.own:
            return []
        highest = above_all(self.partition, ask.app, ask)
        others = len(self.partition.reservations) - (ask.reserved is not None)
        if highest is not None and others > 0:
            come = "asks that reserve nodes come" if others > 1 else "ask that reserves a node comes"
            self.untried[f"a higher priority beside other changes, as {others:,} {come} first"] = None
            return None
        return None if highest is None else [highest]

    def _own(self, change: Change) -> Change:
        """Return a change in which a node that is added is for the ask alone."""
        ask = self._ask()
        return (
            own_node(change, ask) if ask is not None and isinstance(change, MoreNodes) and not change.name else change
        )

    def _is_beyond(self, changes: list[Change], ended: int) -> bool:
        """Return whether changes are larger than any that is tried, and tell so. `ended`: as many ends were tried last."""
        for change in changes:
            if isinstance(change, MoreNodes) and change.count > NODES_MAX:
                what = f"like {change.like}" if change.like else "of the size of the ask"
                self.untried[f"more than {NODES_MAX} nodes {what}"] = None
                return True
            if isinstance(change, End) and len(change.allocations) > ENDED_MAX:
                self.untried[f"the end of more than {counted(ended, 'allocation')}"] = None
                return True
        return False

    def _otherwise(self) -> Iterator[Proposal]:
        """Yield the first other queue that helps, and the lowest priority that does."""
        ask = self._ask()
        if ask is None:
            return
        moved = False
        for change in alternatives(self.partition, ask.app, ask):
            if isinstance(change, OtherQueue) and moved:
                continue
            if self._try((change,)).placed:
                moved = True
                least, smallest = change, True
                if isinstance(change, Priority):
                    least, smallest = self._lowest(change, lambda lower: self._try((lower,)).placed)
                outcome = self._try((least,))
                yield Proposal((least,), text(least), outcome.node, outcome.after_ns / SECOND_NS, smallest)

    def _lowest(self, change: Priority, works: Callable[[Change], bool]) -> tuple[Priority, bool]:
        """Return the lowest priority that helps, and whether one less does not. It is compared with those of others alone."""
        present = {
            each.priority
            for app in self.partition.applications.values()
            for items in (app.asks, app.allocations)
            for each in items.values()
        }
        steps = sorted({p for other in present for p in (other, other + 1) if change.before < p <= change.priority})

        def suffices(priority: int) -> bool:
            return works(replace(change, priority=priority))

        least, proved = _least(len(steps), lambda number: suffices(steps[number - 1]))
        found = steps[least - 1]
        proved = proved and (found == change.before + 1 or not suffices(found - 1))
        return replace(change, priority=found), proved

    # -- no more than enough -------------------------------------------------------------------------------------

    def _smallest(self, enough: tuple[Change, ...]) -> Proposal:
        changes: tuple[Change, ...] = self._needed(enough)
        before: tuple[Change, ...] = ()
        smallest = True
        while changes != before:  # what is lowered in one place may leave room to lower another
            before, smallest = changes, True
            for index in range(len(changes)):
                less, proved = self._less(changes, index)
                smallest = smallest and proved
                changes = (*changes[:index], less, *changes[index + 1 :])
                self.enough = changes
            self.enough = changes = self._needed(changes)
            if len(changes) == 1 and not (isinstance(changes[0], Counted) and len(amounts(changes[0])) > 1):
                break  # there is no other place
        if sum(isinstance(change, NoTaint | Schedulable) for change in changes) > 1:
            smallest = False  # fewer other nodes might do, and sets of them are not tried
        return self._proposal(changes, smallest=smallest)

    def _proposal(self, changes: tuple[Change, ...], *, smallest: bool) -> Proposal:
        """Return changes that have been tried as a proposal."""
        outcome = self._try(changes)
        words = " and ".join(map(text, changes))
        return Proposal(changes, words, outcome.node, outcome.after_ns / SECOND_NS, smallest)

    def _needed(self, enough: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return changes none of which can be left out."""
        for index in reversed(range(len(enough))):
            fewer = (*enough[:index], *enough[index + 1 :])
            if fewer and self._try(fewer).placed:
                return self._needed(fewer)
        return enough

    def _less(self, changes: tuple[Change, ...], index: int) -> tuple[Change, bool]:
        """Return the least of one change with which the ask is placed, and whether that is proved."""

        def works(change: Change) -> bool:
            tried = (*changes[:index], change, *changes[index + 1 :])
            placed = self._try(tried).placed
            if placed:
                self.enough = tried
            return placed

        change = changes[index]
        match change:
            case MoreNodes() if change.name:
                return change, False  # its capacity may have been raised for others
            case MoreNodes():
                count, proved = _least(change.count, lambda n: works(replace(change, count=n)))
                return replace(change, count=count), proved
            case MaxApplications():
                more, proved = _least(change.more, lambda n: works(replace(change, more=n)))
                return replace(change, more=more), proved
            case _ if isinstance(change, Counted):
                proved = True
                for name in amounts(change):
                    change, all_tried = self._lower(change, name, works)
                    proved = proved and all_tried
                return change, proved
            case End():
                return self._fewer(change, works)
            case Priority():
                return self._lowest(change, works)
            case _:
                return change, True

    def _lower(self, change: Counted, name: str, works: Callable[[Change], bool]) -> tuple[Counted, bool]:
        """Return the change with the least amount of a type of resource, or of members of a group, and whether that is proved.

        The least amount that works is a sum of what some asks want, less what is free. A larger amount may work no longer,
        where another ask that comes first then takes the room. So the amount is lowered by steps of the greatest common
        divisor of what asks want, and each multiple is tried, where there are no more than `EACH_MAX`. More are lowered by
        steps of the least that any ask wants first. Last it is lowered by single units.
        """

        def with_amount(amount: int) -> Counted:
            return with_amounts(
                change, {key: value for key, value in {**amounts(change), name: amount}.items() if value}
            )

        def suffices(amount: int) -> bool:
            lower = with_amount(amount)
            return bool(amounts(lower)) and works(lower)

        def lowered(amount: int, unit: int) -> int:
            steps = -(-amount // unit)
            kept, _ = _least(steps, lambda step: suffices(amount - (steps - step) * unit))
            return amount - (steps - kept) * unit

        amount = amounts(change)[name]
        if suffices(0):
            return with_amount(0), True
        counted_members = isinstance(change, MoreMembers | FewerMembers)
        step = 1 if counted_members else self.divisors.get(name, 1)
        unit = 1 if counted_members else self.least_wanted.get(name, 1)
        if amount > EACH_MAX * step:
            amount = lowered(amount, unit)
        proved = amount <= EACH_MAX * step
        if proved:
            unit = step
            amount = lowered(amount, unit)
        if amount > 1 and suffices(amount - 1):
            floor = max(0, amount - unit)
            amount = floor + _least(amount - floor, lambda n: suffices(floor + n))[0]
        return with_amount(amount), proved

    def _fewer(self, change: End, works: Callable[[Change], bool]) -> tuple[Change, bool]:
        """Return the fewest allocations whose end suffices, and whether no fewer do, whichever they are."""
        chosen = list(change.allocations)
        if len(chosen) > EACH_MAX:
            chosen = chosen[: _halved(len(chosen), lambda number: works(_end(chosen[:number])))]
        for each in list(chosen):
            fewer = [other for other in chosen if other != each]
            if fewer and works(_end(fewer)):
                chosen = fewer
        for size in range(1, len(chosen)):
            if self.running is None or comb(len(self.running), size) > SMALLER_MAX:
                return _end(chosen), False
            for some in combinations(self.running, size):
                if works(_end(some)):
                    return _end(some), True
        return _end(chosen), True


def _end(allocations: Sequence[Running]) -> End:
    return End(tuple(sorted(allocations)))


def _least(most: int, works: Callable[[int], bool]) -> tuple[int, bool]:
    """Return the least number from 1 to `most` that works, `most` itself being known to, and whether that is proved.

    Up to `EACH_MAX` are tried one by one from below. More than that are halved first, until no more are left; where that many
    do not work, numbers below were not all tried.
    """
    if most > EACH_MAX:
        most = _halved(most, works)
    if most > EACH_MAX:
        return most, False
    return next((number for number in range(1, most) if works(number)), most), True


def _halved(most: int, works: Callable[[int], bool]) -> int:
    """Return the least number from 1 to `most` that works, as if more never did harm."""
    low = 0
    while most - low > 1:
        middle = (low + most) // 2
        if works(middle):
            most = middle
        else:
            low = middle
    return most


def _what(reason: explain.Reason) -> str:
    """Return what a reason is about, without its amounts, which differ from trial to trial."""
    fields = msgspec.to_builtins(reason)
    named = {
        name: fields[name]
        for name in ("type", "queue", "kind", "name", "node", "task_group", "state")
        if name in fields
    }
    return msgspec.json.encode(named).decode()


def _size(change: Change) -> int:
    match change:
        case End():
            return len(change.allocations)
        case MoreNodes():
            return change.count
        case _:
            return 1


def _distinct_shapes(of: Iterable[Mapping[str, Ask]]) -> Iterable[Shape]:
    """Return the shapes (what is wanted, and of which nodes) of all asks and allocations in these maps, each shape once."""
    return {id(ask.shape): ask.shape for asks in of for ask in asks.values()}.values()


__all__ = ["Proposal", "Proposals", "propose"]
