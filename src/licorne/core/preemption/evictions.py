"""Evictions, and why each was made, as data (docs/spec/design.md, rule 4).

A partition keeps one record for each of its newest thousand victims, so that "why was this pod evicted?" can be
answered without reading a log.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import msgspec

from licorne.core.base.states import SECOND_NS, TIME_MAX_NS
from licorne.core.base.tags import tag
from licorne.si.constants import TAG_GRACE_PERIOD
from licorne.si.messages import Termination

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.ask import Ask

EVICTIONS_MAX = 1_000
"""How many records of evictions a partition keeps; the oldest are dropped first."""
GRACE_PERIOD_S = 30
"""How long a victim takes to end, in seconds, if its tag does not say so: the default of Kubernetes."""
OVERDUE_NS = 600 * SECOND_NS
"""How long after its grace period a victim that has not ended is not expected to end any more."""


class Outcome(StrEnum):
    """The result of an eviction that was made for an ask; all but the first three say why the ask gave up its claim.

    Checkpoints have these values: one that is changed makes those of before unreadable.
    """

    WAITING = "the ask waits"
    PLACED = "the ask was placed"
    ENDED = "the ask has ended"
    HIGHER_ORDER = "an ask of higher order was placed, or evicts for itself"
    REQUIRED_NODE = "an ask that requires the node has taken its place"
    AGE = "it has reserved its node for 120 minutes"
    VICTIM = "a victim has not ended ten minutes after its grace period"
    GANG = "another member of its gang has given up"  # or has ended
    NODE = "a node has gone or changed"
    CONFIGURATION = "the configuration, or the quota of a queue, has changed"
    FOREIGN = "an allocation of another scheduler"
    FORCED = "an allocation that the resource manager has placed, or resized"
    CHANGED = "the ask wants something else"
    TERMS = "pods elsewhere keep it off its node, by affinity or spread"
    PLACEHOLDERS = "placeholders of its task group have come"


class Eviction(msgspec.Struct):
    """The record of one victim of preemption, and of what it was evicted for.

    `ask` is the key of the ask that needed room, `queue` the path of its queue. For a lowered quota `ask` is empty and
    `queue` is the one whose quota was lowered. `missing` is, by type, what was left of the guarantee (`guaranteed`),
    what the ask wants (`within-queue`), what was lacking on the node (`required-node`), or what was used above the quota
    (`quota-change`). `rule` gives the reason in a sentence, with the section of the specification. `outcome` is updated as the ask goes on; None for a
    lowered quota.
    """

    kind: Literal["guaranteed", "within-queue", "required-node", "quota-change"]
    ask: str
    ask_application: str
    queue: str
    missing: dict[str, int]
    rule: str
    victim: str
    victim_application: str
    victim_queue: str
    at_ns: int
    outcome: Outcome | None = Outcome.WAITING


def evict(partition: Partition, victim: Ask, record: Eviction, message: str) -> None:
    """Evict one allocation: send its release, with the message that the specification names, and keep the record."""
    await_end(partition, victim)
    partition.notify_released(victim, Termination.PREEMPTED_BY_SCHEDULER, message)
    partition.evictions.append(record)
    partition.disruption_budgets.evicted(victim)
    # An ask that requires a node may need fewer victims there now, and claims may leave more to other asks.
    partition.wakeups.claims_changed(victim.node)
    if partition.events is not None:
        partition.events.evicted(victim, record)


def await_end(partition: Partition, victim: Ask) -> None:
    """Count a preemption victim's resources as about to be freed, and set the time until which its end is awaited.

    It is `OVERDUE_NS` after the grace period of the victim, which begins now.
    """
    partition.accounting.preempting(victim.app, victim)
    partition.timers.cancel(victim.deadline)  # its execution timeout would ask for the same
    due_ns = min(partition.now + _grace_ns(victim) + OVERDUE_NS, TIME_MAX_NS)
    victim.deadline = partition.timers.add(due_ns, "eviction", victim)


def overdue(partition: Partition, victim: Ask) -> None:
    """Stop waiting for a victim that has not ended long after its grace period; its node may be lost, or a finalizer stuck.

    Claims to its room give up, and their asks may preempt elsewhere.
    """
    victim.deadline = None
    partition.accounting.stop_expecting(victim)
    partition.claims.review(Outcome.VICTIM)
    # An ask whose claim still fits is tried: the pod that stays may shut it out by its terms.
    partition.wakeups.claims_changed(victim.node)


def _grace_ns(victim: Ask) -> int:
    """Return the grace period of an allocation in ns: what its tag says, or `GRACE_PERIOD_S` if the tag is missing or no number."""
    said = tag(victim.tags, TAG_GRACE_PERIOD) if victim.tags else ""
    return (int(said) if said.isdecimal() and len(said) < 10 else GRACE_PERIOD_S) * SECOND_NS
