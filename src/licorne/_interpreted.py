"""Import hook that loads the hot modules from their `.py` files although they are compiled, if the environment says so.

A compiled module lies beside the `.py` file that it was made from, and Python prefers the extension. The Python file is
needed all the same: as the oracle for the compiled code, under a debugger, and to measure coverage. With
`LICORNE_INTERPRETED=1` a finder is put in front of Python's own finders that sees only the `.py` files of this package.
It must be installed before the first module is imported, hence by `licorne/__init__.py`. It is outside `core`, because
`core` may not read the environment.
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
        """Return the spec of a module's source file; None leaves the modules of other packages to Python's finders."""
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
