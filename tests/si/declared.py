"""The messages that a dialect declares, and the numbers of fields that it had before."""

from __future__ import annotations

from types import ModuleType

from licorne.si import v19
from licorne.si._schema import Message

RESERVED: dict[type[Message], dict[int, str]] = {
    v19.AllocationRequest: {1: "asks"},
    v19.AllocationResponse: {3: "releasedAsks", 4: "rejected"},
    v19.Allocation: {3: "UUID", 7: "queueName", 13: "allocationID"},
    v19.AllocationReleasesRequest: {2: "allocationAsksToRelease"},
    v19.AllocationRelease: {3: "UUID", 7: "allocationID"},
    v19.NodeInfo: {5: "occupiedResource", 6: "existingAllocations"},
    v19.UpdateConfigurationRequest: {1: "configs"},
    v19.EventRecord: {3: "groupID", 4: "reason"},
}
"""Field numbers that older versions of the 1.9 interface used and that must not be reused, with their old names."""


def messages_of(dialect: ModuleType) -> list[type[Message]]:
    """Return all messages of a dialect."""
    found = [each for each in vars(dialect).values() if isinstance(each, type) and issubclass(each, Message)]
    return [each for each in found if each is not Message]
