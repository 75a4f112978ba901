"""Asks that evict together and have terms of pods: all that something was evicted for can then run, and no term is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import factorial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from gangs_atomic.helpers import tags as gang_tags
from gangs_atomic.helpers import task_groups
from licorne.si.messages import Allocation, NewAllocation
from preemption.test_examples import DELAY, confirm, victims
from preemption.test_openings import Pod, World, passes

Member = tuple[Pod, int]  # with its size


class Books:
    """What runs where, by the messages of the scheduler; what is placed must pass beside it."""

    def __init__(self, world: World) -> None:
        self.world, self.bench = world, world.bench
        assert self.bench.run() == ""
        self.asked: dict[str, Member] = {}
        self.runs = {key: (pod, "") for key, (pod, _) in world.pods.items()}
        for alloc in self.bench.partition.applications["x"].allocations.values():
            self.runs[alloc.key] = world.pods[alloc.key][0], alloc.node.id if alloc.node else ""
        self.read = len(self.bench.outputs)

    def ask(self, app: str, members: list[Member], how: str) -> list[str]:
        """Ask for pods in the queue that preempts, together unless `how` is `alone`; return what is evicted for them."""
        tags = {} if how == "alone" else gang_tags(task_groups(w=len(members)), how.removeprefix("placeholders"))
        self.bench.app(app, "root.a" if self.world.within else "root.b", tags=tags)
        for number, (pod, size) in enumerate(members):
            key = f"{app}{number}"
            self.asked[key] = pod, size
            self.bench.send(
                Allocation(
                    key=key,
                    application_id=app,
                    resource={"vcore": size},
                    priority=2,
                    tags=pod.tags(),
                    task_group="w" if tags else "",
                    placeholder=how == "placeholders",
                    allow_preempt_other=True,
                )
            )
        gone = victims(self.bench, after=DELAY)
        self.check()
        return gone

    def end(self, key: str) -> None:
        """Let a victim end."""
        confirm(self.bench, key)
        del self.runs[key]
        self.bench.run()
        self.check()

    def check(self) -> None:
        """Enter what was placed since the last check, each in its turn."""
        for one in self.bench.outputs[self.read :]:
            if isinstance(one, NewAllocation):
                pod, _ = self.asked.pop(one.key)
                assert passes(pod, one.node_id, self.world.zones, self.runs.values()), one
                self.runs[one.key] = pod, one.node_id
        self.read = len(self.bench.outputs)
        self.check_claims()

    def check_claims(self) -> None:
        """What claims refuse, computed for all nodes at once, is what they refuse when asked about each."""
        claims = self.bench.partition.claims
        for app in self.bench.partition.applications.values():
            for ask in app.asks.values():
                for node in self.bench.partition.nodes.values():
                    kept, spared = claims.keep_off(ask, node), claims.spare_domains(ask, node)
                    assert kept != spared or (kept and ask in claims.by_ask)  # others may count on its claim


Row = tuple[str, str, list[tuple[Pod, int, int, int]], list[Member], list[str]]
DB, WEB = Pod("db"), Pod("web")
EXAMPLES: list[Row] = [
    (
        "nobody evicts what a member before it wants near",
        "aa",
        [(WEB, 0, 1, 0), (DB, 0, 3, 0), (DB, 1, 4, 0)],
        [(Pod("db", near=("zone", "web")), 3), (Pod("k", apart=("zone", "web")), 1)],
        [],
    ),
    (
        "nor what keeps the counts of a spread even, where another will do",
        "abb",
        [(WEB, 0, 1, 3), (DB, 0, 3, 0), (WEB, 1, 4, 1), (DB, 2, 4, 2)],
        [(Pod("web", spread=("zone", "web")), 3), (Pod("db"), 4)],
        ["v1", "v3"],
    ),
    (
        "members that exclude each other are in different zones",
        "aab",
        [(DB, 0, 4, 0), (DB, 1, 4, 0), (DB, 2, 4, 0)],
        [(Pod("web", apart=("zone", "web")), 4)] * 2,
        ["v1", "v2"],
    ),
]


@pytest.mark.parametrize("how", ["atomic", "placeholders"])
@pytest.mark.parametrize(("zones", "running", "gang", "gone"), [pytest.param(*row[1:], id=row[0]) for row in EXAMPLES])
def test_what_goes(
    zones: str, running: list[tuple[Pod, int, int, int]], gang: list[Member], gone: list[str], how: str
) -> None:
    books = Books(World([*zones], running, within=False))
    assert sorted(books.ask("g", gang, how)) == gone
    for key in gone:
        books.end(key)
    assert bool(books.asked) == (not gone)


def check_all_placed(
    world: World, first: Member | None, gang: list[Member], how: str, order: Callable[[list[str]], Sequence[str]]
) -> list[str]:
    """Ask for `first`, then for the gang; let the victims end in this order; return them. All that has a claim is placed then."""
    books = Books(world)
    gone = books.ask("k", [first], "alone") if first else []
    claiming = [ask.key for ask in books.bench.partition.claims.by_ask]
    mine = books.ask("g", gang, how)
    if mine:
        claiming += [f"g{number}" for number in range(len(gang))]
    for key in order(gone + mine):
        books.end(key)
    assert not [key for key in claiming if key in books.asked]
    return gone + mine


WITH_CLAIMS: list[tuple[str, str, list[tuple[Pod, int, int, int]], Member, list[Member], str, int]] = [
    (
        "one on whose claim another counts is not placed elsewhere",
        "ccb",
        [
            (DB, 0, 3, 0),
            (Pod("web", ("zone", "db")), 0, 1, 1),
            (WEB, 1, 2, 0),
            (WEB, 1, 1, 1),
            (WEB, 1, 1, 3),
            (DB, 2, 4, 0),
        ],
        (Pod("web", spread=("zone", "db")), 1),
        [(Pod("db", near=("host", "web")), 2), (DB, 1), (WEB, 1)],
        "placeholders",
        2,
    ),
    (
        "a gang takes the place of no pod that another claim needs, and counts on that claim",
        "bac",
        [(DB, 0, 4, 0), (WEB, 1, 3, 0), (DB, 1, 1, 0), (WEB, 2, 2, 0), (DB, 2, 2, 1)],
        (Pod("db", near=("host", "web")), 1),
        [(Pod("db", spread=("zone", "db")), 2), (Pod("web", spread=("zone", "web")), 1), (WEB, 1)],
        "atomic",
        3,
    ),
]


@pytest.mark.parametrize("turn", range(6))
@pytest.mark.parametrize(
    ("zones", "running", "first", "gang", "how", "number"), [pytest.param(*row[1:], id=row[0]) for row in WITH_CLAIMS]
)
def test_claims_that_count_on_each_other(
    zones: str,
    running: list[tuple[Pod, int, int, int]],
    first: Member,
    gang: list[Member],
    how: str,
    number: int,
    turn: int,
) -> None:
    """In each order in which the victims may end."""
    world = World([*zones], running, within=False)
    gone = check_all_placed(world, first, gang, how, lambda gone: [*permutations(gone)][turn % factorial(len(gone))])
    assert len(gone) == number


sizes = st.sampled_from(((4,), (3, 1), (1, 3), (2, 2), (2, 1, 1)))
kind = st.sampled_from(("web", "db"))
term = st.tuples(st.sampled_from(("host", "zone", "zone")), kind)
runs = st.tuples(st.builds(Pod, kind, st.none() | term), st.sampled_from((0, 0, 0, 1, 3)))
one_term = st.one_of([st.builds(Pod, kind, **{name: term}) for name in ("apart", "near", "spread")])
member = st.tuples(one_term | st.builds(Pod, kind), st.integers(1, 3))


@examples(150)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), sizes), min_size=2, max_size=4),
    st.lists(runs, min_size=12, max_size=12),
    st.none() | member,
    st.lists(member, min_size=2, max_size=3),
    st.sampled_from(("atomic", "placeholders")),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_all_that_something_is_evicted_for_is_placed(
    nodes: list[tuple[str, tuple[int, ...]]],
    pods: list[tuple[Pod, int]],
    first: Member | None,
    gang: list[Member],
    how: str,
    within: bool,
    random: Random,
) -> None:
    """Whatever the order in which the victims end; `first` has a claim already; not within the queue, where the gang is of higher order."""
    places = [(number, size) for number, (_, parts) in enumerate(nodes) for size in parts]
    running = [(pod, at, size, priority) for (pod, priority), (at, size) in zip(pods, places, strict=False)]
    world = World([zone for zone, _ in nodes], running, within=within)
    check_all_placed(world, None if within else first, gang, how, lambda gone: random.sample(gone, len(gone)))
