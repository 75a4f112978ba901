"""Lost wake-ups to plant in the product: the comparison must notice each of them within two thousand scenarios.

The functions are replaced in the interpreted core, where also what is a C function otherwise can be. Run as a program,
`faults.py NAME SEED`, this plants one fault, compares from that seed on until something differs, and prints what it was.
`validate` is not called, which would be first to notice many of them: the decisions must show them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from licorne.core.constants import NO_NODE
from licorne.core.nodes.domains import DomainCheck
from licorne.core.queues.requests import AskBlock
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps

ENOUGH = 2000
"""A fault that is not caught in so many scenarios is not caught."""


class Fault(NamedTuple):
    """A fault to plant in a function: `broken` gets the sound function and returns the broken one."""

    where: Any
    name: str
    broken: Callable[[Any], Any]


def _nothing(_sound: Any) -> Any:
    return lambda *_arguments: None


def _only_what_is_new_to_the_application(_sound: Any) -> Any:
    """The minima of an application may hold what waited once, and those of the partition were made anew without it."""

    def park(self: Any, ask: Any) -> None:
        if ask.app.heap_index < 0:
            self.waiting[ask.app] = None
        known = ask.app.requests.waiting_minima.any_within(ask.shape.amounts)
        ask.app.requests.park(ask, NO_NODE)
        if not known:
            self.waiting_minima.add(ask.shape.amounts)
        self._await_age(ask)

    return park


def _blocked_are_forgotten(_sound: Any) -> Any:
    return lambda _self, blocked: blocked.clear()


def _a_gang_hears_of_no_node(sound: Any) -> Any:
    def apply(self: Any) -> None:
        gangs, self.parking.gangs = self.parking.gangs, {}
        sound(self)
        self.parking.gangs = gangs

    return apply


def _a_block_forgets_who_waits(sound: Any) -> Any:
    def recount(self: Any) -> None:
        sound(self)
        self.waiting_minima.clear()

    return recount


def _a_minimum_that_rises_eases_nothing(sound: Any) -> Any:
    def renew(self: Any) -> None:
        before = [*self.eased]
        sound(self)
        for need in [one for one in self.eased if one not in before]:
            del self.eased[need]

    return renew


EVENTS = (
    "node_freed",
    "node_opened",
    "room_returned",
    "slot_freed",
    "may_run",
    "quota_changed",
    "configuration_changed",
    "ask_pending",
    "reservation_made",
    "reservation_gone",
    "reservation_lost",
    "gang_may_fit",
    "members_freed",
    "backoff_over",
    "aged",
    "predicates_may_differ",
)
"""The events of `WakeUps` that are dropped one by one."""

CAUGHT_ELSEWHERE = {
    "gang_changed": "gangs_atomic/test_whole.py::test_a_released_ask_makes_the_gang_wait_again",
    "claims_changed": "preemption/test_claims.py::test_a_withheld_ask_is_placed_when_the_claiming_ask_has_ended",
    "room_taken": "parking/test_found.py::test_a_scenario_in_which_room_was_taken_beside_a_domain_that_is_to_open",
    "victim_appeared": "gangs/test_placeholders.py::test_an_allocation_that_took_a_placeholders_place_may_be_evicted_for_a_guarantee",
    "victims_changed": "preemption/test_claims.py::test_a_smaller_guarantee_by_a_tag_lets_an_ask_search_for_victims_again",
}
"""The other events, each with a test that fails without it. The comparison cannot tell them, as what they end does not depend on
parking: a gang is not tried again as long as nothing has changed for it, an ask is withheld for a claim, and victims are not
searched for again."""

FAULTS: dict[str, Fault] = {
    **{f"event {name}": Fault(WakeUps, name, _nothing) for name in EVENTS},
    "the partition hears of few asks": Fault(Parking, "park", _only_what_is_new_to_the_application),
    "quotas and limits wake no application": Fault(Parking, "wake_blocked", _blocked_are_forgotten),
    "a shape that fitted no node never does": Fault(Parking, "_forget_failures_within", _nothing),
    "a failed shape is never revived": Fault(Parking, "_revive_on_changed_nodes", _nothing),
    "freed nodes wake no application": Fault(Parking, "_wake_for_freed_nodes", _nothing),
    "freed nodes go unseen": Fault(Parking, "release_freed_nodes", lambda _: lambda self: self.freed_nodes.clear()),
    "an application that cannot be tried keeps its freed nodes": Fault(Parking, "revive_on_freed_nodes", _nothing),
    "domains that open wake nothing": Fault(WakeUps, "_revive_eased", _nothing),
    "a spread or an affinity that allows more wakes nothing": Fault(
        DomainCheck, "renew", _a_minimum_that_rises_eases_nothing
    ),
    "gangs hear of no node": Fault(WakeUps, "apply_node_events", _a_gang_hears_of_no_node),
    "a block forgets which asks wait": Fault(AskBlock, "recount", _a_block_forgets_who_waits),
}


if __name__ == "__main__":
    from parking.compare import run
    from parking.situations import Situations
    from reference.compare import DisagreementError

    chosen = FAULTS[sys.argv[1]]
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    setattr(chosen.where, chosen.name, chosen.broken(getattr(chosen.where, chosen.name)))
    for seed in range(first, first + ENOUGH):
        try:
            run(seed, Situations(), validated=False)
        except DisagreementError as error:
            sys.stdout.write(f"caught after {seed - first + 1} scenarios: {str(error).splitlines()[0]}")
            break
    else:
        sys.stdout.write("not caught")
