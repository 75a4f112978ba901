"""Bars: what is used of a resource, what of it is guaranteed and what is above that, and what waits for more.

The bars of one column have one scale, which its head tells. What is beyond the end is cut off, and an arrow says so. The four
colours mean the same on every page.
Lengths are attributes of SVG, as the content security policy permits no style in the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from licorne.si import rest_objects as objects
from licorne.workload.quantities import amount


class Segment(NamedTuple):
    """A coloured part of a bar: what the colour means, where the part begins and how long it is, in percent of the bar."""

    kind: str
    x: str
    width: str


class Bar(NamedTuple):
    """A bar of what is used: its parts, where guarantee and max are marked (None: no mark), all in words, and whether more is beyond its end."""

    segments: tuple[Segment, ...]
    mark: str | None
    max: str | None
    text: str
    beyond: bool


def bar(resource: str, used: int, guaranteed: int | None, full: int, pending: int = 0, scale: int = 0) -> Bar:
    """Return a bar of the use of one type of resource. Its length stands for `scale`, or for `full` if that is 0.

    `guaranteed`: None if nothing is guaranteed, so that no part of the use is shown as guaranteed or borrowed.
    """
    above = 0 if guaranteed is None else max(used - guaranteed, 0)
    parts = {"used" if guaranteed is None else "guaranteed": used - above, "borrowed": above, "waiting": pending}
    length = scale or full or max(used + pending, 1)
    segments, at = [], 0.0
    for kind, value in parts.items():
        width = min(max(value, 0) * 100 / length, 100 - at)
        if width > 0:
            segments.append(Segment(kind, f"{at:.2f}%", f"{width:.2f}%"))
        at += width
    words = {"used": used, "guaranteed": guaranteed, "above that": above or None}
    said = [f"{amount(resource, value)} {what}" for what, value in words.items() if value is not None]
    said += [f"of {amount(resource, full)}"] if full else []
    said += [f"{amount(resource, pending)} waiting"] if pending else []
    mark = f"{min(guaranteed * 100 / length, 99.6):.2f}%" if guaranteed else None
    most = f"{full * 100 / length:.2f}%" if 0 < full < length else None
    return Bar(tuple(segments), mark, most, ", ".join(said), beyond=used + pending > length)


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


def walk(queue: objects.Queue, depth: int = 0) -> Iterator[tuple[objects.Queue, int]]:
    """Yield each queue of a tree with its depth, parents first."""
    yield queue, depth
    for child in queue.children:
        yield from walk(child, depth + 1)
