"""The node index against sorting and scanning: docs/spec/scheduling.md, sections 7.1 and 7.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, config
from licorne.config.model import NodePolicy
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.nodes.constraints import NodeLabels
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Node, ScorePolicy, first_need
from seeds import some_seeds

TYPES = Types()
VCORE, MEMORY, GPU = (TYPES.slot(name) for name in ("vcore", "memory", "gpu"))
ANY = first_need()


def node(id: str, **capacity: int) -> Node:
    made = Node(id, {}, NodeLabels(), TYPES.vector(capacity))
    made.open = True
    made.constraint_bitmap = Vec(1, ANY.mask)
    return made


def use(made: Node, **amounts: int) -> None:
    made.allocated = new_sum()
    made.allocated.plus(TYPES.vector(amounts))
    made.refree()


# -- scores --------------------------------------------------------------------------------------------------

# capacity, used, weights, usage
SCORES = [
    ({"vcore": 100, "memory": 100}, {"vcore": 90, "memory": 50}, {"vcore": 1, "memory": 1}, 0.70),
    ({"vcore": 100, "memory": 100}, {"vcore": 90, "memory": 50}, {"vcore": 4, "memory": 1}, 0.82),
    ({"vcore": 100, "memory": 100}, {"vcore": 90, "memory": 50}, {"memory": 1}, 0.50),
    ({"vcore": 100}, {"vcore": 90}, {"vcore": 1, "memory": 1}, 0.90),  # a type the node lacks does not count
    ({"gpu": 4}, {"gpu": 3}, {"vcore": 1, "memory": 1}, 0.0),
    ({"vcore": 100, "gpu": 4}, {"vcore": 50, "gpu": 3}, {"vcore": 1, "gpu": 3}, 0.6875),
    ({"vcore": 100}, {"vcore": 150}, {"vcore": 1}, 1.5),  # more used than there is, after a capacity shrank
    ({}, {}, {"vcore": 1}, 0.0),
]


@pytest.mark.parametrize(("capacity", "used", "weights", "usage"), SCORES)
def test_scores(capacity: dict[str, int], used: dict[str, int], weights: dict[str, float], usage: float) -> None:
    made = node("n", **capacity)
    use(made, **used)
    places = [(TYPES.slot(name), weight) for name, weight in sorted(weights.items())]
    for policy, score in (("fair", usage), ("binpacking", 1 - usage)):
        index = NodeIndex(ScorePolicy(policy, places))
        index.add(made, len(TYPES.names))
        assert made.score == pytest.approx(score)
        index.drop(made)


# -- the law ---------------------------------------------------------------------------------------------------

WEIGHTS: list[list[tuple[int, float]]] = [[(VCORE, 1.0), (MEMORY, 1.0)], [(GPU, 2.5)], []]
POLICIES = [ScorePolicy(policy, weights) for policy in get_args(NodePolicy) for weights in WEIGHTS]


class Model:
    """An index and the nodes that should be in it."""

    def __init__(self, policy: ScorePolicy) -> None:
        self.index = NodeIndex(policy)
        self.nodes: dict[str, Node] = {}

    def add(self, id: str, vcore: int, memory: int, gpu: int, width: int = 3) -> None:
        if id not in self.nodes:
            amounts = {"vcore": vcore, "memory": memory, "gpu": gpu}
            self.nodes[id] = node(id, **{name: amount for name, amount in amounts.items() if amount})
            self.index.add(self.nodes[id], width)

    def drop(self, id: str) -> None:
        made = self.nodes.pop(id, None)
        if made is not None:
            self.index.drop(made)

    def use(self, id: str, vcore: int, memory: int, is_open: bool) -> None:
        if id in self.nodes:
            use(self.nodes[id], vcore=vcore, memory=memory)
            self.nodes[id].open = is_open
            self.index.mend(self.nodes[id])

    def in_order(self) -> list[Node]:
        """By score, which `validate` proves to be the policy's, and id."""
        return sorted(self.nodes.values(), key=lambda n: (n.score, n.id.encode()))

    def check(self) -> None:
        self.index.validate()
        ids = [made.id for made in self.in_order()]
        assert [made.id for made in self.index.ordered()] == ids

    def check_search(self, wanted: Sequence[tuple[int, int, int]]) -> None:
        for amounts in wanted:
            ask = TYPES.vector(dict(zip(("vcore", "memory", "gpu"), amounts, strict=True)))
            able = [made for made in self.in_order() if made.free.covers(ask) and made.open]
            found: list[Node] = []
            after: Any = None
            while (after := self.index.find(ask, ANY, after)) is not None:
                found.append(after)
            assert [made.id for made in found] == [made.id for made in able]


# few scores, so that ids break ties; ids whose order in bytes is not that of their length
IDS = st.text("ab-é", min_size=1, max_size=4)
SIZE = st.integers(0, 8)
STEP = st.one_of(
    st.tuples(st.just("add"), IDS, SIZE, SIZE, SIZE),
    st.tuples(st.just("use"), IDS, SIZE, SIZE, st.booleans()),
    st.tuples(st.just("drop"), IDS),
    st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
)
WANTED = [(0, 0, 0), (1, 0, 0), (3, 3, 0), (0, 0, 1), (9, 0, 0)]


@given(st.sampled_from(POLICIES), st.lists(STEP, max_size=40))
def test_the_index_is_a_sorted_list(policy: ScorePolicy, steps: list[tuple[object, ...]]) -> None:
    model = Model(policy)
    for name, *arguments in steps:
        if name == "policy":
            model.index.set_policy(*arguments)  # type: ignore[arg-type]
        else:
            getattr(model, str(name))(*arguments)
        model.check()
    model.check_search(WANTED)


@examples(15)
@given(st.integers(0, 2**32), st.sampled_from(POLICIES))
def test_hundreds_of_nodes_split_and_join_blocks(seed: int, policy: ScorePolicy) -> None:
    choose = Random(seed).randint
    model = Model(policy)
    for _ in range(600):
        model.add(f"n{choose(0, 999)}", choose(0, 8), choose(0, 8), choose(0, 1))
        model.use(f"n{choose(0, 999)}", choose(0, 8), choose(0, 8), choose(0, 3) > 0)
    model.check()
    model.check_search(WANTED)
    for name in sorted(model.nodes)[: choose(200, 400)]:
        model.drop(name)
        if choose(0, 9) == 0:
            model.index.validate()
    model.check()


@pytest.mark.parametrize("seed", some_seeds("LICORNE_INDEX_SEED", 4))
def test_the_first_node_takes_what_comes_and_moves_on(seed: int) -> None:
    """As decisions have it: mostly the first row of the first block leaves, for somewhere else."""
    choose = Random(seed).randint
    model = Model(POLICIES[seed % 2 * len(WEIGHTS)])
    for i in range(300):
        model.add(f"n{i}", choose(4, 40), choose(4, 40), 0)
    for step in range(1000):
        ask = TYPES.vector({"vcore": choose(1, 3), "memory": choose(1, 3)})
        first: Any = model.index.find(ask, ANY, None)
        if first is not None and choose(0, 4):
            first.allocated.plus(ask)
            first.free.minus(ask)
            model.index.mend(first)
        else:
            model.use(f"n{choose(0, 299)}", 0, 0, True)
        if step % 50 == 49:
            model.drop(f"n{choose(0, 299)}")
            model.check()
    model.check_search(WANTED)


NAMES: dict[str, Callable[[int], str]] = {
    "front": lambda i: "A" * (200 - i),
    "middle": lambda i: "b" * (200 - i),
    "back": lambda i: "z" * (i + 2),
}


@pytest.mark.parametrize("where", NAMES)
def test_ranks_are_given_anew_when_there_is_no_room_between_two(where: str) -> None:
    model = Model(ScorePolicy("fair", [(VCORE, 1.0)]))
    model.add("a", 1, 0, 0)
    model.add("z", 1, 0, 0)
    for i in range(100):
        model.add(NAMES[where](i), 1, 0, 0)
        if i % 10 == 9:
            model.check()
    assert len(model.nodes) == 102


def test_a_type_that_comes_late_widens_the_columns() -> None:
    model = Model(ScorePolicy("fair", []))
    for i in range(70):
        model.add(f"n{i}", 1, 0, 0, width=1)
    model.add("gpu", 1, 0, 4, width=3)
    model.check()
    model.check_search([(0, 0, 1), (1, 0, 0)])


# -- through decisions -------------------------------------------------------------------------------------------

ROOM = st.integers(0, 24)  # for several pods, so that the nodes come to differ in what is used
PODS = st.tuples(st.integers(1, 6), st.integers(0, 6), st.booleans())


@pytest.mark.parametrize("policy", get_args(NodePolicy))
@examples(40)
@given(
    st.sampled_from(["", ", resourceweights: {memory: 3.0}"]),
    st.lists(st.tuples(ROOM, ROOM), min_size=3, max_size=12),
    st.lists(PODS, min_size=6, max_size=25),
)
def test_every_decision_takes_the_first_node_of_a_sorted_list(
    policy: str, weights: str, nodes: list[tuple[int, int]], pods: list[tuple[int, int, bool]]
) -> None:
    b = Bench(
        config("a", more=f"nodesortpolicy: {{type: {policy}{weights}}}"), settings={"reservation.enabled": "false"}
    )
    sizes = {f"n{i}": size for i, size in enumerate(nodes)}
    used = dict.fromkeys(sizes, (0, 0))
    weight = (0, 3) if weights else (1, 1)
    for name, (vcore, memory) in sizes.items():
        b.node(name, vcore=vcore, memory=memory)
    b.app("x")
    running: list[tuple[str, str, int, int]] = []
    for i, (vcore, memory, release) in enumerate(pods):
        free = {n: (sizes[n][0] - used[n][0], sizes[n][1] - used[n][1]) for n in sizes}
        able = [n for n in sizes if free[n][0] >= vcore and free[n][1] >= memory]
        best = min(able, key=lambda n: (score(policy, sizes[n], free[n], weight), n), default="")
        b.ask("x", f"k{i}", vcore=vcore, memory=memory)
        assert b.run() == (f"k{i}@{best}" if best else "")
        if best:
            used[best] = (used[best][0] + vcore, used[best][1] + memory)
            running.append((f"k{i}", best, vcore, memory))
        else:
            b.release("x", f"k{i}")
        if release and running:
            key, name, *amounts = running.pop(0)
            b.release("x", key)
            used[name] = (used[name][0] - amounts[0], used[name][1] - amounts[1])


def score(policy: str, size: tuple[int, int], free: tuple[int, int], weights: tuple[int, int]) -> float:
    """docs/spec/scheduling.md, section 7.5, read literally; types by name: memory, vcore."""
    terms = [(1.0 - free[i] / size[i], weights[i]) for i in (1, 0) if size[i] and weights[i]]
    usage = sum(share * weight for share, weight in terms) / sum(weight for _, weight in terms) if terms else 0.0
    return usage if policy == "fair" else 1.0 - usage
