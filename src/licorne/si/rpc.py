"""The calls of the Scheduler Interface over gRPC: names of the service, its methods, metadata and words.

Source: docs/spec/scheduler-interface.md, section 1; metadata and the form of RESYNC are licorne's (`docs/service.md`).
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
"""What a stream carries, by the name of its method."""

RM_ID, REGISTRATION = "licorne-rm-id", "licorne-registration"
"""Metadata that a stream may bring, so that it is known at once whose it is, and of which registration. The answer to a
registration has the second one."""

RESYNC = "RESYNC"
"""What the details of a status begin with where the resource manager must register again and report everything."""

DEFAULT_ADDRESS = "127.0.0.1:3333"


def path(method: str) -> str:
    """A method as gRPC calls it."""
    return f"/{SERVICE}/{method}"
