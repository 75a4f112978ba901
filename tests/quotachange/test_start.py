"""When a quota is enforced: the table of start times, delays, deadlines.

Source: docs/spec/preemption.md, sections 4.1 and 4.2.
"""

from __future__ import annotations

import pytest

from licorne.si.messages import Termination
from quotachange.quotas import at, cluster, fill, left, queue, start_s, text, victims

# name: (max and delay before, max and delay after, was there a start time 100 s from now before,
#        seconds to the start time after, None is none); 10 of vcore are used
TABLE = {
    "no delay": (("20", "60s"), ("5", ""), False, None),
    "no delay any more": (("9", "100s"), ("5", ""), True, None),
    "no max": (("20", "60s"), ("", "60s"), False, None),
    "no max any more": (("9", "100s"), ("", "60s"), True, None),
    "still within its max": (("20", "60s"), ("10", "60s"), False, None),
    "raised enough": (("9", "100s"), ("10", "100s"), True, None),
    "a delay for the first time, the same max": (("9", ""), ("9", "60s"), False, 60),
    "the same max and delay, over, no start time": (("9", "60s"), ("9", "60s"), False, None),
    "another delay, the same max, no start time": (("9", "60s"), ("9", "70s"), False, None),
    "another delay, the same max": (("9", "100s"), ("9", "30s"), True, 30),
    "a longer delay, the same max": (("9", "100s"), ("9", "130s"), True, 130),
    "lowered": (("20", "60s"), ("5", "60s"), False, 60),
    "lowered, and a delay for the first time": (("20", ""), ("5", "60s"), False, 60),
    "lowered again": (("9", "100s"), ("5", "100s"), True, 100),
    "lowered again, another delay": (("9", "100s"), ("5", "40s"), True, 40),
    "a type is taken away: lowered": (("9 memory 9", "60s"), ("9", "60s"), False, 60),
    "raised, still over": (("5", "100s"), ("9", "100s"), True, 100),
    "raised, still over, another delay": (("5", "100s"), ("9", "150s"), True, 150),
    "raised, still over, no start time": (("5", "60s"), ("9", "90s"), False, None),
    "set for the first time: not lowered": (("", "60s"), ("5", "60s"), False, None),
    "a type more: not lowered": (("memory 9", "60s"), ("5 memory 9", "60s"), False, None),
    "one type lowered, one raised": (("20 memory 9", "60s"), ("5 memory 10", "60s"), False, None),
    "one type lowered, one raised: nothing moves": (("9 memory 9", "100s"), ("5 memory 10", "30s"), True, 100),
}


@pytest.mark.parametrize("name", TABLE)
def test_start_times(name: str) -> None:
    before, after, started, expected = TABLE[name]
    bench = cluster(text(queue("a", "1000" if before[0] else "", "", before[1])), memory=100)
    fill(bench, "root.a", 1, resource={"vcore": 10})
    a = at(bench, "root.a")
    bench.reload(text(queue("a", before[0], "", before[1])))
    bench.partition.quotas.starts.clear()
    bench.partition.quotas._arm()
    if started:
        bench.partition.quotas.starts[a] = bench.partition.now + 100_000_000_000
    bench.reload(text(queue("a", after[0], "", after[1])))
    assert start_s(bench) == expected


def test_a_start_time_that_has_passed_by_a_shorter_delay_is_due_in_a_second() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s")))
    bench.run(after=50)
    bench.reload(text(queue("a", "7", "", "20s")))
    assert start_s(bench) == 1
    assert bench.api.cluster.next_deadline_ns() == bench.partition.now + 1_000_000_000
    bench.run(after=0.5)
    bench.reload(text(queue("a", "7", "", "20s"), "b"))  # and not a second after each reload
    bench.run(after=0.5)
    assert victims(bench) == ["a-9", "a-8", "a-7"]


def test_a_quota_is_enforced_once_at_its_start_time_and_not_before() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s")))
    assert bench.api.cluster.next_deadline_ns() == bench.partition.now + 60_000_000_000
    assert bench.hear(after=59.999999999) == []
    said = bench.hear(after=0.000000001)
    assert victims(bench) == ["a-9", "a-8", "a-7"]
    assert len(said) == 3
    assert bench.hear(after=1_000) == []  # the victims are still counted, and counted as going
    assert bench.allocated("root.a") == {"vcore": 10}
    for key in victims(bench):
        bench.release("a", key, termination=Termination.PREEMPTED_BY_SCHEDULER)
    assert bench.allocated("root.a") == {"vcore": 7}
    assert start_s(bench) is None


def test_a_start_time_keeps_its_place_among_equal_deadlines() -> None:
    """Deadlines of one moment come in the order in which they were set, whatever is asked again or comes in between."""
    bench = cluster(text(queue("a", "20", "", "60s"), queue("b", "20", "", "60s"), "c"))
    fill(bench, "root.a", 10)
    fill(bench, "root.b", 10)
    bench.reload(text(queue("a", "9", "", "60s"), queue("b", "20", "", "60s"), "c"))
    bench.app("timed", "root.c")
    bench.ask("timed", "t", vcore=1, timeout_ms=60_000)
    bench.run()
    bench.run(after=30)
    bench.reload(text(queue("a", "9", "", "60s"), queue("b", "9", "", "20s"), "c"))
    assert (start_s(bench, "root.b"), start_s(bench, "root.a")) == (20, 30)
    assert [said.split()[:3] for said in bench.hear(after=30)] == [
        ["released", "b-9", "PREEMPTED_BY_SCHEDULER:"],
        ["released", "a-9", "PREEMPTED_BY_SCHEDULER:"],
        ["released", "t", "TIMEOUT:"],
    ]


def test_allocations_that_end_by_themselves_need_no_eviction() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "9", "", "60s")))
    bench.release("a", "a-0")
    assert start_s(bench) is None
    bench.run(after=100)
    assert victims(bench) == []


def test_a_start_time_is_forgotten_when_the_queue_was_within_its_max_in_between() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "9", "", "60s")))
    bench.release("a", "a-0")
    bench.run(after=30)
    bench.ask("a", "forced", node="n1", vcore=1)
    assert start_s(bench) == 60
    bench.release("a", "forced")
    bench.run(after=10)
    bench.reload(text(queue("a", "8", "", "60s")))
    assert start_s(bench) == 60


# -- forced usage ----------------------------------------------------------------------------------------------

FORCED = {
    "flag off": ("60s", "5", "preemption: {quotapreemptionenabled: false}", 10, None),
    "no delay": ("", "5", "", 10, None),
    "within the max": ("60s", "10", "", 10, None),
    "above it": ("60s", "5", "", 10, 60),
}


@pytest.mark.parametrize("name", FORCED)
def test_usage_that_is_forced(name: str) -> None:
    delay, maximum, more, vcore, expected = FORCED[name]
    configuration = text(queue("a", maximum, "", delay), **({"more": more} if more else {}))
    bench = cluster(configuration)
    bench.app("a", "root.a")
    bench.ask("a", "found", node="n1", vcore=vcore)
    assert start_s(bench) == expected


def test_an_allocation_that_grows() -> None:
    bench = cluster(text(queue("a", "5", "", "60s")))
    bench.app("a", "root.a")
    bench.ask("a", "k", vcore=5)
    bench.run()
    bench.ask("a", "k", vcore=8)
    assert start_s(bench) == 60
    bench.run(after=10)
    bench.ask("a", "k", vcore=9)  # it runs already
    assert start_s(bench) == 50
    bench.run(after=50)
    bench.ask("a", "k", vcore=7)  # it has shrunk: no new start time
    assert start_s(bench) is None


def test_every_queue_above_counts_but_root() -> None:
    inner = queue("b", "3", "", "20s")
    bench = cluster(text(queue("a", "4", "", "60s", [inner])), vcore=2)
    bench.app("b", "root.a.b")
    bench.ask("b", "k", node="n1", vcore=5)
    assert [start_s(bench, path) for path in ("root", "root.a", "root.a.b")] == [None, 60, 20]


# -- the flag, queues below each other, queues that go ---------------------------------------------------------


def test_without_the_flag_nothing_happens_until_it_is_set() -> None:
    off = "preemption: {quotapreemptionenabled: false}"
    bench = cluster(text(queue("a", "20", "", "60s"), more=off))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s"), more=off))
    assert bench.partition.next_deadline_ns() is None
    bench.run(after=100)
    assert (start_s(bench), victims(bench)) == (-40, [])
    bench.reload(text(queue("a", "7", "", "60s")))
    bench.run(after=1)
    assert len(victims(bench)) == 3


def test_a_flag_withdrawn_before_the_start_time_prevents_evictions() -> None:
    bench = cluster(text(queue("a", "20", "", "60s")))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s")))
    bench.reload(text(queue("a", "7", "", "60s"), more="preemption: {quotapreemptionenabled: false}"))
    bench.run(after=100)
    assert victims(bench) == []


def test_parents_are_enforced_first_and_their_children_a_second_later() -> None:
    def tree(a: str, b: str) -> str:
        return text(queue("a", a, "", "60s", [queue("b", b, "", "60s"), queue("c")]))

    bench = cluster(tree("40", "20"))
    fill(bench, "root.a.b", 10)
    fill(bench, "root.a.c", 10)
    bench.reload(tree("16", "7"))
    bench.run(after=60)
    assert left(bench, "root.a.b", "root.a.c") == [8, 8]
    bench.run(after=0.5)
    assert left(bench, "root.a.b") == [8]
    bench.run(after=0.5)
    assert left(bench, "root.a.b", "root.a.c") == [7, 8]
    assert [e.queue for e in bench.partition.evictions] == ["root.a"] * 4 + ["root.a.b"]


def test_a_queue_that_is_removed_is_forgotten() -> None:
    bench = cluster(text(queue("a", "20", "", "60s"), "b"))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "7", "", "60s"), "b"))
    bench.reload(text("b"))  # a drains, with its start time
    assert start_s(bench) == 60
    bench.remove("a")
    bench.run(after=20)
    assert bench.partition.tree.find("root.a") is None
    assert bench.partition.quotas.starts == {}
    assert bench.partition.next_deadline_ns() is None


def test_a_queue_that_is_removed_in_that_moment_delays_no_other() -> None:
    bench = cluster(text(queue("a", "20", "", "10s"), "b"))
    fill(bench, "root.a", 10)
    bench.reload(text(queue("a", "20", "", "10s")))  # the cleaner will come in ten seconds, too, and first
    bench.reload(text(queue("a", "7", "", "10s")))
    bench.run(after=10)
    assert bench.partition.tree.find("root.b") is None
    assert victims(bench) == ["a-9", "a-8", "a-7"]
