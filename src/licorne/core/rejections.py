"""Applications that were refused: kept for a while, so that one can look up why (spec events.md, section 6)."""

from __future__ import annotations

import msgspec

from licorne.si.messages import AddApplication

REJECTED_MAX = 1_000
"""How many are kept for each partition; the oldest are forgotten first."""


class Rejection(msgspec.Struct, frozen=True):
    """An application that was refused at `at_ns`, as it was sent, and why."""

    application_id: str
    queue: str
    user: str
    groups: tuple[str, ...]
    reason: str
    at_ns: int


def rejection(message: AddApplication, reason: str, at_ns: int) -> Rejection:
    """The record of a refused message."""
    return Rejection(message.application_id, message.queue, message.user, message.groups, reason, at_ns)
