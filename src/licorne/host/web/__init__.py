"""REST, metrics, events and health of a scheduler that runs in this process.

The gRPC service (`licorne.grpc.service`) mounts it, and so can any other program that runs a `SchedulerAPI` on an asyncio loop.

backend         the narrow view of the scheduler that this package uses, and how a program mounts the REST interface
monitor         counts output messages, keeps events and history, and runs the health checks
health          the health checks
event_ring      the latest events
settings        those of events and health checks
usage           the log line with the resource usage of an application that ends
figures/        metrics and history
rest/           the REST interface as an ASGI application; `page/`: pages for people beside it
server          HTTP in the loop of the scheduler; `http`: limits of connections, and whether a client waits
"""

from __future__ import annotations

from licorne._extras import require

require("web")
