"""Public names of a package that are imported when they are first used, because the modules that define them take a while to load."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        where: the module that defines each public name, by the name.
    """

    def find(name: str) -> object:
        """Return a public name from the module that defines it, imported at first use."""
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(where[name]), name)

    def names() -> list[str]:
        """Return the names of the package, those not imported yet among them."""
        return sorted({*vars(sys.modules[package]), *where})

    return find, names
