"""Who borrows from whom: worked examples, and the laws that the sums keep on any tree."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import licorne
from common.examples import examples
from core.bench import config
from licorne.answers import shares
from licorne.answers.shares import UNGUARANTEED, Borrower, Loan, LoanSum, PersonLimit, loans
from licorne.core.constants import SUM_MAX
from licorne.state.dump import read_dump
from licorne.state.restore import restore
from licorne.state.restored import UnknownNameError
from rest.world import SECOND_NS, START_NS, World

DUMP = Path(__file__).resolve().parents[2] / "examples" / "pods-wait" / "dump.json"
PROMISED = config("a parent: true, resources: {guaranteed: {vcore: 4, gpu: 2}}, queues: [{name: x}, {name: y}]")


def leaf(name: str, used: int, guaranteed: int | None = None) -> Borrower:
    return Borrower(name, used, guaranteed)


def parent(name: str, *children: Borrower, guaranteed: int | None = None) -> Borrower:
    return Borrower(name, sum(child.used for child in children), guaranteed, children)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        # Everybody is within its guarantee.
        (parent("root", leaf("a", 3, 4), leaf("b", 4, 4)), {}),
        # a has 2 to spare, and b uses 1 of it.
        (parent("root", leaf("a", 2, 4), leaf("b", 5, 4)), {("a", "b"): 1}),
        # 3 are lent; b borrows 2 and c 4 of the 6 that are above guarantees: in proportion 1 and 2, the rest is nobody's.
        (
            parent("root", leaf("a", 1, 4), leaf("b", 4, 2), leaf("c", 4)),
            {("a", "b"): 1, ("a", "c"): 2, (UNGUARANTEED, "b"): 1, (UNGUARANTEED, "c"): 2},
        ),
        # Two lend 1 and 3, of which 2 are wanted: 0.5 and 1.5 are equal remainders, so the name decides.
        (parent("root", leaf("a", 0, 1), leaf("b", 0, 3), leaf("c", 2)), {("a", "c"): 1, ("b", "c"): 1}),
        # Siblings first: t.x lends to t.y, and only what is left goes out of t.
        (
            parent("root", parent("t", leaf("t.x", 0, 4), leaf("t.y", 3)), leaf("u", 5)),
            {("t.x", "t.y"): 3, ("t.x", "u"): 1, (UNGUARANTEED, "u"): 4},
        ),
        # What t is guaranteed beyond its children is there for them, and the rest of it is lent outside.
        (
            parent("root", parent("t", leaf("t.x", 5, 4), leaf("t.y", 1), guaranteed=10), leaf("u", 9)),
            {("t", "t.x"): 1, ("t", "t.y"): 1, ("t", "u"): 4, (UNGUARANTEED, "u"): 5},
        ),
        # t is above its guarantee as a whole, so its children borrow from u.
        (
            parent("root", parent("t", leaf("t.x", 12, 4), leaf("t.y", 1), guaranteed=10), leaf("u", 0, 9)),
            {("t", "t.x"): 5, ("t", "t.y"): 1, ("u", "t.x"): 3},
        ),
    ],
)
def test_worked_examples(tree: Borrower, expected: dict[tuple[str, str], int]) -> None:
    assert loans(tree, "vcore") == [Loan("vcore", *pair, amount) for pair, amount in sorted(expected.items())]


@st.composite
def trees(draw: st.DrawFn, name: str = "root", depth: int = 3) -> Borrower:
    """A tree of queues whose guarantees are at least those below, as a configuration must have it."""
    amounts = st.one_of(st.integers(0, 5), st.integers(0, 10**13))
    guaranteed = None if name == "root" else draw(st.one_of(st.none(), amounts))
    if depth == 0 or (name != "root" and draw(st.booleans())):
        return Borrower(name, draw(amounts), guaranteed)
    children = tuple(draw(trees(f"{name}.{index}", depth - 1)) for index in range(draw(st.integers(1, 3))))
    if guaranteed is not None:
        guaranteed += sum(child.promised for child in children)
    return Borrower(name, sum(child.used for child in children), guaranteed, children)


def _all(queue: Borrower) -> list[Borrower]:
    return [queue, *(each for child in queue.children for each in _all(child))]


def check_laws(tree: Borrower) -> None:
    found = loans(tree, "vcore")
    assert len({(loan.lender, loan.borrower) for loan in found}) == len(found)
    borrowed: Counter[str] = Counter()
    lent: Counter[str] = Counter()
    for loan in found:
        assert loan.amount > 0
        assert loan.lender != loan.borrower
        borrowed[loan.borrower] += loan.amount
        lent[loan.lender] += loan.amount
    for queue in _all(tree):
        if not queue.children:
            assert borrowed[queue.queue] == max(0, queue.used - (queue.guaranteed or 0)), queue.queue
            assert lent[queue.queue] <= max(0, (queue.guaranteed or 0) - queue.used), queue.queue
        else:
            assert borrowed[queue.queue] == 0
    for queue in _all(tree):
        if queue.guaranteed is None:
            continue
        below = {each.queue for each in _all(queue)}
        taken = sum(loan.amount for loan in found if loan.borrower in below and loan.lender not in below)
        given_out = sum(loan.amount for loan in found if loan.lender in below and loan.borrower not in below)
        assert taken == max(0, queue.used - queue.guaranteed), f"{queue.queue} borrows outside"
        assert given_out <= max(0, queue.guaranteed - queue.used), f"{queue.queue} lends outside"
    if lent[UNGUARANTEED]:  # only when no guarantee is left to lend
        unused = sum(max(0, child.promised - child.used) for child in tree.children)
        used_inside = sum(amount for name, amount in lent.items() if name != UNGUARANTEED)
        assert used_inside >= min(unused, sum(borrowed.values()))


@examples(300)
@given(trees())
def test_what_is_borrowed_and_lent_sums_up(tree: Borrower) -> None:
    check_laws(tree)


def test_among_many_the_largest_lend_to_the_largest() -> None:
    """As many pairs as there are queues, not their product; what each borrows and lends is as ever."""
    queues = [leaf(f"l{number:03}", 0, number) for number in range(1, 151)] + [
        leaf(f"b{n:03}", n) for n in range(1, 151)
    ]
    check_laws(tree := parent("root", *queues))
    found = loans(tree, "vcore")
    assert len(found) < 300
    assert max(found, key=lambda loan: loan.amount) == Loan("vcore", "l150", "b150", 150)


def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(total: int, weights: dict[str, int]) -> dict[str, int]:
        whole = sum(weights.values())
        return {name: round(total * weight / whole) for name, weight in weights.items()} if whole else {}

    monkeypatch.setattr(import_module("licorne.answers.shares"), "_apportioned", rounded)
    with pytest.raises(AssertionError):
        check_laws(parent("root", leaf("a", 0, 1), leaf("b", 0, 1), leaf("c", 0, 1), leaf("d", 1), leaf("e", 1)))


def test_what_a_cluster_uses_and_promises_is_told() -> None:
    restored = restore(read_dump(DUMP.read_bytes()))
    [part] = shares(restored).partitions
    found = {(row.queue, row.resource): row for row in part.queues}
    search = found["root.search", "vcore"]
    made = (search.used, search.guaranteed, search.max, search.pending, search.below)
    assert made == (20_000, 16_000, 24_000, 8_000, 0)
    assert found["root", "vcore"].max == 96_000
    shown = [(row.name, row.used, row.applications) for row in part.people if row.resource == "vcore"]
    assert shown == [("adam", 40_000, 1), ("sue", 20_000, 1)]
    told = part.loans
    assert told == (Loan("vcore", UNGUARANTEED, "root.ads", 24_000), Loan("vcore", UNGUARANTEED, "root.search", 4_000))
    assert part.borrowed == (LoanSum("vcore", "root.ads", 24_000), LoanSum("vcore", "root.search", 4_000))
    assert part.lent == (LoanSum("vcore", UNGUARANTEED, 28_000),)
    with pytest.raises(UnknownNameError, match="no partition 'gpu'; there are: default"):
        shares(restored, "gpu")


def test_who_is_below_its_guarantee_with_work_that_waits() -> None:
    dump = json.loads(DUMP.read_bytes())
    for queue in dump["config"]["Partitions"][0]["Queues"][0]["Queues"]:
        if queue["Name"] == "research":
            queue["Resources"]["Guaranteed"] = {"vcore": "1500m"}
    [part] = shares(restore(read_dump(json.dumps(dump).encode()))).partitions
    [below] = [row for row in part.queues if row.below]
    assert (below.queue, below.resource, below.below) == ("root.research", "vcore", 1500)
    assert below.waits_since_s == 1_795_593_600 + 3 * 60
    assert Loan("vcore", "root.research", "root.ads", 1286) in part.loans


def test_each_type_waits_since_its_own_oldest_ask() -> None:
    world = World().register(text=PROMISED).application("cpus", "root.a.x").application("gpus", "root.a.y")
    world.ask("c", "cpus", vcore=1000).now += 599 * SECOND_NS
    world.ask("g", "gpus", vcore=1000, gpu=1).node("n", gpu=SUM_MAX).now += SECOND_NS
    [part] = licorne.shares(world.api).partitions
    found = {(row.queue, row.resource): (row.below, row.waits_since_s) for row in part.queues if row.pending}
    begun = START_NS / SECOND_NS
    assert found["root.a", "vcore"] == (2000, begun)
    assert found["root.a", "gpu"] == (1, begun + 599)
    assert found["root.a.y", "vcore"][1] == begun + 599
    assert {row.max for row in part.queues if row.resource == "gpu"} == {None}, "the node does not limit them"


def test_limits_of_people_are_told_wherever_they_are() -> None:
    [part] = shares(restore(read_dump(DUMP.read_bytes()))).partitions
    [sue] = [row for row in part.people if (row.name, row.resource) == ("sue", "vcore")]
    assert (sue.used, sue.limit, sue.limits) == (20_000, None, (PersonLimit("root.search", 20_000, 20_000),))


LIMITED = config(
    "a limits: [{limit: all, users: ['*'], maxresources: {vcore: 4, gpu: 1}}]",
    "b limits: [{limit: eve, users: [eve], maxresources: {vcore: 0, gpu: 3}}]",
    root="limits: [{limit: all, users: [ann, ben], maxresources: {vcore: 10}}]",
)


def test_the_limit_that_leaves_least_is_the_tightest() -> None:
    world = World().register(text=LIMITED).node("n", vcore=20_000, gpu=8)
    world.application("x", "root.a", "ann").application("y", "root.b", "ann").application("z", "root.b", "ben")
    world.ask("k", "x", vcore=3000).ask("l", "y", vcore=4000).ask("m", "z", vcore=1000).schedule()
    [part] = licorne.shares(world.api).partitions
    found = {(row.name, row.resource): row for row in part.people}
    ann = found["ann", "vcore"]
    assert (ann.used, ann.limit) == (7000, 10_000)
    assert ann.limits == (PersonLimit("root", 7000, 10_000), PersonLimit("root.a", 3000, 4000))
    assert ann.tightest == ann.limits[1]
    assert found["ann", "gpu"].limits == (PersonLimit("root.a", 0, 1),)
    assert found["ben", "vcore"].tightest == PersonLimit("root", 1000, 10_000)
    eve = found["eve", "gpu"]  # nothing of hers runs, and root has no limit for her
    assert (eve.used, eve.limit, eve.applications, eve.tightest) == (0, None, 0, PersonLimit("root.b", 0, 3))
