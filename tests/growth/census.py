"""Counts what is reachable from an object: how many objects of each class, and how long their containers are.

It follows what the garbage collector would follow, so that no class needs to say what it holds, and a container that is
added tomorrow is counted too. Interpreted, a container has the name of the attribute that holds it; attributes of
compiled classes have no names, and count by their class alone.
"""

from __future__ import annotations

import enum
import gc
import types
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Any

CONTAINERS = (dict, list, tuple, set, frozenset, deque)
CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, enum.Enum)
"""What belongs to the program and not to its state."""
Census = Mapping[str, int]
"""How many: `Ask` for the objects of a class, `Parking.failed` for the length of what these hold by this name, with `[]`
for that of each container in it."""


def census(root: object) -> Census:
    """Count all that is reachable from here."""
    counts: Counter[str] = Counter()
    seen = {id(root)}
    keep: list[object] = [root]  # nothing that was seen may go, or its number could be another's
    waiting: deque[tuple[str, Any]] = deque([("", root)])
    while waiting:
        name, value = waiting.popleft()
        if isinstance(value, CONTAINERS):
            counts[name] += len(value)
        else:
            name = type(value).__name__
            counts[name] += 1
        for part, child in _parts(name, value):
            if id(child) not in seen and not isinstance(child, CODE) and gc.is_tracked(child):
                seen.add(id(child))
                keep.append(child)
                waiting.append((part, child))
    return counts


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects that an object holds, each with the name that it has if it is a container."""
    if isinstance(value, CONTAINERS):
        inside = f"{name}[]"
        for child in gc.get_referents(value):
            yield inside, child
        return
    known: dict[int, str] = {}
    attributes = getattr(value, "__dict__", None) or {}
    for attribute, child in attributes.items():
        known[id(child)] = f"{name}.{attribute}"
    for child in gc.get_referents(value):
        if child is attributes:
            for part in attributes.values():
                yield known[id(part)], part
        else:
            yield known.get(id(child), f"{name}.?"), child


def grown(before: Census, after: Census, slack: int) -> list[str]:
    """The kinds of objects that became more by more than the slack: `Parking.failed: 3, then 203`."""
    return sorted(
        f"{name}: {before.get(name, 0)}, then {n}" for name, n in after.items() if n > before.get(name, 0) + slack
    )
