"""The names of partitions: short in the core (`default`), qualified in messages (`[rmID]default`).

Nearly all messages of a peer name the same partition, so each translation remembers its last answer.
"""

from __future__ import annotations

from licorne._plain import cython
from licorne.si.constants import DEFAULT_PARTITION


def short_partition(name: str, rm_id: str) -> str:
    """Return the core's name of a partition that `rm_id` calls `name`: without the prefix `[rmID]`, and never empty.

    A name with the prefix of another resource manager stays as it is. It matches no partition, so the core refuses it
    as unknown; to this sender it is.
    """
    if not name:
        return DEFAULT_PARTITION
    prefix = f"[{rm_id}]"
    if name.startswith(prefix) and len(name) > len(prefix):
        return name[len(prefix) :]
    return name


def qualified_partition(name: str, rm_id: str) -> str:
    """Return the name of a partition in messages to a resource manager, `[rmID]name`; a name in that form is kept."""
    if name.startswith("["):
        return name
    return f"[{rm_id}]{name or DEFAULT_PARTITION}"


@cython.cclass
class PartitionNames:
    """A mapping of the names of partitions that remembers the last answer; `translate` computes one."""

    rm_id: str
    known: tuple[str, str]  # a name and its translation: one object, so that other threads see both or neither

    def __init__(self, rm_id: str) -> None:
        self.rm_id = rm_id
        self.known = ("", self.translate(""))

    def __getitem__(self, name: str) -> str:
        known: tuple[str, str] = self.known
        if name != known[0]:
            known = (name, self.translate(name))
            self.known = known
        return known[1]

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Compute the translation of a name."""
        raise NotImplementedError


@cython.cclass
class ShortPartitions(PartitionNames):
    """The mapping `short_partition` for the requests of one resource manager."""

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Compute the short name."""
        return short_partition(name, self.rm_id)


@cython.cclass
class QualifiedPartitions(PartitionNames):
    """The mapping `qualified_partition` for messages to one resource manager."""

    @cython.cfunc
    def translate(self, name: str) -> str:
        """Compute the qualified name."""
        return qualified_partition(name, self.rm_id)


@cython.cclass
class NamesFor:
    """The two translations of names of partitions for a resource manager: `[rm]default` to `default`, and back."""

    rm_id: str
    short: ShortPartitions
    qualified: QualifiedPartitions

    def __init__(self, rm_id: str) -> None:
        self.rm_id = rm_id
        self.short = ShortPartitions(rm_id)
        self.qualified = QualifiedPartitions(rm_id)


_last = NamesFor("")


@cython.ccall
def names_for(rm_id: str) -> NamesFor:
    """Return the names of partitions for a resource manager; those of the last one are kept and returned again."""
    global _last  # noqa: PLW0603
    names: NamesFor = _last
    if names.rm_id != rm_id:
        names = NamesFor(rm_id)
        _last = names
    return names
