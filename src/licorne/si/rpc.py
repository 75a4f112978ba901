"""The calls of the Scheduler Interface over gRPC: names of the service, its methods, metadata and words.

Source: docs/spec/scheduler-interface.md, section 1; metadata and the form of RESYNC are licorne's (`docs/use/service.md`).
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["update", "application", "allocation", "node"]

SERVICE = "si.v1.Scheduler"
REGISTER = "RegisterResourceManager"
METHODS: dict[str, Kind] = {
    "Update": "update",
    "UpdateApplication": "application",
    "UpdateAllocation": "allocation",
    "UpdateNode": "node",
}
"""The kind of message that a stream carries, by the name of its method."""

RM_ID, REGISTRATION = "licorne-rm-id", "licorne-registration"
"""Metadata by which a stream may identify its resource manager and registration at once.

The answer to a registration carries the second one.
"""

RESYNC = "RESYNC"
"""The beginning of a status's details if the resource manager must register again and report everything."""

DEFAULT_ADDRESS = "127.0.0.1:3333"


def path(method: str) -> str:
    """Return the full name of a method in gRPC."""
    return f"/{SERVICE}/{method}"
