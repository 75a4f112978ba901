"""Limits on concurrent connections, shared out from the file descriptors that the process may have open.

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
"""File descriptors that no port gets. They are for files, child processes and the connections that the service opens, and
for a few times `BACKLOG` connections that an event loop has accepted and that no limit counts yet."""
BACKLOG = 64
"""Length of the queue of a listening socket (`listen(2)`); an event loop accepts at most so many connections in one iteration."""
REST_MAX = 1000
"""Most concurrent connections to REST, however many descriptors there are."""


class Shares(NamedTuple):
    """Limits on concurrent connections: to the addresses of REST together, and to those of gRPC together."""

    rest: int
    grpc: int


def raise_limit() -> None:
    """Raise the soft limit on open files (`RLIMIT_NOFILE`) to the hard limit, as Go's runtime does, and with it YuniKorn."""
    if sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):  # macOS has a lower limit than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shares() -> Shares:
    """Return the limits on connections that the present soft limit on open files allows."""
    limit = 1 << 20
    if sys.platform != "win32" and 0 <= (soft := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < limit:
        limit = soft
    left = limit - min(RESERVED, limit // 2)
    rest = min(REST_MAX, left // 2)
    return Shares(rest, left - rest)
