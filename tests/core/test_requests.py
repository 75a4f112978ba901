"""Request order: higher priority, then older, then arrival, always (docs/spec/scheduling.md, section 5.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, cluster, config
from licorne.si import messages

# (key, priority, age in seconds) in the order of arrival, and the order in which they are tried
ORDERS = [
    ("a1:0 a2:0 low:-1 a3:0 a4:0", "a1 a2 a3 a4 low"),  # the original gives a4 a3 a1 a2 low
    ("a:0 b:1 c:2", "c b a"),
    ("a:0 b:0:10 c:0:20", "c b a"),
    ("a:1 b:0:10 c:1:5", "c a b"),
    ("b:0 a:0", "b a"),
    ("a:2147483647 b:-2147483648 c:0", "a c b"),
]


@pytest.mark.parametrize(("arrivals", "order"), ORDERS)
def test_request_order(arrivals: str, order: str) -> None:
    b = cluster(config("a"), 100, apps="x")
    for arrival in arrivals.split():
        key, priority, age = [*arrival.split(":"), "0"][:3]
        b.ask("x", key, priority=int(priority), age_s=int(age), vcore=1)
    assert b.run() == " ".join(f"{key}@n1" for key in order.split())


def test_the_age_of_an_ask_counts_only_in_whole_seconds_and_no_bad_tag_does() -> None:
    b = cluster(config("a"), 100, apps="x")
    for key, tag in (("first", "x"), ("negative", "-5"), ("float", "1.5"), ("huge", "9" * 11), ("old", "1")):
        b.ask("x", key, tags={"creationTime": tag}, vcore=1)
    assert b.run().replace("@n1", "") == "old first negative float huge"


Arrival = tuple[int, int, int]


@examples(30)
@given(st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=300))
def test_the_order_holds_for_many_while_some_go(arrivals: list[Arrival]) -> None:
    """More than a block of asks; one in ten is released again."""
    b = cluster(config("a"), apps="x")
    x = b.application("x")
    for i, (priority, age, _) in enumerate(arrivals):
        b.send(*ask(b, f"k{i}", priority, age))
    for i, (_, _, fate) in enumerate(arrivals):
        if fate == 0:
            b.release("x", f"k{i}")
    left = [(-p, -age, i) for i, (p, age, fate) in enumerate(arrivals) if fate]
    assert [request.key for request in x.requests.in_order()] == [f"k{i}" for _, _, i in sorted(left)]
    x.requests.validate()


@examples(15)
@given(st.lists(st.tuples(st.booleans(), st.integers(-1, 1), st.integers(0, 2)), min_size=200, max_size=400))
def test_the_order_holds_while_the_first_go_and_others_come(steps: list[tuple[bool, int, int]]) -> None:
    b = cluster(config("a"), apps="x")
    x = b.application("x")
    pending: list[tuple[int, int, int]] = []
    for i, (goes, priority, age) in enumerate(steps):
        if goes and i > 150:
            b.release("x", f"k{pending.pop(0)[2]}")
        else:
            b.send(*ask(b, f"k{i}", priority, age))
            pending = sorted([*pending, (-priority, -age, i)])
        if i % 20 == 0:
            x.requests.validate()
    assert [request.key for request in x.requests.in_order()] == [f"k{i}" for _, _, i in pending]


def ask(b: Bench, key: str, priority: int, age: int) -> list[messages.Input]:
    tags = {"creationTime": str(int(b.seconds) - age)}
    return [messages.Allocation(key=key, application_id="x", resource={"vcore": 1}, priority=priority, tags=tags)]
