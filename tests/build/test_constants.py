"""Numbers that hot modules share stand in one place: no module has a copy, and the constants in C have the same values."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from typing import TYPE_CHECKING, get_args

import pytest

import pxd
from deployment.places import ROOT
from licorne.si import _schema, wire_plan
from licorne.si._common import Quantity, Resource
from licorne.si.wire_constants import ENTRY_KEY, ENTRY_VALUE, QUANTITY_VALUE, RESOURCE_ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = ROOT / "src" / "licorne"
SHARED = {
    "licorne.core.constants": SOURCE / "core" / "constants.py",
    "licorne.si.wire_constants": SOURCE / "si" / "wire_constants.py",
}
RANGES = {
    "int": (-(1 << 31), (1 << 31) - 1),
    "long long": (-(1 << 63), (1 << 63) - 1),
    "unsigned long long": (0, (1 << 64) - 1),
}
BOUNDS = {(1 << 63) - 1, (1 << 62) - 1}
"""What stands for "unlimited", and the largest sum: of other numbers it cannot be told whether they are copies."""
NO_COPIES = {
    "core/nodes/block.py": "all bits of a number but its sign",
    "core/base/tags.py": "the largest integer of 64 bits, as in an annotation's text",
    "core/base/states.py": "the last moment there is",
    "core/base/uuids.py": "bits of a UUID",
}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def shared_names() -> dict[str, set[str]]:
    return {
        name: {
            node.target.id
            for node in tree_of(path).body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        for name, path in SHARED.items()
    }


def declared() -> Iterator[tuple[str, str]]:
    """The C constants of all modules: (name, file)."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in tree_of(path).body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                    if ast.unparse(function) == "cython.declare":
                        yield name, path.relative_to(SOURCE).as_posix()


def test_no_module_declares_a_constant_that_another_has() -> None:
    places = defaultdict(list)
    for name, file in [*declared(), *((name, module) for module, names in shared_names().items() for name in names)]:
        places[name].append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {
        "BITS_64": ["core/base/uuids.py", "licorne.si.wire_constants"]
    }
    assert len(places) > 100


def value_of(node: ast.expr) -> int | None:
    """Evaluate an expression of plain numbers."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=ast.expr() as left, op=operator, right=ast.expr() as right):
            a, b = value_of(left), value_of(right)
            if a is None or b is None:
                return None
            match operator:
                case ast.LShift() | ast.Pow():
                    return (a << b if isinstance(operator, ast.LShift) else a**b) if 0 <= b < 128 else None
                case ast.Sub():
                    return a - b
    return None


def test_the_core_has_no_copy_of_its_bounds() -> None:
    copies = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "core").glob("**/*.py")
        if path not in SHARED.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.expr) and value_of(node) in BOUNDS
    }
    assert copies == set(NO_COPIES)


@pytest.mark.parametrize("name", SHARED)
def test_constants_are_defined_for_c(name: str) -> None:
    module = importlib.import_module(name)
    lines = pxd.constants(name, tree_of(SHARED[name])).splitlines()
    macros = [line.split(" ", 2) for line in map(str.strip, lines) if line.startswith("#define")]
    told = {}
    for _, macro, value in macros:
        kind, _, number = value.removeprefix("((").removesuffix(")").partition(") ")
        own = macro.removeprefix(name.replace(".", "_") + "_")
        told[own] = int(number.rstrip("ULu"))
        least, most = RANGES[kind]
        assert least <= told[own] <= most
        assert f'    const {kind} {own} "{macro}"' in lines
    assert told == {own: getattr(module, own) for own in shared_names()[name]}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("A: cython.int = 1\nB: cython.double = 2", "line 2: `B`: a shared constant is an integer of C"),
        ("A: cython.int = 1.5", "line 1: `A`: a shared constant is an integer of C"),
        ("A: cython.int = 1 << 31", "line 1: `A`: 2147483648 is no int"),
        ("A: cython.ulonglong = -1", "line 1: `A`: -1 is no unsigned long long"),
    ],
)
def test_a_value_that_is_no_number_in_c_is_refused(text: str, fault: str) -> None:
    with pytest.raises(pxd.DeclarationError) as raised:
        pxd.constants("some", ast.parse(text))
    assert str(raised.value) == fault


def test_a_constant_may_be_computed_from_another() -> None:
    text = pxd.constants("some.where", ast.parse("A: cython.int = 3\nB: cython.longlong = A << 40 | 1"))
    assert text.splitlines()[1:] == [
        "cdef extern from *:",
        '    """',
        "    #define some_where_A ((int) 3)",
        "    #define some_where_B ((long long) 3298534883329LL)",
        '    """',
        '    const int A "some_where_A"',
        '    const long long B "some_where_B"',
    ]


def test_tags_and_kinds_are_those_of_the_declarations() -> None:
    assert wire_plan.tag_of(Resource, "resources") == RESOURCE_ENTRY
    assert wire_plan.tag_of(Quantity, "value") == QUANTITY_VALUE
    assert (ENTRY_KEY, ENTRY_VALUE) == (0o12, 0o22)  # fields 1 and 2, each a length and its bytes
    assert set(wire_plan._KINDS) == set(get_args(_schema.Kind))
