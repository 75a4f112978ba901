"""Planting faults: a function that a law looks for is registered by its name, and replaces a part of the product."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

import licorne
from licorne.core.inspection.validate import InvariantError

PRODUCT = Path(licorne.__file__).resolve().parent
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


def raised_by_a_law(error: Exception, *laws: ModuleType, crashes: bool = False) -> bool:
    """Tell whether a broken law raised an error, so that a planted fault is caught; else the test itself is wrong.

    A law is an assertion in one of the modules `laws`, or one of the product's own: its `validate` functions. With `crashes`
    any error that the product's own code raises counts too. An error counts where it is raised: an assertion of the code
    that plants a fault or drives the product is no law.
    """
    if isinstance(error, InvariantError):
        return True
    where = [Path(frame.f_code.co_filename).resolve() for frame, _ in walk_tb(error.__traceback__)][-1:]
    if any(path.is_relative_to(PRODUCT) for path in where):
        return crashes or isinstance(error, AssertionError)
    return isinstance(error, AssertionError) and where in [[Path(law.__file__ or "").resolve()] for law in laws]
