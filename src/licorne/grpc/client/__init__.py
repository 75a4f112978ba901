"""The client of a resource manager, over gRPC: `SchedulerClient` has the methods and the callbacks of `SchedulerAPI`.

    scheduler     the client: requests, callbacks, reconnection, resync
    connection    one registration: its streams and their threads
    remedies      what to do about a connection that cannot be made
    outbox        messages to be sent, and the answers for which each has to wait

`examples/resource_manager.py` uses it; `docs/use/service.md` explains it.
"""

from __future__ import annotations

import os

from licorne._extras import require

require("client")
# Read when gRPC is first imported; what fails is raised, or logged in words.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from licorne.grpc.client.scheduler import DisconnectedError, SchedulerClient, SchedulerUnreachableError

__all__ = ["DisconnectedError", "SchedulerClient", "SchedulerUnreachableError"]
