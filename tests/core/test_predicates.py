"""Predicates: a resource manager allows or refuses nodes.

Source: docs/spec/scheduler-interface.md, sections 5 and 9; docs/spec/scheduling.md, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.listener import Judge, apps, ask, node, releases, v19_api
from licorne import SchedulerAPI
from licorne.si import v19


def judged(answer: Callable[[v19.PredicatesArgs], str | None], *nodes: int) -> tuple[SchedulerAPI, Judge]:
    judge = Judge(answer)
    api = v19_api(judge)
    for number, vcore in enumerate(nodes, 1):
        node(api, f"n{number}", vcore)
    apps(api, "x")
    return api, judge


def crowded(answer: Callable[[v19.PredicatesArgs], str | None]) -> tuple[SchedulerAPI, Judge]:
    """Two nodes with 6 of 10 in use, and an ask for 7."""
    api, judge = judged(answer, 10, 10)
    ask(api, "big-1", vcore=6)
    ask(api, "big-2", vcore=6)
    api.schedule()
    ask(api, "k", vcore=7)
    return api, judge


def made(judge: Judge) -> list[str]:
    return [f"{a.allocation_key}@{a.node_id}" for kind, r in judge.take() if kind == "allocation" for a in r.new]


def test_predicates_are_asked_last_of_nodes_with_room_until_one_allows_it() -> None:
    api, judge = judged(lambda args: "no" if args.node_id == "n2" else None, 1, 10, 10)
    tags = {"licorne/node-constraints": '{"nodeAffinity": [[{"key": "x", "operator": "DoesNotExist", "values": []}]]}'}
    ask(api, "k", vcore=2, allocation_tags=tags)
    api.schedule()
    assert judge.asked == ["k n2 True", "k n3 True"]  # n1 is too small, the third one is not needed
    assert made(judge) == ["k@n3"]


def raises(args: v19.PredicatesArgs) -> str | None:
    raise ValueError(args.node_id)


@pytest.mark.parametrize("answer", [lambda _: "no", raises])
def test_a_refused_ask_is_asked_about_again_at_the_next_call(answer: Callable[[Any], str | None]) -> None:
    api, judge = judged(answer, 10)
    ask(api, "k")
    assert (api.schedule(), judge.asked) == (0, ["k n1 True"])
    assert (api.schedule(), judge.asked) == (0, ["k n1 True"] * 2)
    judge.answer = lambda _: None
    assert api.schedule() == 1
    api.validate()


def test_an_error_of_a_predicate_is_kept_and_counts_as_no() -> None:
    api, judge = judged(raises, 10, 10)
    ask(api, "k")
    assert api.schedule() == 0
    assert judge.asked == ["k n1 True", "k n2 True"]
    assert api.callback_errors == ["ValueError: n1", "ValueError: n2"]
    for _ in range(100):
        api.schedule()
    assert len(api.callback_errors) == 100


def test_a_reservation_asks_with_allocate_false() -> None:
    api, judge = crowded(lambda args: None if args.allocate else "no")
    judge.asked.clear()
    api.schedule(now_ns=3 * 10**9)
    assert judge.asked == ["k n1 False"]
    assert len(api.cluster.partition("rm").reservations) == 0


def test_a_predicate_may_refuse_the_reserved_node() -> None:
    api, judge = crowded(lambda _: None)
    api.schedule(now_ns=3 * 10**9)
    assert len(api.cluster.partition("rm").reservations) == 1
    judge.answer = lambda args: "no" if args.node_id == "n1" else None
    release = v19.AllocationRelease(application_id="x", allocation_key="big-1")
    api.update_allocation(releases(release))
    assert api.schedule() == 0
    node(api, "n3")
    assert api.schedule() == 1
    assert made(judge)[-1] == "k@n3"
    api.validate()
