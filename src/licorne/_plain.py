"""What `cython` means in the hot modules while they run as plain Python: the same, but that a cast costs nothing.

Cython's own stand-in for itself checks and converts at every `cython.cast`, which took a third of the time of a
decision. In the hot modules a cast only says what the compiler cannot know; numbers are converted with `float` and
`int`. So there it is left away, and only there: others in this process may use the stand-in as it is.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cython as stand_in


def _cast(_kind: object, value: Any) -> Any:
    return value


cython: Any = SimpleNamespace(**{**vars(stand_in), "cast": _cast})
