"""What `config check` says of rules behind one that takes all, against placements: no application comes to such a rule."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from common.examples import examples
from common.planting import LOOKED_AT, Counted, a_law_breaks
from licorne.config import examine, lint_effect
from licorne.core.placement.placer import PlacementRequest, Placer
from licorne.core.placement.static_tree import StaticTree

RULES = st.sampled_from(
    [
        "{name: fixed, value: a}",
        "{name: fixed, value: ROOT.p.b}",
        "{name: fixed, value: a, filter: {users: [ann]}}",
        "{name: fixed, value: c, create: true}",
        "{name: fixed, value: b, parent: {name: fixed, value: p}}",
        "{name: user}",
        "{name: user, create: true, parent: {name: fixed, value: p}}",
        "{name: provided}",
        "{name: tag, value: team}",
        "{name: nobody}",
    ]
)
LISTS = st.sampled_from(["", "'*'", "ann", "' ops'"])
REQUESTS = [
    PlacementRequest("app", queue, user, groups, tags)
    for queue in ("", "root.a", "root.p", "x")
    for user, groups in (("ann", ()), ("ben", ("ops",)), ("eve", ()))
    for tags in ({}, {"team": "a"})
]


@st.composite
def configurations(draw: st.DrawFn) -> str:
    rules = ", ".join(draw(st.lists(RULES, min_size=2, max_size=4)))
    root, a, p, b = (f"submitacl: {text or repr(text)}" for text in draw(st.tuples(LISTS, LISTS, LISTS, LISTS)))
    below = f"{{name: a, {a}}}, {{name: P, parent: true, {p}, queues: [{{name: b, {b}}}]}}"
    return f"partitions: [{{placementrules: [{rules}], queues: [{{name: root, {root}, queues: [{below}]}}]}}]"


def check(text: str) -> None:
    report, configuration = examine(text)
    found = [warning.path for warning in report.warnings if warning.rule == "rule-unreached"]
    if configuration is None or not found:
        return
    index = re.search(r"placementrules\[(\d+)\]", found[0])
    assert index is not None
    partition = configuration.partitions[0]
    placer, tree = Placer(partition.placement_rules), StaticTree(partition)
    for request in REQUESTS:
        assert all(step.index <= int(index[1]) for step in placer.place(request, tree).steps), request


@examples(200)
@given(configurations())
def test_no_application_comes_to_a_rule_behind_one_that_takes_all(text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", ["lets_everybody_in", "_is_without_condition"])
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], name: str
) -> None:
    monkeypatch.setattr(lint_effect, name, lambda _: True)
    law = Counted(check)

    @examples(500, phases=(Phase.generate,), report_multiple_bugs=False)
    @given(configurations())
    def holds(text: str) -> None:
        law(text)

    with a_law_breaks(sys.modules[__name__]):
        holds()
    record_property(LOOKED_AT, law.looked_at)
