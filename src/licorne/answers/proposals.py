"""The smallest changes with which an ask would run, each proved by a trial.

A search begins without any change, and adds what may be done about each reason that is left at the end of a trial, until the
ask is placed. So it finds every reason, also those that show only when others are gone, and what other asks take first.
Then it looks for less: each part is left out, and each number lowered, as long as the ask is still placed. One search is
made for each kind of change that may be preferred. Where thousands of asks come before it, no change lets all of these
run. So where no number of nodes, or of allocations that end, is enough, a search begins with a node for the ask alone, or
with the highest priority of all.

Nodes are many, so of each kind of change only the nearest node is a candidate: the one that needs the fewest allocations to
end, the first that has room and takes the ask after one change, the smallest to have one more of. Another one helps no
sooner, unless asks of others are in the way. What a bound or the budget (`licorne.answers.budget`) has cut is told in
`Proposals.untried`, and is never called the smallest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import combinations, islice
from math import comb, gcd
from typing import Final

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
    Priority,
    Running,
    Schedulable,
    all_merged,
    amounts,
    text,
    with_amounts,
)
from licorne.answers.repairs import SIZE_MAX, Order, above_all, is_alone, openings, other_queues, own_node, running
from licorne.answers.trials import Home, Outcome, Trials
from licorne.core.base.states import SECOND_NS
from licorne.core.queues.ask import Ask
from licorne.state.copies import on_a_copy

ROUNDS_MAX: Final = 12
"""How often a search adds changes. Amounts at least double each time, and nodes and allocations that end become eight times as many."""
SMALLER_MAX: Final = 60
"""How many smaller sets of allocations are tried at most, before one is called the smallest."""
EACH_MAX: Final = 8
"""Up to this number, all lower ones are tried, and a higher one is not called the smallest."""
GROW: Final[Order] = ("grow", "open", "end", "ask")
OPEN: Final[Order] = ("open", "grow", "end", "ask")
END: Final[Order] = ("end", "grow", "open", "ask")
"""Which repairs three of the searches prefer: a larger configuration or cluster, nodes that take the ask, allocations that end."""


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

    `by_itself`: it is placed without any change, after `after_s` seconds, on `node`. `trials`: how many were made.
    `complete`: no search was cut short by the budget or the time. `untried`: what a bound or the budget has left out, in words.
    """

    by_itself: bool = False
    node: str = ""
    after_s: float = 0.0
    found: tuple[Proposal, ...] = ()
    trials: int = 0
    complete: bool = True
    untried: tuple[str, ...] = ()


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
        self.partition = home.partition(wanted.partition)
        allocations = [each for app in self.partition.applications.values() for each in app.allocations.values()]
        self.running = sorted(map(running, allocations)) if len(allocations) <= SMALLER_MAX else None
        self.trials = Trials(home, wanted)
        self.more = more
        self.budget = Budget(self.partition, effort)
        self.known: dict[tuple[bytes, Order], Outcome] = {}
        self.made = 1
        self.enough: tuple[Change, ...] | None = None  # what is known to do, while less is looked for
        self.found: dict[str, Proposal] = {}
        self.untried: dict[str, None] = {}
        self.complete = True

    @cached_property
    def divisors(self) -> dict[str, int]:
        """For each type of resource the greatest common divisor of what asks and allocations of the partition want of it."""
        divisors: dict[str, int] = {}
        apps = self.partition.applications.values()
        each = (ask.shape for app in apps for items in (app.asks, app.allocations) for ask in items.values())
        for shape in {id(shape): shape for shape in each}.values():
            for name, amount in shape.resource.items():
                divisors[name] = gcd(amount, divisors.get(name, 0))
        return divisors

    def run(self) -> Proposals:
        first, ask = self.trials.first, self.trials.ask
        if first.placed:
            return Proposals(True, first.node, first.after_ns / SECOND_NS, trials=1)
        if ask is not None:
            self._search_all(ask)
        found = sorted(
            self.found.values(), key=lambda each: (len(each.changes), sum(map(_size, each.changes)), each.text)
        )
        return Proposals(found=tuple(found), trials=self.made, complete=self.complete, untried=tuple(self.untried))

    def _search_all(self, ask: Ask) -> None:
        """Make all searches; those that need few trials come first."""
        partition, present = self.partition, self.trials.present
        highest = above_all(partition, ask)
        self._search("changes the ask", ("ask",))
        self._search("moves the ask to another queue", (), other_queues(partition, ask))
        self._search("raises the priority", (), highest)
        if not self._search("adds nodes or raises the configuration", GROW):
            self._search("adds a node for the ask alone", GROW, own_node(partition, present, ask))
        opened = (
            islice(openings(partition, present, ask), 1) if is_alone(ask) else None
        )  # else others may need another node
        self._search("lets nodes take the ask", OPEN, opened)
        reserved = len(partition.reservations) > (ask.reserved is not None)  # what others reserve, no priority opens
        if not self._search("ends allocations", END) and not reserved:
            self._search("ends allocations, with a higher priority", END, highest)

    def _search(self, what: str, order: Order, begins: Iterable[Change] | None = None) -> bool:
        """Search for changes that suffice, note the smallest as a proposal, and return whether there are any.

        `what` says in words what the search does, `order` which repairs it prefers. It begins with the first of `begins` that
        leads to a proposal, or, where there are none, without any change.
        """
        before, self.enough = self.made, None
        self.budget.share()
        try:
            for begin in [()] if begins is None else ((change,) for change in begins):
                self.enough = self._sufficient(what, begin, order)
                if self.enough is not None:
                    self._smallest(self.enough)
                    break
        except WorkSpentError:
            if self.enough is not None:  # less may do, but this does
                self._found(self.enough, smallest=False)
            self.complete = False
            self.untried[f"the search that {what} was cut short after {counted(self.made - before, 'trial')}"] = None
        return self.enough is not None

    def _found(self, changes: tuple[Change, ...], *, smallest: bool) -> None:
        """Note changes that have been tried as a proposal, unless they are one already."""
        outcome = self._try(changes)
        words = " and ".join(map(text, changes))
        self.found.setdefault(words, Proposal(changes, words, outcome.node, outcome.after_ns / SECOND_NS, smallest))

    def _try(self, changes: tuple[Change, ...], order: Order = ()) -> Outcome:
        """Return what becomes of the ask with these changes. `order`: with repairs, of each reason the first kind of these."""
        if not changes:
            return Outcome(repairs=self.trials.repairs(order))
        name = msgspec.json.encode(changes)
        outcome = self.known.get((name, ()))
        if outcome is not None and order and not outcome.placed and not outcome.refused:
            outcome = self.known.get((name, order))
        if outcome is not None:
            return outcome
        if not self.more():
            raise WorkSpentError
        work_max = self.budget.work_max(suggest=bool(order))
        outcome = self.trials.run(changes, order, work_max=work_max)
        self.budget.spend(outcome.work, suggest=bool(order))
        if outcome.cut:
            raise WorkSpentError
        self.made += 1
        self.known[name, ()] = self.known[name, order] = outcome
        return outcome

    # -- enough --------------------------------------------------------------------------------------------------

    def _sufficient(self, what: str, begin: tuple[Change, ...], order: Order) -> tuple[Change, ...] | None:
        """Return changes with which the ask is placed; None if none are known."""
        changes, outcome = begin, self._try(begin, order)
        for _ in range(ROUNDS_MAX):
            if outcome.placed:
                return changes
            exact = all_merged(changes, outcome.repairs)
            larger = all_merged(changes, outcome.repairs, doubled=True)
            if larger == changes:
                return None
            if any(_size(change) > SIZE_MAX for change in larger):
                self.untried[f"more than {SIZE_MAX} new nodes, or ends of allocations"] = None
                return None
            changes, outcome = larger, self._try(larger, order)
            if outcome.refused:  # such as a limit that would be higher than the max of its queue
                changes, outcome = exact, self._try(exact, order)
        if outcome.placed:
            return changes
        self.untried[f"what the search that {what} would change after {ROUNDS_MAX} trials"] = None
        return None

    # -- no more than enough -------------------------------------------------------------------------------------

    def _works(self, changes: tuple[Change, ...]) -> bool:
        """Return whether the ask is placed with changes that are less than those which are known to do."""
        placed = self._try(changes).placed
        if placed:
            self.enough = changes
        return placed

    def _smallest(self, changes: tuple[Change, ...]) -> None:
        """Note the least changes with which the ask is placed as a proposal."""
        before: tuple[Change, ...] = ()
        smallest = True
        while changes != before:  # what is lowered in one place may leave room to lower another
            before, smallest = changes, True
            changes = self._needed(changes)
            for index in range(len(changes)):
                less, proved = self._less(changes, index)
                smallest = smallest and proved
                changes = (*changes[:index], less, *changes[index + 1 :])
        if sum(isinstance(change, NoTaint | Schedulable) for change in changes) > 1:
            smallest = False  # fewer other nodes might do, and sets of them are not tried
        self._found(changes, smallest=smallest)

    def _needed(self, enough: tuple[Change, ...]) -> tuple[Change, ...]:
        """Return changes none of which can be left out."""
        for index in reversed(range(len(enough))):
            fewer = (*enough[:index], *enough[index + 1 :])
            if fewer and self._works(fewer):
                return self._needed(fewer)
        return enough

    def _less(self, changes: tuple[Change, ...], index: int) -> tuple[Change, bool]:
        """Return the least of one change with which the ask is placed, and whether that is proved."""

        def works(change: Change) -> bool:
            return self._works((*changes[:index], change, *changes[index + 1 :]))

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
        divisor of what asks want, and each multiple is tried, where there are no more than `EACH_MAX`. Last it is lowered by
        single units.
        """

        def with_amount(amount: int) -> Counted:
            return with_amounts(change, {**amounts(change), name: amount})

        def suffices(amount: int) -> bool:
            lower = with_amount(amount)
            return bool(amounts(lower)) and works(lower)

        most = amounts(change)[name]
        if suffices(0):
            return with_amount(0), True
        step = 1 if isinstance(change, MoreMembers | FewerMembers) else self.divisors.get(name) or 1
        steps = -(-most // step)
        if steps > EACH_MAX and not suffices(most - 1):
            return change, False
        kept, proved = _least(steps, lambda number: suffices(most - (steps - number) * step))
        amount = most - (steps - kept) * step
        if amount > 1 and suffices(amount - 1):
            floor = max(0, amount - step)
            amount = floor + _least(amount - floor, lambda number: suffices(floor + number))[0]
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

    def _lowest(self, change: Priority, works: Callable[[Change], bool]) -> tuple[Priority, bool]:
        """Return the lowest priority that helps, and whether one less does not. It is compared with those of others alone."""
        apps = self.partition.applications.values()
        present = {each.priority for app in apps for items in (app.asks, app.allocations) for each in items.values()}
        steps = sorted({p for other in present for p in (other, other + 1) if change.before < p < change.priority})
        lower = (replace(change, priority=priority) for priority in steps)
        least = next((each for each in lower if works(each)), change)
        one_less = least.priority - 1
        return least, one_less == change.before or not works(replace(change, priority=one_less))


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


def _size(change: Change) -> int:
    match change:
        case End():
            return len(change.allocations)
        case MoreNodes():
            return change.count
        case _:
            return 1
