"""Derives from a hot module's Python text the declarations (`.pxd`) that Cython wants besides it.

Typed access to a class from another module, or before its definition in its own, needs the layout of the class and
the C signatures of its methods in a `.pxd` file. All of that stands already in the module, as annotations and
decorators. A second copy written by hand would have to be kept equal by hand, so this one is made at each build from
the syntax tree alone: nothing is imported, nothing is executed.

What is read, for each module:

* each `@cython.cclass` class, with a forward declaration, so that classes may name each other in any order;
* `from cython.cimports.a.b import C` under `if cython.compiled:`, where C is a hot class, becomes `from a.b cimport C`.
  It stands after the forward declarations, and functions are left out, so two modules may import from each other, as
  long as neither inherits from the other;
* its annotations in the class body, as attributes: visible to Python (`cdef public`), except pointers, C arrays and
  `__weakref__`, which allows weak references;
* its `@cython.cfunc` and `@cython.ccall` methods, except those that override a declared one;
* the same decorators on functions of the module. They are declared as plain C functions even where the module says
  `@cython.inline`, since an inline function in a `.pxd` needs its body there; the C compiler still may inline them
  within their module. Module constants (`cython.declare`) are private to their module.

Constants that several hot modules share stand in a plain module that imports `cython` for the type checker alone, each
annotated with its C type, and become macros of C: `UNLIMITED: cython.longlong = 0x7FFFFFFFFFFFFFFF`. A hot module cimports
them, and C sees their values.

A class from which no other in the folders of hot modules inherits, hot or not, is declared final, which turns its method
calls into direct ones. Bases are known by their names alone.
"""

from __future__ import annotations

import ast
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
"""`cython.<name>` in an annotation, and what it is in C; `cython.p_<name>` is a pointer to it."""

INTEGERS = {
    "int": ("", -(1 << 31), (1 << 31) - 1),
    "long long": ("LL", -(1 << 63), (1 << 63) - 1),
    "unsigned long long": ("ULL", 0, (1 << 64) - 1),
}
"""Types of shared constants: what a number of each ends with in C, the least and the most."""

RAISES = {"cython.exceptval(check=False)": " noexcept", "cython.exceptval(-1)": " except? -1"}
"""What a decorator says of exceptions. Without one, Cython looks for an exception behind each call of a method that returns
a number; where -1 may stand for one, it looks only behind a -1."""

CONTAINERS = frozenset({"dict", "frozenset", "list", "set", "tuple"})
BUILTINS = CONTAINERS | {"bytearray", "bytes", "complex", "memoryview", "object", "str"}
"""Python types that Cython knows by the same name; a class that is neither one of these nor hot is an `object`."""

CIMPORTS = "cython.cimports."


class DeclarationError(Exception):
    """Something in a hot module cannot be declared to Cython; says where and why."""


class Class(NamedTuple):
    """An extension type: its module, its syntax and the C methods that it declares or overrides."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    methods: frozenset[str]


def decorators(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    """Return the decorators as text, `cython.exceptval(check=False)` for instance."""
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def is_none(annotation: ast.expr) -> bool:
    """Say whether an annotation is `None`."""
    return isinstance(annotation, ast.Constant) and annotation.value is None


def element(annotation: ast.expr) -> str:
    """Write what stands in the brackets of `dict[str, int]`, where `int` and `float` alone would be C's."""
    renamed = {"int": "cython.py_int", "float": "cython.double"}
    if isinstance(annotation, ast.Tuple):
        return ", ".join(element(item) for item in annotation.elts)
    if isinstance(annotation, ast.Subscript):
        return f"{ast.unparse(annotation.value)}[{element(annotation.slice)}]"
    text = ast.unparse(annotation)
    return renamed.get(text, text)


def c_type(annotation: ast.expr | None, classes: Collection[str], *, attribute: bool = False) -> str:
    """Translate an annotation into a type of Cython's own language, `classes` being the known extension types.

    Arguments and results must have the very type that Cython reads from the module itself, or it refuses the
    signature. An attribute has the type that is said here alone; so an `int` may stay any object (an enumeration
    keeps its class, and `None` or a number of any size fit), and elements of containers are not checked.
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
            return c_type(kind, classes)  # the first is the type checker's, the second is meant for C
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
    """Say whether a statement defines a function with a C signature."""
    return isinstance(node, ast.FunctionDef) and not decorators(node).isdisjoint({"cython.cfunc", "cython.ccall"})


def signature(function: ast.FunctionDef, classes: Collection[str]) -> str:
    """Declare a C function or method."""
    marks = decorators(function)
    arguments = function.args
    if arguments.defaults or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        message = f"line {function.lineno}: `{function.name}`: a C function has plain arguments without defaults"
        raise DeclarationError(message)
    declared = [f"{c_type(a.annotation, classes)} {a.arg}" if a.arg != "self" else "self" for a in arguments.args]
    kind = "cpdef" if "cython.ccall" in marks else "cdef"
    raises = "".join(clause for mark, clause in RAISES.items() if mark in marks)
    return f"{kind} {c_type(function.returns, classes)} {function.name}({', '.join(declared)}){raises}"


def attribute(node: ast.AnnAssign, classes: Collection[str]) -> str:
    """Declare an attribute of an extension type."""
    if node.value is not None:
        message = f"line {node.lineno}: `{ast.unparse(node.target)}`: an attribute gets its value in `__init__`"
        raise DeclarationError(message)
    kind = c_type(node.annotation, classes, attribute=True)
    name = ast.unparse(node.target)
    visibility = "" if kind.endswith(("*", "]")) or name == "__weakref__" else "public "
    return f"cdef {visibility}{kind} {name}"


def classes_of(tree: ast.Module) -> dict[str, Class]:
    """Find a module's extension types."""
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
    """Collect the C methods that a class gets from its bases; to declare one again is an error."""
    found: frozenset[str] = frozenset()
    for base in cls.bases:
        if base in known:
            found |= known[base].methods | inherited(known[base], known)
    return found


def bases_in(paths: Iterable[Path]) -> frozenset[str]:
    """Collect the names of all classes from which one in these files inherits."""
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
    for item in cls.node.body:
        if isinstance(item, ast.AnnAssign) and not ast.unparse(item.annotation).startswith("ClassVar"):
            body.append(attribute(item, visible))
        elif isinstance(item, ast.FunctionDef) and is_c_function(item) and item.name not in old:
            body.append(signature(item, visible))
    head = [] if name in bases_of_others else ["@cython.final"]
    return [*head, f"cdef class {name}{bases}:", *(f"    {line}" for line in body or ["pass"])]


def cimported_classes(tree: ast.Module, known: Mapping[str, Class]) -> Iterator[tuple[str, list[str]]]:
    """Find which hot classes a module imports from where; functions and C libraries do not occur in declarations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(CIMPORTS):
            names = [alias.name for alias in node.names if alias.name in known]
            if names:
                yield node.module.removeprefix(CIMPORTS), names


def declare(name: str, tree: ast.Module, known: Mapping[str, Class], bases_of_others: Collection[str]) -> str:
    """Declare a whole module, given the extension types of all hot modules, and from which classes others inherit."""
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
    """Say whether a module is to be compiled: it imports `cython` at its top."""
    return "\nimport cython\n" in path.read_text(encoding="utf-8")


def has_constants(path: Path) -> bool:
    """Say whether a plain module holds constants for C: it imports `cython` for the type checker alone."""
    return "\nif TYPE_CHECKING:\n    import cython\n" in path.read_text(encoding="utf-8")


def constants(name: str, tree: ast.Module) -> str:
    """Declare a module of constants: what they are worth is computed here, by the values of those before them."""
    values: dict[str, int] = {}
    macros, declared = [], []
    for node in tree.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.value is None:
            continue
        kind, own = c_type(node.annotation, ()), node.target.id
        value = eval(ast.unparse(node.value), {"__builtins__": {}}, values)  # noqa: S307 - our own text
        if kind not in INTEGERS or type(value) is not int:
            message = f"line {node.lineno}: `{own}`: a shared constant is an integer of C"
            raise DeclarationError(message)
        suffix, least, most = INTEGERS[kind]
        if not least <= value <= most:
            message = f"line {node.lineno}: `{own}`: {value} is no {kind}"
            raise DeclarationError(message)
        values[own] = value
        macro = f"{name.replace('.', '_')}_{own}"
        macros.append(f"    #define {macro} (({kind}) {value}{suffix})")
        declared.append(f'    const {kind} {own} "{macro}"')
    head = [f"# Derived from {name} at build time; do not edit.", "cdef extern from *:", '    """']
    return "\n".join([*head, *macros, '    """', *declared]) + "\n"


def generate(
    sources: Mapping[str, Path], folders: Iterable[Path], shared: Mapping[str, Path] | None = None
) -> Sequence[Path]:
    """Write the `.pxd` beside each hot module, and beside those of shared constants.

    A file that is right already is left alone, so that builds stay short.

    `folders`: below them are all modules that may inherit from the classes declared.

    Class names must differ across the hot modules, since a base is looked up by its name.
    """
    trees = {name: ast.parse(path.read_text(encoding="utf-8"), filename=str(path)) for name, path in sources.items()}
    known: dict[str, Class] = {}
    for name, tree in trees.items():
        for class_name, cls in classes_of(tree).items():
            if class_name in known:
                message = f"{name}: a hot class named {class_name} exists already in another module"
                raise DeclarationError(message)
            known[class_name] = cls
    bases_of_others = bases_in(path for folder in folders for path in folder.rglob("*.py"))
    written = []
    for name, path in {**sources, **(shared or {})}.items():
        target = path.with_suffix(".pxd")
        try:
            if name in trees:
                text = declare(name, trees[name], known, bases_of_others)
            else:
                text = constants(name, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))
        except DeclarationError as error:
            message = f"{path}, {error}"
            raise DeclarationError(message) from None
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
            written.append(target)
    return written
