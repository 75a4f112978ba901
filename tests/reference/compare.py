"""Runs one scenario through the product and the reference, step by step; their messages must be the same.

Run as a program, `python -m reference.compare SEED [COUNT]`, it compares that scenario, or COUNT of them from there on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import msgspec

from licorne.config import load
from licorne.core import cluster as product
from licorne.core.constants import UNLIMITED
from licorne.si import messages
from licorne.si.messages import Input, Output
from reference.clusters import Manager, Scenario, Step
from reference.gangdraws import held_by_product, held_by_reference
from reference.model import pruned
from reference.scheduler import INSPECTION_NS
from reference.situations import Situations

Said = list[tuple[str, Output]]
_load = lru_cache(maxsize=4096)(load)


class DisagreementError(AssertionError):
    """The product and the reference differ; the text has the command that shows it again."""


class Product:
    """The product under test, with settings of its own, which speaks of allocations by the reference's names."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.cluster = product.Cluster()

    def register(self, manager: Manager, text: str, predicate: Callable[[str, str, bool], bool] | None) -> None:
        with patch.object(product, "load", _load):
            self.cluster.register(
                manager.rm_id,
                text,
                manager.settings | self.settings,
                predicate,
                first_interface=manager.first_interface,
            )

    def reload(self, manager: Manager, text: str) -> None:
        with patch.object(product, "load", _load):
            self.cluster.reload(manager.rm_id, text, manager.settings | self.settings)

    def submit(self, rm_id: str, inputs: list[Input]) -> None:
        self.cluster.submit(rm_id, inputs)

    def said(self) -> Said:
        """The messages since the last call."""
        return [(rm, output) for rm, outputs in self.cluster.outputs() for output in outputs]

    def reservations(self) -> dict[str, list[str]]:
        """The asks that reserve each node."""
        return {
            f"{p.owner}/{p.name}/{node.id}": [ask.key for ask in node.reservations]
            for p in self.cluster.partitions()
            for node in p.nodes.values()
            if node.reservations
        } | held_by_product(self.cluster)


def verdict(mood: int, key: str, node: str, *, allocate: bool) -> bool:
    """Answer the predicate of a scenario's resource manager in this mood, for an allocation or a reservation."""
    number = sum(map(ord, key + node))
    return mood not in (2, 3) if not allocate else mood not in (1, 2) or number % 3 != mood


class Comparison:
    """A scenario on its way. `parking_off`: with a second product that never parks."""

    def __init__(
        self, seed: int, situations: Situations, *, parking_off: bool, kind: type[Scenario] = Scenario
    ) -> None:
        self.seed = seed
        self.situations = situations
        self.scenario = kind(seed, _load)
        self.reference = self.scenario.reference
        self.products = {"product": Product({})}
        if parking_off:
            self.products["product without parking"] = Product({"scheduler.parking": "false"})
        self.steps: list[str] = []
        self.mood = 0
        self.now_ns = self.scenario.now_ns

    def run(self) -> None:
        """From the beginning to the end."""
        self._at(self.now_ns)
        for manager in self.scenario.managers:
            text = manager.texts[0]
            self.steps.append(f"register {manager}")
            predicate = self._predicate if manager.predicate else None
            for each in self.products.values():
                each.register(manager, text, predicate)
            settings = manager.settings
            self.reference.register(manager.rm_id, text, settings, predicate, first_interface=manager.first_interface)
        for step in self.scenario.beginning():
            self.do(step)
        for _ in range(self.scenario.steps_left):
            self.do(self.scenario.step())
        self.do(("schedule", None))

    def _predicate(self, key: str, node: str, allocate: bool) -> bool:
        return verdict(self.mood, key, node, allocate=allocate)

    # -- steps -------------------------------------------------------------------------------------------

    def do(self, step: Step) -> None:
        """One step, on all of them."""
        self.steps.append(shown(step))
        match step:
            case ("schedule", limit):
                self._schedule(limit)
            case ("advance", passed):
                self._at(self.now_ns + passed)
                self._compare()
            case ("deadlines", count):
                self._follow(count)
            case ("mood", mood):
                self.mood = mood
            case ("reload", rm_id, text):
                manager = next(m for m in self.scenario.managers if m.rm_id == rm_id)
                for each in self.products.values():
                    each.reload(manager, text)
                self.situations.before_change(self.reference)
                self.reference.reload(rm_id, text)
                self.situations.after_change(self.reference, "reload")
                self._compare()
            case ("submit", rm_id, inputs):
                for each in self.products.values():
                    each.submit(rm_id, inputs)
                self.situations.messages(self.reference, rm_id, inputs)
                self.situations.before_change(self.reference)
                self.reference.submit(rm_id, inputs)
                self.situations.after_change(self.reference, "submit")
                self._compare()

    def _at(self, now_ns: int) -> None:
        self.now_ns = self.scenario.now_ns = now_ns
        for each in self.products.values():
            each.cluster.advance(now_ns)
        self.situations.before_change(self.reference)
        self.reference.advance(now_ns)
        self.situations.after_change(self.reference, "time")

    def _schedule(self, limit: int | None) -> Said:
        """Decide.

        Whether an inspection that finds nothing takes place is the product's business. It leaves no trace but the
        moment from which on the next one has to wait a second, which the others take over.
        """
        moments = [partition._inspection_ns for partition in self.products["product"].cluster.partitions()]
        for partition, moment in zip(self.reference.partitions(), moments, strict=True):
            partition.inspected_ns = moment - INSPECTION_NS
        for each in self.products.values():
            for other, moment in zip(each.cluster.partitions(), moments, strict=True):
                other._inspection_ns = moment
        for each in self.products.values():
            each.cluster.schedule(UNLIMITED if limit is None else limit)
        self.situations.before_schedule(self.reference)
        self.reference.schedule(limit)
        said = self._compare()
        self.situations.after_schedule(self.reference, said, limit)
        return said

    def _follow(self, count: int) -> None:
        """Do as a host that sleeps: nothing may happen but at the deadlines that the product names."""
        self._schedule(None)
        for _ in range(count):
            due = self.products["product"].cluster.next_deadline_ns()
            between = self.now_ns + self.scenario.rng.randrange(1, 100 * 10**9)
            if due is None or between < due:
                self._sleep(between if due is None else min(between, due - 1))
            if due is None:
                break
            self.steps.append(f"deadline {max(due, self.now_ns)}")
            self._at(max(due, self.now_ns))
            self._schedule(None)
            self.situations.count("deadline followed")

    def _sleep(self, until_ns: int) -> None:
        self.steps.append(f"sleep until {until_ns}")
        before = self._reservations()
        self._at(until_ns)
        said = self._schedule(None)
        if said or self._reservations() != before:
            self._fail("something happened without a deadline", {"said": said})
        self.situations.count("slept until a deadline")

    # -- comparing ---------------------------------------------------------------------------------------

    def _compare(self) -> Said:
        said: dict[str, Said] = {name: each.said() for name, each in self.products.items()}
        said["reference"] = [(rm, output) for rm, outputs in self.reference.outputs() for output in outputs]
        seen = {name: [(rm, comparable(output)) for rm, output in outputs] for name, outputs in said.items()}
        if any(each != seen["reference"] for each in seen.values()):
            self._fail("they say different things", seen)
        held = {name: each.reservations() for name, each in self.products.items()}
        held["reference"] = self._reservations()
        if any(each != held["reference"] for each in held.values()):
            self._fail("different reservations", held)
        self.situations.said(self.reference, said["reference"])
        return said["reference"]

    def _reservations(self) -> dict[str, list[str]]:
        return {
            f"{rm}/{name}/{node.id}": [ask.key for ask in node.reserved_by]
            for rm, partitions in self.reference.managers.items()
            for name, partition in partitions.items()
            for node in partition.nodes.values()
            if node.reserved_by
        } | held_by_reference(self.reference)

    def _fail(self, what: str, found: dict[str, Any]) -> None:
        raise disagreement(self.seed, self.steps, what, found)


def disagreement(seed: int, steps: list[str], what: str, found: dict[str, Any]) -> DisagreementError:
    """Return the error that something is different after these steps of a scenario: `found`, by who has it."""
    lines = [f"seed {seed}, step {len(steps)}: {what}", *steps]
    for name, each in found.items():
        lines += [f"{name}:", *(f"    {item}" for item in (each.items() if isinstance(each, dict) else each))]
    return DisagreementError("\n".join(lines))


def shown(step: Step) -> str:
    """A step as text: of messages, the fields that are neither empty nor default."""
    if step[0] != "submit":
        return " ".join(map(str, step))
    return "\n    ".join([f"submit {step[1]}:", *map(_shown_message, step[2])])


def _shown_message(message: Input) -> str:
    said = [f"{k}={v!r}" for k, v in _fields(message).items() if v not in (None, "", {}, (), False, "default")]
    return f"{type(message).__name__}({', '.join(said)})"


def _fields(message: Any) -> dict[str, Any]:
    if isinstance(message, messages.Allocation | messages.Release):
        return message.fields()
    return {name: getattr(message, name) for name in message.__struct_fields__}


def comparable(output: Output) -> tuple[Any, ...]:
    """The parts that must agree: everything but the texts of refusals and releases, and the echoed fields of an ask."""
    match output:
        case messages.NewAllocation():
            o = output
            amounts = sorted(pruned(o.resource).items())
            return ("allocated", o.key, o.application_id, o.node_id, amounts, o.partition, o.queue, o.priority, o.uuid)
        case messages.Released():
            return (
                "released",
                output.key,
                output.application_id,
                output.termination.name,
                output.partition,
                output.uuid,
            )
        case messages.RejectedAllocation():
            return ("rejected", output.key, output.application_id)
        case messages.RejectedApplication():
            return ("rejected", output.application_id)
        case messages.RejectedNode():
            return ("rejected", output.node_id)
        case messages.UpdatedApplication():
            return (output.application_id, output.state, output.timestamp_ns, output.message)
        case _:
            return (type(output).__name__, *msgspec.structs.astuple(output))


def run(seed: int, situations: Situations, *, parking_off: bool = False, kind: type[Scenario] = Scenario) -> None:
    """One scenario.

    Raises:
        DisagreementError: the product and the reference differ.
    """
    Comparison(seed, situations, parking_off=parking_off, kind=kind).run()


def main(compare: Callable[[int], None], report: Callable[[], str]) -> int:
    """Compare the scenarios that the command line names; print the differences, whole for a single one. Returns the status."""
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    differ = 0
    for seed in range(first, first + count):
        try:
            compare(seed)
        except DisagreementError as error:
            differ += 1
            sys.stdout.write(f"{error}\n" if count == 1 else f"{str(error).splitlines()[0]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} scenarios from seed {first} on, {differ} differ\n{report()}")
    return bool(differ)


if __name__ == "__main__":
    met = Situations()
    sys.exit(main(lambda seed: run(seed, met, parking_off=seed % 4 == 0), met.report))
