"""Refusals: their reasons, and the applications among what was refused.

A reason is a sentence in which names stand: of the ask, of its application. Whoever counts equal reasons needs it without
them, and cannot find them in the text again, since an application may be called `a`. So a reason is put together from its
parts where it arises (`naming`), and goes out both ways. Refused applications are kept for a while, so that one can look
up why (docs/spec/events.md, section 6).
"""

from __future__ import annotations

import msgspec

from licorne.si.messages import (
    AddApplication,
    Allocation,
    NodeUpdate,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
)

REJECTED_MAX = 1_000
"""How many are kept for each partition; the oldest are forgotten first."""

NAME = "…"
"""What stands for a name in a template."""


class Reason(msgspec.Struct, frozen=True):
    """Why something is refused, in words, and the same words with `NAME` in place of each name that is the message's own."""

    text: str
    template: str

    def __str__(self) -> str:
        return self.text


Fault = str | Reason
"""Why a message is refused: a `Reason`, or a plain text where no name of the message occurs in it; empty: no fault."""


def naming(*parts: str) -> Reason:
    """Build a reason from alternating texts and names, a text first: `naming("failed to find application ", "a")`."""
    template = "".join([NAME if index % 2 else part for index, part in enumerate(parts)])
    return Reason("".join(parts), template)


def template_of(fault: Fault) -> str:
    """The template of a refusal message; empty where it is the same as the text."""
    return fault.template if isinstance(fault, Reason) else ""


def refused_allocation(message: Allocation, fault: Fault) -> RejectedAllocation:
    """The refusal of an ask or allocation."""
    return RejectedAllocation(message.key, message.application_id, str(fault), template_of(fault))


def refused_application(message: AddApplication, fault: Fault) -> RejectedApplication:
    """The refusal of an application."""
    return RejectedApplication(message.application_id, str(fault), template_of(fault))


def refused_node(message: NodeUpdate, fault: Fault) -> RejectedNode:
    """The refusal of a node, or of a change to one."""
    return RejectedNode(message.node_id, str(fault), template_of(fault))


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
