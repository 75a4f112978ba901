"""PodDisruptionBudgets, told to the scheduler: which pods count for which, and how many more of them may be evicted.

The scheduler breaks a budget only if no other victims would do, and counts the pods that it has evicted itself
(`licorne.si.messages.DisruptionBudgetUpdate`). The API server's own number follows such an eviction a little later. So an
evicted pod counts until the API server shows that the pod is being deleted or gone, and then a newer state of the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from licorne.kube.objects import Pod, PodDisruptionBudget
from licorne.kube.pods.selectors import selects
from licorne.si.messages import DisruptionBudgetUpdate

from .outbox import Outbox
from .records import Records


@dataclass(slots=True, eq=False, repr=False)
class _Budget:
    """A budget, the UIDs of its pods, and what the scheduler has not been told yet."""

    found: PodDisruptionBudget
    members: dict[str, None] = field(default_factory=dict)
    ending: dict[str, None] = field(default_factory=dict)  # members that are being deleted
    joined: dict[str, None] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)

    def join(self, uid: str) -> None:
        """Count a pod."""
        self.members[uid] = None
        if uid in self.left:
            del self.left[uid]
        else:
            self.joined[uid] = None

    def leave(self, uid: str) -> None:
        """Count a pod no more."""
        del self.members[uid]
        self.ending.pop(uid, None)
        if uid in self.joined:
            del self.joined[uid]
        else:
            self.left[uid] = None

    @property
    def going(self) -> frozenset[str]:
        """The names of pods whose eviction is allowed already: they go anyway, and so does not count who evicts them."""
        return frozenset(self.found.status.disrupted_pods or ())

    @property
    def allowed(self) -> int:
        """How many evictions are allowed; none while the status is that of an earlier specification."""
        if self.found.status.observed_generation < self.found.metadata.generation:
            return 0
        return max(self.found.status.disruptions_allowed, 0)


class Budgets:
    """The disruption budgets of a cluster, by namespace and name."""

    def __init__(self, records: Records, outbox: Outbox) -> None:
        self._records = records
        self._outbox = outbox
        self._known: dict[str, dict[str, _Budget]] = {}
        self._of_pod: dict[str, tuple[_Budget, ...]] = {}  # by UID; pods that count for none are left out
        self._changed: dict[str, _Budget] = {}  # by the name that the scheduler knows
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        """Return how many budgets there are."""
        return sum(map(len, self._known.values()))

    # -- what happens -------------------------------------------------------------------------------------------

    def seen(self, found: PodDisruptionBudget) -> None:
        """Take in a budget that is new or has changed."""
        meta = found.metadata
        known = self._known.setdefault(meta.namespace, {})
        budget = known.get(meta.name)
        before, going = (None, frozenset[str]()) if budget is None else (budget.found.spec, budget.going)
        if budget is None:
            budget = known[meta.name] = _Budget(found)
        budget.found = found
        for uid in list(budget.ending):
            self._leave(budget, uid)
        changed = going ^ budget.going
        if found.spec != before or changed:
            for record in self._records.pods.values():
                pod = record.pod.metadata
                ends = pod.deletion_timestamp is not None
                if pod.namespace == meta.namespace and (found.spec != before or (pod.name in changed and not ends)):
                    self._match(record.pod, budget)
        self._changed[_name(found)] = budget

    def gone(self, found: PodDisruptionBudget) -> None:
        """Forget a budget."""
        meta = found.metadata
        known = self._known.get(meta.namespace, {})
        budget = known.pop(meta.name, None)
        if budget is None:
            return
        if not known:
            del self._known[meta.namespace]
        for uid in list(budget.members):
            self._leave(budget, uid)
        self._changed.pop(_name(found), None)
        self._gone[_name(found)] = None

    def pod_seen(self, pod: Pod, before: Pod | None = None) -> None:
        """Take in a pod that is new or has changed."""
        meta = pod.metadata
        if before is None or before.metadata.labels != meta.labels:
            for budget in self._known.get(meta.namespace, {}).values():
                self._match(pod, budget)
        if meta.deletion_timestamp:
            for budget in self._of_pod.get(meta.uid, ()):
                budget.ending[meta.uid] = None

    def pod_gone(self, uid: str, *, evicted: bool) -> None:
        """Forget a pod; one that the scheduler has evicted counts until the next state of its budget."""
        for budget in self._of_pod.get(uid, ()):
            if evicted:
                budget.ending[uid] = None
            else:
                self._leave(budget, uid)

    # -- what the scheduler is told -----------------------------------------------------------------------------

    def send(self) -> None:
        """Send the scheduler the budgets that have changed."""
        if not (self._changed or self._gone):
            return
        messages = [DisruptionBudgetUpdate(name=name, allowed=None) for name in self._gone]
        for name, budget in self._changed.items():
            joined, left = tuple(budget.joined), tuple(budget.left)
            budget.joined, budget.left = {}, {}
            messages.append(DisruptionBudgetUpdate(name=name, allowed=budget.allowed, joined=joined, left=left))
        self._changed, self._gone = {}, {}
        self._outbox.send(*messages)

    def _match(self, pod: Pod, budget: _Budget) -> None:
        """Let a pod join or leave, as the selector says. One that is being deleted is looked at by `pod_seen`."""
        uid = pod.metadata.uid
        selected = selects(budget.found.spec.selector, pod.metadata.labels or {})
        selected = selected and pod.metadata.name not in budget.going
        if selected and uid not in budget.members:
            budget.join(uid)
            self._of_pod[uid] = (*self._of_pod.get(uid, ()), budget)
            self._changed[_name(budget.found)] = budget
        elif not selected and uid in budget.members:
            self._leave(budget, uid)

    def _leave(self, budget: _Budget, uid: str) -> None:
        budget.leave(uid)
        others = tuple(one for one in self._of_pod.get(uid, ()) if one is not budget)
        if others:
            self._of_pod[uid] = others
        else:
            self._of_pod.pop(uid, None)
        self._changed[_name(budget.found)] = budget


def _name(found: PodDisruptionBudget) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"
