"""The situations that the comparison has met: a scenario that never parks, or never wakes, anything compares nothing."""

from __future__ import annotations

from collections import Counter

WANTED = (
    "allocated",
    "reservations off",
    "reservations on",
    "a few applications",
    "many applications",
    "more nodes than freed nodes are kept",
    "node constraints",
    "terms about pods",
    "placeholders",
    "a gang as a whole has started",
    "a user's or group's limit",
    "reloads",
    "predicates",
    "the first interface",
    "asks of more sizes than minima are kept",
    "reserved",
    "evicted",
    "placeholder replaced",
    "waited for a node, and ran when others had gone",
    "left over in an empty cluster",
)


class Situations:
    """How often each was met."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()

    def count(self, name: str, times: int = 1) -> None:
        """Add to the number of times that a situation was met."""
        assert name in WANTED, name
        self.met[name] += times

    def missing(self) -> list[str]:
        """The situations that were not met."""
        return [name for name in WANTED if not self.met[name]]

    def report(self) -> str:
        """A line for each."""
        return "".join(f"{self.met[name]:>9,} {name}\n" for name in WANTED)
