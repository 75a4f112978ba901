"""The client of a resource manager, over gRPC: `SchedulerClient` has the methods and the callbacks of `SchedulerAPI`.

    scheduler     the client: requests, callbacks, reconnection, resync
    connection    one registration: its streams and their threads
    outbox        messages to be sent, and the answers for which each has to wait

`examples/resource_manager.py` uses it; `docs/use/service.md` explains it.
"""

from __future__ import annotations

from licorne._extras import require

require("client")

from licorne.client.scheduler import DisconnectedError, SchedulerClient, SchedulerUnreachableError

__all__ = ["DisconnectedError", "SchedulerClient", "SchedulerUnreachableError"]
