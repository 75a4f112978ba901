"""The network's side of the scheduler: gRPC for resource managers, REST for people and tools (`licorne serve`).

server      the service: where it listens, its calls, start and end
sessions    who is registered, whose stream is whose, what is said to whom
session     the life of one resource manager
intake      requests: read whole, then taken in, a little at a time
streams     one stream: reading, writing, its end
memory      the garbage collector
courtesy    whether somebody waits for an answer of REST
lag         how long the loop keeps its own waiting
engine      decisions in slices, and deadlines
security    addresses, TLS, token
groups      which groups a user is in (`osgroups`, `grouptable`), found in threads of its own (`lookups`)
settings    limits and times; `bounds`: those of the items of a request
prepared    long configurations are read in threads
configuration/  all that it may be told, from files, environment and command line; files that change
log         structured logs
notify      what systemd wants to know
web         REST and metrics in the same loop; `http`: how their answers are written
proto/      the protocol as proto files, for other languages, and what is generated from them for reflection

backend     what those who watch need of the scheduler
monitor     counts what is said, keeps events (`ring`) and history, looks after health; `counts`, `pace`
metrics     the metrics, as text; their help: `metrictexts`; `latencies`, `histogram`
rest/       the REST interface as an ASGI application
"""

from __future__ import annotations

from licorne.service.groups import GroupSettings
from licorne.service.log import make_log
from licorne.service.security import Security, SecurityError
from licorne.service.server import Service
from licorne.service.settings import ServiceSettings, SettingError
from licorne.service.web import Web

__all__ = [
    "GroupSettings",
    "Security",
    "SecurityError",
    "Service",
    "ServiceSettings",
    "SettingError",
    "Web",
    "make_log",
]
