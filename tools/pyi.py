"""Derives the stub (`.pyi`) of a hot module, for type checkers, from the Python text of the module.

This project's own checker reads the text itself: its configuration says what `cython` means (`typings/cython.pyi`) and
that `if cython.compiled:` never holds. In another program `cython` is a package without types: whatever its decorators
touch becomes `Any`; a misspelled method of the scheduler would then pass. A checker prefers a stub to the text, and
the stub has what Python sees of the module, in Python's types. It is made from the syntax tree at each build, like what
Cython reads (`tools/pxd.py`), and only in the built package: beside the sources it would hide them from the project's
checker.

A stub has:

* imports of names that the rest of the stub uses, also those under `if TYPE_CHECKING:` and in the interpreted branch of
  `if cython.compiled:`;
* classes with their attributes, and functions, with their docstrings and without their bodies; no C functions
  (`@cython.cfunc`), pointers, C arrays or C constants (`cython.declare`), since Python does not see them; no private
  functions or constants, which only the module itself uses;
* annotations in which `cython.bint` is `bool`, `Annotated[list[int], cython.longlong[64]]` is `list[int]`, and so on.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pxd import C_TYPES, decorators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PYTHON_TYPES = dict.fromkeys(C_TYPES, "int") | {"bint": "bool", "double": "float", "float": "float", "void": "None"}
"""The Python type of `cython.<name>` in an annotation."""


class StubError(Exception):
    """A part of a hot module cannot be put into a stub; the text says where."""


class PythonTypes(ast.NodeTransformer):
    """Replaces C types by Python types."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Replace `cython.bint` by `bool`, for example."""
        if isinstance(node.value, ast.Name) and node.value.id == "cython":
            if node.attr not in PYTHON_TYPES:
                message = f"line {node.lineno}: no Python type is known for `{ast.unparse(node)}`"
                raise StubError(message)
            return ast.parse(PYTHON_TYPES[node.attr], mode="eval").body
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Replace `Annotated[X, ...]` by X; the other arguments are for C."""
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.converted(node.slice.elts[0])
        self.generic_visit(node)
        return node

    def converted(self, annotation: ast.expr) -> ast.expr:
        """Convert a whole annotation."""
        found = self.visit(annotation)
        assert isinstance(found, ast.expr)
        return found


def is_seen(annotation: ast.expr) -> bool:
    """Whether Python sees an attribute of this type: it is neither a pointer nor a C array."""
    text = ast.unparse(annotation)
    return not re.search(r"\bcython\.(p_\w+|\w+\[)", text)


def documented(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the docstring of a body, as a list of at most one statement."""
    first = body[0] if body else None
    return [first] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else []


def function(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """Return a function as Python sees it; None for a C function."""
    if "cython.cfunc" in decorators(node):
        return None
    types = PythonTypes()
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in every:
        if argument is not None and argument.annotation is not None:
            argument.annotation = types.converted(argument.annotation)
    if node.returns is not None:
        node.returns = types.converted(node.returns)
    node.decorator_list = [mark for mark in node.decorator_list if not ast.unparse(mark).startswith("cython.")]
    node.body = documented(node.body) or [ast.Expr(ast.Constant(...))]
    return node


def annotated(node: ast.AnnAssign) -> ast.AnnAssign:
    """Return an annotated name with its Python type, without its value."""
    node.annotation = PythonTypes().converted(node.annotation)
    node.value = None
    return node


def members(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the members of a class that Python sees; those of an enumeration keep their values."""
    for item in body:
        match item:
            case ast.FunctionDef():
                found = function(item)
                if found is not None:
                    yield found
            case ast.AnnAssign(target=ast.Name(id=name)):
                if name != "__weakref__" and is_seen(item.annotation):
                    yield annotated(item)
            case ast.Assign() | ast.Expr(value=ast.Constant()):
                yield item
            case _:
                message = f"line {item.lineno}: {type(item).__name__} within a class"
                raise StubError(message)


def unnamed_attributes(node: ast.ClassDef) -> set[str]:
    """Return the attributes that methods set on `self` and the class does not annotate: a stub would lack them."""
    named = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    places = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store))
    return {part.attr for part in places if isinstance(part.value, ast.Name) and part.value.id == "self"} - named


def class_(node: ast.ClassDef) -> ast.ClassDef:
    """Return a class as Python sees it; raises StubError for attributes that it does not annotate."""
    unnamed = set() if "cython.cclass" in decorators(node) else unnamed_attributes(node)
    if unnamed:
        message = f"line {node.lineno}: `{node.name}`: not annotated in the class: {', '.join(sorted(unnamed))}"
        raise StubError(message)
    node.decorator_list = [mark for mark in node.decorator_list if not ast.unparse(mark).startswith("cython.")]
    node.body = list(members(node.body)) or [ast.Pass()]
    return node


def chosen(node: ast.If) -> list[ast.stmt]:
    """Return the branch of a module-level condition that counts for a checker."""
    match ast.unparse(node.test):
        case "cython.compiled":
            return node.orelse
        case "TYPE_CHECKING":
            return node.body
        case "not cython.compiled":
            return [item for item in node.body if isinstance(item, ast.ImportFrom)]
    message = f"line {node.lineno}: a condition that is neither `cython.compiled` nor `TYPE_CHECKING`"
    raise StubError(message)


def is_c_constant(value: ast.expr) -> bool:
    """Whether a value is a `cython.declare(...)`."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "cython.declare"


def is_private(name: str) -> bool:
    """Whether a name is private to its module."""
    return name.startswith("_") and not name.startswith("__")


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that Python sees, without private functions and constants."""
    for item in body:
        match item:
            case ast.If():
                yield from statements(chosen(item))
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                yield item
            case ast.FunctionDef(name=name) if not is_private(name):
                found = function(item)
                if found is not None:
                    yield found
            case ast.ClassDef():
                yield class_(item)
            case ast.AnnAssign(target=ast.Name(id=name)) if not is_private(name):
                yield annotated(item)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not is_private(name):
                if not is_c_constant(value):
                    yield item
            case ast.FunctionDef() | ast.Assign() | ast.AnnAssign():
                pass  # private
            case _:
                message = f"line {item.lineno}: {type(item).__name__} in a module"
                raise StubError(message)


def names_in(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Return all names in statements, and in their strings: annotations may be quoted, and `__all__` has strings."""
    found: set[str] = set()
    for item in body:
        for node in ast.walk(item):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"\w+", node.value))
    return frozenset(found)


def with_names(node: ast.Import | ast.ImportFrom, used: frozenset[str]) -> ast.stmt | None:
    """Return an import with the used names alone; None if there are none."""
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return node
    node.names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used]
    return node if node.names else None


def stub(name: str, tree: ast.Module) -> str:
    """Make the text of a module's stub."""
    body = list(statements(tree.body))
    rest = [item for item in body if not isinstance(item, ast.Import | ast.ImportFrom)]
    used = names_in([item for item in rest if not documented([item])])
    kept: list[ast.stmt] = []
    for item in body:
        found = with_names(item, used) if isinstance(item, ast.Import | ast.ImportFrom) else item
        if found is not None:
            kept.append(found)
    text = ast.unparse(ast.fix_missing_locations(ast.Module(kept, [])))
    return f"# Derived from {name} at build time; do not edit.\n{text}\n"


def generate(sources: Mapping[str, Path], folder: Path) -> Sequence[Path]:
    """Write the stubs of modules (`sources`, by name) below the folder of the built package, and return their paths.

    Raises:
        StubError: a module cannot be put into a stub.
    """
    written = []
    for name, path in sources.items():
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        target = folder.joinpath(*name.split(".")).with_suffix(".pyi")
        try:
            text = stub(name, tree)
        except StubError as error:
            message = f"{path}, {error}"
            raise StubError(message) from None
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written
