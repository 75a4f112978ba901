"""Compares the machine's records with the product's state: allocations by node, and pending asks (invariants 6 and 7)."""

from __future__ import annotations

from typing import Any

from machine.books import Books


def compare(books: Books, partition: Any) -> None:
    """Raise AssertionError at the first difference."""
    _same(set(books.nodes), set(partition.nodes), "nodes")
    for id_, node in books.nodes.items():
        core = partition.nodes[id_]
        types = partition.types
        _same(node.capacity, core.capacity.named(types), f"invariant 1: capacity of {id_}")
        _same(node.schedulable, core.schedulable, f"schedulable of {id_}")
        _same(_nonzero(books.used[id_]), core.allocated.named(types), f"invariant 1: allocated on {id_}")
        _same(_nonzero(books.free(node)), core.free.named(types), f"invariant 1: available on {id_}")
    _same(set(books.apps), set(partition.applications), "applications")
    for id_, app in books.apps.items():
        core = partition.applications[id_]
        if not app.independent:  # its state is never reported
            _same(app.state, str(core.state), f"invariant 8: state of {id_}")
        _same(
            {key: (ask.left, ask.resource, ask.priority, ask.created, ask.required) for key, ask in app.asks.items()},
            {
                key: (a.repeats, _nonzero(a.shape.resource), a.priority, a.created, a.required)
                for key, a in core.asks.items()
            },
            f"invariant 7: pending asks of {id_}",
        )
        _same(
            {a.id: (a.key, a.node, a.resource, a.ending) for a in app.allocs.values()},
            {
                a.id: (a.key, a.node.id, _nonzero(a.shape.resource), a.released or a.preempted)
                for a in core.allocations.values()
            },
            f"invariant 6: allocations of {id_}",
        )


def _nonzero(amounts: dict[str, int]) -> dict[str, int]:
    return {name: amounts[name] for name in sorted(amounts) if amounts[name]}


def _same(mine: object, theirs: object, what: str) -> None:
    assert mine == theirs, f"{what}: {mine} in the books, {theirs} in the scheduler"
