"""Lost wake-ups to plant in the product: the comparison must notice each of them within two thousand scenarios.

The functions are replaced in the interpreted core, where also what is a C function otherwise can be. Run as a program,
`faults.py NAME [SEED]`, this plants one fault, compares from that seed on until something differs, and prints what it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from licorne.core.asks import NO_NODE
from licorne.core.parking import Parking
from licorne.core.replacement import Replacement
from licorne.core.requests import AskBlock, Requests
from licorne.core.sleepers import Sleepers

ENOUGH = 2000
"""A fault that is not caught in so many scenarios is not caught."""


class Fault(NamedTuple):
    """What is broken, and how: `broken` gets the sound function and gives the other one.

    `first` is a seed from which on it is caught soon: the test is about that it is, and is to be short.
    `validated`: if not, decisions alone must show it, without `validate`, which would be first to notice.
    """

    where: Any
    name: str
    broken: Callable[[Any], Any]
    first: int = 1
    validated: bool = False


def _nothing(_sound: Any) -> Any:
    return lambda *_arguments: None


def _only_what_is_new_to_the_application(_sound: Any) -> Any:
    """The minima of an application may hold what waited once, and those of the partition were made anew without it."""

    def park(self: Any, ask: Any) -> None:
        if ask.app.place < 0:
            self.waiting[ask.app] = None
        known = ask.app.requests.waiting.reach(ask.shape.amounts)
        ask.app.requests.park(ask, NO_NODE)
        if not known:
            self.least.add(ask.shape.amounts)
        self._await_age(ask)

    return park


def _the_tree_puts_to_sleep_unseen(sound: Any) -> Any:
    def tree_changed(self: Any, root: Any, apps: Any) -> None:
        known = dict(self.waiting)
        sound(self, root, apps)
        self.waiting = known

    return tree_changed


def _blocked_are_forgotten(_sound: Any) -> Any:
    return lambda _self, blocked: blocked.clear()


def _refused_are_forgotten(_sound: Any) -> Any:
    return lambda self: self.refused.clear()


def _a_gang_hears_of_no_node(sound: Any) -> Any:
    def settle(self: Any) -> None:
        gangs, self.gangs = self.gangs, {}
        sound(self)
        self.gangs = gangs

    return settle


def _stuck_replacements_stay(sound: Any) -> Any:
    def run(self: Any, limit: int) -> int:
        self.parking.stirred = False
        made: int = sound(self, limit)
        return made

    return run


def _strays_are_not_compared(sound: Any) -> Any:
    def dismiss(self: Any) -> None:
        strays, self.candidates.strays = self.candidates.strays, {}
        sound(self)
        self.candidates.strays = strays

    return dismiss


def _a_block_forgets_who_waits(sound: Any) -> Any:
    def recount(self: Any) -> None:
        sound(self)
        self.waiting.clear()

    return recount


def _last_block_only(_sound: Any) -> Any:
    def _gather(self: Any) -> None:
        self.waiting.clear()
        self.waiting.add_all(self.blocks[-1].waiting)

    return _gather


FAULTS: dict[str, Fault] = {
    "the partition hears of few asks": Fault(Parking, "park", _only_what_is_new_to_the_application, first=60),
    "a reload puts to sleep unseen": Fault(Sleepers, "tree_changed", _the_tree_puts_to_sleep_unseen, validated=True),
    "quotas and limits wake nobody": Fault(Sleepers, "wake_blocked", _blocked_are_forgotten),
    "a node wakes nobody who requires it": Fault(Parking, "_wake_required", _nothing),
    "age wakes nobody": Fault(Parking, "aged", _nothing),
    "a predicate is asked once": Fault(Parking, "retry_refused", _refused_are_forgotten),
    "what fitted no node never does": Fault(Parking, "_fits", _nothing),
    "what failed is never revived": Fault(Parking, "_revive_fitting", _nothing),
    "candidates wake nobody": Fault(Parking, "_rouse_waiting", _nothing),
    "candidates go unseen": Fault(Parking, "dismiss", lambda _: lambda self: self.candidates.clear()),
    "who cannot be tried keeps its candidates": Fault(Parking, "surrender", _nothing),
    "strays are not compared": Fault(Parking, "dismiss", _strays_are_not_compared),
    "gangs hear of no node": Fault(Parking, "settle", _a_gang_hears_of_no_node),
    "replacements stay stuck": Fault(Replacement, "run", _stuck_replacements_stay),
    "a block forgets who waits": Fault(AskBlock, "recount", _a_block_forgets_who_waits),
    "an application forgets who waits": Fault(Requests, "_gather", _last_block_only),
}


if __name__ == "__main__":
    from parking.compare import run
    from parking.situations import Situations
    from reference.compare import DisagreementError

    chosen = FAULTS[sys.argv[1]]
    first = int(sys.argv[2]) if len(sys.argv) > 2 else chosen.first
    setattr(chosen.where, chosen.name, chosen.broken(getattr(chosen.where, chosen.name)))
    for seed in range(first, first + ENOUGH):
        try:
            run(seed, Situations(), validated=chosen.validated)
        except DisagreementError as error:
            sys.stdout.write(f"caught after {seed - first + 1} scenarios: {str(error).splitlines()[0]}")
            break
    else:
        sys.stdout.write("not caught")
