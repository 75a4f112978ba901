"""Orders that the host program gives, in place of those of docs/spec/scheduling.md.

A simulator lets people try orders of their own (`licorne.sim.policies`). What they give decides whose turn it is among
queues and among the applications of a leaf, and which of the nodes that fit an ask takes. Everything else stays as it is:
which asks fit, quotas, limits, states, gangs, reservations, what waits and what wakes it.

A given order may depend on anything, so nothing of it is kept: siblings are compared anew for each decision, of those that
are awake, and all nodes that fit are offered (`Descent.chosen_node`). Equal keys are settled by the core's own order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from licorne._plain import cython
from licorne.core.base.order import Ranked
from licorne.core.queues.application import Application
from licorne.core.queues.queue import Queue


class HostOrders(NamedTuple):
    """The orders that a host program gives; None: the core's own. What they raise ends the call of the scheduler.

    `choose_node` takes an ask and the open nodes that fit it, in the core's order, and returns the node that it takes; None:
    it takes none now, and is asked again at the next call of `schedule`. `queue_key` and `application_key` return a key: the
    queue, or application, with the smallest comes first among its siblings.
    """

    choose_node: Callable[[Any, Iterator[Any]], Any] | None = None
    queue_key: Callable[[Any], Any] | None = None
    application_key: Callable[[Any], Any] | None = None


@cython.cclass
class GivenOrders:
    """What the decision loop asks for orders that are given."""

    choose_node: Any
    queue_key: Any
    application_key: Any

    def __init__(self, given: HostOrders) -> None:
        self.choose_node = given.choose_node
        self.queue_key = given.queue_key
        self.application_key = given.application_key

    @cython.cfunc
    def next_application(self, root: Queue) -> Application:
        """Return the application whose turn it is, of those that are awake."""
        queue: Queue = root
        while not queue.is_leaf:
            queue = cython.cast(Queue, least(queue.order.items, self.queue_key, queue.first_child()))
        return cython.cast(Application, least(queue.order.items, self.application_key, queue.order.top()))


@cython.cfunc
def least(items: list[Any], key: object, own_first: Ranked) -> Ranked:
    """Return the item with the smallest key; of equal ones `own_first`, the first in the core's own order, or else the earlier."""
    item: Ranked
    best: Ranked = own_first
    if key is None or len(items) == 1:
        return best
    key_of: Any = key
    best_key: Any = key_of(own_first)
    for each in items:
        item = cython.cast(Ranked, each)
        if item is own_first:
            continue
        found: Any = key_of(item)
        if found < best_key or (best is not own_first and found == best_key and item.before(best)):
            best, best_key = item, found
    return best
