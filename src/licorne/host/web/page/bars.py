"""Bars: what is used of a resource, what of it is guaranteed and what is above that, and what waits for more.

A bar is as long as what may be used: the max, or the cluster where none is set. Where more waits than may be used, it is up to
twice as long, with a line where the max is. The four colours mean the same on every page.
Lengths are attributes of SVG, as the content security policy permits no style in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from licorne.si import rest_objects as objects
from licorne.workload.quantities import amount

Amounts = Mapping[str, int]


class Segment(NamedTuple):
    """A coloured part of a bar: what the colour means, where the part begins and how long it is, in percent of the bar."""

    kind: str
    x: str
    width: str


class Bar(NamedTuple):
    """A horizontal bar that shows how much is used: its parts, where guarantee and max are marked (None: no mark), and all in words."""

    segments: tuple[Segment, ...]
    mark: str | None
    max: str | None
    text: str


def bar(resource: str, used: int, guaranteed: int | None, full: int, pending: int = 0) -> Bar:
    """Return a bar of what is used of one type. `guaranteed` None: nothing is guaranteed, so all of it is just used."""
    if guaranteed is None:
        parts = [("used", used)]
    else:
        parts = [("guaranteed", min(used, guaranteed)), ("borrowed", max(used - guaranteed, 0))]
    parts.append(("waiting", pending))
    length = max(full, min(used + pending, 2 * full), used, guaranteed or 0, 1)
    segments, at = [], 0.0
    for kind, value in parts:
        width = min(max(value, 0) * 100 / length, 100 - at)
        if width > 0:
            segments.append(Segment(kind, f"{at:.2f}%", f"{width:.2f}%"))
        at += width
    words = [f"{amount(resource, used)} used"]
    if guaranteed is not None:
        words.append(f"{amount(resource, guaranteed)} guaranteed")
        if used > guaranteed:
            words.append(f"{amount(resource, used - guaranteed)} above that")
    if full:
        words.append(f"of {amount(resource, full)}")
    if pending:
        words.append(f"{amount(resource, pending)} waiting")
    mark = f"{min(guaranteed * 100 / length, 99.6):.2f}%" if guaranteed else None
    most = f"{full * 100 / length:.2f}%" if 0 < full < length else None
    return Bar(tuple(segments), mark, most, ", ".join(words))


def ordered(names: Iterable[str]) -> list[str]:
    """Return types of resources in the order of the page: cores, memory, then by name, and pods last."""
    first = {"vcore": 0, "memory": 1, "pods": 3}
    return sorted(set(names), key=lambda name: (first.get(name, 2), name))


def within_guarantees(queue: objects.Queue, resource: str) -> int | None:
    """Return how much of the use of a subtree its guarantees cover; None if nothing is guaranteed in it."""
    covered = queue.guaranteed_resource.get(resource)
    if covered is not None:
        return min(queue.allocated_resource.get(resource, 0), covered)
    below = [found for child in queue.children if (found := within_guarantees(child, resource)) is not None]
    return sum(below) if below else None


def strip(shares: list[float], columns: int = 240) -> list[tuple[str, str, str, str]]:
    """Return a picture of shares (0 to 1) as columns, the fullest first: x, y, width and height in percent.

    More shares than columns are averaged over their neighbours in this order.
    """
    shares = sorted(shares, reverse=True)
    count = min(len(shares), columns)
    width = 100 / count if count else 0.0
    found = []
    for at in range(count):
        some = shares[at * len(shares) // count : (at + 1) * len(shares) // count]
        height = min(max(sum(some) / len(some), 0.0), 1.0) * 100
        found.append((f"{at * width:.3f}%", f"{100 - height:.1f}%", f"{max(width * 0.86, 0.2):.3f}%", f"{height:.1f}%"))
    return found


def share(used: Amounts, full: Amounts, name: str) -> float:
    """Return how much of a type is used, as a part of 1; 0 where there is none of it."""
    return used.get(name, 0) / full[name] if full.get(name) else 0.0


def walk(queue: objects.Queue, visit: Callable[[objects.Queue, int], object], depth: int = 0) -> None:
    """Call a function with each queue of a tree and its depth, parents first."""
    visit(queue, depth)
    for child in queue.children:
        walk(child, visit, depth + 1)


__all__ = ["Bar", "Segment", "bar", "ordered", "share", "strip", "walk", "within_guarantees"]
