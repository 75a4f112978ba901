"""The worked examples of guaranteed-quota preemption, and the rules that they do not show.

Source: docs/spec/preemption.md, section 2.12.

Rows marked "changed" come to another result than the original: see docs/reference/differences.md.
"""

from __future__ import annotations

import pytest

from common.plain_python import printed_by
from core.bench import Bench, config, parent
from licorne import ResourceManagerCallback
from licorne.core.inspection.explain import Preemption
from licorne.core.preemption.evictions import Eviction
from licorne.si import v19
from licorne.si.messages import NodeAction, Termination

WORD = "preempting allocations to free up resources to run ask: "
DELAY = 30


def two_queues(
    one: str = "", two: str = "", *, above: str = "", nodes: tuple[int, ...] = (10,), more: str = ""
) -> Bench:
    """Queues root.p.q1 and root.p.q2 with an application each, x1 and x2; nodes n1, n2 ... of these sizes."""
    p = "p" + (f" {above}" if above else "")
    b = Bench(config(parent(p, f"q1 {one}".strip(), f"q2 {two}".strip()), more=more))
    for number, size in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=size)
    b.app("x1", "root.p.q1")
    b.app("x2", "root.p.q2")
    return b


def quota(guaranteed: int = 0, most: int = 0) -> str:
    """A queue's resources, in milli."""
    parts = [f"guaranteed: {{vcore: {guaranteed}m}}"] if guaranteed else []
    parts += [f"max: {{vcore: {most}m}}"] if most else []
    return f"resources: {{{', '.join(parts)}}}" if parts else ""


def victims(b: Bench, *, after: float = 0) -> list[str]:
    """Let time pass, decide, and return the victims."""
    return [line.split()[1] for line in b.hear(after=after) if "PREEMPTED_BY_SCHEDULER" in line]


def confirm(b: Bench, *keys: str) -> None:
    """Confirm that these victims have ended."""
    for app in list(b.partition.applications.values()):
        for key in keys:
            if key in app.allocations:
                said = b.release(app.id, key, termination=Termination.PREEMPTED_BY_SCHEDULER)
                assert not any(line.startswith("released") for line in said)


def settle(b: Bench, rounds: int = 12) -> list[str]:
    """Let time pass and victims end at once, until no more are evicted; return all victims in their order."""
    gone: list[str] = []
    for _ in range(rounds):
        new = victims(b, after=DELAY + 1)
        confirm(b, *new)
        gone += new
        b.run()
    assert victims(b, after=1000) == []
    return gone


def used(b: Bench, *names: str) -> list[int]:
    """The allocated amounts of these queues below root.p."""
    return [b.allocated(f"root.p.{name}").get("vcore", 0) for name in names]


def test_a_queue_below_its_guarantee_gets_it_and_no_more() -> None:
    b = two_queues(quota(5, 10), quota(5, 10), above=quota(0, 12), nodes=(10, 10))
    for i in range(10):
        b.ask("x1", f"a{i}", vcore=1)
    b.run()
    for i in range(10):
        b.ask("x2", f"b{i}", vcore=1, preempt_other=True)
    b.run()
    assert used(b, "q1", "q2") == [10, 2]
    settle(b)
    assert used(b, "q1", "q2") == [7, 5]


def test_several_asks_at_one_moment_stop_at_the_guarantee() -> None:
    b = two_queues(quota(1), quota(5), nodes=(5, 5))
    for i in range(10):
        b.ask("x1", f"a{i}", vcore=1)
    b.run()
    for i in range(10):
        b.ask("x2", f"b{i}", vcore=1, preempt_other=True)
    b.run()
    first = victims(b, after=DELAY)
    assert first == ["a9", "a8", "a7", "a6", "a5"]
    confirm(b, *first)
    settle(b)
    assert used(b, "q1", "q2") == [5, 5]


def test_willing_candidates_are_evicted_first() -> None:
    b = Bench(config(parent(f"p {quota(0, 16)}", *(f"q{i} {quota(3)}" for i in (1, 2, 3)))))
    b.node("n1", vcore=16)
    for i in (1, 2, 3):
        b.app(f"x{i}", f"root.p.q{i}")
    for i in range(8):
        b.ask("x1", f"a{i}", vcore=1)
        b.ask("x2", f"b{i}", vcore=1, preempt_self=False)
    b.run()
    for i in range(3):
        b.ask("x3", f"c{i}", vcore=1, preempt_other=True)
    assert settle(b) == ["a7", "a6", "a5"]
    assert used(b, "q1", "q2", "q3") == [5, 8, 3]


def test_priorities_of_queues() -> None:
    leaves = [
        f"{name} properties: {{priority.offset: '{offset}'}}, {quota(6)}"
        for name, offset in (("high", 100), ("norm", 0), ("low", -100))
    ]
    b = Bench(config(parent("p", *leaves)))
    b.node("n1", vcore=18)
    for name in ("high", "norm", "low"):
        b.app(name, f"root.p.{name}")
    for i in range(6):
        b.ask("norm", f"n{i}", vcore=3)
    b.run()
    for i in range(6):
        b.ask("low", f"l{i}", vcore=3, preempt_other=True)
        b.ask("high", f"h{i}", vcore=3, preempt_other=True)
    settle(b)
    assert used(b, "high", "norm", "low") == [6, 12, 0]


# guarantees of q1 and q2, what q1 runs (oldest first), what q2 runs, what q2 asks, size of the node: victims
ROWS: list[tuple[str, int, int, list[int], int, int, int, str]] = [
    ("no guarantee, no preemption", 0, 0, [10], 0, 5, 10, ""),
    # The original: nothing, for a victim of 2 does not fit q2's remaining 1. Here q1 would fall below its 3: nothing too.
    ("a victim too large for q1's guarantee", 3, 3, [2, 2], 2, 1, 6, ""),
    # Changed. The original: nothing, for victim 1 is counted first, and then 4 no longer fits q2's remaining 3.
    ("q1 would be below its guarantee", 4, 4, [4, 1], 0, 4, 5, ""),
    # Changed. The original: victims 1 and 2, and q1 at 2, below its guarantee. There is no set that leaves q1 its 3 but
    # one of 2 (or less), and with it and the 1 that is free the ask fits.
    ("q1 keeps its guarantee", 3, 3, [2, 2, 1], 0, 3, 6, "a1"),
    ("what is free counts first", 0, 5, [4, 4], 0, 3, 10, "a1"),
    ("the smallest number", 0, 8, [2, 2, 2, 4], 0, 4, 10, "a3"),
    ("the newest of equals", 0, 8, [5, 5], 0, 5, 10, "a1"),
    ("not more than the guarantee", 0, 4, [5, 5], 0, 5, 10, ""),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_victims_of_a_decision(row: tuple[str, int, int, list[int], int, int, int, str]) -> None:
    _, one, two, runs, has, asks, size, gone = row
    b = two_queues(quota(one), quota(two), nodes=(size,))
    for i, amount in enumerate(runs):
        b.ask("x1", f"a{i}", vcore=amount)
    if has:
        b.ask("x2", "had", vcore=has)
    b.run()
    b.ask("x2", "k", vcore=asks, preempt_other=True)
    assert b.hear() == []
    assert victims(b, after=DELAY) == gone.split()
    assert b.hear(after=100) == []  # an ask preempts once
    confirm(b, *gone.split())
    assert b.run() == ("k@n1" if gone else "")


def test_delay_message_event_and_reservation_of_a_decision() -> None:
    b = two_queues("", quota(5))
    b.ask("x1", "a", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.ask("x2", "shy", vcore=3)
    b.run()
    assert b.api.next_deadline_ns() == b.partition.now + DELAY * 10**9
    assert b.why("k")[-1] == Preemption("too young", "", b.partition.now + DELAY * 10**9)
    assert b.hear(after=DELAY - 1) == []
    assert b.hear(after=1) == [f"released a PREEMPTED_BY_SCHEDULER: {WORD}k"]
    assert b.reserved() == "k@n1"
    assert b.why("k")[-1] == Preemption("victims are going", "n1", None)
    assert [e for e in b.partition.evictions if e.ask == "k"] == [
        Eviction(
            kind="guaranteed",
            ask="k",
            ask_application="x2",
            queue="root.p.q2",
            missing={"vcore": 5},
            rule="queue root.p.q2 is below its guarantee, and others are above theirs (docs/spec/preemption.md, section 2)",
            victim="a",
            victim_application="x1",
            victim_queue="root.p.q1",
            at_ns=b.partition.now,
        )
    ]
    confirm(b, "a")
    assert b.run() == "k@n1 shy@n1"


def test_off_means_off() -> None:
    b = two_queues("", quota(5), more="preemption: {enabled: false}")
    b.ask("x1", "a", vcore=10)
    b.run()
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert b.hear(after=1000) == []
    b.ask("x2", "daemon", required="n1", vcore=3)
    assert len(b.hear()) == 1  # that kind has no switch


def test_preemption_works_without_ordinary_reservations() -> None:
    b = Bench(config("a", f"b {quota(5)}"), settings={"reservation.enabled": "false"})
    b.node("n1", vcore=10)
    b.app("x1", "root.a")
    b.app("x2", "root.b")
    b.ask("x1", "a", vcore=5)
    b.ask("x1", "a2", vcore=5)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    assert (victims(b, after=0), victims(b, after=DELAY), b.reserved()) == ([], ["a2"], "k@n1")
    confirm(b, "a2")
    assert b.run() == "k@n1"


def test_an_ask_that_found_no_victims_retries_when_something_has_changed() -> None:
    b = two_queues("", quota(5))
    b.ask("x1", "a", vcore=10, priority=5)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert b.hear(after=DELAY) == []
    assert b.why("k")[-1] == Preemption("attempted", "no victims help", None)
    assert b.api.next_deadline_ns() is None  # nothing changes, so nothing is tried
    b.seconds += 5
    b.ask("x1", "low", node="n1", vcore=1)
    b.ask("x1", "lower", node="n1", vcore=3)
    assert b.hear(after=9) == []
    assert victims(b, after=1) == []  # tried again: the node is overcommitted, 4 more are not enough
    b.ask("x1", "lowest", node="n1", vcore=3)
    assert victims(b, after=14) == []  # 15 seconds have not passed
    assert b.api.next_deadline_ns() == b.partition.now + 10**9
    assert victims(b, after=1) == []
    b.ask("x1", "large", node="n1", vcore=8)
    assert victims(b, after=15) == []


@pytest.mark.parametrize(("policy", "gone"), [("default", ["a"]), ("fence", []), ("disabled", ["a"])])
def test_fences(policy: str, gone: list[str]) -> None:
    b = Bench(config("out", parent(f"p properties: {{preemption.policy: {policy}}}", f"q {quota(5)}", "r")))
    b.node("n1", vcore=10)
    b.app("x1", "root.out")
    b.app("x2", "root.p.q")
    b.ask("x1", "a", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert victims(b, after=DELAY) == gone


def test_a_disabled_leaf_has_no_victims() -> None:
    b = two_queues("properties: {preemption.policy: disabled}", quota(5))
    b.ask("x1", "a", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert victims(b, after=DELAY) == []


def beside_its_guarantee(vcore: int) -> Bench:
    """q1 is guaranteed 5 of vcore and uses this much, and a gpu, of which nothing is guaranteed; q2 wants a gpu too."""
    b = two_queues(quota(5), quota(5), nodes=())
    b.node("n1", capacity={"vcore": 10, "gpu": 1})
    b.ask("x1", "a", vcore=vcore)
    b.ask("x1", "g", gpu=1)
    b.run()
    b.ask("x2", "k", vcore=1, gpu=1, preempt_other=True)
    b.run()
    return b


@pytest.mark.parametrize(("vcore", "gone"), [(5, []), (6, ["g"])])
def test_a_leaf_within_its_guarantee_has_no_victims_of_any_type(vcore: int, gone: list[str]) -> None:
    assert victims(beside_its_guarantee(vcore), after=DELAY) == gone


def test_without_that_rule_the_example_has_another_victim() -> None:
    assert printed_by("preemption.unprotected") == "g"


def test_victims_elsewhere_help_with_a_quota_only() -> None:
    b = two_queues("", quota(4), above=quota(0, 8), nodes=(10, 10))
    for i in range(8):
        b.ask("x1", f"a{i}", vcore=1)
    b.run()
    b.node("n2", NodeAction.DRAIN_NODE)
    b.ask("x2", "k", vcore=4, preempt_other=True)
    b.run()
    assert victims(b, after=DELAY) == ["a7", "a6", "a5", "a4"]


def test_the_delay_is_a_property_of_the_leaf() -> None:
    b = two_queues("", quota(5) + ", properties: {preemption.delay: 5s}")
    b.ask("x1", "a", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert (victims(b, after=4), victims(b, after=1)) == ([], ["a"])


class Choosy(ResourceManagerCallback):
    """A resource manager that wants nothing evicted on some nodes."""

    def __init__(self, *nodes: str) -> None:
        self.nodes = nodes
        self.asked: list[tuple[str, list[str], int]] = []

    def preemption_predicates(self, args: v19.PreemptionPredicatesArgs) -> v19.PreemptionPredicatesResponse:
        self.asked.append((args.node_id, list(args.preempt_allocation_keys), args.start_index))
        return v19.PreemptionPredicatesResponse(success=args.node_id not in self.nodes, index=args.start_index)


def test_the_resource_manager_is_asked_about_node_and_victims() -> None:
    b = Bench(config("a", f"b {quota(5)}"))
    plugin = Choosy("n2")
    b.register(plugin)
    for number in (1, 2):
        b.node(f"n{number}", vcore=10)
    b.app("x1", "root.a")
    b.app("x2", "root.b")
    b.ask("x1", "old", vcore=10)
    b.ask("x1", "new", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=3, preempt_other=True)
    b.run()
    assert victims(b, after=DELAY) == ["old"]
    assert plugin.asked == [("n2", ["new"], 0), ("n1", ["old"], 0)]


def test_a_node_reserved_by_others_is_not_taken() -> None:
    b = two_queues("", quota(9), nodes=(10, 10))
    b.ask("x1", "a1", vcore=6)
    b.ask("x1", "a2", vcore=6)
    b.run()
    b.ask("x1", "other", vcore=8, priority=3, age_s=10)  # reserves a node
    b.run()
    assert b.reserved() == "other@n1"
    b.ask("x2", "k", vcore=6, preempt_other=True)
    b.run()
    assert (victims(b, after=DELAY), b.reserved()) == (["a2"], "other@n1 k@n2")


def test_a_triggered_ask_does_not_block_a_node_for_ever() -> None:
    b = two_queues("", quota(9))
    b.ask("x1", "a", vcore=10)
    b.run()
    b.ask("x2", "k", vcore=6, preempt_other=True)
    b.run()
    assert (victims(b, after=DELAY), b.reserved()) == (["a"], "k@n1")
    b.release("x2", "k")
    assert b.reserved() == ""
    b.ask("x1", "small", vcore=1)
    b.ask("x2", "again", vcore=6, preempt_other=True)
    b.run()
    assert victims(b, after=DELAY) == []  # room is coming: a is going already
    assert b.why("again")[-1] == Preemption("victims are going", "n1", None)
    confirm(b, "a")
    assert b.run() == "again@n1 small@n1"


@pytest.mark.parametrize("required", ["", "n1"], ids=["for a guarantee", "for a required node"])
def test_an_ask_that_repeats_preempts_for_each_of_its_allocations(required: str) -> None:
    b = two_queues("", quota(9))
    for i in range(5):
        b.ask("x1", f"a{i}", vcore=2)
    b.run()
    b.ask("x2", "k", times=3, vcore=2, preempt_other=True, required=required)
    gone: list[str] = []
    while new := victims(b, after=DELAY):
        gone += new
        confirm(b, *new)
    assert (gone, used(b, "q2"), b.reserved()) == (["a4", "a3", "a2"], [6], "")


def test_daemons_of_one_node_do_not_rely_on_the_same_room() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=10)
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.app("x1")
    b.ask("x1", "v1", node="n1", vcore=5)
    b.ask("x1", "v2", node="n1", vcore=5)
    b.ask("x1", "d1", required="n1", vcore=3)
    b.ask("x1", "d2", required="n1", vcore=3)
    assert victims(b) == ["v2", "v1"]
    confirm(b, "v1", "v2")
    assert b.run() == "d1@n1 d2@n1"


def test_a_new_ask_may_preempt_although_an_older_one_was_entered_again_after_it() -> None:
    """In the first interface an ask from which an allocation was split stands after all others again."""
    b = Bench(config(f"a {quota(5)}", "b"), first_interface=True)
    b.node("n", vcore=10)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.ask("y", "fill", vcore=1, times=10)
    b.run()
    b.ask("x", "old", vcore=1, times=3)
    assert b.run(after=1) == ""
    b.ask("x", "new", vcore=1, preempt_other=True)
    b.release("y", next(iter(b.uuids())))
    assert b.run() == "old@n"
    assert [line.split()[1] for line in b.hear(after=DELAY) if "PREEMPTED_BY_SCHEDULER" in line] == ["fill"]
