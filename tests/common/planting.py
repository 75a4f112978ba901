"""Planting faults: a function that a law looks for is registered by its name, and replaces a part of the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Plant = Callable[[], None]


class Faults(dict[str, Plant]):
    """Planted faults by name; as a decorator, `add` takes in the function that plants one."""

    def add(self, plant: Plant) -> Plant:
        """Register a function under its name."""
        self[plant.__name__] = plant
        return plant


def replace(owner: Any, name: str, broken: Any) -> None:
    """Give a class or module another attribute, where it is looked up when the product runs."""
    setattr(owner, name, broken)
