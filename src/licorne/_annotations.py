"""The annotations of a class's attributes, in its body and in `__init__`, from the text of its module.

A compiled class keeps no annotations, and no class keeps those of `__init__`; the text of each module is installed beside
what was compiled of it. This module is outside `core`, because `core` may not read files.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pkgutil import get_data

_read = cache(get_data)
_end = re.compile(r"^    @|^    def (?!__init__)|^\S", re.MULTILINE)


@cache
def annotations_of(cls: type) -> dict[str, str]:
    """Return the annotations of a class of this package and of its bases; those of the body come before those of `__init__`."""
    found = {}
    for base in reversed(cls.__mro__):
        package, _, module = base.__module__.rpartition(".")
        if not package.startswith("licorne."):
            continue
        text = (_read(package, f"{module}.py") or b"").decode()
        start = re.search(rf"^class {base.__name__}\b", text, re.MULTILINE)
        assert start is not None, f"the text of {base.__name__} is not beside its module"
        # As far as another method or the next statement of the module: to parse all of every module takes long.
        end = _end.search(text, start.end())
        (body,) = ast.parse(text[start.start() : None if end is None else end.start()]).body
        assert isinstance(body, ast.ClassDef)
        for block in (body.body, *(one.body for one in body.body if isinstance(one, ast.FunctionDef))):
            for node in block:
                if isinstance(node, ast.AnnAssign) and (block is body.body or isinstance(node.target, ast.Attribute)):
                    found[ast.unparse(node.target).removeprefix("self.")] = ast.unparse(node.annotation)
    return found
