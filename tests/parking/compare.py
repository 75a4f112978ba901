"""Runs one scenario through two products, one of which never parks: at each step both must send the same messages.

Without parking every ask is tried again in every pass, in the same order, so that it needs no wake-up to be right; what
parking leaves out are attempts that would have failed. So not only the same asks run in the end: each call gives the same
messages.

At its end a scenario is emptied, a few allocations at a time, with decisions in between, until nothing runs: a wake-up that
was lost shows as an ask that waits in an empty cluster. That is also looked at without the second product (`leftovers`).

Run as a program, `python -m parking.compare SEED [COUNT]`, it compares that scenario, or COUNT of them from there on.
"""

from __future__ import annotations

import sys
from typing import Any

from licorne.core.constants import UNLIMITED
from licorne.core.inspection.validate import InvariantError, validate
from licorne.si.messages import NewAllocation, Released, Termination
from parking import leftovers
from parking.scenarios import RM, Scenario
from parking.situations import Situations
from reference.clusters import Step
from reference.compare import Product, Said, disagreement, main, shown, verdict
from reference.model import SECOND_NS

VALIDATED = 8
"""Each eighth scenario is validated after every step, the others at their end."""
SEVERAL = 3
"""In each third scenario several steps come between decisions; in the others none, so that no other event makes up for a lost
wake-up."""
DECIDE: Step = ("schedule", None)
"""The step in which everything is decided that can be."""
ROUNDS = 4000
"""In so many rounds everything has been placed, and released, that can be: at least one allocation ends in each."""


class Comparison:
    """A scenario on its way. `validated`: `validate` is asked as well, which may notice before anything is decided."""

    def __init__(self, seed: int, situations: Situations, *, validated: bool = True) -> None:
        self.seed = seed
        self.situations = situations
        self.validated = validated
        self.parks = Product({})
        self.products = {"with parking": self.parks, "without parking": Product({"scheduler.parking": "false"})}
        self.scenario = Scenario(seed, situations, lambda: list(self.parks.cluster.partitions()))
        self.steps: list[str] = []
        self.mood = 0
        self.waited: set[str] = set()

    def run(self) -> None:
        """From the beginning to the end."""
        manager = self.scenario.manager
        self.steps.append(f"register {manager}")
        self._at(self.scenario.now_ns)
        for each in self.products.values():
            each.register(manager, manager.texts[0], self._predicate if manager.predicate else None)
        for step in self.scenario.beginning():
            self.do(step)
        at_once = self.seed % SEVERAL != 0
        for _ in range(self.scenario.steps_left):
            step = self.scenario.step()
            self.do(step)
            if at_once and step != DECIDE:
                self.do(DECIDE)
        self._empty()
        self._validate()

    def _predicate(self, key: str, node: str, allocate: bool) -> bool:
        return verdict(self.mood, key, node, allocate=allocate)

    # -- steps -------------------------------------------------------------------------------------------

    def do(self, step: Step) -> Said:
        """One step, on both."""
        self.steps.append(shown(step))
        match step:
            case ("schedule", limit):
                self._inspect_alike()
                for each in self.products.values():
                    each.cluster.schedule(UNLIMITED if limit is None else limit)
            case ("advance", passed):
                self._at(self.scenario.now_ns + passed)
            case ("mood", mood):
                self.mood = mood
            case ("reload", _, text):
                for each in self.products.values():
                    each.reload(self.scenario.manager, text)
            case ("submit", rm_id, inputs):
                for each in self.products.values():
                    each.submit(rm_id, inputs)
        said = self._compare()
        self.scenario.hear(said)
        if self.seed % VALIDATED == 0:
            self._validate()
        return said

    def _at(self, now_ns: int) -> None:
        self.scenario.now_ns = now_ns
        for each in self.products.values():
            each.cluster.advance(now_ns)

    def _inspect_alike(self) -> None:
        """When asks that wait are reported is counted from the last look, which may have found nothing: not compared."""
        moments = [partition._inspection_ns for partition in self.parks.cluster.partitions()]
        for each in self.products.values():
            for partition, moment in zip(each.cluster.partitions(), moments, strict=True):
                partition._inspection_ns = moment

    def _empty(self) -> None:
        """Everything that runs ends, a few at a time, and what waits may run; at first some more comes."""
        scenario, rng = self.scenario, self.scenario.rng
        self.do(("mood", 0))
        self.do(DECIDE)
        idle = 0
        for number in range(ROUNDS):
            ended = scenario.confirm_all()
            for partition in scenario.partitions():
                running = scenario.running(partition)
                chosen = rng.sample(running, min(len(running), rng.randint(1, 3)))
                ended += [scenario.release(partition.name, a.app.id, a, Termination.STOPPED_BY_RM) for a in chosen]
                if number < scenario.refills and rng.random() < 0.4:
                    ended += scenario.asks(partition)
            if ended:
                self.do(("submit", RM, ended))
                if rng.random() < 0.3:
                    self.do(("advance", SECOND_NS))
            else:
                self.do(("advance", [31, 301, 7300][idle % 3] * SECOND_NS))
            said = self.do(DECIDE)
            idle = 0 if said or ended else idle + 1
            if idle > 3:
                break
        else:
            self._fail("it is never empty", {})
        for partition in scenario.partitions():
            left = leftovers.unexplained(partition)
            if left:
                self._fail("invariant 12: they could run in an empty cluster", {"asks": left})
            count = sum(len(app.asks) for app in partition.applications.values())
            self.situations.count("left over in an empty cluster", count)

    # -- comparing ---------------------------------------------------------------------------------------

    def _compare(self) -> Said:
        said = {name: each.said() for name, each in self.products.items()}
        first = said["with parking"]
        if any(each != first for each in said.values()):
            self._fail("they say different things", said)
        held = {name: each.reservations() for name, each in self.products.items()}
        if any(each != held["with parking"] for each in held.values()):
            self._fail("different reservations", held)
        self._count(first, reserved=any(" hold" not in name for name in held["with parking"]))
        return first

    def _count(self, said: Said, *, reserved: bool) -> None:
        met = self.situations
        met.count("reserved", int(reserved))
        for _, output in said:
            if isinstance(output, NewAllocation):
                met.count("allocated")
                met.count("placeholders", int(output.placeholder))
                met.count("a gang as a whole has started", int(output.task_group == "t"))
                met.count("waited for a node, and ran when others had gone", int(output.key in self.waited))
            elif isinstance(output, Released):
                met.count("evicted", int(output.termination is Termination.PREEMPTED_BY_SCHEDULER))
                met.count("placeholder replaced", int(output.termination is Termination.PLACEHOLDER_REPLACED))
        for partition in self.scenario.partitions():
            self.waited = {a.key for app in partition.parking.waiting for a in app.asks.values() if a.parked == 1}
            trackers = [t for app in partition.applications.values() for t in app.trackers]
            met.count("a user's or group's limit", int(any(t.blocked for t in trackers)))

    def _validate(self) -> None:
        try:
            for each in self.products.values() if self.validated else ():
                for partition in each.cluster.partitions():
                    validate(partition)
        except InvariantError as error:
            self._fail(str(error), {})

    def _fail(self, what: str, found: dict[str, Any]) -> None:
        raise disagreement(self.seed, self.steps, what, found)


def run(seed: int, situations: Situations, *, validated: bool = True) -> None:
    """One scenario.

    Raises:
        DisagreementError: it decides otherwise without parking, or something waits for nothing.
    """
    Comparison(seed, situations, validated=validated).run()


if __name__ == "__main__":
    met = Situations()
    sys.exit(main(lambda seed: run(seed, met), met.report))
