"""Warnings of Cython that are known of the hot modules and mean nothing, left out of what it prints.

Cython ignores the types in some annotations of dictionaries, and warns where it does. It also warns of code that only plain
Python reaches, behind what `cython.compiled` chooses. It prints such lines from processes of its own, and has no setting
that leaves out some of them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

KNOWN = re.compile(r"warning: .*: (Cannot specialise 'dict\[T,T\]' with .*|Unreachable code)\n")


@contextmanager
def left_out() -> Iterator[None]:
    """Hold back what this process and its children write on standard error within the `with` block; print all but KNOWN at its end."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told:
        os.dup2(told.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            told.seek(0)
            sys.stderr.writelines(line for line in told if not KNOWN.fullmatch(line))
