"""Preemption for an ask that requires its node (spec preemption.md, sections 1 and 3).

The node of such an ask (a daemon) holds a reservation for it; allocations of no higher priority make room. What is free
on the node counts before anybody is evicted. The other kinds of preemption are not part of this version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.si.messages import Termination

if TYPE_CHECKING:
    from .application import Application
    from .asks import Ask
    from .nodes import Node
    from .partition import Partition


def make_room_on_required_node(partition: Partition, ask: Ask, node: Node) -> bool:
    """Evict what is needed on the node for this ask; False, and nothing changed, if that would not help."""
    amounts = ask.shape.amounts
    victims: list[Ask] = []
    room = node.free.clone()
    for victim in _candidates(ask, node):
        if room.holds(amounts):
            break
        victims.append(victim)
        room.plus(victim.shape.amounts)
    if not victims or not room.holds(amounts):
        return False
    for victim in list(reversed(victims)):  # who brings nothing that is lacking can be left out
        room.minus(victim.shape.amounts)
        if room.holds(amounts):
            victims.remove(victim)
        else:
            room.plus(victim.shape.amounts)
    ask.triggered = True
    for victim in victims:
        app: Application = victim.app
        partition.books.preempting(app, victim)
        partition.say_released(
            victim,
            Termination.PREEMPTED_BY_SCHEDULER,
            f"preempting allocations to free up resources to run daemon set ask: {ask.key}",
        )
    return True


def _candidates(ask: Ask, node: Node) -> list[Ask]:
    """Who may be evicted, in the order in which they are taken."""
    wanted = {d for d, amount in enumerate(ask.shape.amounts.values()) if amount}
    found = [
        a
        for a in node.allocations
        if not a.required
        and a.priority <= ask.priority
        and not a.preempted
        and not a.released
        and any(d in wanted and amount for d, amount in enumerate(a.shape.amounts.values()))
    ]
    return sorted(found, key=_rank)


def _rank(ask: Ask) -> tuple[int, int, int, int]:
    """Class (ordinary, refuses preemption, originator), lower priority, newest first, of equally old the last to come.

    The original's next criterion, the smaller one first, is never reached: arrival is a total order.
    """
    if ask.originator:
        kind = 3
    else:
        kind = 1 if ask.allow_self else 2
    return kind, ask.priority, -ask.created, -ask.seq
