"""How many volumes of a driver are attached to each node, and which asks that shuts out.

A node takes so many volumes of a driver, as its label `csi-driver:<driver>` says; a volume that several pods on it use counts once.
What is attached already, or used by several classes of pods, is therefore compared by name, and all else by number alone: the
asks of a thousand pods with a volume each share one byte for each node.

These are counts and checks by topology domain (`licorne.core.nodes.domains`) in which each node is a domain of its own, so that
decisions, trials and wake-ups treat them as all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from licorne.core.constants import IS_APART

from .domains import DomainCheck, DomainCount, PodClass, TopologyKey

if TYPE_CHECKING:
    from .counted import Counted
    from .node import Need

UNLIMITED_NUMBER: Final = 1 << 62


class NodeKey(TopologyKey):
    """A label by which each node that has it is a domain of its own: its slot and one; 0: it has not."""

    def enter(self, slot: int, value: str | None) -> None:
        """Take in the node of a slot, and the value of its label; None: it does not have it."""
        if slot == len(self.domain_of):
            self.domain_of.append(0)
            self.members.append({})
            for count in self.counts:
                count.widen()
        if value is not None and self.read(slot + 1, value):
            self.domain_of[slot] = slot + 1
            self.members[slot + 1][slot] = None
            self._renew(slot + 1)

    def leave(self, slot: int, value: str | None) -> None:
        """Forget the node of a slot."""
        if self.domain_of[slot]:
            self.domain_of[slot] = 0
            del self.members[slot + 1][slot]
            self.forget(slot + 1)
            self._renew(slot + 1)

    def read(self, domain: int, value: str) -> bool:
        """Take in the value of the label of the node that is a domain; False if it counts as none."""
        raise NotImplementedError

    def forget(self, domain: int) -> None:
        """Undo `read`."""
        raise NotImplementedError

    def _renew(self, domain: int) -> None:
        for count in self.counts:
            for check in count.checks:
                check.renew_domain(domain)


class AttachKey(NodeKey):
    """A label that says how many volumes of a driver a node takes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.limits: dict[int, int] = {}

    def read(self, domain: int, value: str) -> bool:
        """Take in the number that a node says, if it is one."""
        if value.isdecimal():
            self.limits[domain] = int(value)
        return domain in self.limits

    def forget(self, domain: int) -> None:
        """Undo `read`."""
        del self.limits[domain]


class AttachCount(DomainCount):
    """The volumes of a driver that are attached to each node: by domain, how many pods use each.

    `check_anew` gives the open needs of a class other checks.
    """

    def __init__(self, counted: Counted, key: TopologyKey, check_anew: Callable[[PodClass], None]) -> None:
        super().__init__(counted, key, False)
        self.used: dict[int, dict[str, int]] = {}
        self.check_anew = check_anew
        self._classes: dict[str, dict[PodClass, None]] = {}  # by volume
        self._where: dict[str, dict[int, None]] = {}  # domains by volume

    def begin(self, pods: PodClass, names: tuple[str, ...]) -> None:
        """Take in a new class of pods with these volumes."""
        use = AttachUse(self, pods, names)
        use.members[pods] = None
        self.members[pods] = None
        pods.counts.append(use)
        for name in names:
            users = self._classes.setdefault(name, {})
            users[pods] = None
            if len(users) == 2:
                self.check_anew(next(iter(users)))

    def end(self, pods: PodClass, names: tuple[str, ...]) -> None:
        """Undo `begin`."""
        del self.members[pods]
        for name in names:
            users = self._classes[name]
            del users[pods]
            if not users:
                del self._classes[name]

    def shared(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the volumes that are attached somewhere, or may be by several classes."""
        return tuple(name for name in names if name in self._where or len(self._classes.get(name, ())) > 1)

    def domains_of(self, names: tuple[str, ...]) -> Iterator[int]:
        """Yield the domains where one of these volumes is attached."""
        for name in names:
            yield from self._where.get(name, ())

    def change(self, slot: int, names: tuple[str, ...], change: int) -> None:
        """Count so many more pods with these volumes on the node of a slot."""
        domain = self.key.domain_of[slot]
        if domain == 0:
            return
        used = self.used.setdefault(domain, {})
        first = []
        for name in names:
            number = used.get(name, 0) + change
            if number:
                used[name] = number
                if name not in self._where:
                    first.append(name)
                self._where.setdefault(name, {})[domain] = None
            else:
                del used[name], self._where[name][domain]
                if not self._where[name]:
                    del self._where[name]
        if not used:
            del self.used[domain]
        for check in self.checks:
            check.renew_domain(domain)
        for pods in dict.fromkeys(one for name in first for one in self._classes.get(name, ())):
            self.check_anew(pods)


class AttachUse(DomainCount):
    """What the pods of one class add to the volumes of a driver on their nodes."""

    def __init__(self, of: AttachCount, pods: PodClass, names: tuple[str, ...]) -> None:
        super().__init__(of.counted, of.key, False)
        self.of = of
        self.names = names

    def add(self, slot: int, change: int) -> None:
        """Count so many more pods on the node of a slot."""
        self.of.change(slot, self.names, change)


class AttachCheck(DomainCheck):
    """On which nodes there is no room for so many more volumes of a driver, of which `shared` may be there already."""

    def __init__(self, count: AttachCount, number: int, shared: tuple[str, ...], eased: dict[Need, None]) -> None:
        self.number = number
        self.shared = shared
        super().__init__(count, IS_APART, 0, 0, eased)
        alike = (
            one for one in count.checks if isinstance(one, AttachCheck) and (one.number, one.shared) == (number, ())
        )
        plain = next(alike, None)
        if plain is None:
            self.shut = bytearray(self.shuts(domain) for domain in range(len(count.key.members)))
        else:
            self.shut = bytearray(plain.shut)
            for domain in count.domains_of(shared):
                self.shut[domain] = self.shuts(domain)

    def shuts(self, domain: int) -> bool:
        """Return whether asks are shut out of a domain; 0 stands for the nodes without a limit."""
        count = self.count
        if domain <= 0:
            return False
        assert isinstance(count, AttachCount), "the count of a driver"
        assert isinstance(count.key, AttachKey), "the label of a driver"
        limit = count.key.limits.get(domain, UNLIMITED_NUMBER)
        used = count.used.get(domain, {})
        new = self.number - sum(name in used for name in self.shared)
        return new > 0 and len(used) + new > limit
