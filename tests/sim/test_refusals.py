"""Refusals by the scheduler in a workload: the reasons are whole sentences, counted together, with the line of an example."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.base.rejections import naming
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.workload import Workload, WorkloadError, parse_workload

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
NODE = {"t": "node", "id": "n1", "res": {"vcore": 2000}}


def workload(
    *lines: dict[str, Any], version: int = 2, config: str = QUEUES, extra: dict[str, str] | None = None
) -> Workload:
    """Its lines begin with number 3."""
    head = [
        {"t": "meta", "name": "w", "version": version},
        {"t": "config", "yaml": config, "extra": extra or {}},
    ]
    texts = [msgspec.json.encode(line) + b"\n" for line in [*head, *lines]]
    return parse_workload(texts, file="w.jsonl")


def app(name: str, queue: str = "root.a", **more: Any) -> dict[str, Any]:
    return {"t": "app", "id": name, "queue": queue, "user": "u", **more}


def ask(key: str, of: str, vcore: int = 1, **more: Any) -> dict[str, Any]:
    return {"t": "ask", "key": key, "app": of, "res": {"vcore": vcore}, **more}


def reasons(result: Result) -> list[tuple[str, int, str, str]]:
    return [(row.reason, row.asks, row.example, row.place) for row in result.reasons]


def refused(result: Result) -> list[tuple[str, str, int, str, str]]:
    return [(row.what, row.reason, row.number, row.example, row.place) for row in result.refused]


NO_RULE = "failed to place application …: application rejected: no placement rule matched"
NAMES = ["a", "app", "res", "e", "placement", " ", ".", "…", "failed to place application a", "\t\n", "'"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["p", "allocation", "res", "…"])
def test_names_that_are_words_of_the_reason_leave_it_unchanged(name: str, key: str) -> None:
    """The names of the ask and of its application are parts of the message, and nothing else is taken for them."""
    result = simulate(
        workload(
            NODE, app(name, "root.nope"), ask(key, name, at=0), app("app-2"), ask("z", "app-2", 0), ask("o", "gone")
        )
    )
    assert reasons(result) == [
        ("rejected: allocation contains no resources", 1, "z", "w.jsonl:7"),
        ("rejected: failed to find application …", 1, "o", "w.jsonl:8"),
        (f"rejected: {NO_RULE}", 1, key, "w.jsonl:4"),
    ]
    assert refused(result) == [("application", NO_RULE, 1, name, "w.jsonl:4")]


def test_equal_reasons_are_counted_together() -> None:
    """Whatever the names are, and although some have what others' sentences have."""
    names = ["a", "b", "application", "placement rule", "ab"]
    lines = [line for name in names for line in (app(name, "root.nope"), ask(f"k-{name}", name, at=0))]
    result = simulate(workload(NODE, *lines))
    assert reasons(result) == [(f"rejected: {NO_RULE}", 5, "k-a", "w.jsonl:4")]
    assert refused(result) == [("application", NO_RULE, 5, "a", "w.jsonl:4")]


@given(st.lists(st.text(max_size=5), max_size=6))
def test_a_reason_is_put_together_from_its_parts(parts: list[str]) -> None:
    reason = naming(*parts)
    assert str(reason) == "".join(parts)
    assert reason.template == "".join("…" if place % 2 else part for place, part in enumerate(parts))


def test_each_refused_item_is_reported_with_its_line() -> None:
    """Of two equal names the second is refused; a refused ask of a known application has a fault of its own."""
    lines = [
        NODE,
        NODE,
        {"t": "node", "id": "n2", "res": {"vcore": -5}},
        app("x"),
        app("x"),
        ask("negative", "x", -1, at=0),
        ask("nothing", "x", 0),
        ask("taken", "x", 1),
        {"t": "foreign", "key": "f", "node": "n9", "res": {"vcore": 1}},
        {"t": "reload", "yaml": "partitions: 5", "at": 3},
        ask("taken", "x", -2, at=4),
    ]
    result = simulate(workload(*lines))
    assert (result.placed, result.nodes_rejected, result.applications_rejected) == (1, 2, 1)
    assert reasons(result) == [
        ("rejected: allocation contains negative resources", 1, "negative", "w.jsonl:8"),
        ("rejected: allocation contains no resources", 1, "nothing", "w.jsonl:9"),
    ]
    new_node = "failure while adding new node, node rejected with error:"
    double = "failed to add node … to partition [simulator]default, error: partition [simulator]default has an existing node …, node name must be unique"
    assert refused(result) == [
        ("node", f"{new_node} {double}", 1, "n1", "w.jsonl:4"),
        ("node", f"{new_node} negative quantity -5 of vcore", 1, "n2", "w.jsonl:5"),
        ("application", "adding application … to partition [simulator]default, but application already existed", 1, "x", "w.jsonl:7"),
        ("foreign", "failed to find node n9 for allocation …", 1, "f", "w.jsonl:11"),
        ("reload", "yaml:1:13: partitions: a list is expected here, not '5' [yaml-type]", 1, "", "w.jsonl:12"),
        ("ask", "allocation contains negative resources", 1, "taken", "w.jsonl:13"),
    ]  # fmt: skip


def test_version_1_names_the_lines_of_the_file() -> None:
    """It hands lines in kind by kind, and not as they stand."""
    result = simulate(workload(ask("k", "x", 0), app("x"), ask("l", "y"), NODE, app("y", "root.nope"), version=1))
    assert [(row.example, row.place) for row in result.reasons] == [("k", "w.jsonl:3"), ("l", "w.jsonl:7")]


def test_a_gang_that_is_refused_takes_its_pods_along() -> None:
    gang = [{"name": "g", "min": 2, "res": {"vcore": 1}}]
    result = simulate(
        workload(NODE, app("g", "root.nope", gang=gang), ask("g-0", "g", group="g"), ask("g-1", "g", group="g"))
    )
    assert reasons(result) == [(f"rejected: {NO_RULE}", 2, "g-0", "w.jsonl:4")]


# -- what the workload says of configuration and settings -----------------------------------------------------


@pytest.mark.parametrize(
    ("config", "extra", "text"),
    [
        (
            "partitions:\n  - name: default\n    queues: []\n    bogus: 1\n",
            {},
            "w.jsonl:2: yaml:4:5: partition default: unknown key 'bogus'",
        ),
        ("partitions: [", {}, "w.jsonl:2: yaml:2:1: not YAML"),
        (QUEUES.replace("default", "other"), {}, "w.jsonl:2: yaml: the configuration has no partition 'default'"),
        (QUEUES, {"reservation.dealy": "5s"}, "w.jsonl:2: extra: 'reservation.dealy': no such setting; did you mean"),
        (QUEUES, {"reservation.delay": "abc"}, "w.jsonl:2: extra: reservation.delay: 'abc': must be a duration"),
    ],
)
def test_a_configuration_fault_is_reported_with_the_line_of_the_workload(
    config: str, extra: dict[str, str], text: str
) -> None:
    with pytest.raises(WorkloadError) as error:
        simulate(workload(NODE, config=config, extra=extra))
    assert str(error.value).startswith(text)
