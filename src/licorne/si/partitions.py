"""The names of partitions: short in the core (`default`), qualified in messages to a resource manager (`[rmID]default`)."""

from __future__ import annotations

from collections.abc import Callable

from licorne.si.constants import DEFAULT_PARTITION


def short_partition(name: str, rm_id: str) -> str:
    """The core's name of a partition that `rm_id` calls `name`: without `[rmID]` in front, and never empty.

    A name qualified by another resource manager stays as it is. It matches no partition, and so the core refuses it
    as unknown, which is what it is for this sender.
    """
    if not name:
        return DEFAULT_PARTITION
    prefix = f"[{rm_id}]"
    if name.startswith(prefix) and len(name) > len(prefix):
        return name[len(prefix) :]
    return name


def qualified_partition(name: str, rm_id: str) -> str:
    """The name of a partition in messages to a resource manager, `[rmID]name`; a name in that form is kept."""
    if name.startswith("["):
        return name
    return f"[{rm_id}]{name or DEFAULT_PARTITION}"


class _Names(dict[str, str]):
    """What `name_of` makes of the names of one batch, each worked out once."""

    name_of: Callable[[str, str], str]

    def __init__(self, rm_id: str) -> None:
        super().__init__()
        self._rm_id = rm_id

    def __missing__(self, name: str) -> str:
        """Work out a name that has not been met."""
        found = self[name] = self.name_of(name, self._rm_id)
        return found


class ShortPartitions(_Names):
    """`short_partition` for the names of one request: every ask of a thousand brings one."""

    name_of = staticmethod(short_partition)


class QualifiedPartitions(_Names):
    """`qualified_partition` for the names of one batch of outputs."""

    name_of = staticmethod(qualified_partition)
