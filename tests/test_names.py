"""Identifiers that were given up for the words of the field (`docs/understand/glossary.md`) do not come back.

Only names in code are looked at: of variables, attributes, parameters, functions, classes and what is imported. Prose, and
words that users type, are free.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "bench", "tools")
    for path in (ROOT / folder).rglob("*.py")
)

INSTEAD = {
    # preemption
    "hungry": "unplaced",
    "Herd": "LeafCandidates",
    "herd": "leaf_group",
    "herds": "leaf_groups",
    "sites": "node_groups",
    "loose": "max_loss",
    "mild": "willing",
    "spares": "allows",
    "Picture": "NodeSearch",
    "paint": "build",
    "traded": "apply_eviction",
    "singles": "by_rank",
    "sized": "slack_size",
    "Hunt": "NodeSearch",
    "hunt": "node_search",
    "barren": "infeasible",
    "aim_bad": "VictimRank.reluctant",
    "bound_bad": "VictimRank.reluctant",
    "roomy": "with_room",
    "Search": "VictimSearch or LeafVictimSearch",
    "Worth": "VictimRank",
    "is_bad": "is_reluctant",
    "all_bad": "all_reluctant",
    "more_bad": "more_reluctant",
    "Watches": "LeafRetries",
    "watches": "retries",
    "watchful": "has_retries",
    "may_again": "retry_after_giving_up",
    "withheld": "waiting_for_claims or reduced_by_claims",
    "withhold": "wait_for_claims",
    "beside_claims": "subtract_claims",
    # wake-ups
    "Sleepers": "Parking",
    "restless": "active or active_count",
    "rouse": "wake_for_freed_node",
    "roused": "maybe_inactive",
    "stirred": "dirty",
    "in_vain": "failed_looks",
    "dismiss": "release_freed_nodes",
    "surrender": "revive_on_freed_nodes",
    "Candidates": "FreedNodes",
    "strays": "partly_parked",
    "first_candidate": "first_freed_node",
    # one meaning a word
    "has_place": "has_placeholder",
    "predicate_holds": "predicate_allows",
    "take_out": "drain_outputs",
    "let_go_of_need": "release_need",
    "keep_need": "retain_need",
    "shown_marks": "search_bitmap",
    "NO_MARKS": "EMPTY_BITMAP",
    "goes_before": "precedes",
    "wake_turns": "restart_turns",
    "say_released": "notify_released",
    "TOLD_AT_ONCE": "DELIVERY_BATCH",
    "Notices": "RequestEvents",
    # memory and bytes
    "fetch_more": "prefetch_more",
    "fetch_next": "prefetch_next",
    "fetch_after": "prefetch_after",
    "luck": "cache_credit",
    "careful": "slow_path",
    "Careful": "SlowPath",
}


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The identifiers of a program, and the lines they stand in."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                for part in name.split("."):
                    yield part, line


def test_identifiers_are_words_of_the_field() -> None:
    """Only a file whose text has one of the words is read as a program: there are a thousand files."""
    word = re.compile(rf"\b({'|'.join(INSTEAD)})\b")
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in FILES}
    found = [
        f"{file}:{line}: {name}; write {INSTEAD[name]}"
        for file, text in texts.items()
        if word.search(text)
        for name, line in names(ast.parse(text))
        if name in INSTEAD
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "hungry = 1",
        "x.hungry",
        "def hungry(): ...",
        "class Hunt: ...",
        "def f(hunt): ...",
        "f(hunt=1)",
        "from a import Hunt",
        "import a as hunt",
        "import core.hunt",
    ],
)
def test_every_kind_of_identifier_is_seen(text: str) -> None:
    assert [name for name, _ in names(ast.parse(text)) if name in INSTEAD]


def test_prose_and_strings_are_free() -> None:
    assert not [name for name, _ in names(ast.parse('"""The hungry hunt."""\nx = "luck"  # Herd')) if name in INSTEAD]
