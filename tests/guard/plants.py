"""Slowdowns that are planted in plain Python, to see that the guard finds them. None of them changes a decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import ScorePolicy

Settings = dict[str, str]


def parking_off() -> Settings:
    """Every ask that waits is tried again in every pass."""
    return {"scheduler.parking": "false"}


def searching_twice() -> Settings:
    """Every search for a node is made twice."""
    _twice(NodeIndex, "find")
    return {}


def scoring_twice() -> Settings:
    """Every node is scored twice, which the scheduler's own counters cannot see."""
    _twice(ScorePolicy, "score")
    return {}


def _twice(owner: type, method: str) -> None:
    original: Callable[..., Any] = getattr(owner, method)

    def twice(*arguments: Any) -> Any:
        original(*arguments)
        return original(*arguments)

    setattr(owner, method, twice)


PLANTS: dict[str, Callable[[], Settings]] = {
    plant.__name__: plant for plant in (parking_off, scoring_twice, searching_twice)
}
