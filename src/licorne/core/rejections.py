"""Applications that were refused: kept for a while, so that one can look up why (spec events.md, section 6)."""

from __future__ import annotations

import msgspec

from licorne.si.messages import AddApplication

REJECTED_MAX = 1_000
"""How many are kept for each partition; the oldest are forgotten first."""


class Rejection(msgspec.Struct, frozen=True):
    """An application that was refused at `at_ns`, and why.

    `queue`: the one that it had been placed in, empty if it was refused before that; `wanted`: the one that it named.
    """

    application_id: str
    queue: str
    wanted: str
    user: str
    groups: tuple[str, ...]
    reason: str
    at_ns: int


def rejection(
    message: AddApplication, user: str, groups: tuple[str, ...], queue: str, reason: str, at_ns: int
) -> Rejection:
    """The record of a refused message, of the user and groups that count for it."""
    return Rejection(message.application_id, queue, message.queue, user, groups, reason, at_ns)
