"""The searches for changes with which an ask would run, and how each goes on from one trial to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from licorne.answers.changes import Change, End, LessAsked, MoreNodes, merged
from licorne.answers.repairs import ENDED_MAX, Kind, Repairs
from licorne.answers.trials import Outcome

NODES_MAX: Final = 64
"""More nodes than this are not proposed: each of them takes asks, which all have to be decided in each trial."""
FEW: Final = 4
"""If more new nodes, or ended allocations, than this are needed, the maximum is tried next: where that fails, all between fail too."""
_PREFERS: Final = {
    "ask": "changes the ask",
    "grow": "adds nodes or raises the configuration",
    "open": "lets nodes take the ask",
    "end": "ends allocations",
}
Order = tuple[Kind, ...]


class ChangeSearch(NamedTuple):
    """A search: which kind of change it prefers where there is a choice, and its share of the budget.

    `own`: nodes that are added are for the ask alone. `first`: the ask has the highest priority of all. Such a search is only
    made where the one before it has found nothing.
    """

    order: Order
    weight: int
    own: bool = False
    first: bool = False

    @property
    def suggested(self) -> Order:
        """The order in which repairs are looked for: the same for new nodes and for those that are opened, so that trials serve both."""
        return GROW if self.order[0] == "open" else self.order

    def __str__(self) -> str:
        what = _PREFERS[self.order[0]]
        return what + (", for the ask alone" if self.own else "") + (", with a higher priority" if self.first else "")


GROW: Final[Order] = ("grow", "open", "end", "ask")
END: Final[Order] = ("end", "grow", "open", "ask")
SEARCHES: Final = (
    ChangeSearch(("ask",), 2),
    ChangeSearch(GROW, 6),
    ChangeSearch(GROW, 2, own=True),
    ChangeSearch(("open", "grow", "end", "ask"), 1),
    ChangeSearch(END, 5),
    ChangeSearch(END, 1, first=True),
)
"""The searches that are made. The first one changes nothing but the ask and needs few trials."""
OTHERWISE_SHARE: Final = 1
"""The share of the search for another queue or priority, which comes after the one that changes the ask."""


def with_more_nodes(change: Change) -> Change:
    """Return a change in which 2 to `FEW` new nodes become `FEW`, and up to `NODES_MAX` become that; any other as it is."""
    if isinstance(change, MoreNodes) and 1 < change.count < NODES_MAX:
        return replace(change, count=FEW if change.count <= FEW else NODES_MAX)
    return change


def ended_in(changes: Sequence[Change]) -> int:
    """Return how many allocations end by these changes."""
    return sum(len(change.allocations) for change in changes if isinstance(change, End))


def rooms(changes: Sequence[Change]) -> int:
    """Return for how many asks room is to be made next, where allocations end and that was not enough: for few, then for most."""
    ended = ended_in(changes)
    return 1 if ended == 0 else FEW if ended < FEW else max(1, ENDED_MAX - ended)


def all_merged(changes: list[Change], new: Sequence[Change], *, doubled: bool) -> list[Change]:
    """Return the changes with new ones. What the ask wants less counts once: it is less for all reasons at the same time."""
    less: dict[str, int] = {}
    for change in new:
        if isinstance(change, LessAsked):
            less = {name: max(less.get(name, 0), change.less.get(name, 0)) for name in {**less, **change.less}}
    new = [change for change in new if not isinstance(change, LessAsked)] + ([LessAsked(less)] if less else [])
    for index, change in enumerate(new):
        if change not in new[:index]:
            changes = merged(changes, change, doubled=doubled)
    return changes


def next_changes(outcome: Outcome, order: Order) -> list[Change]:
    """Return the changes that a trial suggests: of each reason the first kind in an order that there is."""
    return [change for repairs in outcome.repairs if (change := _preferred(repairs, order)) is not None]


def _preferred(repairs: Repairs, order: Order) -> Change | None:
    return next((change for kind in order if (change := getattr(repairs, kind)) is not None), None)


__all__ = [
    "GROW",
    "NODES_MAX",
    "OTHERWISE_SHARE",
    "SEARCHES",
    "ChangeSearch",
    "all_merged",
    "ended_in",
    "next_changes",
    "rooms",
    "with_more_nodes",
]
