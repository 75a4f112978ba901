"""What tools/pyi.py derives from a hot module: how type checkers know it in an installed package.

That the stubs of the real modules say what a program needs is shown by `test_types.py`.
"""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

import pyi
from deployment.places import ROOT

MODULE = '''
    """A module."""
    from __future__ import annotations

    from operator import attrgetter
    from typing import TYPE_CHECKING, Annotated, Any, TypeVar

    from base import Base, helper
    from licorne._plain import cython

    if cython.compiled:
        from cython.cimports.libc.math import sqrt
    else:
        from math import sqrt

    if TYPE_CHECKING:
        from owner import Owner
        from unused import Unused

    LIMIT = cython.declare(cython.longlong, 9)
    SOME = 3
    OTHERS: dict[str, int] = dict.fromkeys("ab", 1)
    _HIDDEN = 4
    Quoted = list["Owner"]


    class FaultError(ValueError):
        """An error."""

        rule: str

        def __init__(self, rule: str) -> None:
            super().__init__(rule)
            self.rule = rule


    @cython.cclass
    class Derived(Base):
        """Documented."""

        count: cython.longlong
        ready: cython.bint
        share: cython.double | None
        owner: Owner
        items: list[int]  # numbers
        loads: Annotated[list[int], cython.longlong[8]]
        texts: Annotated[list[str], list]
        memory: cython.p_longlong
        __weakref__: object

        def __init__(self, count: int = 0, *rest: Any) -> None:
            self.count = count

        @cython.cfunc
        @cython.exceptval(-1)
        def fast(self, given: cython.int) -> cython.bint:
            return given > LIMIT

        @cython.ccall
        def seen(self, given: cython.Py_ssize_t) -> cython.void:
            """Documented too."""
            self.fast(given)

        @property
        def size(self) -> int:
            return helper(self.count)


    @cython.cfunc
    def inner(a: cython.int) -> cython.int:
        return a


    def _own(a: int) -> int:
        return a


    def outer(a: cython.double) -> cython.bint:
        return sorted([a], key=attrgetter("real")) == [a]


    if not cython.compiled:
        Derived.count = 0
'''

STUB = '''
    # Derived from licorne.core.some at build time; do not edit.
    """A module."""
    from __future__ import annotations
    from typing import Any
    from base import Base
    from owner import Owner
    SOME = 3
    OTHERS: dict[str, int]
    Quoted = list['Owner']

    class FaultError(ValueError):
        """An error."""
        rule: str

        def __init__(self, rule: str) -> None:
            ...

    class Derived(Base):
        """Documented."""
        count: int
        ready: bool
        share: float | None
        owner: Owner
        items: list[int]
        texts: list[str]

        def __init__(self, count: int=0, *rest: Any) -> None:
            ...

        def seen(self, given: int) -> None:
            """Documented too."""

        @property
        def size(self) -> int:
            ...

    def outer(a: float) -> bool:
        ...
'''


def stub(text: str) -> str:
    return pyi.stub("licorne.core.some", ast.parse(dedent(text)))


def test_a_module() -> None:
    assert stub(MODULE) == dedent(STUB).lstrip()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x: cython.quaternion", "line 1: no Python type is known for `cython.quaternion`"),
        ("if x:\n    y = 1", "line 1: a condition that is neither `cython.compiled` nor `TYPE_CHECKING`"),
        ("for x in y:\n    z = 1", "line 1: For in a module"),
        ("class A:\n    for x in y:\n        z = 1", "line 2: For within a class"),
        (
            "class A:\n    def f(self):\n        self.b, self.c = 1, 2",
            "line 1: `A`: not annotated in the class: b, c",
        ),
    ],
)
def test_code_that_has_no_form_in_a_stub_is_refused(text: str, fault: str) -> None:
    with pytest.raises(pyi.StubError) as raised:
        stub(text)
    assert str(raised.value) == fault


def test_types_mean_the_same_to_users_and_to_the_projects_checker() -> None:
    tree = ast.parse((ROOT / "typings" / "cython.pyi").read_text(encoding="utf-8"))
    own = {
        node.target.id: ast.unparse(node.value).removeprefix("builtins.")
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }
    assert {name: kind for name, kind in own.items() if not name.startswith("p_")} == pyi.PYTHON_TYPES
