"""The laws of a lowered quota on random trees: guarantees, several types, levels, pods that refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from common.examples import examples
from common.plain_python import printed_by
from core.bench import Bench
from licorne.core.queues.queue import Queue
from licorne.si.messages import Termination
from quotachange.faults import FAULTS
from quotachange.quotas import at, cluster, fill, queue, text, victims
from rings import first_in_gate

TYPES = ("vcore", "memory")
PATHS = {"root.a": ("b", "c", "d"), "root.a.b": ("e", "f")}
LEAVES = ("root.a.b.e", "root.a.b.f", "root.a.c", "root.a.d")
Amounts = dict[str, int]

pods = st.tuples(
    st.sampled_from(LEAVES),
    st.fixed_dictionaries({}, optional={"vcore": st.integers(1, 4), "memory": st.integers(1, 4)}).filter(bool),
    st.integers(-1, 2),  # priority
    st.sampled_from(["", "", "refuses", "originator", "required"]),
)
shares = st.fixed_dictionaries({}, optional={name: st.integers(0, 100) for name in TYPES})


class Case:
    """A filled tree before and after its quota was lowered: `used` is what each queue used before."""

    def __init__(
        self, chosen: list[tuple[str, Amounts, int, str]], parts: dict[str, Amounts], lowered: Amounts
    ) -> None:
        self.bench = bench = cluster(self.tree({}, dict.fromkeys(TYPES, 1000)), memory=1_000)
        for leaf, amounts, priority, kind in chosen:
            fill(
                bench,
                leaf,
                1,
                resource=amounts,
                priority=priority,
                preempt_self=kind != "refuses",
                originator=kind == "originator",
                required="n1" if kind == "required" else "",
            )
        self.used = {path: bench.allocated(path) for path in (*PATHS, *LEAVES)}
        self.guaranteed = self._guarantees(parts)
        listed = {name: self.used["root.a"].get(name, 0) * part // 100 for name, part in lowered.items()}
        least = self._below("root.a", self.guaranteed)  # the check of configurations wants no less
        self.max = listed = {name: max(most, least.get(name, 0)) for name, most in listed.items()}
        bench.reload(self.tree(self.guaranteed, listed))
        bench.run(after=60)
        self.victims = [self._allocation(key) for key in victims(bench)]

    def _guarantees(self, parts: dict[str, Amounts]) -> dict[str, Amounts]:
        """A part of what each queue uses; of a parent no less than of its children."""
        found = {
            path: {name: self.used[path].get(name, 0) * part // 50 for name, part in parts.get(path, {}).items()}
            for path in self.used
            if path != "root.a"
        }
        if found["root.a.b"]:
            below = self._below("root.a.b", found)
            found["root.a.b"] = {name: max(found["root.a.b"].get(name, 0), below.get(name, 0)) for name in TYPES}
        return found

    def _below(self, path: str, guaranteed: dict[str, Amounts]) -> Amounts:
        found: Amounts = {}
        for child in PATHS[path]:
            below = f"{path}.{child}"
            own = guaranteed[below] or (self._below(below, guaranteed) if below in PATHS else {})
            found = {name: found.get(name, 0) + own.get(name, 0) for name in TYPES}
        return found

    @staticmethod
    def tree(guaranteed: dict[str, Amounts], maximum: Amounts) -> str:
        """The configuration."""

        def said(amounts: Amounts) -> str:
            return " ".join(f"{name} {amount}" for name, amount in amounts.items())

        def leaf(path: str) -> str:
            return queue(path.rpartition(".")[2], "", said(guaranteed.get(path, {})))

        inner = [leaf(path) for path in LEAVES[:2]]
        between = queue("b", "", said(guaranteed.get("root.a.b", {})), "", inner)
        return text(queue("a", said(maximum), "", "60s", [between, *(leaf(path) for path in LEAVES[2:])]))

    def _allocation(self, key: str) -> Any:
        return self.bench.application(key.partition("-")[0]).allocations[key]

    def left(self, path: str) -> Amounts:
        """The usage of a queue without its victims."""
        found: Queue = at(self.bench, path)
        going = found.preempting_resource()
        return {name: found.allocated_resource().get(name, 0) - going.get(name, 0) for name in TYPES}


def laws(case: Case) -> None:
    """Raises AssertionError."""
    used, left = case.used["root.a"], case.left("root.a")
    for victim in case.victims:
        assert not victim.required
        mine = victim.shape.resource
        assert any(left[name] + mine.get(name, 0) > most and mine.get(name, 0) for name, most in case.max.items()), (
            f"{victim.key} could have stayed"
        )
        for level in victim.app.queue.lineage():
            least = case.guaranteed.get(level.path, {})
            stays = case.left(level.path) if level.path in case.used else {}
            assert all(stays[name] >= amount for name, amount in least.items() if mine.get(name)), (
                f"{victim.key}: {level.path} is below its guarantee"
            )
    for name, most in case.max.items():  # a type that was within its max is not spared: a victim may hold some of it
        if used.get(name, 0) > most:
            assert left[name] >= most, f"more was taken of {name} than was above the quota"


def nothing_more_happens(bench: Bench) -> None:
    """All victims end and are submitted again at once."""
    before = victims(bench)
    for eviction in list(bench.partition.evictions):
        app, key = eviction.victim_application, eviction.victim
        alloc = bench.application(app).allocations[key]
        bench.release(app, key, termination=Termination.PREEMPTED_BY_SCHEDULER)
        bench.ask(app, f"{key}-again", resource=alloc.shape.resource, priority=alloc.priority)
    for _ in range(3):
        bench.run(after=1_000)
    assert victims(bench) == before


CASES = {
    "chosen": st.lists(pods, min_size=1, max_size=12),
    "parts": st.dictionaries(st.sampled_from([*LEAVES, "root.a.b"]), shares),
    "lowered": shares.filter(lambda part: any(part.values())),
}


@examples(150, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_every_law_holds_after_each_quota_change(chosen: Any, parts: Any, lowered: Any) -> None:
    case = Case(chosen, parts, lowered)
    laws(case)
    nothing_more_happens(case.bench)


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_planted_faults_are_caught(name: str) -> None:
    printed = printed_by("quotachange.faults", name)
    assert printed.startswith("caught after"), printed
