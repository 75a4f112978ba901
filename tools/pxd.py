"""Derives what Cython reads of a hot module from its Python text: the same text with C imports, and declarations (`.pxd`).

A hot module imports once, in plain Python. In the text for Cython an import of what another hot module declares to C, or
of a constant, becomes one from `cython.cimports`, and `cython` is Cython's own. Each line keeps its number, so tracebacks
fit the module's own text.

Typed access to a class from another module, or before its definition in its own, needs the layout of the class and
the C signatures of its methods in a `.pxd` file. The module already has all of that, as annotations and decorators. A
second copy written by hand would have to be kept equal by hand, so this one is made at each build, from the syntax tree
alone: no module is imported or executed.

For each module these are declared:

* each `@cython.cclass` class, with a forward declaration, so that classes may name each other in any order;
* `from a.b import C`, where C is a hot class, becomes `from a.b cimport C`, but not under `if TYPE_CHECKING:`. It comes
  after the forward declarations, and functions are left out, so two modules may import from each other, as long as
  neither inherits from the other;
* the annotations in the class body, as attributes: visible to Python (`cdef public`), except pointers, C arrays and
  `__weakref__`, which allows weak references;
* the `@cython.cfunc` and `@cython.ccall` methods of the class, except those that override a declared one;
* functions of the module with the same decorators. They are declared as plain C functions even if the module has
  `@cython.inline`, since an inline function in a `.pxd` needs its body there; the C compiler still may inline them
  within their module. Module constants (`cython.declare`) are private to their module.

Constants that several hot modules share are in a plain module, which imports `cython` for the type checker alone. Each
is annotated with its C type, and becomes a macro of C: `UNLIMITED: cython.longlong = 0x7FFFFFFFFFFFFFFF`. A hot module
cimports them, and the C compiler knows their values.

A class is declared final, which turns calls of its methods into direct ones, if no class in the folders of hot modules
inherits from it, whether hot or not. Bases are matched by their names alone.
"""

from __future__ import annotations

import ast
from importlib.util import resolve_name
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

C_TYPES = {
    "bint": "bint",
    "char": "char",
    "double": "double",
    "float": "float",
    "int": "int",
    "long": "long",
    "longlong": "long long",
    "Py_ssize_t": "Py_ssize_t",
    "short": "short",
    "size_t": "size_t",
    "uchar": "unsigned char",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "ulonglong": "unsigned long long",
    "ushort": "unsigned short",
    "void": "void",
}
"""The C type of `cython.<name>` in an annotation; `cython.p_<name>` is a pointer to it."""

INTEGERS = {
    "int": ("", -(1 << 31), (1 << 31) - 1),
    "long long": ("LL", -(1 << 63), (1 << 63) - 1),
    "unsigned long long": ("ULL", 0, (1 << 64) - 1),
}
"""Types of shared constants: the suffix of a C literal, the smallest value and the largest."""

RAISES = {"cython.exceptval(check=False)": " noexcept", "cython.exceptval(-1)": " except? -1"}
"""Decorators about exceptions, and the clause of each in a signature. Without one, Cython checks for an exception after
each call of a method that returns a number; with `except? -1` it checks only after a result of -1."""

CONTAINERS = frozenset({"dict", "frozenset", "list", "set", "tuple"})
BUILTINS = CONTAINERS | {"bytearray", "bytes", "complex", "memoryview", "object", "str"}
"""Python types with the same name in Cython; a class that is neither one of these nor hot is an `object`."""

CIMPORTS = "cython.cimports."
PLAIN = "licorne._plain"
"""Has `cython` for the interpreter; a module that imports it from here is hot."""


class DeclarationError(Exception):
    """A part of a hot module cannot be declared to Cython; the text says where and why."""


class Class(NamedTuple):
    """An extension type: its module, its syntax and the C methods that it declares or overrides."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    methods: frozenset[str]


def decorators(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """Return the decorators as text, such as `cython.exceptval(check=False)`."""
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def is_none(annotation: ast.expr) -> bool:
    """Whether an annotation is `None`."""
    return isinstance(annotation, ast.Constant) and annotation.value is None


def element(annotation: ast.expr) -> str:
    """Translate the types in the brackets of `dict[str, int]`, where a bare `int` or `float` would be the C type."""
    renamed = {"int": "cython.py_int", "float": "cython.double"}
    if isinstance(annotation, ast.Tuple):
        return ", ".join(element(item) for item in annotation.elts)
    if isinstance(annotation, ast.Subscript):
        return f"{ast.unparse(annotation.value)}[{element(annotation.slice)}]"
    text = ast.unparse(annotation)
    return renamed.get(text, text)


def c_type(annotation: ast.expr | None, classes: Collection[str], *, attribute: bool = False) -> str:
    """Translate an annotation into a type of Cython's own language; `classes` are the known extension types.

    Arguments and results must have the same type that Cython reads from the module itself, or it refuses the
    signature. For an attribute only the type declared here counts; so an `int` is any object (an enumeration keeps its
    class, and `None` or a number of any size fits), and elements of containers are not checked.

    Raises:
        DeclarationError: no C type is known for the annotation.
    """
    match annotation:
        case None | ast.Constant(value=None):
            return "object"
        case ast.Constant(value=str(text)):
            return c_type(ast.parse(text, mode="eval").body, classes, attribute=attribute)
        case ast.BinOp(left=kind, op=ast.BitOr(), right=other) if is_none(other):
            plain = c_type(kind, classes, attribute=attribute)  # every object may be None
            boxed = {"double": "cython.py_float", "bint": "bool"}
            return plain if plain not in boxed else "object" if attribute else boxed[plain]
        case ast.BinOp():
            return "object"
        case ast.Attribute(value=ast.Name(id="cython"), attr=name):
            if name.startswith("p_") and name[2:] in C_TYPES:
                return C_TYPES[name[2:]] + "*"
            if name in C_TYPES:
                return C_TYPES[name]
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="cython")) as item, slice=size):
            return f"{c_type(item, classes)}[{ast.unparse(size)}]"
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[_, kind])):
            return c_type(kind, classes)  # the first argument is for the type checker, the second for C
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in CONTAINERS:
            return name if attribute else f"{name}[{element(inner)}]"
        case ast.Subscript():
            return "object"
        case ast.Name(id=name):
            special = {"int": "object" if attribute else "cython.py_int", "float": "double", "bool": "bint"}
            return special.get(name) or (name if name in BUILTINS or name in classes else "object")
        case ast.Attribute():
            return "object"
    message = f"line {annotation.lineno}: no C type is known for `{ast.unparse(annotation)}`"
    raise DeclarationError(message)


def is_c_function(node: ast.stmt) -> bool:
    """Whether a statement defines a function with a C signature."""
    return isinstance(node, ast.FunctionDef) and not decorators(node).isdisjoint({"cython.cfunc", "cython.ccall"})


def signature(function: ast.FunctionDef, classes: Collection[str]) -> str:
    """Declare a C function or method; raises DeclarationError for arguments that C does not have."""
    marks = decorators(function)
    arguments = function.args
    if arguments.defaults or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        message = f"line {function.lineno}: `{function.name}`: a C function has plain arguments without defaults"
        raise DeclarationError(message)
    declared = [f"{c_type(a.annotation, classes)} {a.arg}" if a.arg != "self" else "self" for a in arguments.args]
    kind = "cpdef" if "cython.ccall" in marks else "cdef"
    raises = "".join(clause for mark, clause in RAISES.items() if mark in marks)
    return f"{kind} {c_type(function.returns, classes)} {function.name}({', '.join(declared)}){raises}"


def attribute(node: ast.AnnAssign, classes: Collection[str], *, default: bool) -> str:
    """Declare an attribute of an extension type; raises DeclarationError if the body gives it a value that is no `default`."""
    if node.value is not None and not default:
        message = f"line {node.lineno}: `{ast.unparse(node.target)}`: an attribute gets its value in `__init__`"
        raise DeclarationError(message)
    kind = c_type(node.annotation, classes, attribute=True)
    name = ast.unparse(node.target)
    visibility = "" if kind.endswith(("*", "]")) or name == "__weakref__" else "public "
    return f"cdef {visibility}{kind} {name}"


def classes_of(tree: ast.Module) -> dict[str, Class]:
    """Return a module's extension types by name."""
    return {
        node.name: Class(
            node,
            tuple(ast.unparse(base) for base in node.bases),
            frozenset(item.name for item in node.body if isinstance(item, ast.FunctionDef) and is_c_function(item)),
        )
        for node in tree.body
        if isinstance(node, ast.ClassDef) and "cython.cclass" in decorators(node)
    }


def inherited(cls: Class, known: Mapping[str, Class]) -> frozenset[str]:
    """Collect the C methods that a class inherits; Cython refuses a second declaration of one."""
    found: frozenset[str] = frozenset()
    for base in cls.bases:
        if base in known:
            found |= known[base].methods | inherited(known[base], known)
    return found


def bases_in(paths: Iterable[Path]) -> frozenset[str]:
    """Collect the names of all classes from which a class in these files inherits."""
    trees = (ast.parse(path.read_text(encoding="utf-8"), filename=str(path)) for path in paths)
    classes = (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    return frozenset(ast.unparse(base) for cls in classes for base in cls.bases)


def declare_class(
    cls: Class, known: Mapping[str, Class], visible: Collection[str], bases_of_others: Collection[str]
) -> list[str]:
    """Declare an extension type: its attributes and its C methods."""
    name = cls.node.name
    bases = f"({', '.join(cls.bases)})" if cls.bases else ""
    old = inherited(cls, known)
    body = []
    is_dataclass = any(mark.startswith("dataclass") for mark in decorators(cls.node))
    for item in cls.node.body:
        if isinstance(item, ast.AnnAssign) and not ast.unparse(item.annotation).startswith("ClassVar"):
            body.append(attribute(item, visible, default=is_dataclass))
        elif isinstance(item, ast.FunctionDef) and is_c_function(item) and item.name not in old:
            body.append(signature(item, visible))
    head = [] if name in bases_of_others else ["@cython.final"]
    return [*head, f"cdef class {name}{bases}:", *(f"    {line}" for line in body or ["pass"])]


def names_in_c(tree: ast.Module) -> frozenset[str]:
    """Collect what a hot module declares to C: its extension types and its C functions."""
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef) and is_c_function(node))
    return frozenset({*classes_of(tree), *functions})


def c_import(node: ast.ImportFrom, package: str, known: Mapping[str, Collection[str]]) -> str:
    """Write an import for Cython, in one line; `known` has the names that each module declares to C."""
    source = resolve_name("." * node.level + (node.module or ""), package)
    if source == PLAIN:
        return "import cython"
    in_c = [alias for alias in node.names if alias.name in known.get(source, ())]
    others = [alias for alias in node.names if alias not in in_c]
    parts = [(CIMPORTS + source, in_c), (source, others)]
    return "; ".join(f"from {place} import {', '.join(map(ast.unparse, names))}" for place, names in parts if names)


def for_cython(name: str, text: str, known: Mapping[str, Collection[str]]) -> str:
    """Return the text of a hot module as Cython reads it: imports in C where that is possible, each in its place."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            end = node.end_lineno or node.lineno
            blank = [""] * (end - node.lineno)
            lines[node.lineno - 1 : end] = [c_import(node, name.rpartition(".")[0], known), *blank]
    return "\n".join(lines)


def cimported_classes(tree: ast.Module, known: Mapping[str, Class]) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules from which hot classes are cimported, with their names; declarations need no other cimports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(CIMPORTS):
            names = [alias.name for alias in node.names if alias.name in known]
            if names:
                yield node.module.removeprefix(CIMPORTS), names


def declare(name: str, tree: ast.Module, known: Mapping[str, Class], bases_of_others: Collection[str]) -> str:
    """Make the `.pxd` of a hot module, given all extension types and the names of all base classes."""
    own = classes_of(tree)
    visible = set(own).union(*(names for _, names in cimported_classes(tree, known)))
    parts = [
        [f"# Derived from {name} at build time; do not edit.", "cimport cython"],
        [f"cdef class {own_name}" for own_name in own],
        [f"from {source} cimport {', '.join(names)}" for source, names in cimported_classes(tree, known)],
        *(declare_class(cls, known, visible, bases_of_others) for cls in own.values()),
        [signature(node, visible) for node in tree.body if isinstance(node, ast.FunctionDef) and is_c_function(node)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def is_hot(path: Path) -> bool:
    """Whether a module is to be compiled: it imports `cython`, the interpreter's from `licorne._plain`."""
    return f"\nfrom {PLAIN} import cython\n" in path.read_text(encoding="utf-8")


def has_constants(path: Path) -> bool:
    """Whether a plain module has constants for C: it imports `cython` for the type checker alone."""
    return "\nif TYPE_CHECKING:\n    import cython\n" in path.read_text(encoding="utf-8") and not is_hot(path)


def constants_in(tree: ast.Module) -> dict[str, tuple[ast.expr, ast.expr]]:
    """Return the annotation and the value of each constant of a plain module."""
    return {
        node.target.id: (node.annotation, node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def constants(name: str, tree: ast.Module) -> str:
    """Make the `.pxd` of a module of constants.

    The value of each is computed here, for it may be an expression of the constants before it.

    Raises:
        DeclarationError: a constant is no integer, or does not fit its C type.
    """
    values: dict[str, int] = {}
    macros, declared = [], []
    for own, (annotation, text) in constants_in(tree).items():
        kind = c_type(annotation, ())
        value = eval(ast.unparse(text), {"__builtins__": {}}, values)  # noqa: S307 - our own text
        if kind not in INTEGERS or type(value) is not int:
            message = f"line {annotation.lineno}: `{own}`: a shared constant is an integer of C"
            raise DeclarationError(message)
        suffix, least, most = INTEGERS[kind]
        if not least <= value <= most:
            message = f"line {annotation.lineno}: `{own}`: {value} is no {kind}"
            raise DeclarationError(message)
        values[own] = value
        macro = f"{name.replace('.', '_')}_{own}"
        macros.append(f"    #define {macro} (({kind}) {value}{suffix})")
        declared.append(f'    const {kind} {own} "{macro}"')
    head = [f"# Derived from {name} at build time; do not edit.", "cdef extern from *:", '    """']
    return "\n".join([*head, *macros, '    """', *declared]) + "\n"


def write(path: Path, text: str) -> bool:
    """Write a file unless it has this text already, so that builds stay short; say whether it was written."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def generate(
    folder: Path, sources: Mapping[str, Path], folders: Iterable[Path], shared: Mapping[str, Path] | None = None
) -> Sequence[Path]:
    """Write what Cython reads below a folder: the text of each hot module (`sources`, by name) and its `.pxd`.

    Each module of constants (`shared`) has a `.pxd` alone. A file that is up to date is not written; returns those that
    were. Texts and declarations of modules that are gone, or hot no more, are removed. `folders` contain all modules with classes that may inherit from the declared ones. Class names must differ
    across the hot modules, since a base is looked up by its name.

    Raises:
        DeclarationError: a class name occurs twice, or a module cannot be declared.
    """
    paths = {**sources, **(shared or {})}
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    trees = {name: ast.parse(text, filename=str(paths[name])) for name, text in texts.items()}
    known: dict[str, Class] = {}
    for name in sources:
        for class_name, cls in classes_of(trees[name]).items():
            if class_name in known:
                message = f"{name}: a hot class named {class_name} exists already in another module"
                raise DeclarationError(message)
            known[class_name] = cls
    in_c = {name: names_in_c(tree) if name in sources else constants_in(tree) for name, tree in trees.items()}
    bases_of_others = bases_in(path for folder in folders for path in folder.rglob("*.py"))
    made: dict[Path, str] = {}
    for name, text in texts.items():
        path = folder.joinpath(*name.split("."))
        try:
            if name in sources:
                hot = made[path.with_suffix(".py")] = for_cython(name, text, in_c)
                made[path.with_suffix(".pxd")] = declare(name, ast.parse(hot), known, bases_of_others)
            else:
                made[path.with_suffix(".pxd")] = constants(name, trees[name])
        except DeclarationError as error:
            message = f"{paths[name]}, {error}"
            raise DeclarationError(message) from None
    # Cython prefers declarations in packages to others, and may find older ones on `sys.path`.
    packages = {parent for path in made for parent in path.parents if folder in parent.parents}
    made |= {package / "__init__.py": "" for package in packages}
    for old in folder.rglob("*.p*"):
        if old not in made:
            old.unlink()
    return [path for path, text in made.items() if write(path, text)]
