"""What tools/known_warnings.py leaves out of what Cython prints: the two kinds of warnings that mean nothing, and no others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import known_warnings

if TYPE_CHECKING:
    import pytest

OTHERS = [
    "warning: core/a.py:4:9: Unused entry 'x'",
    "core/a.py:5:1: undeclared name not builtin: y",
    "warning: core/a.py:6:1: Cannot specialise 'list[T]' with 2 types, ignoring",
]
KNOWN = [
    "warning: core/a.py:2:13: Cannot specialise 'dict[T,T]' with 1 type, ignoring",
    "warning: core/a.py:4:9: Unreachable code",
]


def test_only_known_warnings_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    with known_warnings.left_out():
        os.write(2, "".join(f"{line}\n" for line in (KNOWN[0], *OTHERS, KNOWN[1])).encode())
    os.write(2, b"after\n")
    assert capfd.readouterr().err.splitlines() == [*OTHERS, "after"]
