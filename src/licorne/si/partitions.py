"""The names of partitions: short in the core (`default`), qualified in messages to a resource manager (`[rmID]default`)."""

from __future__ import annotations

import cython

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


@cython.cclass
class PartitionNames:
    """What the names of partitions are in the other direction. The last is remembered: mostly they are all the same."""

    rm_id: str
    name: str | None
    found: str

    def __init__(self, rm_id: str) -> None:
        self.rm_id = rm_id
        self.name = None

    def __getitem__(self, name: str) -> str:
        if self.name is None or name != self.name:
            self.name = name
            self.found = self.translate(name)
        return self.found

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Work out a name."""
        raise NotImplementedError


@cython.cclass
class ShortPartitions(PartitionNames):
    """`short_partition` for the names of one request."""

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Work out a name."""
        return short_partition(name, self.rm_id)


@cython.cclass
class QualifiedPartitions(PartitionNames):
    """`qualified_partition` for the names of one batch of outputs."""

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Work out a name."""
        return qualified_partition(name, self.rm_id)
