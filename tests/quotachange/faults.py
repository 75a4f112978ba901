"""Planted faults of lowered quotas, which the laws must catch: `python -m quotachange.faults NAME`."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from common.planting import raised_by_a_law
from licorne.core.preemption import leaf_victims, quota_cut

ENOUGH = 200


def _no_guarantees(_sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _queue: {}


def _one_victim_more(sound: Callable[..., Any]) -> Callable[..., Any]:
    def choose(candidates: Any, *more: Any) -> Any:
        return [*(found := sound(candidates, *more)), *[a for a in candidates if a not in found][:1]]

    return choose


FAULTS = {
    "guarantees are forgotten": (quota_cut, "_spare", _no_guarantees),
    "one victim too many": (quota_cut, "choose", _one_victim_more),
    "victims that don't fit": (
        leaf_victims.VictimGroup,
        "max_count",
        lambda _sound: lambda self, _rest: len(self.members),
    ),
}


def _failure(seed: int) -> str:
    """The law that fails on a random tree, empty if none does. An error that is no broken law is raised."""
    from quotachange import test_laws  # noqa: PLC0415  it imports this module

    rng = random.Random(seed)
    chosen = [
        (
            rng.choice(test_laws.LEAVES),
            {name: rng.randint(1, 4) for name in rng.sample(test_laws.TYPES, rng.randint(1, 2))},
            rng.randint(-1, 2),
            rng.choice(["", "", "refuses"]),
        )
        for _ in range(rng.randint(3, 12))
    ]
    parts = {
        path: {name: rng.randint(0, 100) for name in test_laws.TYPES} for path in test_laws.LEAVES if rng.random() < 0.5
    }
    try:
        test_laws.laws(test_laws.Case(chosen, parts, {"vcore": rng.randint(10, 90)}))
    except AssertionError as error:
        if not raised_by_a_law(error, test_laws):
            raise
        return str(error).splitlines()[0] or type(error).__name__
    return ""


if __name__ == "__main__":
    where, attribute, broken = FAULTS[sys.argv[1]]
    setattr(where, attribute, broken(getattr(where, attribute)))
    for number in range(1, ENOUGH + 1):
        failure = _failure(number)
        if failure:
            sys.stdout.write(f"caught after {number} trees: {failure}\n")
            break
    else:
        sys.stdout.write("not caught\n")
