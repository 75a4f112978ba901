"""Refusals: their reasons, and the record of refused applications.

A reason is a sentence with names in it: of the ask, of its application. To count equal reasons one needs the sentence
without the names, and they cannot be found in the text again, since an application may be called `a`. So a reason is
put together from its parts where it arises (`naming`), and is sent both ways. Refused applications are kept for a
while, so that users can look up why (docs/spec/events.md, section 6).
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
"""How many refused applications each partition keeps; the oldest are forgotten first."""

NAME = "…"
"""The placeholder of a name in a template."""


class Reason(msgspec.Struct, frozen=True):
    """Why something is refused: the text, and the same text with `NAME` in place of each name from the message."""

    text: str
    template: str

    def __str__(self) -> str:
        return self.text


Fault = str | Reason
"""Why a message is refused: a `Reason`, or a plain text if no name of the message occurs in it; empty: no fault."""


def naming(*parts: str) -> Reason:
    """Build a reason from alternating texts and names, a text first: `naming("failed to find application ", "a")`."""
    template = "".join([NAME if index % 2 else part for index, part in enumerate(parts)])
    return Reason("".join(parts), template)


def template_of(fault: Fault) -> str:
    """The template of a refusal message; empty where it is the same as the text."""
    return fault.template if isinstance(fault, Reason) else ""


def refused_allocation(message: Allocation, fault: Fault) -> RejectedAllocation:
    """Build the refusal of an ask or allocation."""
    return RejectedAllocation(message.key, message.application_id, str(fault), template_of(fault))


def refused_application(message: AddApplication, fault: Fault) -> RejectedApplication:
    """Build the refusal of an application."""
    return RejectedApplication(message.application_id, str(fault), template_of(fault))


def refused_node(message: NodeUpdate, fault: Fault) -> RejectedNode:
    """Build the refusal of a node, or of a change to one."""
    return RejectedNode(message.node_id, str(fault), template_of(fault))


class Rejection(msgspec.Struct, frozen=True):
    """An application that was refused at `at_ns`, and why.

    `wanted` is the queue that it named. `queue` is the one in which it had been placed; if it was refused before any rule
    was asked, the one that it named; empty if no rule placed it.
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
    """Build the record of a refused message; `user` and `groups` are those that count for it."""
    return Rejection(message.application_id, queue, message.queue, user, groups, reason, at_ns)
