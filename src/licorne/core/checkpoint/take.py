"""Taking a checkpoint: the state of a cluster, as bytes.

All that a cluster consists of is found from the cluster itself, one table at a time, and then written. The order in which
things are found depends on nothing but the state, so equal states give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from licorne._version import __version__
from licorne.core.cluster import Cluster

from .tables import ORDER, Table, table_of

MAGIC: Final = "licorne checkpoint"
FORMAT: Final = 1


class Peer(msgspec.Struct, frozen=True, array_like=True):
    """What a checkpoint says of a resource manager beside its state: how it had registered.

    `text`: the queue configuration in force. `policy_group`, `extra`: of its registration. `predicates`,
    `preemption_predicates`: whether it answers these.
    """

    rm_id: str
    text: str
    policy_group: str
    extra: dict[str, str]
    first_interface: bool
    predicates: bool
    preemption_predicates: bool


class Content(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint: what it is, the version of licorne that wrote it, resource managers, texts, and tables by name.

    A table is the number of its members, and their columns by name. A text that is no Unicode is kept as bytes.
    """

    magic: str
    format: int
    licorne: str
    peers: list[Peer]
    texts: list[Any]
    tables: dict[str, tuple[int, dict[str, Any]]]


class _Members:
    """The members of one table that were found so far."""

    def __init__(self, name: str) -> None:
        self.table: Table = table_of(name)
        self.rank = ORDER.get(name, -1)
        self.members: list[Any] = []
        self.visited = 0
        self.numbers: dict[int, int] = {id(None): 0}
        """The number of each member by its identity, of equal ones the same."""
        self._by_value: dict[object, int] = {}
        self._by_identity = type(self.table).key is Table.key

    def add(self, members: Iterable[Any]) -> None:
        numbers = self.numbers
        for identity, member in {id(one): one for one in members}.items():
            if identity in numbers:
                continue
            if self._by_identity:
                self.members.append(member)
                numbers[identity] = len(self.members)
                continue
            key = self.table.key(member)
            if key not in self._by_value:
                self.members.append(member)
                self._by_value[key] = len(self.members)
            numbers[identity] = self._by_value[key]


class _Found:
    """All members of all tables, and all texts."""

    def __init__(self) -> None:
        self.tables: dict[str, _Members] = {}
        self._texts: dict[str | None, int] = {None: 0}

    def add(self, table: str, members: Sequence[Any]) -> None:
        if table not in self.tables:
            self.tables[table] = _Members(table)
        self.tables[table].add(members)

    def numbers(self, table: str, members: Sequence[Any]) -> list[int]:
        known = self.tables[table].numbers if table in self.tables else {id(None): 0}
        return [*map(known.__getitem__, map(id, members))]

    def texts(self, texts: Sequence[str | None]) -> list[int]:
        known = self._texts
        for text in dict.fromkeys(texts):
            known.setdefault(text, len(known))
        return [*map(known.__getitem__, texts)]

    def visit_all(self) -> None:
        """Find what the members refer to, until there is nothing new."""
        while True:
            waiting = [one for one in self.tables.values() if one.visited < len(one.members)]
            if not waiting:
                return
            first = min(waiting, key=lambda one: one.rank)
            new = first.members[first.visited :]
            first.visited = len(first.members)
            first.table.visit(new, self)

    def all_texts(self) -> list[str | bytes]:
        """Return the texts, each at its number less one."""
        return [_portable(text) for text in self._texts if text is not None]


def _portable(text: str) -> str | bytes:
    return str(text) if text.isascii() or _is_unicode(text) else text.encode("utf-8", "surrogatepass")


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def take(cluster: Cluster, connections: dict[str, tuple[str, dict[str, str]]]) -> bytes:
    """Return the state of a cluster between two calls.

    `connections` has, by the id of a resource manager, the policy group and the settings of its registration.
    """
    peers = []
    for rm_id, manager in cluster.managers.items():
        policy_group, extra = connections.get(rm_id, ("", {}))
        assert not manager.out and not any(one.out for one in manager.ordered), "outputs wait to be delivered"
        asked = manager.predicates is not None, manager.preemption_predicates is not None
        text = manager.configuration.text
        peers.append(Peer(rm_id, text, policy_group, extra, bool(manager.first_interface), *asked))
    found = _found(cluster)
    tables = {name: (len(one.members), one.table.write(one.members, found)) for name, one in found.tables.items()}
    return msgspec.msgpack.encode(Content(MAGIC, FORMAT, __version__, peers, found.all_texts(), tables))


def all_members(cluster: Cluster) -> dict[str, list[Any]]:
    """Return all objects of which the state of a cluster consists, by the table in which they are."""
    return {name: one.members for name, one in _found(cluster).tables.items()}


def _found(cluster: Cluster) -> _Found:
    found = _Found()
    found.add("Cluster", [cluster])
    found.visit_all()
    return found
