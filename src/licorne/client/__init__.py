"""A resource manager in Python over gRPC: `SchedulerClient` has the methods of `SchedulerAPI`, and calls back as it does.

    scheduler     the client: requests, callbacks, connections that break, resync
    connection    one registration: its streams and their threads
    outbox        what waits to be sent, and what it waits for

`examples/resource_manager.py` uses it; `docs/service.md` explains it.
"""

from __future__ import annotations

from licorne.client.scheduler import DisconnectedError, SchedulerClient, SchedulerUnreachableError

__all__ = ["DisconnectedError", "SchedulerClient", "SchedulerUnreachableError"]
