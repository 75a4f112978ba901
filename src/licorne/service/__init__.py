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
security    addresses, TLS, token; `guesses`: who is refused
groups      which groups a user is in (`osgroups`, `grouptable`), found in threads of its own (`lookups`)
settings    limits and times; `bounds`: those of the items of a request
prepared    long configurations, read when the scheduler wants them; `checks`: in processes of their own (`checkprocess`),
            `queuetexts`: with the limit on queues
configuration/  all that it may be told, from files, environment and command line; files that change
log         structured logs; `logwriter`: nobody waits for who reads them; `processlog`: what libraries say
regular     files that are read must be files
signals     that end the service, in time whatever it does
notify      what systemd wants to know
web         REST and metrics in the same loop; `http`: how their answers are written
proto/      the protocol as proto files, for other languages, and what is generated from them for reflection

backend     what those who watch need of the scheduler
monitor     counts what is said, keeps events (`ring`) and history, looks after health; `counts`, `pace`
metrics     the metrics, as text; their help: `metrictexts`; `latencies`, `histogram`
rest/       the REST interface as an ASGI application
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_WHERE = {
    "GroupSettings": "groups",
    "Security": "security",
    "SecurityError": "security",
    "Service": "server",
    "ServiceSettings": "settings",
    "SettingError": "settings",
    "Web": "web",
    "make_log": "log",
}

if not TYPE_CHECKING:  # a type checker would take any name for one that this module has

    def __getattr__(name: str) -> object:
        """Load what is listed above from where it stands: a process that only checks configurations needs no network."""
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
