"""Derives from a hot module's Python text the stub (`.pyi`) by which type checkers know it in an installed package.

A checker cannot read the text of a hot module as this project's own does, which is told what `cython` means
(`typings/cython.pyi`) and that `if cython.compiled:` never holds. In another program `cython` is a package without types:
all that its decorators touch becomes `Any`, and so do the classes that a module imports under `if cython.compiled:`, so
that a misspelled method of the scheduler would pass. A checker prefers a stub to the text, and the stub says what Python
sees of the module, in Python's types. It is made from the syntax tree at each build, like the declarations for Cython
(`tools/pxd.py`), and stands in the built package alone: beside the sources it would hide them from the project's checker.

What a stub has:

* imports, those under `if TYPE_CHECKING:` and of the interpreted branch of `if cython.compiled:` among them, as far as the
  rest names what they import;
* classes with their attributes, and functions, with their docstrings and without their bodies; no C functions
  (`@cython.cfunc`), pointers, C arrays and C constants (`cython.declare`), since Python does not see them; no private
  functions and constants, which only the module itself uses;
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
"""`cython.<name>` in an annotation, and what it is to Python."""


class StubError(Exception):
    """Something in a hot module has no place in a stub yet; says where."""


class PythonTypes(ast.NodeTransformer):
    """Puts Python's types in place of C's."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`cython.bint` is `bool`."""
        if isinstance(node.value, ast.Name) and node.value.id == "cython":
            if node.attr not in PYTHON_TYPES:
                message = f"line {node.lineno}: no Python type is known for `{ast.unparse(node)}`"
                raise StubError(message)
            return ast.parse(PYTHON_TYPES[node.attr], mode="eval").body
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`Annotated[X, ...]` is X: the rest is meant for C."""
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
    """Does Python see an attribute of this type, which is neither a pointer nor a C array?"""
    text = ast.unparse(annotation)
    return not re.search(r"\bcython\.(p_\w+|\w+\[)", text)


def documented(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The docstring that a body begins with, if it has one."""
    first = body[0] if body else None
    return [first] if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else []


def function(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """A function as Python sees it; None: it does not."""
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
    """A name with its type, and without its value."""
    node.annotation = PythonTypes().converted(node.annotation)
    node.value = None
    return node


def members(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """What Python sees of a class: an enumeration's members keep their values."""
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
    """Find what methods set of `self` without an annotation in the class: only a checker that reads them would know it."""
    named = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    places = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store))
    return {part.attr for part in places if isinstance(part.value, ast.Name) and part.value.id == "self"} - named


def class_(node: ast.ClassDef) -> ast.ClassDef:
    """A class as Python sees it."""
    unnamed = set() if "cython.cclass" in decorators(node) else unnamed_attributes(node)
    if unnamed:
        message = f"line {node.lineno}: `{node.name}`: not annotated in the class: {', '.join(sorted(unnamed))}"
        raise StubError(message)
    node.decorator_list = [mark for mark in node.decorator_list if not ast.unparse(mark).startswith("cython.")]
    node.body = list(members(node.body)) or [ast.Pass()]
    return node


def chosen(node: ast.If) -> list[ast.stmt]:
    """The branch of a condition at the top of a module that counts for a checker."""
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
    """Say whether a value is a `cython.declare(...)`."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "cython.declare"


def is_private(name: str) -> bool:
    """Say whether a name of a module is for the module alone."""
    return name.startswith("_") and not name.startswith("__")


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """What Python sees of a module."""
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
    """All names that statements use, in texts too: annotations may be quoted, and `__all__` is made of texts."""
    found: set[str] = set()
    for item in body:
        for node in ast.walk(item):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"\w+", node.value))
    return frozenset(found)


def with_names(node: ast.Import | ast.ImportFrom, used: frozenset[str]) -> ast.stmt | None:
    """An import of what is used alone; None: nothing of it is."""
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return node
    node.names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used]
    return node if node.names else None


def stub(name: str, tree: ast.Module) -> str:
    """Write the stub of a module."""
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
    """Write the stubs of these modules below a folder in which the package is built."""
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
