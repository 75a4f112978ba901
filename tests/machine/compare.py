"""Compares the machine's records with the product's state: allocations by node, and pending asks (invariants 6 and 7)."""

from __future__ import annotations

from typing import Any

from machine.expected import ExpectedState


def compare(expected: ExpectedState, partition: Any) -> None:
    """Raise AssertionError at the first difference."""
    _same(set(expected.nodes), set(partition.nodes), "nodes")
    for id_, node in expected.nodes.items():
        core = partition.nodes[id_]
        types = partition.types
        _same(node.capacity, core.capacity.named(types), f"invariant 1: capacity of {id_}")
        _same(node.schedulable, core.schedulable, f"schedulable of {id_}")
        _same(_nonzero(expected.used[id_]), core.allocated.named(types), f"invariant 1: allocated on {id_}")
        _same(_nonzero(expected.free(node)), core.free.named(types), f"invariant 1: available on {id_}")
    _same(set(expected.apps), set(partition.applications), "applications")
    for id_, app in expected.apps.items():
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
    assert mine == theirs, f"{what}: {mine} expected, {theirs} in the scheduler"
