"""The best victims of a leaf by trying every set: slow, plain, and sharing nothing with the product.

The same rules as a check of any set are `serves` and `worth`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Amounts = dict[str, int]


@dataclass(frozen=True)
class Pod:
    """A candidate: its usage, whether it is to be spared, its priority and age."""

    key: str
    amounts: tuple[tuple[str, int], ...]
    bad: bool
    priority: int
    created: int
    seq: int

    def of(self, name: str) -> int:
        """The usage of a type."""
        return dict(self.amounts).get(name, 0)


def fits(pods: Iterable[Pod], room: Mapping[str, int]) -> bool:
    """Tell whether pods fit together, where a type that is not listed is without limit."""
    pods = list(pods)
    return all(
        sum(pod.of(name) for pod in pods) <= left for name, left in room.items() if any(pod.of(name) for pod in pods)
    )


def serves(chosen: Sequence[Pod], pods: Sequence[Pod], room: Mapping[str, int]) -> bool:
    """Tell whether a set of pods fits, and no further pod would."""
    others = [pod for pod in pods if pod not in chosen]
    return fits(chosen, room) and not any(fits([*chosen, other], room) for other in others)


def worth(chosen: Iterable[Pod]) -> tuple[object, ...]:
    """The figures to minimise: pods to be spared, number of pods, sum of priorities, and age."""
    pods = sorted(chosen, key=lambda pod: (-pod.created, -pod.seq))
    return (
        sum(pod.bad for pod in pods),
        len(pods),
        sum(pod.priority for pod in pods),
        [(-pod.created, -pod.seq) for pod in pods],
    )


def best(pods: Sequence[Pod], room: Mapping[str, int]) -> list[Pod]:
    """The best set that serves; all of them are tried."""
    fitting = [pod for pod in pods if fits([pod], room)]
    sets = (set_ for size in range(len(fitting) + 1) for set_ in combinations(fitting, size))
    return list(min((set_ for set_ in sets if serves(set_, fitting, room)), key=worth))
