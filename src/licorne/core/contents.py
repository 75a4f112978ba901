"""What a partition holds: its queues, applications and nodes, their sums, and what waits.

`PartitionContents` makes no decision. The modules that decide work on a `Partition` (`licorne.core.partition`), which
is these contents together with the objects that decide; a module that only reads the contents, or changes nothing but
them, takes `PartitionContents`, and so depends on none of those objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from licorne._plain import cython
from licorne.config.model import PartitionConfig
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.rejections import REJECTED_MAX, Rejection
from licorne.core.base.settings import Settings
from licorne.core.base.states import ObjectState
from licorne.core.base.timers import Timers
from licorne.core.nodes.foreign import Foreign
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.needs import Needs
from licorne.core.nodes.node import Node, ScorePolicy
from licorne.core.queues.application import Application
from licorne.core.queues.limits import Limits
from licorne.core.queues.tree import Tree
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps


@cython.cclass
class PartitionContents:
    """What one partition holds. `now` is the time of the input that is being handled, in nanoseconds."""

    name: str
    owner: str
    first_interface: cython.bint
    settings: Settings
    config: PartitionConfig
    starting: cython.bint
    types: Types
    state: ObjectState
    paused: Callable[[], bool]  # whether its resource manager is paused, so that nothing new may be decided
    now: int
    started_ns: int
    applications: dict[str, Application]
    terminated: dict[Application, None]
    on_end: Callable[[Application], None] | None  # the host's; called for each application that completed or failed
    rejected: deque[Rejection]
    nodes: dict[str, Node]
    foreign: dict[str, Foreign]
    total: Vec
    limits: Limits
    timers: Timers
    parking: Parking
    wakeups: WakeUps
    index: NodeIndex
    needs: Needs
    accounting: Accounting
    tree: Tree
    dirty: cython.bint  # something has changed since pending asks were inspected
    generation: cython.longlong  # rises with each change; fruitless visits of applications do not count
    _applications_seen: int
    _last_moment: int
    _resized: cython.bint
    __weakref__: object

    # A part of the configuration of its manager, a method of its manager, and the host's.
    TRANSIENT = ("config", "paused", "on_end")

    def __init__(
        self, config: PartitionConfig, settings: Settings, now: int, *, first_interface: bool, owner: str, name: str
    ) -> None:
        self.name = name
        self.owner = owner
        self.first_interface = first_interface
        self.settings = settings
        self.config = config
        self.starting = first_interface if settings.starting is None else settings.starting
        self.types = Types()
        self.state = ObjectState.ACTIVE
        self.paused = bool
        self.now = now
        self.started_ns = now
        self.applications = {}
        self.terminated = {}
        self.on_end = None
        self.rejected = deque(maxlen=REJECTED_MAX)
        self.nodes = {}
        self.foreign = {}
        self.total = new_sum()
        self.limits = Limits(self.types)
        self.timers = Timers()
        self.parking = Parking(self.timers, settings.reservation_delay_ns)
        self.parking.enabled = settings.parking
        self.parking.now = now
        self.index = NodeIndex(self.score_policy(config))
        self.needs = Needs(self.index, settings.preferences)
        self.accounting = Accounting(self.parking, self.index, self.types, self.needs)
        self.wakeups = self.accounting.wakeups
        # Without the state Starting, the sort policy stateaware means fifo (docs/spec/states.md).
        self.tree = Tree(config.root, self.types, stateaware=self.starting)
        self.dirty = True
        self.generation = 0
        self._applications_seen = 0
        self._last_moment = now - 1
        self._resized = True

    @cython.ccall
    def changed(self) -> cython.void:
        """Count a change of the partition (`generation`), and mark it as not inspected since (`dirty`).

        Called for each input, deadline and configuration, and after each call of `schedule` that decided something.
        """
        self.generation += 1
        self.dirty = True

    # -- nodes -----------------------------------------------------------------------------------------

    def score_policy(self, config: PartitionConfig) -> ScorePolicy:
        """Return the order of nodes that a configuration asks for."""
        weights = [
            (self.types.slot(name), weight) for name, weight in sorted(config.node_sort.weights.items()) if weight
        ]
        return ScorePolicy(config.node_sort.policy, weights)

    def resize(self, capacity: Vec, times: int) -> None:
        """Add the capacity of a new node to the cluster's size (`times` 1), or subtract that of a removed one (-1)."""
        if times > 0:
            self.total.plus(capacity)
        else:
            self.total.minus(capacity)
        self._resized = True

    def settle_size(self) -> None:
        """Bring the root queue's max, which is the cluster's size, its limit and all shares up to date if they are stale."""
        if self._resized:
            self._resized = False
            self.tree.set_total(self.total)
            self.wakeups.quota_changed(self.tree.root)
        if self.accounting.overused and self.tree.bound_root(self.accounting.overuse()):
            self.wakeups.quota_changed(self.tree.root)
        if self.tree.stale:
            self.tree.reweigh()

    # -- applications ----------------------------------------------------------------------------------

    def next_application_number(self) -> int:
        """Return the number of a new application; they are numbered in the order of arrival."""
        self._applications_seen += 1
        return self._applications_seen

    def moment(self) -> int:
        """Return the creation time (ns) for a new application: now, or later by as much as makes it unique."""
        self._last_moment = max(self.now, self._last_moment + 1)
        return self._last_moment
