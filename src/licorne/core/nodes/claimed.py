"""On which nodes the claims of asks get devices, and that no device is given twice.

Which devices satisfy a claim is not decided here, but by an `Allocator` of the resource manager: conditions on devices are
expressions about what drivers publish. It is called in the step of a decision. So what an ask gets is taken when the next ask is looked
at, in trials of gangs too, and given back in the step in which a trial or an allocation ends.

These are checks by topology domain (`licorne.core.nodes.domains`) in which each node is a domain of its own. Asks whose claims
demand the same share a check, a byte for each node. The text of a demand has the names of claims that several asks may have. docs/understand/devices.md says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from licorne.core.constants import IS_APART

from .attached import NodeKey
from .domains import DomainCheck, DomainCount, PodClass

if TYPE_CHECKING:
    from .counted import Counted
    from .node import Need
    from .terms import DeviceClaims

Nodes = frozenset[str] | None
"""Names of nodes on which a change may have changed what claims get; None: all."""


class Allocator(Protocol):
    """What a resource manager provides so that the core can decide claims of devices: it chooses devices of a node for them."""

    def refuses(self, demand: str, node: str) -> str:
        """Return why a node has no devices for what claims demand; "" if it has."""

    def fails(self, demand: str) -> str:
        """Return why what claims demand cannot be decided on any node, because it could not be on one that was asked; "" if it can."""

    def take(self, names: tuple[str, ...], node: str) -> Nodes:
        """Give devices of a node to claims that have none, as far as there are some."""

    def give_back(self, names: tuple[str, ...], node: str) -> Nodes:
        """Undo `take`, unless the resource manager has taken over what was given."""

    def holds(self, key: str) -> bool:
        """Return whether the pod of an allocation has devices, or may use some that others have too."""

    def lift(self, key: str, change: int) -> Nodes:
        """Have a search pass over what the pod of an allocation holds (1), or count it again (-1).

        Devices are free if all pods that can use them are lifted. `key`: that of the allocation; "": all pods that have ended and
        whose devices have not been taken back. Returns the nodes on which claims may get other devices then.
        """


class ClaimNodeKey(NodeKey):
    """The name of each node, which is a domain of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.names: dict[int, str] = {}
        self.domains: dict[str, int] = {}

    def read(self, domain: int, value: str) -> bool:
        """Take in the name of the node that is this domain; return False for a node without a name, which is in no domain."""
        if value:
            self.names[domain] = value
            self.domains[value] = domain
        return bool(value)

    def forget(self, domain: int) -> None:
        """Drop a domain, which stands for one node, and the name of that node."""
        del self.domains[self.names.pop(domain)]


class ClaimCount(DomainCount):
    """The claims of all classes of pods. `allocator` returns who gives devices to them; None: nobody, and no node is shut."""

    def __init__(self, counted: Counted, key: ClaimNodeKey, allocator: Callable[[], Allocator | None]) -> None:
        super().__init__(counted, key, False)
        self.names = key.names
        self.domains = key.domains
        self.allocator = allocator
        self.by_demand: dict[str, ClaimCheck] = {}
        self.by_name: dict[str, dict[ClaimCheck, None]] = {}

    def begin(self, pods: PodClass, names: tuple[str, ...]) -> None:
        """Take in a new class of pods with these claims."""
        use = ClaimUse(self, names)
        use.members[pods] = None
        pods.counts.append(use)

    def check_for(self, claims: DeviceClaims, eased: dict[Need, None]) -> ClaimCheck:
        """Return the check of asks whose claims demand the same as these."""
        demand = claims.demand
        check = self.by_demand.get(demand)
        if check is None:
            check = self.by_demand[demand] = ClaimCheck(self, demand, eased)
            self.checks.append(check)
        for name in claims.names:
            if name in demand:
                check.names[name] = None
                self.by_name.setdefault(name, {})[check] = None
        return check

    def drop(self, check: DomainCheck) -> None:
        """Forget a check that serves no need any more."""
        super().drop(check)
        assert isinstance(check, ClaimCheck), "a check of claims"
        del self.by_demand[check.demand]
        for name in check.names:
            del self.by_name[name][check]
            if not self.by_name[name]:
                del self.by_name[name]

    def change(self, slot: int, names: tuple[str, ...], change: int) -> None:
        """Have devices of the node of a slot given to claims, or given back."""
        allocator, node = self.allocator(), self.names.get(slot + 1)
        if allocator is not None and node is not None:
            self.renew_on(allocator.take(names, node) if change > 0 else allocator.give_back(names, node), names)

    def lift(self, key: str, change: int, eased: dict[Need, None]) -> None:
        """Let the devices of an allocation be free in a trial, or end that (`Allocator.lift`); nothing is `eased` by it.

        They are not free if that raises an error.
        """
        before = len(eased)
        try:
            if (allocator := self.allocator()) is not None:
                nodes = allocator.lift(key, change)
                try:
                    self.renew_on(nodes, ())
                except BaseException:
                    if change > 0:
                        self.renew_on(allocator.lift(key, -change), ())
                    raise
        finally:
            while len(eased) > before:
                eased.popitem()

    def renew_on(self, nodes: Nodes, names: Iterable[str]) -> None:
        """Look again which of these nodes have devices for which demands, and all nodes for demands that name one of these claims."""
        named = {check: None for name in names for check in self.by_name.get(name, ())}
        for check in self.checks if nodes is None else named:
            for domain in self.domains.values():
                check.renew_domain(domain)
        some = [self.domains[name] for name in nodes or () if name in self.domains]
        for check in self.checks if some else ():
            if check not in named:
                for domain in some:
                    check.renew_domain(domain)
        for one in (*named,) if nodes is not None and not nodes else (*self.by_demand.values(),):
            one.renew_failure()


class ClaimUse(DomainCount):
    """The claims of the pods of one class."""

    def __init__(self, of: ClaimCount, names: tuple[str, ...]) -> None:
        super().__init__(of.counted, of.key, False)
        self.of = of
        self.names = names

    def add(self, slot: int, change: int) -> None:
        """Count so many more pods on the node of a slot."""
        self.of.change(slot, self.names, change)


class ClaimCheck(DomainCheck):
    """Which nodes have no devices for what claims demand."""

    def __init__(self, count: ClaimCount, demand: str, eased: dict[Need, None]) -> None:
        self.of = count
        self.demand = demand
        self.names: dict[str, None] = {}  # of claims, in the text of the demand
        self.failure = ""  # why no node is open, whatever devices it has
        super().__init__(count, IS_APART, 0, 0, eased)
        self.shut = bytearray(self.shuts(domain) for domain in range(len(count.key.members)))
        self.renew_failure()

    def renew_failure(self) -> None:
        """Shut all nodes if the demand cannot be decided on one, and look at each again if it can now."""
        allocator = self.of.allocator()
        while allocator is not None and (failure := allocator.fails(self.demand)) != self.failure:
            self.failure = failure
            for domain in self.of.domains.values():
                self.renew_domain(domain)

    def shuts(self, domain: int) -> bool:
        """Return whether a node has no devices; 0 stands for those without a name."""
        return bool(self.why(domain))

    def why(self, domain: int) -> str:
        """Return why a node has no devices; "" if it has, or is not known yet."""
        allocator, node = self.of.allocator(), self.of.names.get(domain)
        if allocator is None or domain < 0:
            return ""
        if self.failure:
            return self.failure
        return self.count.counted.reason if node is None else allocator.refuses(self.demand, node)
