"""Topology domains, how many pods of which kind run in each, and what follows for pods that wait.

A topology key divides the nodes by the value that they give this label; each value is a domain, and has a number. A
`DomainCount` says how many pods, of those that one term means, run in each domain. A `DomainCheck` says what follows
from such a count: in which domains it shuts out the asks that are checked by it. So the verdict about a node is one byte
for each check of the ask, found by the number of the node's domain; when a pod begins or ends, the bytes of its domain
are renewed and no others, unless the minimum of a spread or the first pod of an affinity changes what all of them mean.

What is counted, and for how long, is the subject of `licorne.core.nodes.topology`; docs/understand/topology.md says why
it is done this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.constants import IS_APART, IS_NEAR, IS_SPREAD

from .terms import PodLabels, PodTerms

if TYPE_CHECKING:
    # for the type checker alone: these modules import this one
    from .counted import Counted
    from .node import Need, Node

DOMAINS_MAX = cython.declare(cython.Py_ssize_t, 256)  # of so many domains it is looked which are not shut


@cython.cclass
class TopologyKey:
    """A topology key that at least one term names: the label of nodes whose values are the topology domains.

    `domain_of` has the number of each node's domain, by the slot of the node; 0: the node does not have the label.
    """

    name: str
    number_of: dict[str, int]  # of each value that a node has
    domain_of: list[int]
    members: list[dict[int, None]]  # the slots of the nodes in each domain
    free: list[int]  # numbers without nodes
    counts: dict[DomainCount, None]

    def __init__(self, name: str) -> None:
        self.name = name
        self.number_of = {}
        self.domain_of = []
        self.members = [{}]
        self.free = []
        self.counts = {}

    def enter(self, slot: int, value: str | None) -> None:
        """Put the node of a slot into the domain of this value of the label; None: it does not have it."""
        count: DomainCount
        if slot == len(self.domain_of):
            self.domain_of.append(0)
        if value is None:
            return
        domain = self.number_of.get(value)
        if domain is None:
            if self.free:
                domain = self.free.pop()
            else:
                domain = len(self.members)
                self.members.append({})
                for count in self.counts:
                    count.widen()
            self.number_of[value] = domain
        self.domain_of[slot] = domain
        self.members[domain][slot] = None

    def leave(self, slot: int, value: str | None) -> None:
        """Take the node of a slot out of its domain."""
        if value is None:
            return
        domain = self.number_of[value]
        self.domain_of[slot] = 0
        del self.members[domain][slot]
        if not self.members[domain]:
            del self.number_of[value]
            self.free.append(domain)


@cython.cclass
class DomainCount:
    """How many pods that `counted` means run in each domain of a topology key.

    Of a spread, only pods on nodes that count (`takes_part`) are counted, and `least` is the smallest count of the domains
    that have such nodes. `others`: the counts of all terms of an affinity, this one too; empty for what is no affinity.
    """

    counted: Counted
    key: TopologyKey
    counts: dict[int, int]  # by domain; none is 0
    total: cython.longlong
    checks: list[DomainCheck]
    members: dict[PodClass, None]  # which it counts
    refused: dict[PodClass, None]  # which a term of running pods means: it shuts them out, or likes them near
    users: cython.longlong  # classes whose terms it serves
    others: list[DomainCount]
    spread: cython.bint
    taking_part: dict[int, int]  # how many nodes of a domain take part in the spread
    absent: dict[int, None]  # slots of the nodes that do not
    levels: dict[int, int]  # how many domains with such nodes have a count
    least: cython.longlong

    def __init__(self, counted: Counted, key: TopologyKey, spread: bool) -> None:
        self.counted = counted
        self.key = key
        self.counts = {}
        self.total = 0
        self.checks = []
        self.members = {}
        self.refused = {}
        self.users = 0
        self.others = []
        self.spread = spread
        self.taking_part = {}
        self.absent = {}
        self.levels = {}
        self.least = 0

    @cython.ccall
    def add(self, slot: cython.Py_ssize_t, change: cython.longlong) -> cython.void:
        """Count so many more pods on the node of a slot."""
        count: DomainCount
        check: DomainCheck
        domain: cython.Py_ssize_t = self.key.domain_of[slot]
        if domain == 0 or (self.absent and slot in self.absent):
            return
        old: cython.longlong = self.counts.get(domain, 0)
        new: cython.longlong = old + change
        if new:
            self.counts[domain] = new
        else:
            del self.counts[domain]
        for check in self.checks:
            check.renew_domain(domain)
        if self.spread and self._level(old, new):
            self.renew()
        others: cython.longlong = 0
        self.total += change
        for count in self.others:
            others += count.total
        if self.others and others in (0, change):  # the last one has ended, or the first one has begun
            for count in self.others:
                count.renew()

    @cython.cfunc
    def _level(self, old: cython.longlong, new: cython.longlong) -> cython.bint:
        """Move a domain from one count to another; True if the smallest count is another one now."""
        least: cython.longlong = self.least
        rest: cython.longlong = self.levels[old] - 1
        self.levels[new] = self.levels.get(new, 0) + 1
        if rest:
            self.levels[old] = rest
        else:
            del self.levels[old]
            if old == least:
                self.least = min(self.levels)
        self.least = min(self.least, new)
        return self.least != least

    def take_part(self, slot: int, *, whether: bool) -> None:
        """Enter a new node as one whose pods count for the spread, or as one whose do not; none of them is counted yet."""
        if not whether:
            self.absent[slot] = None
            return
        domain = self.key.domain_of[slot]
        self.taking_part[domain] = self.taking_part.get(domain, 0) + 1
        if self.taking_part[domain] == 1:
            self.levels[0] = self.levels.get(0, 0) + 1
            self._domains_changed()

    def part(self, slot: int) -> None:
        """Undo `take_part` for a node whose pods are counted no more."""
        if slot in self.absent:
            del self.absent[slot]
            return
        domain = self.key.domain_of[slot]
        self.taking_part[domain] -= 1
        if not self.taking_part[domain]:
            del self.taking_part[domain]
            self.levels[0] -= 1
            if not self.levels[0]:
                del self.levels[0]
            self._domains_changed()

    def _domains_changed(self) -> None:
        self.least = min(self.levels, default=0)
        self.renew()

    def widen(self) -> None:
        """Extend the checks to one more domain, in which no pod runs."""
        check: DomainCheck
        for check in self.checks:
            check.shut.append(check.shuts(len(check.shut)))

    def drop(self, check: DomainCheck) -> None:
        """Forget a check that serves no need any more."""
        self.checks.remove(check)

    @cython.cfunc
    def renew(self) -> cython.void:
        """Renew the checks in all domains."""
        check: DomainCheck
        for check in self.checks:
            check.renew()


@cython.cclass
class DomainCheck:
    """In which domains a count shuts out asks, a byte for each.

    `room`: of a spread by how much the count of a domain may exceed the smallest one; of an affinity 1 if the ask itself is one
    of the pods that it wants near, so that it may be the first. `eased`: is told of the needs when the check shuts them out of a
    domain no more. Those in `awaiting` are told of any change (`begin_awaiting`).
    """

    count: DomainCount
    key: TopologyKey
    kind: cython.int
    room: cython.longlong
    min_domains: cython.longlong
    shut: bytearray
    needs: dict[Need, None]  # those of pending asks that it serves
    awaiting: dict[Need, None]  # those of them that have asks in `Need.awaiting`
    eased: dict[Need, None]

    def __init__(self, count: DomainCount, kind: int, room: int, min_domains: int, eased: dict[Need, None]) -> None:
        self.count = count
        self.key = count.key
        self.kind = kind
        self.room = room
        self.min_domains = min_domains
        self.needs = {}
        self.awaiting = {}
        self.eased = eased
        self.shut = bytearray((self._shuts(0),)) * len(count.key.members)
        self.shut[0] = self.shuts(0)
        for domain in count.counts:
            self.shut[domain] = self.shuts(domain)

    @cython.ccall
    @cython.exceptval(-1)
    def shuts(self, domain: cython.Py_ssize_t) -> cython.bint:
        """Return whether asks are shut out of a domain; 0 stands for the nodes that do not have the label."""
        if domain == 0:
            return self.kind != IS_APART
        return self._shuts(self.count.counts.get(domain, 0))

    @cython.cfunc
    @cython.exceptval(-1)
    def _shuts(self, pods: cython.longlong) -> cython.bint:
        """Return whether asks are shut out of a domain with so many of the pods."""
        count: DomainCount
        if self.kind == IS_APART:
            return pods > 0
        if self.kind == IS_SPREAD:
            if len(self.count.taking_part) >= self.min_domains:
                pods -= self.count.least
            return pods > self.room
        if pods > 0:
            return False
        if self.room == 0:  # an affinity to others
            return True
        for count in self.count.others:
            if count.total:
                return True
        return False

    @cython.ccall
    def renew_domain(self, domain: cython.Py_ssize_t) -> cython.void:
        """Bring the byte of one domain up to date."""
        shut: cython.bint = self.shuts(domain)
        if self.shut[domain] != shut:
            self.shut[domain] = shut
            if not shut:
                self.eased.update(self.needs)
        if self.awaiting:
            self.eased.update(self.awaiting)

    @cython.cfunc
    def renew(self) -> cython.void:
        """Bring the bytes of all domains up to date; a spread never shuts one without pods."""
        domain: cython.Py_ssize_t
        if self.kind == IS_SPREAD:
            for domain in self.count.counts:
                self.renew_domain(domain)
            return
        for domain in range(1, len(self.shut)):
            self.renew_domain(domain)

    @cython.cfunc
    def few_slots(self, most: cython.Py_ssize_t) -> list[Any] | None:
        """Return the slots of all nodes that are not shut, by domain, if there are at most so many; else None.

        It is not looked for where it would take long to see.
        """
        domain: cython.Py_ssize_t
        number: cython.Py_ssize_t = 0
        members: list[Any] = self.key.members
        found: list[Any] = []
        if self.kind == IS_APART or len(self.shut) > DOMAINS_MAX:
            return None
        for domain in range(1, len(self.shut)):
            if not self.shut[domain]:
                number += len(members[domain])
                if number > most:
                    return None
                found.append(members[domain])
        return found

    @cython.cfunc
    @cython.exceptval(-1)
    def leaves_one_domain(self) -> cython.bint:
        """Return whether all nodes that are not shut are in one domain."""
        return self.kind != IS_APART and self.shut.count(0, 1) == 1

    def is_about(self, pods: PodClass | None) -> bool:
        """Return whether the pods of a class are counted; None: what is no pod is not."""
        return pods is not None and pods in self.count.members

    def same_domain(self, one: Node, two: Node) -> bool:
        """Return whether pods on the first node may be why the second one is shut; by affinity those in its domain never are."""
        if self.kind == IS_NEAR or one.slot < 0 or two.slot < 0:
            return False
        domain: int = self.key.domain_of[one.slot]
        return domain != 0 and domain == self.key.domain_of[two.slot]

    def may_shut(self, pods: PodClass | None, one: Node, two: Node) -> bool:
        """Return whether another pod of a class on the first node may shut the second one.

        The first pod of an affinity shuts all domains but its own, to asks that might have been the first.
        """
        return self.is_about(pods) and ((self.kind == IS_NEAR and self.room > 0) or self.same_domain(one, two))

    @cython.cfunc
    @cython.exceptval(check=False)
    def shuts_node(self, slot: cython.Py_ssize_t) -> cython.bint:
        """Return whether asks are shut out of the node of a slot."""
        domain: cython.Py_ssize_t = self.key.domain_of[slot]
        return self.shut[domain] != 0


@cython.cclass
class PodClass:
    """Pods that are the same to all terms, and have the same terms. `on`: how many of them run on nodes, by slot."""

    pod: PodLabels
    terms: PodTerms
    users: cython.longlong  # needs of pending asks, and allocations
    on: dict[int, int]
    counts: list[DomainCount]  # that count it
    against: list[DomainCount]  # of running pods' anti-affinity that shut it out
    liked: list[DomainCount]  # of running pods' terms with a weight that mean it
    own: dict[Counted, DomainCount]  # of its terms
    needs: dict[Need, Need]  # of its asks, by the need of their node constraints alone
    known: cython.bint  # to the topology, which has forgotten it else, or is restored

    TRANSIENT = (
        "users",
        "on",
        "counts",
        "against",
        "liked",
        "own",
        "needs",
        "known",
    )  # they follow from asks and allocations

    def __init__(self, pod: PodLabels, terms: PodTerms) -> None:
        self.pod = pod
        self.terms = terms
        self.users = 0
        self.on = {}
        self.counts = []
        self.against = []
        self.liked = []
        self.own = {}
        self.needs = {}
        self.known = False


def serve(check: DomainCheck, need: Need) -> None:
    """Have a check serve a need, once: constraints that differ may be the same check."""
    assert need.checks is not None, "an open need has checks"
    if need not in check.needs:
        check.needs[need] = None
        need.checks.append(check)
        if need.awaiting:
            check.awaiting[need] = None


def begin_awaiting(need: Need, ask: object) -> None:
    """Have a pending ask tried again at each change of the checks by terms of pods that its `need` has, not only when one eases.

    For an ask that requires its node, where after any change other victims may do; and for a real ask that waits for placeholders,
    as the one that it replaces does not count in its checks. Without effect if the ask does not say what it is as a pod.
    """
    if need.pods is not None:
        need.awaiting[ask] = None
        for check in need.checks or ():
            check.awaiting[need] = None


def end_awaiting(need: Need, ask: object) -> None:
    """Have an ask no longer tried again at each change of its checks (`begin_awaiting`); nothing happens if it was not."""
    if need.awaiting:
        need.awaiting.pop(ask, None)
        if not need.awaiting:
            for check in need.checks or ():
                check.awaiting.pop(need, None)


def stop_serving(need: Need) -> None:
    """Have the checks of a need serve it no more; those that serve no other are forgotten."""
    check: DomainCheck
    for check in need.checks or ():
        del check.needs[need]
        check.awaiting.pop(need, None)
        if not check.needs:
            check.count.drop(check)
