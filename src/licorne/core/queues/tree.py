"""The queue tree of a partition: which queues exist, and what each may use.

Queues come from two sides. The configuration builds *managed* queues and, when it is loaded again, changes them in
place: applications keep their queue, and a queue that is no longer configured drains. Placement builds *dynamic*
queues on the way to a leaf that an application names; the recovery queue is one of them, FIFO, without access or quota.
The cleaner removes both kinds once they are empty.

**A reload is written as one walk that sets everything anew.** What a queue takes from its configuration and from its
parent is set whether or not it changed, so that no old effect can remain (the original forgets to undo removed
properties, root's maximum of applications and inherited templates: docs/spec/config.md, section 13;
docs/spec/scheduling.md, section 16.1). For the same reason all priorities and orders are then recomputed, without
finding out which are affected: a reload is rare.

**Leaves and parents.** A reload may turn a leaf into a parent and back (docs/spec/config.md, section 6.3). Applications
that are then in a parent, or below a leaf, stay and are counted, but decisions no longer reach them:
`Queue.reachable` is False, and `licorne.core.waiting.parking` does not wake them. They end, or wait for another reload.

Shares are divided by weights that depend on the cluster's size and every maximum above. They are recomputed in one
go by `reweigh`, when the caller wants; until then `stale` is set. Who may use a queue, and which application is placed
where, is not decided here: see `licorne.core.queues.limits` and the placement rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from licorne.config.acl import ACL
from licorne.config.model import QueueConfig, TemplateConfig, queue_types
from licorne.config.properties import inherit_properties, parse_properties
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.order import any_two_compare
from licorne.core.base.states import OBJECT, ObjectEvent, ObjectState, next_state
from licorne.core.base.tags import quota_of_tags
from licorne.core.constants import SUM_MAX, UNLIMITED
from licorne.core.placement.rules import RECOVERY_PATH

from .queue import Queue


class Tree:
    """The queue tree of a partition. `stale`: something that weights depend on has changed, and `reweigh` is due."""

    root: Queue
    types: Types
    stale: bool
    stateaware: bool

    TRANSIENT = ("_sorted",)  # a cache

    def __init__(self, config: QueueConfig, types: Types, *, stateaware: bool = True) -> None:
        """Build the managed queues; the cluster is still empty, which leaves root without a limit.

        Without `stateaware` that sort policy counts as fifo, as for applications that are never Starting
        (docs/spec/states.md, section 4).
        """
        self.types = types
        self.stateaware = stateaware
        self.root = Queue(config.name, None, False, True, types)
        self._by_path: dict[str, Queue] = {self.root.path: self.root}
        self._sorted: list[Queue] | None = None
        self._fair_max: Vec = Vec(0, -1)
        self.reload(config)

    # -- reading ---------------------------------------------------------------------------------------

    def find(self, path: str) -> Queue | None:
        """Return the queue with this full path, which must be in lower case."""
        return self._by_path.get(path)

    def queues(self) -> list[Queue]:
        """Return a new list of all queues, ordered by path, in byte order."""
        if self._sorted is None:
            self._sorted = [self._by_path[path] for path in sorted(self._by_path)]
        return list(self._sorted)

    # -- the configuration -----------------------------------------------------------------------------

    def reload(self, config: QueueConfig) -> None:
        """Make the managed queues what the configuration says (docs/spec/config.md, section 6).

        Quotas and maxima of applications may have become wider, and decisions may reach queues again: the caller wakes
        the applications. Afterwards `stale` is set.
        """
        for name in queue_types(config):
            self.types.slot(name)
        self._apply(self.root, config)
        # First, because `_reorder` fills only the orders of leaves that decisions reach.
        self._set_reachable(self.root, True)
        self._reorder()
        self.stale = True

    def _apply(self, queue: Queue, config: QueueConfig) -> None:
        """Set everything that this queue takes from its configuration and its parent; then do so below."""
        is_root = queue is self.root
        queue.managed = True
        # Configured again: it no longer drains.
        if queue.draining:
            _fire(queue, ObjectEvent.START)
        queue.is_leaf = not (is_root or config.parent or config.children)
        queue.submit_acl = ACL.parse(config.submit_acl)
        queue.admin_acl = ACL.parse(config.admin_acl)
        queue.max_apps = min(config.max_applications, UNLIMITED)
        if queue.parent is None:  # root: its limit follows from the nodes (`set_total`)
            self._set_properties(queue, dict(config.properties))
        else:
            self._set_properties(queue, inherit_properties(queue.parent.properties, config.properties))
            queue.set_resources(config.max, config.guaranteed)
        self._set_template(queue, None if queue.is_leaf else config.template)
        named = set()
        for child_config in config.children:
            child = queue.children.get(child_config.name)
            if child is None:
                child = self._create(child_config.name, queue, is_leaf=True, managed=True)
            named.add(child.name)
            self._apply(child, child_config)
        for name, child in queue.children.items():
            if child.managed and name not in named:
                _drain(child)

    def _set_properties(self, queue: Queue, properties: dict[str, str]) -> None:
        queue.set_properties(properties)
        queue.stateaware = queue.stateaware and self.stateaware

    def _set_template(self, queue: Queue, own: TemplateConfig | None) -> None:
        """Set the queue's template; a parent without one has that of its nearest ancestor, and the two are not merged.

        Source: docs/spec/config.md, section 9.
        """
        if own is None and not queue.is_leaf and queue.parent is not None:
            queue.template = queue.parent.template
            queue.inherited_template = queue.template is not None
        else:
            queue.template = own
            queue.inherited_template = False

    def _create(self, name: str, parent: Queue, *, is_leaf: bool, managed: bool) -> Queue:
        queue = Queue(name, parent, is_leaf, managed, self.types)
        assert queue.path not in self._by_path, f"{queue.path}: a queue of this path exists"
        self._by_path[queue.path] = queue
        self._sorted = None
        self.stale = True
        return queue

    # -- dynamic queues --------------------------------------------------------------------------------

    def create_dynamic(self, path: str) -> Queue:
        """Create the missing queues on the way to a leaf, and the leaf; a leaf that exists is returned as it is.

        Source: docs/spec/placement.md, section 5; docs/spec/config.md, section 9.

        The caller has checked that this is allowed (`creation_fault` of `licorne.core.placement.placer`). Dynamic
        queues inherit no properties: the leaf has those of its parent's template.
        """
        queue = self.root
        *parents, leaf = path.lower().split(".")[1:]
        for name in parents:
            child = queue.children.get(name)
            if child is None:
                assert not queue.is_leaf, f"{queue.path} is a leaf: nothing can be created below it"
                child = self._create(name, queue, is_leaf=False, managed=False)
                self._set_template(child, None)
            queue = child
        existing = self._by_path.get(f"{queue.path}.{leaf}")
        if existing is not None:
            return existing
        assert not queue.is_leaf, f"{queue.path} is a leaf: nothing can be created below it"
        created = self._create(leaf, queue, is_leaf=True, managed=False)
        # A reload may have made a leaf of an ancestor that has children.
        created.reachable = not any(ancestor.is_leaf for ancestor in queue.lineage())
        if isinstance(queue.template, TemplateConfig) and created.path != RECOVERY_PATH:
            self._use_template(created, queue.template)
        return created

    def _use_template(self, leaf: Queue, template: TemplateConfig) -> None:
        """Set a dynamic leaf up from a template; blank properties are ignored (docs/spec/config.md, section 9)."""
        leaf.max_apps = min(template.max_applications, UNLIMITED)
        said = {key: value for key, value in template.properties.items() if key.strip() and value.strip()}
        self._set_properties(leaf, said)
        leaf.set_resources(template.max, template.guaranteed)

    def apply_namespace_tags(self, queue: Queue, tags: Mapping[str, str]) -> bool:
        """Let an application's tags set the quota of its dynamic leaf (docs/spec/scheduling.md, section 12).

        This is done each time an application is added there. If either resource tag is usable both amounts are set, the
        one that is missing to "not set". True if max, guaranteed or maximum of applications changed: the caller then
        wakes the applications that may have waited for that.
        """
        if queue.managed or not queue.is_leaf or queue.path == RECOVERY_PATH:
            return False
        quota = quota_of_tags(tags)
        before = (queue.max_config, queue.guaranteed_config, queue.max_apps)
        if quota.max_applications:
            queue.max_apps = min(quota.max_applications, UNLIMITED)
        if quota.max is not None or quota.guaranteed is not None:
            queue.set_resources(quota.max, quota.guaranteed)
        resources_changed = before[:2] != (queue.max_config, queue.guaranteed_config)
        if resources_changed:
            self.stale = True
            _reorder_applications(queue)
        return resources_changed or before[2] != queue.max_apps

    def can_preempt(self) -> bool:
        """Return whether asks of a queue, or of one that may be created from a template, may preempt (`can_preempt`)."""
        return any(
            q.guaranteed_config
            or q.settings.preempts_within
            or (q.template and (q.template.guaranteed or parse_properties(q.template.properties).preempts_within))
            for q in self.queues()
        )

    # -- the cluster's size and shares -----------------------------------------------------------------

    def set_total(self, total: Vec) -> None:
        """Set the size of the cluster: root's limit, and the fair maximum of all shares.

        Source: docs/spec/scheduling.md, section 4.1.
        """
        amounts = {name: value for name, value in total.named(self.types).items() if value > 0}
        self.root.size = self.root.limit = self.types.vector(amounts, UNLIMITED)
        self._fair_max = self.types.vector(amounts, -1)
        self.stale = True

    def bound_root(self, overuse: Vec) -> bool:
        """Set root's limit to the size of the cluster and `overuse`; return whether that is another limit than before.

        `overuse` is what more is allocated on nodes than they have (`Accounting.overuse`). Added here, it is taken from no
        other node: what root has left is then the sum of what each node has left, which is never below zero.
        """
        size = {} if self.root.size is None else self.root.size.named(self.types)
        amounts = {name: min(value + overuse.at(self.types.index[name]), SUM_MAX) for name, value in size.items()}
        before, self.root.limit = self.root.limit, self.types.vector(amounts, UNLIMITED)
        return not before.same(self.root.limit)

    def reweigh(self) -> None:
        """Recompute weights, shares and the orders of queues."""
        self.root.set_weights(self._fair_max)
        self.stale = False

    # -- priorities and orders -------------------------------------------------------------------------

    def refresh_priorities(self, queue: Queue) -> None:
        """Recompute the priorities of this subtree and of all its ancestors, and the orders of these queues.

        The original leaves ancestors unchanged when an offset or a policy changes (docs/spec/scheduling.md, section
        4.2).
        """
        for child in queue.children.values():
            self._refresh_below(child)
        for upper in queue.lineage():
            _refresh_priority(upper)

    def _refresh_below(self, queue: Queue) -> None:
        for child in queue.children.values():
            self._refresh_below(child)
        _refresh_priority(queue)

    def _set_reachable(self, queue: Queue, reached: bool) -> None:
        """Set which leaves decisions reach, and put the applications of all other queues to sleep."""
        queue.reachable = reached and queue.is_leaf
        if not queue.reachable and queue.apps:
            _put_to_sleep(queue)
        for child in queue.children.values():
            self._set_reachable(child, reached and not queue.is_leaf)

    def _reorder(self) -> None:
        """Recompute everything that an order compares, except shares: `reweigh` recomputes those."""
        for queue in self._by_path.values():
            if queue.reachable:
                _reorder_applications(queue)
        self.refresh_priorities(self.root)

    # -- the cleaner -----------------------------------------------------------------------------------

    def remove_empty(self) -> list[str]:
        """Remove the queues that are no longer needed, children first, and return their paths in that order.

        Source: docs/spec/scheduling.md, section 12.
        """
        removed: list[str] = []
        for queue in reversed(self.queues()):  # a child's path is longer, so it comes first
            if self._removable(queue):
                assert queue.heap_index < 0, f"{queue.path}: empty, but in an order"
                if queue.parent is not None:
                    del queue.parent.children[queue.name]
                    queue.parent.children_changed()
                del self._by_path[queue.path]
                removed.append(queue.path)
        if removed:
            self._sorted = None
        return removed

    def has_removable(self) -> bool:
        """Return whether `remove_empty` would find anything; looks at every queue in the worst case."""
        return any(self._removable(queue) for queue in self._by_path.values())

    def _removable(self, queue: Queue) -> bool:
        if queue is self.root or queue.children or queue.apps:
            return False
        return not queue.managed or queue.draining

    # -- proof -----------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Prove the tree, its sums, its priorities and its orders; raises AssertionError with what is wrong."""
        walked = {queue.path: queue for queue in self.root.walk()}
        assert walked == self._by_path, "queues by path differ from the tree"
        assert self.root.parent is None and not self.root.is_leaf and self.root.managed, "root"
        self._validate_reachable(self.root, True)
        for queue in walked.values():
            _validate_place(queue)
            _validate_sums(queue)
            _validate_orders(queue)

    def _validate_reachable(self, queue: Queue, reached: bool) -> None:
        assert queue.reachable == (reached and queue.is_leaf), f"{queue.path}: serves"
        for child in queue.children.values():
            self._validate_reachable(child, reached and not queue.is_leaf)


def _fire(queue: Queue, event: ObjectEvent) -> None:
    state = next_state(OBJECT, ObjectState(str(queue.state)), event)
    if state is not None:
        queue.state = state
        queue.changed()


def _drain(queue: Queue) -> None:
    """Drain a queue that is no longer configured, and all managed queues below; dynamic ones go anyway."""
    _fire(queue, ObjectEvent.REMOVE)
    for child in queue.children.values():
        if child.managed:
            _drain(child)


def _put_to_sleep(queue: Queue) -> None:
    """Take all applications out of the queue's order, and out of `awake_count` here and above."""
    awake = [app for app in queue.apps.values() if app.heap_index >= 0]
    for app in awake:
        app.heap_index = -1
    for upper in queue.lineage() if awake else ():
        upper.awake_count -= len(awake)


def _reorder_applications(leaf: Queue) -> None:
    """Rebuild the order of a leaf's applications after what it compares (policy, guaranteed) has changed."""
    for app in leaf.apps.values():
        app.recompute_usage()
    if leaf.reachable:
        leaf.order.refill([app for app in leaf.apps.values() if app.heap_index >= 0])


def _refresh_priority(queue: Queue) -> None:
    queue.refresh_priority()
    queue.changed()
    _reorder_children(queue)


def _reorder_children(queue: Queue) -> None:
    if not queue.reachable:
        queue.order.refill([child for child in queue.children.values() if child.awake_count > 0])


def _validate_place(queue: Queue) -> None:
    path = queue.path
    assert path == path.lower() and "." not in queue.name, f"{path}: name"
    if queue.parent is not None:
        assert path == f"{queue.parent.path}.{queue.name}", f"{path}: path"
        assert queue.parent.children[queue.name] is queue, f"{path}: not a child of its parent"
        assert queue.heap_index < 0 or queue.parent.order.items[queue.heap_index] is queue, (
            f"{path}: place among siblings"
        )
    for app in queue.apps.values():
        assert app.queue is queue, f"{path}: application {app.id} is in another queue"
    by_name = [queue.children[name] for name in sorted(queue.children)]
    assert queue.by_name in ([], None, by_name), f"{path}: children by name"


def _validate_sums(queue: Queue) -> None:
    path = queue.path
    allocated, pending, preempting = new_sum(), new_sum(), new_sum()
    asks_pending = with_pending = 0
    for child in queue.children.values():
        allocated.add_sum(child.allocated, 1)
        pending.add_sum(child.pending, 1)
        preempting.add_sum(child.preempting, 1)
        asks_pending += child.asks_pending
        with_pending += child.asks_pending > 0
    for app in queue.apps.values():
        allocated.add_sum(app.allocated, 1)
        allocated.add_sum(app.placeholders, 1)
        pending.add_sum(app.pending, 1)
        asks_pending += app.asks_pending
        for allocation in app.allocations.values():
            if allocation.preempted:
                preempting.plus(allocation.shape.amounts)
    assert allocated.agrees(queue.allocated), f"{path}: allocated {queue.allocated.values()}, sum {allocated.values()}"
    assert pending.agrees(queue.pending), f"{path}: pending {queue.pending.values()}, sum {pending.values()}"
    assert preempting.agrees(queue.preempting), f"{path}: preempting is not the sum of victims"
    assert asks_pending == queue.asks_pending, f"{path}: {queue.asks_pending} pending asks, sum {asks_pending}"
    assert with_pending == queue.with_pending, f"{path}: {queue.with_pending} children with pending asks"


def _validate_tie(queue: Queue) -> None:
    """Check that the list of children that tie, where it may be used, is what sorting them would give."""
    last, kept = queue.last_turn, queue.still_tied()
    if last is None or (
        queue.last_changed and (last in kept or (queue.skipped_sleeping and not any_two_compare(kept)))
    ):
        return
    rank = (queue.tied_priority, queue.tied_share)
    tying = [child for child in queue.children.values() if child.ties(child) and (child.priority, child.share) == rank]
    assert kept == (queue.in_order(tying[0]) if tying else []), (
        f"{queue.path}: children that tie stand in another order"
    )


def _validate_orders(queue: Queue) -> None:
    path = queue.path
    queue.order.validate()
    _validate_tie(queue)
    if queue.reachable:
        awake = sum(app.heap_index >= 0 for app in queue.apps.values())
        active = awake
    else:
        assert all(app.heap_index < 0 for app in queue.apps.values()), (
            f"{path}: serves nobody, but an application is awake"
        )
        active = sum(child.awake_count for child in queue.children.values())
        awake = sum(child.awake_count > 0 for child in queue.children.values())
    assert awake == len(queue.order.items), f"{path}: {len(queue.order.items)} in order, {awake} expected"
    assert active == queue.awake_count, f"{path}: active {queue.awake_count}, sum {active}"
    kept = (queue.bag.top, queue.bag.count, queue.bag.rest, queue.priority)
    queue.refresh_priority()
    right = (queue.bag.top, queue.bag.count, queue.bag.rest, queue.priority)
    assert kept == right, f"{path}: priorities {kept}, should be {right}"
