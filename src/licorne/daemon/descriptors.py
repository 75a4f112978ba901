"""File descriptors: how many connections each port may have, so that one port leaves enough for everything else.

Each connection takes a descriptor, and a process has a limit of them, often 1,024. A client needs no token to connect, so
without a bound it could take them all; then nobody else is let in, no file is opened and no process started.
"""

from __future__ import annotations

import contextlib
import sys
from typing import NamedTuple

if sys.platform != "win32":
    import resource

RESERVED = 400
"""Descriptors for files, processes and the connections of the service itself, and for connections that a loop has accepted and
not yet counted: `BACKLOG` in each of a few turns."""
BACKLOG = 64
"""Connections that a loop accepts in one turn, at most, and that the system keeps until it does."""
REST_MAX = 1000


class Shares(NamedTuple):
    """Connections at once: of REST, and of gRPC."""

    rest: int
    grpc: int


def raise_limit() -> None:
    """Raise the process's limit of descriptors to what the system allows: as Go's runtime does, and with it YuniKorn."""
    if sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):  # macOS has a lower limit than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shares() -> Shares:
    """Share out the descriptors of the process."""
    limit = 1 << 20
    if sys.platform != "win32" and 0 <= (soft := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < limit:
        limit = soft
    left = limit - min(RESERVED, limit // 2)
    rest = min(REST_MAX, left // 2)
    return Shares(rest, left - rest)


__all__ = ["BACKLOG", "Shares", "raise_limit", "shares"]
