"""Runs the hot modules from their Python text although they are compiled, when the environment asks for it.

A compiled module lies beside the `.py` file that it was made from, and Python prefers the extension. The text is
wanted all the same: as the oracle for the compiled code, under a debugger, and to measure coverage. With
`LICORNE_INTERPRETED=1` a finder is put in front of Python's own that sees nothing but the text of this package's
modules. It must be installed before the first of them is imported, hence by `licorne/__init__.py`; and it stands
here, outside `core`, because `core` may not look at the environment.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

VARIABLE = "LICORNE_INTERPRETED"


class SourceOnly:
    """A meta path finder that finds modules of this package by their `.py` file alone."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Say where the source of a module is, or None to let Python's own finders look (for other packages)."""
        del target
        if path is None or not fullname.startswith("licorne."):
            return None
        for folder in path:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None


def install() -> None:
    """Put the finder first, once, if the environment variable is set to 1."""
    if os.environ.get(VARIABLE) == "1" and SourceOnly not in sys.meta_path:
        sys.meta_path.insert(0, SourceOnly)
