"""Which pods of a partition count for which terms, and in which domains that leaves no room for an ask.

An ask with the tag `licorne/pod` belongs to a `PodClass`. What its terms count begins with the first ask or allocation of
the class and ends with the last, and is counted in the step in which an allocation begins or ends. Which class a term
means is found once for each pair of them, and only for pairs that have a namespace, and a label that the term demands,
in common.

The need of such an ask is that of its node constraints with checks (`DomainCheck`): it shares the bit of the former in the
constraint bitmaps, and a node that has the bit is compared with the checks. Asks whose pods differ in a label have needs
of their own, but share all checks.

The needs of a check that shuts a domain no more are noted in `eased`, so that `licorne.core.waiting.wakeups` tries again what
it has shut out. A class that is only known by its labels, in a partition without terms, has no counts, and costs no more than that.

Source: docs/spec/scheduler-interface.md, section 9; docs/understand/topology.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from licorne._plain import cython
from licorne.core.constants import IS_APART, IS_NEAR, IS_SPREAD
from licorne.si.constants import TAG_POD, TAG_POD_TERMS

from .attached import AttachCheck, AttachCount, AttachKey, AttachUse
from .claimed import Allocator, ClaimCheck, ClaimCount, ClaimNodeKey
from .constraints import ANTI_AFFINITY, APART, NEAR, SPREAD, UNLABELLED, NodeConstraints, NodeLabels
from .counted import (
    CLAIMS,
    Counted,
    Handle,
    counted_attached,
    counted_near,
    counted_spread,
    domains_of,
    handles_of,
    held_by,
)
from .domains import DomainCheck, DomainCount, PodClass, TopologyKey, serve, stop_serving
from .images import Images
from .node import Need, Node
from .preferences import OFF, Ranking
from .reading import ConstraintError, TextCache
from .terms import NO_POD, NO_PREFERENCE, NO_TERMS, Attached, PodLabels, PodTerms, parse_pod, parse_terms

NEW: Final = -1
"""Stands for a domain that no node is in yet."""


@cython.cclass
class Topology:
    """The classes of pods of a partition, what their terms count, and the domains of its nodes.

    `changes` rises with counts of pods, labels and devices. `allocator` gives devices to claims; the resource manager sets it. `mode` says what preferences decide (`licorne.core.nodes.preferences`). `need_of` returns the need for constraints.
    """

    eased: dict[Need, None]
    changes: cython.longlong
    keys: dict[str, TopologyKey]
    counts: dict[Counted, DomainCount]
    spreads: dict[DomainCount, None]
    classes: dict[tuple[PodLabels, PodTerms], PodClass]
    nodes: list[Node | None]  # by slot
    on: list[dict[PodClass, int]]  # what runs on the node of each slot
    free: list[int]  # slots
    _by_text: TextCache[tuple[str, str], PodClass]
    unused: dict[PodClass, None]  # classes that have, or had, no ask and no allocation; `sweep` forgets them
    _demanded: dict[str, int]  # labels of pods by which counts are found, with how many; classes are found by no others
    _classes_by: dict[Handle, dict[PodClass, None]]
    _counts_by: dict[Handle, dict[DomainCount, None]]
    _anywhere: dict[DomainCount, None]  # that may count pods of any namespace
    mode: str
    need_of: Callable[[NodeConstraints], Need]
    soft: int  # nodes with taints that exclude nothing
    images: Images
    allocator: Allocator | None

    def __init__(self, mode: str, need_of: Callable[[NodeConstraints], Need]) -> None:
        self.mode = mode
        self.need_of = need_of
        self.soft = 0
        self.images = Images()
        self.allocator = None
        self.eased = {}
        self.changes = 0
        self.keys = {}
        self.counts = {}
        self.spreads = {}
        self.classes = {}
        self.nodes = []
        self.on = []
        self.free = []
        self._by_text = TextCache()
        self.unused = {}
        self._demanded = {"": 0}
        self._classes_by = {}
        self._counts_by = {}
        self._anywhere = {}

    # -- asks ----------------------------------------------------------------------------------------------------

    def class_of(self, tags: Mapping[str, str]) -> PodClass | None:
        """Return the class that the tags `licorne/pod` and `licorne/pod-terms` say; None if there are none.

        Raises:
            ConstraintError: a text cannot be parsed, or there are terms without what the ask is as a pod.
        """
        pod, terms = tags.get(TAG_POD), tags.get(TAG_POD_TERMS, "")
        if pod is None:
            if not terms:
                return None
            pod = ""
        known = self._by_text.get((pod, terms))
        if known is not None and known.known:
            return known
        labels = parse_pod(pod) if pod else NO_POD
        read = parse_terms(terms, labels.namespace) if terms else NO_TERMS
        by_name = read.holds or read.unless or read.attached or read.claims
        if labels is NO_POD and (not by_name or read.affinity or read.anti_affinity or read.spread):
            raise ConstraintError(TAG_POD_TERMS, terms, f"needs the tag {TAG_POD}")
        found = self.class_for(labels, read)
        self._by_text.add((pod, terms), len(pod) + len(terms), found)
        return found

    def class_for(self, pod: PodLabels, terms: PodTerms) -> PodClass:
        """Return the class of these labels and terms."""
        known = self.classes.get((pod, terms))
        if known is None:
            known = PodClass(pod, terms)
            self._register(known)
            self.unused[known] = None
        return known

    def need_for(self, base: Need, pods: PodClass) -> Need:
        """Return the need of an ask with these node constraints whose pod is of this class."""
        need = pods.needs.get(base)
        if need is None:
            need = pods.needs[base] = Need(base.constraints, base.number)
            need.base = base
            need.pods = pods
            need.topology = self
            if base.empty is not None:
                need.empty = self.need_for(base.empty, pods)
        return need

    def open(self, need: Need, *, ranks: bool = True) -> None:
        """Begin to keep the checks of a need up to date, as an ask with it is pending. `ranks`: it prefers nodes, too."""
        pods: PodClass = cython.cast(PodClass, need.pods)
        base: Need = cython.cast(Need, need.base)
        base.waiting += 1
        pods.needs[base] = need
        self._use(pods)
        if need.empty is not None:
            need.empty.waiting += 1
            if need.empty.waiting == 1:
                self.open(need.empty, ranks=False)
        need.checks = []
        self._check(need)
        if ranks and pods.terms.preferred != NO_PREFERENCE and self.mode != OFF:
            need.ranking = Ranking(self, need, pods.terms.preferred)
        self.set_prefers(need)

    def set_prefers(self, need: Need) -> None:
        """Note in a need whether some preference may order nodes for it."""
        liked = need.pods is not None and bool(need.pods.liked)
        need.prefers = self.mode != OFF and (self.soft > 0 or liked or need.ranking is not None)

    def close(self, need: Need) -> None:
        """Undo `open`."""
        stop_serving(need)
        self.eased.pop(need, None)
        if need.ranking is not None:
            for _, one in need.ranking.nodes:
                one.waiting -= 1
            need.ranking = None
        need.prefers = False
        pods: PodClass = cython.cast(PodClass, need.pods)
        base: Need = cython.cast(Need, need.base)
        need.checks = None
        base.waiting -= 1
        if pods.needs.get(base) is need:
            del pods.needs[base]
        if need.empty is not None:
            need.empty.waiting -= 1
            if need.empty.waiting == 0:
                self.close(need.empty)
        self._unuse(pods)

    def _check(self, need: Need) -> None:
        """Give a need its checks, in the order in which kube-scheduler runs its filters: the first that fails is told."""
        pods: PodClass = cython.cast(PodClass, need.pods)
        terms: PodTerms = pods.terms
        for mark in sorted(terms.unless, key=lambda one: not one.topology_key):  # disks before volume claims
            self._check_by(need, self.own(pods, Counted(mark.topology_key, mark=mark.name)), IS_APART, 0, 0)
        for attached in terms.attached:
            self._check_attached(need, self.own(pods, counted_attached(attached)), attached)
        keys = tuple(dict.fromkeys(one.topology_key for one in terms.spread))
        for one in terms.spread:
            counted = counted_spread(one, keys, need.constraints)
            room = one.max_skew - one.is_self(pods.pod)
            self._check_by(need, self.own(pods, counted), IS_SPREAD, room, one.min_domains)
        first = int(all(term.selects(pods.pod) for term in terms.affinity))
        for counted in counted_near(terms):
            self._check_by(need, self.own(pods, counted), IS_NEAR, first, 0)
        for term in terms.anti_affinity:
            self._check_by(need, self.own(pods, Counted(term.topology_key, (term,))), IS_APART, 0, 0)
        for count in pods.against:
            self._check_by(need, count, IS_APART, 0, 0)
        if terms.claims is not None:
            claimed = self.own(pods, CLAIMS)
            assert isinstance(claimed, ClaimCount), "the count of claims"
            serve(claimed.check_for(terms.claims, self.eased), need)

    def _check_by(self, need: Need, count: DomainCount, kind: int, room: int, min_domains: int) -> None:
        alike = (one for one in count.checks if (one.kind, one.room, one.min_domains) == (kind, room, min_domains))
        check: DomainCheck | None = next(alike, None)
        if check is None:
            check = DomainCheck(count, kind, room, min_domains, self.eased)
            count.checks.append(check)
        serve(check, need)

    def _check_attached(self, need: Need, count: DomainCount, attached: Attached) -> None:
        """Check a need by how many volumes of a driver nodes take; asks with as many volumes that are in no other class share that."""
        assert isinstance(count, AttachCount), f"the count of {attached.driver}"
        shared = count.shared(attached.names)
        same, known = (len(attached.names), shared), (one for one in count.checks if isinstance(one, AttachCheck))
        check: DomainCheck | None = next((one for one in known if (one.number, one.shared) == same), None)
        if check is None:
            check = AttachCheck(count, len(attached.names), shared, self.eased)
            count.checks.append(check)
        serve(check, need)

    def devices_changed(self, nodes: frozenset[str] | None, names: Iterable[str] = ()) -> None:
        """Look again for which claims these nodes have devices, None: all nodes, and where those that these names stand for get some."""
        count = self.counts.get(CLAIMS)
        if isinstance(count, ClaimCount):
            self.changes += 1
            count.renew_on(nodes, names)

    def shuts(self, need: Need, slot: int) -> bool:
        """Return whether a need that is not open is shut out of the node of a slot."""
        return slot >= 0 and bool(self.mismatch(need, slot))

    def mismatch(self, need: Need, slot: int) -> str:
        """Return why a need is shut out of the node of a slot; empty if it is not."""
        return self._mismatch(need, lambda key: key.domain_of[slot])

    def mismatch_when_new(self, need: Need, labels: NodeLabels) -> str:
        """Return why a need would be shut out of a new node with these labels; empty if it would not."""
        known = domains_of(labels)
        return self._mismatch(need, lambda key: key.number_of.get(known[key.name], NEW) if key.name in known else 0)

    def _mismatch(self, need: Need, domain_of: Callable[[TopologyKey], int]) -> str:
        if need.checks is None:
            need.waiting += 1
            self.open(need, ranks=False)
            reason = self._mismatch(need, domain_of)
            need.waiting -= 1
            self.close(need)
            return reason
        of_volumes = ""
        for check in need.checks:
            domain = domain_of(check.key)
            if check.shuts(domain):
                if check.count.counted.by_name:
                    named = check.why(domain) if isinstance(check, ClaimCheck) else check.count.counted.reason
                    of_volumes = of_volumes or named
                    continue
                if check.kind == IS_SPREAD and not domain:
                    return f"{UNLABELLED} {check.key.name}"  # it does not pass, as what volumes demand does
                if of_volumes:
                    break
                if check.kind == IS_NEAR:
                    return NEAR
                if check.kind == IS_APART:
                    return ANTI_AFFINITY if check.count.counted.held else APART
                return SPREAD
        return of_volumes

    def pods_to_end(self, need: Need, slot: int) -> list[tuple[int, DomainCount, list[Node]]] | None:
        """Return how many pods of a count on some nodes must end, for each check that shuts the need out of the node of a slot.

        None: nothing that ends helps, as no pod is there that its affinity wants, or the node lacks a label.
        """
        found = []
        for check in need.checks or ():
            domain = check.key.domain_of[slot]
            if not check.shut[domain]:
                continue
            if check.kind == IS_NEAR or domain == 0 or check.count.counted.driver or check.count.counted.claims:
                return None
            number = check.count.counts[domain]
            if check.kind == IS_SPREAD:
                number -= check.room + (0 if len(check.count.taking_part) < check.min_domains else check.count.least)
            nodes = [node for one in check.key.members[domain] if (node := self.nodes[one]) is not None]
            found.append((number, check.count, nodes))
        return found

    # -- allocations ---------------------------------------------------------------------------------------------

    @cython.ccall
    def begin(self, slot: cython.Py_ssize_t, pods: PodClass) -> cython.void:
        """Count a pod on the node of a slot; a slot below zero: on a node that has been removed."""
        self._use(pods)
        if slot >= 0:
            self._count(slot, pods, 1)

    @cython.ccall
    def end(self, slot: cython.Py_ssize_t, pods: PodClass) -> cython.void:
        """Undo `begin`."""
        if slot >= 0:
            self._count(slot, pods, -1)
        self._unuse(pods)

    def attempt(self, slot: int, pods: PodClass, change: int) -> None:
        """Count a pod more (1) or less (-1) in a trial, which wakes nothing."""
        if slot < 0:  # the node has been removed
            return
        before = len(self.eased)
        self._count(slot, pods, change)
        while len(self.eased) > before:  # what it has added comes last
            self.eased.popitem()

    @cython.cfunc
    def _count(self, slot: cython.Py_ssize_t, pods: PodClass, change: cython.longlong) -> cython.void:
        count: DomainCount
        here: dict[Any, Any] = self.on[slot]
        number: cython.longlong = here.get(pods, 0) + change
        if number:
            here[pods] = number
            pods.on[slot] = number
        else:
            del here[pods]
            del pods.on[slot]
        for count in pods.counts:
            count.add(slot, change)
            self.changes += 1

    # -- nodes ---------------------------------------------------------------------------------------------------

    def enter(self, node: Node) -> None:
        """Take in a node that is new."""
        if self.free:
            node.slot = self.free.pop()
            self.nodes[node.slot] = node
        else:
            node.slot = len(self.nodes)
            self.nodes.append(node)
            self.on.append({})
        self.images.enter(node)
        self._label(node, node.labels)

    def leave(self, node: Node) -> None:
        """Forget a node; what runs there counts no more, also while it has not ended."""
        for pods in self.on[node.slot]:
            del pods.on[node.slot]
        self._unlabel(node)
        self.images.leave(node)
        self.on[node.slot] = {}
        self.nodes[node.slot] = None
        self.free.append(node.slot)
        node.slot = -1
        left = len(self.nodes)
        while left > 0 and self.nodes[left - 1] is None:
            left -= 1
        if left < len(self.nodes):
            del self.nodes[left:], self.on[left:]
            self.free[:] = [slot for slot in self.free if slot < left]

    def relabel(self, node: Node, labels: NodeLabels) -> None:
        """Take in the labels and taints that a node is about to have."""
        was = node.labels
        if (labels.pairs, labels.taints, labels.soft) != (was.pairs, was.taints, was.soft):
            self._unlabel(node)
            self._label(node, labels)

    def _label(self, node: Node, labels: NodeLabels) -> None:
        self.changes += 1
        self.soft += bool(labels.soft)
        values = domains_of(labels) if self.keys else {}
        for key in self.keys.values():
            key.enter(node.slot, values.get(key.name))
        for count in self.spreads:
            count.take_part(node.slot, whether=self._takes_part(count, node.slot, labels))
        for pods, number in self.on[node.slot].items():
            for one in pods.counts:
                one.add(node.slot, number)

    def _unlabel(self, node: Node) -> None:
        self.changes += 1
        self.soft -= bool(node.labels.soft)
        for pods, number in self.on[node.slot].items():
            for one in pods.counts:
                one.add(node.slot, -number)
        for count in self.spreads:
            count.part(node.slot)
        values = domains_of(node.labels) if self.keys else {}
        for key in self.keys.values():
            key.leave(node.slot, values.get(key.name))

    @staticmethod
    def _takes_part(count: DomainCount, slot: int, labels: NodeLabels) -> bool:
        return count.key.domain_of[slot] != 0 and count.counted.takes_part(labels)

    # -- classes and counts --------------------------------------------------------------------------------------

    @cython.cfunc
    def _use(self, pods: PodClass) -> cython.void:
        pods.users += 1
        if not pods.known:
            self._register(pods)

    @cython.cfunc
    def _unuse(self, pods: PodClass) -> cython.void:
        pods.users -= 1
        if pods.users == 0:
            self.unused[pods] = None

    def sweep(self) -> None:
        """Forget the classes without asks and allocations: not at once, since the next ask or the allocation may follow."""
        for pods in self.unused:
            if not pods.users and pods.known:
                self._forget(pods)
        self.unused.clear()

    def _register(self, pods: PodClass) -> None:
        """Relate a new class to all counts, and begin those of its terms."""
        pods.known = True
        self.classes[pods.pod, pods.terms] = pods
        for handle in handles_of(pods.pod):
            if handle[1] in self._demanded:
                self._classes_by.setdefault(handle, {})[pods] = None
                for count in self._counts_by.get(handle, ()):
                    self._relate(count, pods)
        for count in self._anywhere:
            self._relate(count, pods)
        near = [self.own(pods, one) for one in counted_near(pods.terms)]
        for count in near:
            count.others = near
        for term in pods.terms.anti_affinity:
            self.own(pods, Counted(term.topology_key, (term,)))
        for one in held_by(pods.terms):
            if one.weight == 0 or self.mode != OFF:
                held = self.own(pods, one)
                held.members[pods] = None
                pods.counts.append(held)
        for mark in pods.terms.holds:
            count = self.own(pods, Counted(mark.topology_key, mark=mark.name))
            count.members[pods] = None
            pods.counts.append(count)
        for attached in pods.terms.attached:
            count = self.own(pods, counted_attached(attached))
            assert isinstance(count, AttachCount), f"the count of {attached.driver}"
            count.begin(pods, attached.names)
        if pods.terms.claims is not None:
            count = self.own(pods, CLAIMS)
            assert isinstance(count, ClaimCount), "the count of claims"
            count.begin(pods, pods.terms.claims.names)

    def _check_anew(self, pods: PodClass) -> None:
        """Give the needs of a class other checks: one of its volumes is attached now, or another class's, too."""
        for need in pods.needs.values():
            if need.checks is not None:
                stop_serving(need)
                need.checks = []
                self._check(need)
                self.eased[need] = None

    def _relate(self, count: DomainCount, pods: PodClass) -> None:
        """Note whether a count is about a class: counts its pods, or shuts them out."""
        if not count.counted.includes(pods.pod):
            return
        if not count.counted.held:
            count.members[pods] = None
            pods.counts.append(count)
            for slot, number in pods.on.items():
                count.add(slot, number)
            return
        count.refused[pods] = None
        if count.counted.weight:
            pods.liked.append(count)
            self.set_prefers_of(pods)
            return
        pods.against.append(count)
        for need in pods.needs.values():
            if need.checks is not None:
                self._check_by(need, count, IS_APART, 0, 0)

    def set_prefers_of(self, pods: PodClass) -> None:
        """Note in each need of a class of pods whether some preference may order nodes for it."""
        for need in pods.needs.values():
            self.set_prefers(need)

    def own(self, pods: PodClass, counted: Counted) -> DomainCount:
        """Return the count for a term of a class, which lasts as long as the class."""
        count = pods.own.get(counted)
        if count is None:
            count = self.counts.get(counted) or self._begin_count(counted)
            pods.own[counted] = count
            count.users += 1
        return count

    def _begin_count(self, counted: Counted) -> DomainCount:
        key = self.keys.get(counted.key)
        if key is None:
            kind = AttachKey if counted.driver else ClaimNodeKey if counted.claims else TopologyKey
            key = self.keys[counted.key] = kind(counted.key)
            for slot, node in enumerate(self.nodes):
                key.enter(slot, None if node is None else domains_of(node.labels).get(counted.key))
        if counted.driver:
            count: DomainCount = AttachCount(counted, key, self._check_anew)
        elif isinstance(key, ClaimNodeKey):
            count = ClaimCount(counted, key, lambda: self.allocator)
        else:
            count = DomainCount(counted, key, counted.spread is not None)
        self.counts[counted] = count
        key.counts[count] = None
        if counted.by_name:
            return count
        if counted.spread is not None:
            self.spreads[count] = None
            for node in self.nodes:
                if node is not None:
                    count.take_part(node.slot, whether=self._takes_part(count, node.slot, node.labels))
        related: Iterable[PodClass] = self.classes.values()
        handles = [*counted.handles()]
        for handle in handles:
            self._demand(handle[1], 1)
            self._counts_by.setdefault(handle, {})[count] = None
        if handles:
            related = [pods for handle in handles for pods in self._classes_by.get(handle, ())]
        else:
            self._anywhere[count] = None
        for pods in related:
            self._relate(count, pods)
        return count

    def _forget(self, pods: PodClass) -> None:
        """Forget a class without asks and allocations, and the counts that served it alone."""
        pods.known = False
        if self.classes.get((pods.pod, pods.terms)) is pods:
            del self.classes[pods.pod, pods.terms]
        for handle in handles_of(pods.pod):
            there = self._classes_by.get(handle, {})
            there.pop(pods, None)
            if not there:
                self._classes_by.pop(handle, None)
        for count in pods.counts:
            del count.members[pods]
            if isinstance(count, AttachUse):
                count.of.end(pods, count.names)
        for count in (*pods.against, *pods.liked):
            del count.refused[pods]
        pods.counts = []
        pods.against = []
        pods.liked = []
        for count in pods.own.values():
            count.users -= 1
            if not count.users:
                self._end_count(count)
        pods.own = {}

    def _demand(self, key: str, change: int) -> None:
        """Note that a count more (1) or less (-1) is found by a label of pods."""
        if key and key not in self._demanded:
            self._demanded[key] = 0
            for pods in self.classes.values():
                for handle in handles_of(pods.pod):
                    if handle[1] == key:
                        self._classes_by.setdefault(handle, {})[pods] = None
        self._demanded[key] += change
        if key and not self._demanded[key]:
            del self._demanded[key]

    def _end_count(self, count: DomainCount) -> None:
        del self.counts[count.counted]
        self.spreads.pop(count, None)
        self._anywhere.pop(count, None)
        del count.key.counts[count]
        if not count.key.counts:
            del self.keys[count.key.name]
        for handle in count.counted.handles():
            self._demand(handle[1], -1)
            del self._counts_by[handle][count]
            if not self._counts_by[handle]:
                del self._counts_by[handle]
        for pods in count.members:
            pods.counts.remove(count)
        for pods in count.refused:
            if count.counted.weight:
                pods.liked.remove(count)
                self.set_prefers_of(pods)
            else:
                pods.against.remove(count)
        for check in count.checks:
            for need in check.needs:
                assert need.checks is not None, "an open need has checks"
                need.checks.remove(check)
