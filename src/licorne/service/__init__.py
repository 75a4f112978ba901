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
settings    limits and times
log         structured logs
web         REST and metrics in the same loop
proto/      the protocol as proto files, for other languages, and what is generated from them for reflection

backend     what those who watch need of the scheduler
monitor     counts what is said, keeps events (`ring`) and history, looks after health; `counts`, `pace`
metrics     the metrics, as text; their help: `metrictexts`
rest/       the REST interface as an ASGI application
"""

from __future__ import annotations

from licorne.service.log import make_log
from licorne.service.security import Security, SecurityError
from licorne.service.server import Service
from licorne.service.settings import ServiceSettings, SettingError
from licorne.service.web import Web

__all__ = [
    "Security",
    "SecurityError",
    "Service",
    "ServiceSettings",
    "SettingError",
    "Web",
    "make_log",
]
