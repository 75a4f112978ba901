"""What tools/pxd.py derives from a hot module: the recipe by which modules compile, kept as tables.

That Cython accepts these texts and declarations is shown by the build itself, for every hot module.
"""

from __future__ import annotations

import ast
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

import pxd
from deployment.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("annotation", "attribute", "argument"),
    [
        ("cython.longlong", "long long", "long long"),
        ("cython.bint", "bint", "bint"),
        ("cython.Py_ssize_t", "Py_ssize_t", "Py_ssize_t"),
        ("cython.p_longlong", "long long*", "long long*"),
        ("cython.ulonglong[64]", "unsigned long long[64]", "unsigned long long[64]"),
        ("Annotated[list[int], cython.longlong[64]]", "long long[64]", "long long[64]"),
        ("cython.void", "void", "void"),
        ("None", "object", "object"),
        ("int", "object", "cython.py_int"),
        ("int | None", "object", "cython.py_int"),
        ("float", "double", "double"),
        ("float | None", "object", "cython.py_float"),
        ("bool", "bint", "bint"),
        ("bool | None", "object", "bool"),
        ("str", "str", "str"),
        ("str | None", "str", "str"),
        ("str | int", "object", "object"),
        ("list[Any]", "list", "list[Any]"),
        ("list[int]", "list", "list[cython.py_int]"),
        ("dict[str, float]", "dict", "dict[str, cython.double]"),
        ("dict[str, tuple[int, ...]]", "dict", "dict[str, tuple[cython.py_int, ...]]"),
        ("Hot", "Hot", "Hot"),
        ("Hot | None", "Hot", "Hot"),
        ("'Hot'", "Hot", "Hot"),
        ("Plain", "object", "object"),
        ("Callable[[int], int]", "object", "object"),
        ("messages.Ask", "object", "object"),
    ],
)
def test_type(annotation: str, attribute: str, argument: str) -> None:
    tree = ast.parse(annotation, mode="eval").body
    assert pxd.c_type(tree, {"Hot"}, attribute=True) == attribute
    assert pxd.c_type(tree, {"Hot"}) == argument


BASE = '''
    """A base."""
    from __future__ import annotations
    from licorne._plain import cython
    from hot.leaf import (
        Leaf,
        helper,
    )
    if cython.compiled:
        from cython.cimports.libc.stdlib import free

    LIMIT = cython.declare(cython.longlong, 9)

    @cython.cclass
    class Base:
        names: list[str]
        leaf: Leaf | None
        v: cython.p_longlong
        def __init__(self) -> None: ...
        @cython.cfunc
        @cython.exceptval(check=False)
        def before(self, other: Base) -> cython.bint: ...
        @cython.ccall
        def count(self, by: cython.longlong) -> cython.longlong: ...
        def plain(self, x: int = 3) -> int: ...

    @cython.cfunc
    @cython.inline
    def double(x: cython.double) -> cython.double: ...
'''
LEAF = '''
    """A leaf."""
    from licorne._plain import cython
    from .base import Base, double as twice

    @cython.cclass
    class Leaf(Base):
        @cython.cfunc
        @cython.exceptval(check=False)
        def before(self, other: Base) -> cython.bint: ...
        @cython.cfunc
        def grow(self) -> cython.void: ...
'''


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, Path]:
    paths = {"hot.base": tmp_path / "base.py", "hot.leaf": tmp_path / "leaf.py"}
    paths["hot.base"].write_text(dedent(BASE), encoding="utf-8")
    paths["hot.leaf"].write_text(dedent(LEAF), encoding="utf-8")
    return paths


def derived(modules: dict[str, Path], tmp_path: Path, file: str) -> str:
    pxd.generate(tmp_path / "made", modules, [tmp_path])
    return (tmp_path / "made" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("imports", "in_c"),
    [
        ("from licorne._plain import cython", "import cython"),
        ("from hot.base import Base", "from cython.cimports.hot.base import Base"),
        ("from .base import Base", "from cython.cimports.hot.base import Base"),
        ("from hot.base import double as twice", "from cython.cimports.hot.base import double as twice"),
        (
            "from hot.base import (\n    LIMIT,\n    Base,\n)",
            "from cython.cimports.hot.base import Base; from hot.base import LIMIT\n\n\n",
        ),
        ("from .numbers import MOST", "from cython.cimports.hot.numbers import MOST"),
        ("from base import Base", "from base import Base"),
        ("if TYPE_CHECKING:\n    from .base import Base", "if TYPE_CHECKING:\n    from .base import Base"),
    ],
)
def test_cython_imports_in_c_what_another_module_declares_in_the_same_lines(
    modules: dict[str, Path], tmp_path: Path, imports: str, in_c: str
) -> None:
    numbers = tmp_path / "numbers.py"
    numbers.write_text("MOST: cython.int = 3\n", encoding="utf-8")
    user = modules["hot.user"] = tmp_path / "user.py"
    user.write_text(f'"""A user."""\n{imports}\n\nx = 1\n', encoding="utf-8")
    pxd.generate(tmp_path / "made", modules, [tmp_path], {"hot.numbers": numbers})
    assert (tmp_path / "made" / "hot" / "user.py").read_text(encoding="utf-8") == f'"""A user."""\n{in_c}\n\nx = 1\n'


def test_module_with_a_base_class(modules: dict[str, Path], tmp_path: Path) -> None:
    text = derived(modules, tmp_path, "hot/base.pxd")
    assert text == dedent("""\
        # Derived from hot.base at build time; do not edit.
        cimport cython

        cdef class Base

        from hot.leaf cimport Leaf

        cdef class Base:
            cdef public list names
            cdef public Leaf leaf
            cdef long long* v
            cdef bint before(self, Base other) noexcept
            cpdef long long count(self, long long by)

        cdef double double(double x)
        """)


def test_subclass_is_final_and_does_not_declare_again_what_it_overrides(
    modules: dict[str, Path], tmp_path: Path
) -> None:
    text = derived(modules, tmp_path, "hot/leaf.pxd")
    assert text == dedent("""\
        # Derived from hot.leaf at build time; do not edit.
        cimport cython

        cdef class Leaf

        from hot.base cimport Base

        @cython.final
        cdef class Leaf(Base):
            cdef void grow(self)
        """)


def test_a_class_is_not_final_if_one_in_a_module_beside_it_inherits(modules: dict[str, Path], tmp_path: Path) -> None:
    modules["hot.leaf"].with_name("plain.py").write_text("class Plain(Leaf): ...\n", encoding="utf-8")
    assert "final" not in derived(modules, tmp_path, "hot/leaf.pxd")


def test_weak_references_and_attributes_of_dataclasses_with_defaults_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "hot.py"
    text = "@cython.cclass\n@dataclass(kw_only=True)\nclass Hot:\n    __weakref__: object\n    x: cython.int = 3\n"
    path.write_text(text, encoding="utf-8")
    assert "    cdef object __weakref__\n    cdef public int x\n" in derived({"hot": path}, tmp_path, "hot.pxd")


def test_what_is_up_to_date_is_not_written_again(modules: dict[str, Path], tmp_path: Path) -> None:
    assert len(pxd.generate(tmp_path / "made", modules, [tmp_path])) == len(
        ["base.py", "base.pxd", "leaf.py", "leaf.pxd", "__init__.py"]
    )
    assert pxd.generate(tmp_path / "made", modules, [tmp_path]) == []


def test_nothing_is_left_of_a_module_that_is_hot_no_more(modules: dict[str, Path], tmp_path: Path) -> None:
    pxd.generate(tmp_path / "made", modules, [tmp_path])
    pxd.generate(tmp_path / "made", {"hot.base": modules["hot.base"]}, [tmp_path])
    assert {path.name for path in (tmp_path / "made").rglob("*.p*")} == {"base.py", "base.pxd", "__init__.py"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x: cython.wrong", "line 5: no C type is known for `cython.wrong`"),
        ("x: cython.int = 3", "line 5: `x`: an attribute gets its value in `__init__`"),
        ("@cython.cfunc\n    def f(self, x: int = 3) -> int: ...", "line 6: `f`: a C function has plain arguments"),
    ],
)
def test_a_type_that_cannot_be_declared_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(f'"""Odd."""\nimport cython\n@cython.cclass\nclass Odd:\n    {text}\n', encoding="utf-8")
    with pytest.raises(pxd.DeclarationError) as refusal:
        pxd.generate(tmp_path / "made", {"odd": path}, [tmp_path])
    assert reason in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_hot_classes_have_names_of_their_own(modules: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(pxd.DeclarationError, match="a hot class named Base exists already"):
        pxd.generate(tmp_path / "made", {**modules, "hot.again": modules["hot.base"]}, [tmp_path])


def from_the_end(text: str) -> list[int]:
    """Return the lines in which an item is taken by a literal index below zero."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.UnaryOp)
        and isinstance(node.slice.op, ast.USub)
        and isinstance(node.slice.operand, ast.Constant)
    ]


def test_no_hot_module_takes_an_item_from_the_end() -> None:
    """Compiled, that reads memory before the list (docs/understand/compiled.md)."""
    assert from_the_end("last = items[-1]\nfirst = items[0]\nmore = items[-2:]\n") == [1]
    hot = [path for path in (ROOT / "src" / "licorne").rglob("*.py") if pxd.is_hot(path)]
    assert len(hot) > 40
    assert [path.name for path in hot if from_the_end(path.read_text(encoding="utf-8"))] == []
