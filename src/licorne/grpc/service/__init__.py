"""The gRPC service for resource managers, with REST and metrics beside it (`licorne serve`).

server          the service: addresses, gRPC methods, start and stop
sessions        registration, streams and messages of all resource managers; `session`: one resource manager
intake          requests: read to the end first, then passed to the scheduler, both in steps
streams         one stream: reading, writing, its end
engine          decisions in slices, and deadlines
access          credentials and tokens
settings        limits and times; `bounds`: those of the items of a request
checking/       long configurations, read and checked in processes of their own
groups/         which groups a user is in
configuration/  settings from files, environment and command line; reloading of files that change
proto/          the protocol as proto files, for other languages, and what is made of them for reflection

Below it are `licorne.host.web` (REST, metrics, events, health) and `licorne.host` (logs, signals, TLS).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._extras import require
from licorne._lazy import lazy_names

if TYPE_CHECKING:
    from licorne.grpc.service.groups.resolver import GroupSettings
    from licorne.grpc.service.server import Service
    from licorne.grpc.service.settings import ServiceSettings, SettingError
    from licorne.host.log import make_log
    from licorne.host.secrets import SecurityError
    from licorne.host.security import Security
    from licorne.host.web.server import Web

require("service")

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
    "GroupSettings": "licorne.grpc.service.groups.resolver",
    "Security": "licorne.host.security",
    "SecurityError": "licorne.host.secrets",
    "Service": "licorne.grpc.service.server",
    "ServiceSettings": "licorne.grpc.service.settings",
    "SettingError": "licorne.grpc.service.settings",
    "Web": "licorne.host.web.server",
    "make_log": "licorne.host.log",
}


# A process that only checks configurations needs no network.
if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module
    __getattr__, __dir__ = lazy_names(__name__, _WHERE)
