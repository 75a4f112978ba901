"""What has one owner is written by no other module ("Who may change Y?" in docs/understand/architecture.md).

A write is an assignment to an attribute or to an item of it, its deletion, or a call of a method that changes a container.
Amounts change by the methods of vectors, which this does not see.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "src" / "licorne" / "core"
CHANGES = re.compile("add|append(left)?|clear|discard|extend|insert|pop(item|left)?|remove|setdefault|update")
"""Methods that change a list, dict, set or deque."""

WRITERS = {
    # what waits, and what is tried again
    "blocked": {"waiting/parking.py", "queues/limits.py"},  # the second wakes all at a limit that changes or is left
    "awaiting_node": {"waiting/parking.py"},
    "waiting_for_claims": {"waiting/parking.py"},
    "maybe_inactive": {"waiting/parking.py"},
    "newly_freed": {"waiting/wakeups.py"},
    "newly_opened": {"waiting/wakeups.py"},
    "gangs_due": {"waiting/wakeups.py"},
    "reserved_due": {"waiting/wakeups.py", "scheduling/reservations.py"},  # the second has tried them
    "replacements_due": {"waiting/wakeups.py", "gangs/replacement.py"},  # the second has tried them
    # nodes
    "capacity": {"inputs/node_changes.py", "manager.py"},  # of nodes; of the store of events
    "schedulable": {"inputs/node_changes.py"},
    "labels": {"nodes/needs.py"},
    "open": {"scheduling/reservations.py", "gangs/trial.py"},  # a trial puts it back
    # reservations, and claims of those that hold one
    "reservations": {"scheduling/reservations.py"},
    "by_ask": {"preemption/claims.py"},
    # states, time, and that something has changed
    "state": {"inputs/lifecycle.py", "queues/tree.py"},  # of applications; of queues
    "now": {"cluster.py", "partition.py", "preemption/node_search.py"},  # the third for the time of a search
    "dirty": {"contents.py", "partition.py"},  # the second has looked
}
"""For each attribute the modules that write it; a comment says what those do that are not the owner."""


@pytest.mark.parametrize("attribute", WRITERS)
def test_only_its_owner_writes(attribute: str) -> None:
    assert writers()[attribute] == WRITERS[attribute]


@cache
def writers() -> dict[str, set[str]]:
    """Return for each attribute the modules of the core that write it, without what a constructor sets."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in CORE.rglob("*.py"):
        for attribute in _written(ast.parse(path.read_text(encoding="utf-8"))):
            found[attribute].add(path.relative_to(CORE).as_posix())
    return found


def _written(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef) and node.name == "__init__":
        return
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from _attributes(target)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            yield from _attributes(target)
        case ast.Call(func=ast.Attribute(value=container, attr=method)) if CHANGES.fullmatch(method):
            yield from _attributes(container)
    for child in ast.iter_child_nodes(node):
        yield from _written(child)


def _attributes(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=container):
            yield from _attributes(container)
        case ast.Tuple(elts=items):
            for item in items:
                yield from _attributes(item)
