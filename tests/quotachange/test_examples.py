"""The worked examples of a lowered quota at the end of docs/spec/preemption.md, section 4.5, and the record of each victim."""

from __future__ import annotations

import pytest

from core.bench import Bench
from licorne.si.messages import Termination
from quotachange.quotas import RULE, cluster, fill, left, queue, text, victims

DELAY = "60s"


def two(maximum: str, a: str = "", b: str = "") -> str:
    """A parent with two leaves, guaranteed so much."""
    return text(queue("p", maximum, "", DELAY, [queue("a", "", a), queue("b", "", b)]))


def enforced(before: str, after: str, **used: int) -> Bench:
    """Fill the queues, lower the quota, let the time pass."""
    bench = cluster(before)
    for name, number in used.items():
        fill(bench, f"root.p.{name}", number)
    bench.reload(after)
    bench.run(after=60)
    return bench


# the max after, guarantees, what a (12) and b (8) use then; [changed]: the original differs
PARENT_OF_TWO = {
    "no guarantees": ("10", "", "", [6, 4]),
    "guarantees": ("10", "6", "2", [7, 3]),
    "guarantees that make up the max": ("8", "4", "4", [4, 4]),
    "one guarantee": ("10", "8", "", [9, 2]),  # 4 above and 8: 3 and 6 of 10, rounded down
    "[changed] one lacks something of its guarantee, which the original counts as above": ("14", "2", "10", [6, 8]),
}


@pytest.mark.parametrize("name", PARENT_OF_TWO)
def test_a_parent_of_two(name: str) -> None:
    maximum, a, b, expected = PARENT_OF_TWO[name]
    bench = enforced(two("20"), two(maximum, a, b), a=12, b=8)
    assert left(bench, "root.p.a", "root.p.b") == expected


def test_candidates_that_refuse_preemption_are_the_last() -> None:
    """The original evicts the three that refuse, by a slip in its order; its documentation describes the contrary."""

    def leaf(maximum: str) -> str:
        return text(queue("p", maximum, "", DELAY))

    bench = cluster(leaf("10"))
    fill(bench, "root.p", 5)
    fill(bench, "root.p", 5, preempt_self=False)
    bench.reload(leaf("7"))
    bench.run(after=60)
    assert victims(bench) == ["p-4", "p-3", "p-2"]


# each of p-0 ... (vcore, priority, r: refuses, o: originator), the max afterwards, the victims
CHOICES = {
    "the newest of equals": (["1", "1", "1"], 2, ["p-2"]),
    "low priority first": (["1 5", "1 -2", "1 5"], 2, ["p-1"]),
    "few rather than of low priority": (["2 9", "1 0", "1 0"], 2, ["p-0"]),
    "many rather than one that refuses": (["2 0 r", "1 9", "1 9"], 2, ["p-2", "p-1"]),
    "an originator and one that refuses are the same": (["1 0 o", "1 5 r"], 1, ["p-0"]),
    "both may have to go": (["1 0 o", "1 5 r"], 0, []),  # a max of nothing is no max, see section 4.1
    "never below the new max": (["2", "2", "2"], 3, ["p-2"]),
    "no pod is small enough": (["5", "5"], 8, []),
    "few victims, though others would fill the share": (["4", "3", "3"], 4, ["p-0"]),
    "required nodes are left alone": (["1 0 d", "1", "1 0 d"], 1, ["p-1"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_choice_in_a_leaf(name: str) -> None:
    pods, maximum, expected = CHOICES[name]
    bench = cluster(text(queue("p", "20", "", DELAY)))
    for pod in pods:
        vcore, priority, kind = [*pod.split(), "0", ""][:3] if len(pod.split()) < 3 else pod.split()
        fill(
            bench,
            "root.p",
            1,
            resource={"vcore": int(vcore)},
            priority=int(priority or 0),
            preempt_self=kind != "r",
            originator=kind == "o",
            required="n1" if kind == "d" else "",
        )
    bench.reload(text(queue("p", str(maximum), "", DELAY)))
    bench.run(after=60)
    assert victims(bench) == expected


def test_guarantees_of_other_types_and_at_every_level_are_kept() -> None:
    """Vcore is above the quota; memory, of which the queue between and the leaf are guaranteed, is not."""

    def tree(maximum: str) -> str:
        between = queue("b", "", "memory 6", "", [queue("c", "", "memory 5"), queue("d")])
        return text(queue("a", maximum, "", DELAY, [between, queue("e")]))

    bench = cluster(tree("100"), memory=100)
    fill(bench, "root.a.b.c", 3, resource={"vcore": 4, "memory": 2})  # 6: one more than guaranteed
    fill(bench, "root.a.b.d", 3, resource={"vcore": 4})
    fill(bench, "root.a.e", 3, resource={"vcore": 4, "memory": 9})
    bench.reload(tree("12"))
    bench.run(after=60)
    assert not [key for key in victims(bench) if key.startswith("c-")]
    assert bench.allocated("root.a.b.c") == {"vcore": 12, "memory": 6}
    assert any(key.startswith("e-") for key in victims(bench))


def test_victims_that_are_ending_already_are_not_counted_again() -> None:
    bench = enforced(two("20"), two("10"), a=12, b=8)
    assert left(bench, "root.p.a", "root.p.b") == [6, 4]
    bench.reload(two("5"))
    bench.run(after=60)  # 6 and 4 are there: 3 and 2 of 5
    assert left(bench, "root.p.a", "root.p.b") == [3, 2]


def test_victims_that_are_submitted_again_evict_nothing() -> None:
    bench = enforced(two("20"), two("10"), a=12, b=8)
    gone = victims(bench)
    for key in gone:
        app = key.partition("-")[0]
        bench.release(app, key, termination=Termination.PREEMPTED_BY_SCHEDULER)
        bench.ask(app, f"{key}-again", vcore=1)
    bench.run(after=1_000)
    assert victims(bench) == gone
    assert bench.allocated("root.p") == {"vcore": 10}
    assert bench.partition.next_deadline_ns() is None


def test_messages_events_and_records_of_an_eviction() -> None:
    bench = enforced(two("20"), two("18"), a=12, b=8)
    assert [o.message for o in bench.outputs if getattr(o, "termination", None)] == [f"{RULE}root.p"]  # type: ignore[union-attr]
    (eviction,) = bench.partition.evictions
    assert (eviction.kind, eviction.queue, eviction.missing) == ("quota-change", "root.p", {"vcore": 2})
    assert (eviction.victim, eviction.victim_application, eviction.victim_queue) == ("a-11", "a", "root.p.a")
    assert (eviction.ask, eviction.ask_application, eviction.at_ns) == ("", "", bench.partition.now)
    assert "section 4" in eviction.rule
    assert bench.partition.applications["a"].allocations["a-11"].preempted
