"""What `cython` means in the hot modules while they run as plain Python: the same, but that a cast costs next to nothing.

Cython's own stand-in for itself checks and converts at every `cython.cast`, which took a third of the time of a
decision. In the hot modules a cast only says what the compiler cannot know; numbers are converted with `float` and
`int`. So there it is left away, and only there: others in this process may use the stand-in as it is.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import cython as stand_in

cython: Any = ModuleType("cython")  # a module, since CPython finds the attributes of modules fastest
vars(cython).update(vars(stand_in))
nothing: dict[object, Any] = {}
cython.cast = nothing.get  # `cast(kind, value)` is the value; no call is cheaper than that of a method written in C
