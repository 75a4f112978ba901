"""Configurations that have quotas enforced when they are lowered, and the situations to be met with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

QUOTAS: Final = (
    "quota: start time",
    "quota: start time by forced usage",
    "quota: start time moved",
    "quota: enforced",
    "quota: nothing to take",
    "quota: victims in several leaves",
)
DELAYS: Final = ("7s", "23s", "71s")
"""Nothing else lasts so long, so that no two things happen at one moment."""


def enforce_quotas(rng: random.Random, trees: list[dict[str, Any]], accepted: Callable[[dict[str, Any]], bool]) -> None:
    """Switch it on in half of the partitions, with delays in some queues; where a queue has a max, rather another one.

    Done after all else is drawn, so that the rest stays what it was.
    """
    chosen = {name: rng.random() < 0.6 for name in ("default", "gpu", "spare")}
    for number, tree in enumerate(trees):
        most = 30 if number == 0 else rng.choice([4, 8])
        for partition in tree["partitions"]:
            if not chosen[partition["name"]]:
                continue
            partition["preemption"] = {"quotapreemptionenabled": rng.random() < 0.9}
            for queue in below(partition["queues"][0]):
                if rng.random() < 0.7:
                    queue.setdefault("properties", {})["quota.preemption.delay"] = rng.choice(DELAYS)
                if rng.random() < 0.5:
                    _another_max(rng, tree, queue, most, accepted)


def _another_max(
    rng: random.Random,
    tree: dict[str, Any],
    queue: dict[str, Any],
    most: int,
    accepted: Callable[[dict[str, Any]], bool],
) -> None:
    kept = queue.get("resources")
    new = {"vcore": f"{rng.randint(most // 3, most)}m"}
    if rng.random() < 0.3:
        new["memory"] = str(rng.randint(most // 3, most))
    queue["resources"] = {**(kept or {}), "max": new}
    if not accepted(tree):
        queue.pop("resources")
        if kept is not None:
            queue["resources"] = kept


def below(queue: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in queue.get("queues", ()):
        yield child
        yield from below(child)
