"""How far below its guarantee a queue is, and how evenly queues are served: both of one state, by resource amounts.

A queue can lack something only while it has demand. Its demand is what is allocated to it and what it asks for besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Amounts = Mapping[str, int]


def shortfall(used: int, pending: int, guaranteed: int) -> int:
    """Return how much a queue lacks of its guarantee: of no more than its demand, and 0 if it has that much."""
    return max(0, min(guaranteed, used + pending) - used)


def claim(demand: int, guaranteed: int | None, capacity: int, queues: int) -> float:
    """Return what a queue can claim: its guarantee, or without one an equal part of the capacity; at most its demand."""
    entitled = capacity / queues if guaranteed is None else guaranteed
    return min(demand, entitled)


def served(used: Amounts, pending: Amounts, guaranteed: Amounts, capacity: Amounts, queues: int) -> float | None:
    """Return the part of its claim that a queue has, at most 1, of the resource of which it has the smallest part.

    `queues`: how many leaf queues have demand. None: the queue claims nothing that the cluster has.
    """
    parts: list[float] = []
    for name in sorted(used.keys() | pending.keys()):
        have = used.get(name, 0)
        least = claim(have + pending.get(name, 0), guaranteed.get(name), capacity.get(name, 0), queues)
        if least > 0:
            parts.append(min(1.0, have / least))
    return min(parts) if parts else None


def jain(values: Sequence[float]) -> float | None:
    """Return Jain's index, (Σx)² / (n Σx²): 1 if all values are equal, 1/n if all but one are 0; None for fewer than two."""
    if len(values) < 2:
        return None
    most = max(values)
    if not most:
        return 1.0
    parts = [value / most for value in values]  # so that no square is too small for a float
    return sum(parts) ** 2 / (len(parts) * sum(part * part for part in parts))


def evenness(queues: Iterable[tuple[Amounts, Amounts, Amounts]], capacity: Amounts) -> float | None:
    """Return Jain's index over the served parts of leaf queues: of each, what it has, wants besides, and is guaranteed.

    Queues without demand do not count. None: fewer than two have demand.
    """
    wanting = [each for each in queues if any(each[0].values()) or any(each[1].values())]
    parts = [served(*each, capacity, len(wanting)) for each in wanting]
    return jain([part for part in parts if part is not None])
