"""The module `cython` for hot modules that run as plain Python: Cython's pure Python module with a cheap `cast`.

Cython's pure Python module checks and converts at every `cython.cast`, which took a third of the time of a decision.
In the hot modules a cast only gives the compiler a type that it cannot infer; numbers are converted with `float` and
`int`. So `cast` does nothing here. The change is made in a copy, because other code in this process may use Cython's
module.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cython as stand_in

cython: Any = ModuleType("cython")  # a module, since CPython finds the attributes of modules fastest
vars(cython).update(vars(stand_in))
nothing: dict[object, Any] = {}
cython.cast = nothing.get  # `cast(kind, value)` is the value; no call is cheaper than that of a method written in C
