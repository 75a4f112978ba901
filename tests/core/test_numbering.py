"""The numbers of resource types: types that one tenant invents cost no other a node, an ask, or a place in a vector."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import SECOND_NS, Bench, cluster, config
from licorne.config import ConfigError, load
from licorne.core.amounts.types import OTHER_TYPES
from licorne.core.inputs import numbering
from licorne.core.inputs.numbering import ASKED_MAX, NODE_TYPES_MAX, OWN_MAX, ROOM, SWEEP_NS
from licorne.core.inspection.validate import InvariantError
from licorne.si import v19
from licorne.si.messages import AddApplication, NodeAction, Release

MINUTE_S = SWEEP_NS // SECOND_NS


def bench(*queues: str) -> Bench:
    b = cluster(config(*(queues or ("a", "b"))), 1000)
    b.app("x", "root.a")
    b.app("y", "root.b")
    return b


def invent(b: Bench, app: str, count: int, first: int = 0) -> None:
    """Asks of an application, each for a type of its own."""
    for i in range(first, first + count):
        assert not [line for line in b.ask(app, f"{app}-{i}", resource={"vcore": 1, f"{app}-{i}": 1}) if "rej" in line]


def fill(b: Bench, applications: int = ASKED_MAX // OWN_MAX) -> None:
    """Applications of which each invents as many types as it may; by default as many as all asks may have."""
    for i in range(applications):
        b.app(f"x{i}", "root.a")
        invent(b, f"x{i}", OWN_MAX)


def names(b: Bench) -> int:
    return len(b.partition.types.names)


def test_numbers_of_types_are_bounded_per_application() -> None:
    b = bench()
    before = names(b)
    invent(b, "x", OWN_MAX + 20)
    assert names(b) == before + OWN_MAX + 1, "the last is the number that they share"
    assert b.run() == ""
    shown = b.pending("root.a")
    assert shown["x-0"] == 1 and shown[OTHER_TYPES] == 20 and shown["vcore"] == OWN_MAX + 20
    b.ask("y", "y", resource={"vcore": 1, "gpu": 2})
    assert b.pending("root.b") == {"gpu": 2, "vcore": 1}, "others have numbers still"


def test_numbers_of_types_of_all_asks_are_bounded_and_leave_some_for_nodes() -> None:
    b = bench()
    before = names(b)
    fill(b, 8)
    assert names(b) == before + ASKED_MAX + 1
    b.ask("y", "g", resource={"vcore": 1, "gpu": 2})
    assert b.pending("root.b") == {OTHER_TYPES: 2, "vcore": 1}
    assert b.run() == "", "it waits, as for any type that no node has"
    assert b.node("n2", capacity={"vcore": 10, "gpu": 2}) == ["accepted n2"]
    assert b.pending("root.b") == {"gpu": 2, "vcore": 1}
    assert b.run() == "g@n2"
    assert b.partition.nodes["n2"].capacity.n <= names(b) == before + ASKED_MAX + 2


def test_nodes_have_a_bound_of_their_own() -> None:
    b = bench()
    fill(b, 5)
    many = {f"t{i}": 1 for i in range(NODE_TYPES_MAX - 1)}  # and vcore
    assert b.node("n2", capacity=many) == ["accepted n2"]
    (said,) = b.node("n3", capacity={"one-more": 1})
    assert said.endswith(f"no more than {NODE_TYPES_MAX} resource types can be on the nodes of a partition")
    assert b.node("n3", capacity={"t5": 1, "vcore": 3}) == ["accepted n3"]
    b.node("n2", NodeAction.DECOMISSION)
    assert b.node("n4", capacity={"one-more": 1}) == ["accepted n4"]


def test_numbers_that_nothing_uses_are_used_again() -> None:
    """Nodes come with ever other types, and asks too: the list of numbers does not grow."""
    b = bench()
    for i in range(150):
        b.node("n2", capacity={f"t{i}": 1, "vcore": 1})
        b.ask("x", "k", resource={f"t{i}": 1})
        assert b.run() == "k@n2"
        b.release("x", "k")
        b.node("n2", NodeAction.DECOMISSION)
    assert names(b) <= ROOM
    assert b.partition.numbering.sweeps <= 150 // (ROOM // 2) + 1


def test_numbers_of_asks_come_back_within_a_minute() -> None:
    b = bench()
    fill(b)
    b.remove("x0")
    for turn in range(3):  # so many sweeps, however many types are invented
        for i in range(20):
            b.ask("y", f"k{i}", resource={f"type {turn} {i}": 1})
        b.send(Release(application_id="y"))
        b.run(after=MINUTE_S)
    assert b.partition.numbering.sweeps <= 1 + 3
    b.app("z", "root.b")
    b.ask("z", "k", resource={"gpu": 1})
    assert b.pending("root.b") == {"gpu": 1}


def test_a_type_that_nodes_had_is_not_kept_by_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes bring types, asks wait for them, and the nodes go: the asks wait on, and new nodes have room."""
    monkeypatch.setattr(numbering, "ASKED_MAX", 8)
    b = bench()
    for i in range(ROOM - 3):
        b.node("n2", capacity={f"t{i}": 1})
        b.ask("x", f"k{i}", resource={f"t{i}": 2})
        b.node("n2", NodeAction.DECOMISSION)
    assert b.partition.numbering.sweeps == 0 and OTHER_TYPES not in b.pending("root.a")
    b.node("n3", capacity={f"u{i}": 1 for i in range(5)})
    assert len(b.partition.numbering.asked) == 8
    assert b.pending("root.a")[OTHER_TYPES] == 2 * (ROOM - 3 - 8)
    assert names(b) < ROOM + 5
    b.node("n2", capacity={f"t{ROOM - 4}": 2})
    assert b.run() == f"k{ROOM - 4}@n2"


def test_a_node_brings_a_type_that_asks_wait_for_while_numbers_are_swept() -> None:
    b = bench()
    b.ask("x", "k", resource={"gpu": 1})
    b.partition.numbering._room = 3
    assert b.node("n2", capacity={"gpu": 1, "disk": 1}) == ["accepted n2"]
    assert b.partition.numbering.sweeps == 1 and not b.partition.numbering.asked
    assert b.run() == "k@n2"


def test_uncounted_amounts_count_when_a_node_brings_their_type() -> None:
    """Amounts of other schedulers, of an allocation that was there before, and a quota in a tag."""
    tags = {"namespace.resourcequota": '{"resources": {"gpu": {"value": 3}, "vcore": {"value": 1000}}}'}
    b = cluster(config("a", more="placementrules: [{name: provided, create: true}]"), 1000)
    fill(b)
    b.foreign("f", "n1", vcore=1, gpu=2)
    b.app("y", "root.dynamic", tags=tags)
    b.ask("y", "there", node="n1", resource={"vcore": 1, "gpu": 1})
    b.ask("y", "next", resource={"vcore": 1, "gpu": 3})
    assert b.allocated("root.dynamic") == {"vcore": 1, OTHER_TYPES: 1}
    b.node("n1", NodeAction.UPDATE, capacity={"vcore": 1000, "gpu": 8})
    assert b.allocated("root.dynamic") == {"gpu": 1, "vcore": 1}
    assert b.free("n1")["gpu"] == 5
    assert b.run() == "", "the quota of 3 leaves 2"
    b.release("y", "there")
    assert b.run() == "next@n1"


def test_equal_amounts_of_types_that_share_a_number_are_not_the_same() -> None:
    b = bench()
    fill(b)
    b.ask("y", "one", resource={"red": 1})
    b.ask("y", "two", resource={"blue": 1})
    b.ask("y", "two", resource={"green": 1})  # a change
    b.node("n2", capacity={"red": 1, "green": 1})
    assert b.run() == "one@n2 two@n2"


def test_a_gang_for_types_that_share_a_number() -> None:
    b = bench()
    fill(b)
    b.send(AddApplication(application_id="z", queue="root.b", user="u", placeholder_ask={"gpu": 2}))
    for i in range(2):
        b.ask("z", f"p{i}", placeholder=True, resource={"gpu": 1})
    b.node("n2", capacity={"gpu": 2})
    assert b.run() == "p0@n2 p1@n2"
    assert b.state("z") == "Running", "it has all its placeholders"


def test_partitions_do_not_share_numbers() -> None:
    b = bench()
    invent(b, "x", OWN_MAX)
    b.api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="other", config=config("a")))
    other = b.api.cluster.partition("other")
    assert names(b) > len(other.types.names) == 2


def test_a_configuration_has_a_bound_of_its_own() -> None:
    def text(count: int) -> str:
        return config(f"a resources: {{max: {{{', '.join(f't{i}: 1' for i in range(count))}}}}}")

    load(text(1022))  # with memory and vcore, which weigh nodes
    with pytest.raises(ConfigError, match=r"resource-types"):
        load(text(1100))
    b = Bench(text(1000))
    b.node("n1", capacity={f"u{i}": 1 for i in range(1000)})
    b.reload(config("a resources: {max: {gpu: 1}}"))
    b.reload(text(1000))


def test_a_number_that_is_free_and_read_is_found() -> None:
    b = bench()
    b.ask("x", "k", resource={"gpu": 1})
    types = b.partition.types
    types.set_free([types.forget("gpu")])
    with pytest.raises(InvariantError):
        b.api.validate()


# -- anything in any order ------------------------------------------------------------------------------------

TYPE = st.integers(0, 120).map("t{}".format)
MAP = st.dictionaries(TYPE, st.integers(1, 3), min_size=1, max_size=12)
STEP = st.one_of(
    st.tuples(st.just("node"), st.integers(0, 3), MAP),
    st.tuples(st.just("no node"), st.integers(0, 3), st.just({})),
    st.tuples(st.just("ask"), st.integers(0, 20), MAP),
    st.tuples(st.just("there"), st.integers(21, 24), MAP),
    st.tuples(st.just("release"), st.integers(0, 24), st.just({})),
    st.tuples(st.just("foreign"), st.integers(0, 3), MAP),
    st.tuples(st.just("remove"), st.integers(0, 5), st.just({})),
    st.tuples(st.just("reload"), st.integers(0, 1), MAP),
    st.tuples(st.just("run"), st.sampled_from([0, 1, MINUTE_S]), st.just({})),
)


@given(st.lists(STEP, max_size=30))
def test_numbers_are_right_after_any_history(steps: list[tuple[str, int, dict[str, int]]]) -> None:
    """`validate`, after each step: every vector is its map's, and what is free reads 0."""
    b = bench("a", "b")
    b.partition.numbering._room = 8  # sweep early and often
    for what, number, amounts in steps:
        _step(b, what, number, amounts)
    for app in list(b.partition.applications):
        b.remove(app)
    assert b.partition.tree.root.pending.zero() and b.partition.tree.root.allocated.zero()


def _step(b: Bench, what: str, number: int, amounts: dict[str, int]) -> Any:
    app = f"x{number % 6}"
    if what in ("ask", "there") and app not in b.partition.applications:
        b.app(app, "root.a")
    match what:
        case "node":
            known = f"m{number}" in b.partition.nodes
            b.node(f"m{number}", NodeAction.UPDATE if known else NodeAction.CREATE, capacity=amounts)
        case "no node":
            b.node(f"m{number}", NodeAction.DECOMISSION)
        case "ask":
            b.ask(app, f"k{number}", resource=amounts)
        case "there":
            b.ask(app, f"k{number}", node="n1", resource=amounts)
        case "release":
            b.release(app, f"k{number}")
        case "foreign":
            b.foreign(f"f{number}", "n1", **amounts)
        case "remove":
            b.remove(app)
        case "reload":
            quota = ", ".join(f"{name}: {amount}" for name, amount in sorted(amounts.items()))
            b.reload(config(f"a resources: {{max: {{{quota}}}}}" if number else "a", "b"))
        case "run":
            b.run(after=number)
