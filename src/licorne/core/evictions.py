"""Why allocations were evicted, as data (design, rule 4): one record for each victim of a preemption.

Kept in the order of decision and bounded: of a partition the newest `KEPT` are there.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

KEPT = 1_000
"""So many evictions of a partition are kept; the oldest are forgotten first."""


class Eviction(msgspec.Struct, frozen=True):
    """An allocation was made to end, so that something else has room (spec preemption.md).

    `ask` is the key of the ask that wanted room, of `ask_application` ("" where a quota was lowered). `queue` is that of
    the ask, or the queue whose max was lowered. `missing`, by type: what was lacking of the queue's guarantee (kind
    guaranteed), on the node (required-node), or what was used above the max (quota-change). `rule` is a sentence that
    names the section of the specification. `victim` is the key of the allocation.
    """

    kind: Literal["guaranteed", "required-node", "quota-change"]
    ask: str
    ask_application: str
    queue: str
    missing: dict[str, int]
    rule: str
    victim: str
    victim_application: str
    victim_queue: str
    at_ns: int


Evictions = deque[Eviction]
"""The evictions of a partition, oldest first, made by `evictions()`."""


def evictions() -> Evictions:
    """None yet."""
    return deque(maxlen=KEPT)
