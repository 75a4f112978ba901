"""The places of problems as people say them: `root.dept3.team30: resources.max`.

The path of a place counts elements, as in `partitions[0].queues[0].queues[3]`, which is exact and hard to find in a file of a
hundred queues. Where there is more than one partition, its name stands before the queue's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from licorne.config.raw import RawConfig, RawQueue
from licorne.config.structure import QUEUE_NAME, partition_name

_QUEUE: Final = re.compile(r"partitions\[\d+\](?:\.queues\[\d+\])*")


def named_places(config: RawConfig, roots: Mapping[int, RawQueue]) -> Callable[[str], str]:
    """Return the function from a path to the name of the place; a path that leads to no queue stays as it is."""
    names: dict[str, str] = {}
    partitions = config.partitions or []
    for index, partition in enumerate(partitions):
        said = f"partition {partition_name(partition.name)}"
        root = roots.get(index)
        if root is not None:
            _add(root, f"{said}, root" if len(partitions) > 1 else "root", names)
        names[partition.path] = said

    def place(path: str) -> str:
        match = _QUEUE.match(path)
        head = match[0] if match is not None else ""
        while head and head not in names:
            head = head.rpartition(".")[0]
        rest = path[len(head) :].removeprefix(".")
        return f"{names[head]}: {rest}" if head and rest else names.get(head, path)

    return place


def _add(queue: RawQueue, name: str, names: dict[str, str]) -> None:
    names[queue.path] = name
    for child in queue.queues or ():
        step = child.name if QUEUE_NAME.fullmatch(child.name) else child.path.rpartition(".")[2]
        _add(child, f"{name}.{step}", names)
