"""The module `cython` for hot modules that run as plain Python: what their text names, doing as little as possible.

A hot module imports `cython` from here. For type checkers that is `cython` itself, and so it is in the text that Cython
reads (`tools/pxd.py`); so the package needs no Cython at run time. Cython has a module of its own for this, which
would be slower: it checks and converts at every `cython.cast`, which took a third of the time of a decision. In the hot
modules a cast only gives the compiler a type that it cannot infer; numbers are converted with `float` and `int`.

What only compiled branches name (`cython.address`, `cython.NULL`) is missing here.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cython"]

T = TypeVar("T")


def _unchanged(item: T) -> T:
    return item


def _with_arguments(*_: object, **__: object) -> object:
    return _unchanged


def _declare(kind: object, value: T) -> T:
    del kind
    return value


_nothing: dict[object, Any] = {}
_TYPES = "Py_ssize_t int longlong p_Py_ssize_t p_char p_double p_longlong p_void double size_t uchar ulonglong"

if TYPE_CHECKING:
    import cython
else:
    cython = ModuleType("cython")  # a module, since CPython finds the attributes of modules fastest
vars(cython).update(
    dict.fromkeys(_TYPES.split(), object),
    compiled=False,
    cclass=_unchanged,
    ccall=_unchanged,
    cfunc=_unchanged,
    no_gc=_unchanged,
    exceptval=_with_arguments,
    freelist=_with_arguments,
    overflowcheck=_with_arguments,
    declare=_declare,
    cast=_nothing.get,  # `cast(kind, value)` is the value; no call is cheaper than that of a method written in C
)
