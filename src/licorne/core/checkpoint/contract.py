"""The contract of a checkpoint: each class whose objects are part of the state, with each of its attributes.

An attribute is either *kept*, with the kind of its values (`licorne.core.checkpoint.kinds`), or *left out*, with the
reason why nothing depends on it. There is no third possibility: `tests/checkpoint/test_contract.py` compares the tables
here with the source of every class of the core, so a new attribute, or a new class, fails it until it has its line. That
is why the tables are written by hand and not derived from the annotations of the classes: what an annotation cannot say,
whether the attribute is state, somebody has to decide.

Attributes are kept by their names, which a checkpoint holds too. So a checkpoint of a licorne whose classes have other
attributes is refused, and never read wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from licorne.config.acl import ACL
from licorne.config.model import TemplateConfig
from licorne.config.properties import QueueProperties
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.base.order import Order
from licorne.core.base.rejections import Rejection
from licorne.core.base.settings import Settings
from licorne.core.base.states import ApplicationState, ObjectState
from licorne.core.base.timers import Timers
from licorne.core.base.uuids import Uuids
from licorne.core.cluster import Cluster
from licorne.core.gangs.atomic import AtomicGang, AtomicGangs
from licorne.core.gangs.backfill import Backfill, Hold
from licorne.core.gangs.placeholders import Gangs, PlaceholderGang, TaskGroup
from licorne.core.gangs.plans import StartPlan
from licorne.core.gangs.replacement import Replacement
from licorne.core.gangs.task_groups import TaskGroupSpec
from licorne.core.inputs.intake import Intake
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.inputs.numbering import Numbering
from licorne.core.inputs.releases import Releases
from licorne.core.inspection.usage_history import PastUsage
from licorne.core.manager import RegisteredManager
from licorne.core.nodes.constraints import HostPort, NodeConstraints, NodeLabels
from licorne.core.nodes.devices import Held, NodeDevices
from licorne.core.nodes.foreign import Foreign
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.needs import LabelSet, Needs
from licorne.core.nodes.node import Need, Node
from licorne.core.partition import Partition
from licorne.core.preemption.claims import Claim, Claims
from licorne.core.preemption.disruption_budgets import DisruptionBudget, DisruptionBudgets
from licorne.core.preemption.eviction_plans import EvictionPlans
from licorne.core.preemption.evictions import Eviction
from licorne.core.preemption.guarantee_preemption import GuaranteePreemption
from licorne.core.preemption.quota_start import QuotaChanges
from licorne.core.preemption.retries import FailedSearch, LeafRetries, LeafRetry
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.cleaner import Cleaner
from licorne.core.queues.freed_nodes import FreedNodes
from licorne.core.queues.limits import Limits, LimitsOfQueue, Maxima
from licorne.core.queues.priorities import PriorityBag
from licorne.core.queues.queue import Queue
from licorne.core.queues.requests import AskBlock, Requests
from licorne.core.queues.tree import Tree
from licorne.core.queues.usage import Tracker
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.reservations import Reservations
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps

OBJECTS: Final[dict[type, str]] = {
    Cluster: """
        now: int
        managers: dict[str, RegisteredManager]
        usage_watched: bool
    """,
    RegisteredManager: """
        rm_id: str
        settings: Settings
        first_interface: bool
        partitions: dict[str, Partition]
        paused: bool
    """,
    Partition: """
        name: str
        owner: str
        first_interface: bool
        settings: Settings
        starting: bool
        types: Types
        state: ObjectState
        now: int
        started_ns: int
        applications: dict[str, Application]
        terminated: dict[Application, None]
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
        dirty: bool
        generation: int
        _applications_seen: int
        _last_moment: int
        _resized: bool
        numbering: Numbering
        gangs: Gangs
        replacement: Replacement
        descent: Descent
        intake: Intake
        lifecycle: Lifecycle
        releases: Releases
        reservations: Reservations
        quotas: QuotaChanges
        disruption_budgets: DisruptionBudgets
        guarantee_preemption: GuaranteePreemption
        claims: Claims
        evictions: deque[Eviction]
        atomic: AtomicGangs
        cleaner: Cleaner
        inspections: int
        _inspection_ns: int
    """,
    Types: """
        names: list[str]
        index: dict[str, int]
        free: list[int]
        other: int
    """,
    Timers: """
        _heap: list[Timer]
        _count: int
        _cancelled: int
    """,
    Limits: """
        types: Types
        configured: dict[str, LimitsOfQueue]
        tracked_users: dict[str, dict[str, Tracker]]
        tracked_groups: dict[str, dict[str, Tracker]]
    """,
    LimitsOfQueue: """
        users: dict[str, Maxima]
        groups: dict[str, Maxima]
    """,
    Maxima: """
        resources: Vec | None
        max_apps: int
        wildcard: bool
    """,
    Tracker: """
        kind: str
        name: str
        path: str
        used: Vec
        limit: Vec | None
        max_apps: int
        wildcard: bool
        holders: int
        apps: dict[Application, None]
        blocked: dict[Application, Vec | None]
    """,
    Tree: """
        root: Queue
        types: Types
        stale: bool
        stateaware: bool
        _by_path: dict[str, Queue]
        _fair_max: Vec
    """,
    Queue: """
        heap_index: int
        priority: int
        share: float
        parent: Queue | None
        allocated: Vec
        weights: Vec
        limit: Vec
        pending: Vec
        order: Order
        asks_pending: int
        awake_count: int
        backoff_after: int
        is_leaf: bool
        by_priority: bool
        fair: bool
        stateaware: bool
        tied: list[Queue]
        tied_priority: int
        tied_share: float
        next_turn: int
        last_turn: Queue | None
        skipped_sleeping: bool
        last_changed: bool
        tie_sorts: int
        name: str
        path: str
        children: dict[str, Queue]
        apps: dict[str, Application]
        reachable: bool
        managed: bool
        state: ObjectState
        preempting: Vec
        size: Vec | None
        guaranteed: Vec
        max_config: Map[int] | None
        guaranteed_config: Map[int] | None
        max_apps: int
        running: int
        accepted: dict[Application, None]
        bag: PriorityBag
        offset: int
        fence: bool
        settings: QueueProperties
        properties: Map[str]
        submit_acl: ACL
        admin_acl: ACL
        template: TemplateConfig | None
        inherited_template: bool
        with_pending: int
        blocked: dict[Application, Vec | None]
        reserved: dict[Application, int]
        types: Types
    """,
    Order: """
        items: list[Application | Queue]
    """,
    PriorityBag: """
        top: int
        count: int
        rest: dict[int, int]
        below: list[int]
    """,
    NodeIndex: """
        width: int
        words: int
        by_id: list[Node]
        moves: int
        generation: int
    """,
    Needs: """
        _index: NodeIndex
        plain: Need
        _needs: dict[NodeConstraints, Need]
        _kinds: dict[NodeLabels, LabelSet]
        _by_port: dict[tuple[str, int], dict[Need, None]]
        _by_key: dict[str, dict[Need, None]]
        _of_devices: dict[Need, None]
        _free_numbers: list[int]
        _next_number: int
        _many: int
    """,
    Need: """
        constraints: NodeConstraints
        number: int
        waiting: int
        failed: Minima
    """,
    LabelSet: """
        bitmap: Vec
        nodes: dict[Node, None]
    """,
    Node: """
        free: Vec
        constraint_bitmap: Vec
        open: bool
        schedulable: bool
        score: float
        rank: int
        capacity: Vec
        allocated: Vec
        allocations: dict[Ask, None]
        id: str
        occupied: Vec
        attributes: Map[str]
        labels: NodeLabels
        ports: dict[HostPort, int]
        devices: NodeDevices | None
        reservations: dict[Ask, None]
        foreign: dict[str, Vec]
        base_occupied: Vec
    """,
    NodeDevices: """
        free: list[int]
        policy: str
        held: dict[Ask, Held]
    """,
    Foreign: """
        node: Node
        tags: Map[str]
        created: int
        priority: int
        ports: tuple[HostPort, ...]
        unread: Map[int] | None
    """,
    Accounting: """
        parking: Parking
        wakeups: WakeUps
        index: NodeIndex
        types: Types
        needs: Needs
        gangs: Gangs
        asks_seen: int
        overused: dict[Node, None]
        victims: dict[Ask, None]
        overdue: dict[Ask, None]
        asked_to_end: int
    """,
    Parking: """
        now: int
        reserve_after_ns: int
        timers: Timers
        enabled: bool
        may_preempt: bool
        active_count: int
        wakeups: int
        maybe_inactive: dict[Application, None]
        waiting: dict[Application, None]
        waiting_for_claims: dict[Application, None]
        gangs: dict[Application, None]
        failed: dict[Shape, None]
        failed_needs: dict[Need, None]
        waiting_minima: Minima
        failed_looks: int
        refused: dict[Ask, None]
        awaiting_node: dict[str, dict[Ask, None]]
        freed_nodes: FreedNodes
    """,
    FreedNodes: """
        nodes: list[Node]
        most: Vec
        partly_parked: dict[Shape, None]
    """,
    WakeUps: """
        parking: Parking
        index: NodeIndex
        reservations: int
        reserved_due: bool
        replacements_due: bool
        gangs_due: bool
        newly_freed: dict[Node, None]
        newly_opened: dict[Node, None]
    """,
    Numbering: """
        _partition: Partition
        types: Types
        asked: dict[str, str]
        configured: dict[str, None]
        sweeps: int
        _held: dict[int, int]
        _own: dict[str, int]
        _room: int
        _swept_ns: int
    """,
    Intake: """
        partition: Partition
        applications: dict[str, Application]
        accounting: Accounting
        descent: Descent
        parking: Parking
        wakeups: WakeUps
        types: Types
        root: Queue
        plain: Need
        first_interface: bool
    """,
    Releases: """
        partition: Partition
        applications: dict[str, Application]
        accounting: Accounting
        descent: Descent
        lifecycle: Lifecycle
        partition_name: str
    """,
    Lifecycle: """
        partition: Partition
        limits: Limits
        wakeups: WakeUps
        timers: Timers
    """,
    Descent: """
        root: Queue
        accounting: Accounting
        parking: Parking
        wakeups: WakeUps
        index: NodeIndex
        gangs: Gangs
        nodes: dict[str, Node]
        partition: Partition
        partition_name: str
        headroom_left: Vec
        quotas_left: Vec
        first_interface: bool
        uuids: Uuids
        visits: int
        attempts: int
        refused: bool
        claims: dict[Ask, Claim]
        reduced_by_claims: bool
        claims_priority: int
        unplaced: dict[Application, None] | None
    """,
    Uuids: """
        first: int
        second: int
        count: int
    """,
    Reservations: """
        _partition: Partition
        _timers: dict[Ask, Timer | None]
        _refused: dict[Ask, None]
    """,
    Gangs: """
        partition: Partition
        accounting: Accounting
        wakeups: WakeUps
        due: dict[Application, None]
        stuck: dict[Application, None]
    """,
    PlaceholderGang: """
        hard: bool
        timeout_ns: int
        timer: Timer | None
        groups: dict[str, TaskGroup]
        placed: int
        gained: Vec
        was_complete: bool
        placeholders_timed_out: bool
        replacing: dict[Ask, Ask]
        arriving: dict[str, Ask]
    """,
    TaskGroup: """
        name: str
        resource: Map[int]
        created: int
        replaced: int
        released: int
        timed_out: int
        held: list[Ask]
        start: int
        gone: int
        waiting: dict[Ask, None]
    """,
    Replacement: """
        partition: Partition
        accounting: Accounting
        parking: Parking
        wakeups: WakeUps
        index: NodeIndex
        gangs: Gangs
        fits: bool
    """,
    AtomicGangs: """
        _partition: Partition
        backfill: Backfill
        _refused: dict[Application, None]
    """,
    AtomicGang: """
        groups: tuple[TaskGroupSpec, ...]
        needs: dict[str, int]
        stale: bool
        refused: bool
        trials: int
        hopeless: int
        barred_ns: int
    """,
    Backfill: """
        _partition: Partition
        hold: Hold | None
        made: int
        _planned: bool
        _planned_for: tuple[int, int, Vec] | None
        _filled_for: tuple[StartPlan, int, int] | None
    """,
    Hold: """
        app: Application
        gang: AtomicGang
        plan: StartPlan
        nodes: dict[Node, None]
        since_ns: int
        timer: Timer | None
    """,
    GuaranteePreemption: """
        _partition: Partition
        retries: LeafRetries
        seen: dict[Application, int]
        _ready: dict[Queue, None]
        _failed: dict[Queue, None]
        has_retries: bool
        _generation: int
        _skipped: dict[Application, None]
        _blocked_by_claims: dict[Queue, None]
        plans: EvictionPlans
    """,
    EvictionPlans: """
        _partition: Partition
        searches: int
    """,
    LeafRetries: """
        _timers: Timers
        _by_leaf: dict[Queue, LeafRetry]
        _max: int
    """,
    LeafRetry: """
        leaf: Queue
        failed_searches: dict[Ask, FailedSearch]
        pause_ns: int
        timer: Timer | None
        due_ns: int
    """,
    Claims: """
        _partition: Partition
        by_ask: dict[Ask, Claim]
        generation: int
        _sums: dict[Queue | Tracker, Vec]
        _least: dict[Queue, int]
    """,
    Claim: """
        ask: Ask
        number: int
        at_ns: int
        victims: list[Ask]
        records: list[Eviction]
        top_priorities: dict[Queue, int]
        amounts: Vec
        levels: dict[Queue | Tracker, None]
    """,
    DisruptionBudgets: """
        by_name: dict[str, DisruptionBudget]
        by_id: dict[str, tuple[DisruptionBudget, ...]]
        generation: int
    """,
    DisruptionBudget: """
        allowed: int
        members: dict[str, None]
        going: dict[str, None]
        taken: int
    """,
    QuotaChanges: """
        _partition: Partition
        _timers: dict[Queue, Timer]
        starts: dict[Queue, int]
    """,
    Cleaner: """
        _partition: Partition
        _timer: Timer | None
    """,
    Application: """
        heap_index: int
        queue: Queue
        state: ApplicationState
        backoff_until: int
        atomic: AtomicGang | None
        requests: Requests
        trackers: list[Tracker]
        asks: dict[str, Ask]
        pending: Vec
        asks_pending: int
        bag: PriorityBag
        allocations: dict[str, Ask]
        allocated: Vec
        id: str
        group_chosen: bool
        active: bool
        seq: int
        submitted: int
        user: str
        groups: tuple[str, ...]
        tags: Map[str]
        state_log: list[tuple[int, str]]
        placeholders: Vec
        high: Vec
        usage: list[float]
        last_shape: Shape | None
        visited_seq: int
        ask_reentered: bool
        reservations: dict[str, Ask]
        group: str | None
        starting: bool
        independent: bool
        forced: bool
        requires_nodes: bool
        running_timeout_ns: int
        placeholder_ask: Vec
        placeholder_resource: Map[int]
        gang: PlaceholderGang | None
        timer: Timer | None
        backoff_timer: Timer | None
        running_timer: Timer | None
        started_ns: int
        finished_ns: int
        message: str
        past: PastUsage | None
    """,
    PastUsage: """
        left: int
        most: dict[str, int]
        used: dict[str, dict[str, int]]
        preempted: dict[str, dict[str, int]]
        placeholders: dict[str, dict[str, int]]
        since: dict[str, int]
    """,
    Requests: """
        blocks: list[AskBlock]
        head: AskBlock | None
        tail: AskBlock | None
        priority: int
        created: int
        seq: int
        waiting_count: int
        waiting_minima: Minima
    """,
    AskBlock: """
        items: list[Ask | None]
        gone: int
        low: Vec
        waiting_minima: Minima
        live: int
        position: int
    """,
    Shape: """
        amounts: Vec
        resource: Map[int]
        need: Need
        first: Ask | None
        waiting: int
        failed: bool
    """,
    Ask: """
        shape: Shape
        parked: int
        attempted: bool
        block: AskBlock | None
        prior: Ask | None
        next: Ask | None
        required: str
        reserved: Node | None
        repeats: int
        key: str
        id: str
        priority: int
        node: Node | None
        bound_ns: int
        tags: Map[str] | None
        task_group: str
        timeout_ns: int
        placeholder: bool
        originator: bool
        allow_self: bool
        allow_other: bool
        app: Application
        created: int
        seq: int
        reserved_ns: int
        expired_node: Node | None
        replaced_ns: int
        deadline: Timer | None
        outstanding: int
        triggered: bool
        preempted: bool
        released: bool
    """,
}
"""The kept attributes of each class. Objects are found in the order of the classes here, the many last (`found`)."""

VALUES: Final[tuple[type, ...]] = (
    ACL,
    Eviction,
    FailedSearch,
    Held,
    HostPort,
    NodeConstraints,
    NodeLabels,
    QueueProperties,
    Rejection,
    Settings,
    TaskGroupSpec,
    TemplateConfig,
)
"""Classes that hold nothing but numbers, texts and collections of such: they are kept as a whole."""

ENUMERATIONS: Final[tuple[type[ApplicationState | ObjectState], ...]] = (ApplicationState, ObjectState)
PLANS: Final = (StartPlan, "tuple[list[tuple[Ask, Node]], tuple[int, int, str]]")
"""A named tuple that refers to objects, and its items."""
SUBJECTS: Final = "Application | Ask | QuotaChanges | LeafRetry | Partition | Hold"
"""What a deadline may be about (`licorne.core.base.timers`)."""

Make = Callable[[], Any]


def _nothing() -> None:
    return None


def _unnamed() -> list[None]:
    return [None] * 8


LEFT_OUT: Final[dict[type, dict[str, tuple[Make | None, str]]]] = {
    Cluster: {
        "watcher": (_nothing, "the host's"),
        "recorder": (_nothing, "the host's"),
        "orders": (_nothing, "the host's"),
        "read": (None, "the host's"),
        "listening": (list, "follows from the managers"),
        "_ordered": (list, "follows from the managers"),
        "_deciding": (list, "follows from the managers"),
        "__weakref__": (None, "no state"),
    },
    RegisteredManager: {
        "configuration": (None, "kept as its text"),
        "predicates": (_nothing, "the host's"),
        "preemption_predicates": (_nothing, "the host's"),
        "ordered": (list, "follows from the partitions"),
        "out": (list, "empty between two calls"),
        "listens": (bool, "the host's"),
        "store": (_nothing, "records of events decide nothing; those that wait to be sent are lost"),
        "recorder": (_nothing, "the host's"),
        "__weakref__": (None, "no state"),
    },
    Partition: {
        "config": (None, "a part of the configuration of its manager"),
        "paused": (None, "a method of its manager"),
        "on_end": (_nothing, "the host's"),
        "events": (_nothing, "records of events decide nothing"),
        "placer": (None, "follows from the configuration"),
        "preemption_predicates": (_nothing, "the host's"),
        "__weakref__": (None, "no state"),
    },
    Types: {
        "met": (None, "a cache"),
        "met_at": (None, "a cache, valid where `met` is"),
        "met_most": (None, "a cache"),
    },
    Limits: {"regrouped": (_nothing, "for records of events, which decide nothing")},
    Tree: {"_sorted": (_nothing, "a cache")},
    Queue: {"by_name": (_nothing, "a cache")},
    NodeIndex: {
        "visits": (int, "counts work, of which there is less once bounds are exact"),
        "policy": (None, "follows from the configuration"),
        "grid": (None, "tells only where a search cannot succeed"),
        "groups": (None, "the nodes, in their order"),
        "tops": (None, "bounds of the groups"),
        "target": (_nothing, "a hint for the processor's cache"),
        "spare": (_nothing, "an empty block to be reused"),
    },
    Needs: {
        "_by_text": (dict, "a cache"),
        "_characters": (int, "the size of a cache"),
        "_by_label": (_nothing, "a cache"),
        "choose_device": (_nothing, "the host's"),
    },
    Need: {
        "word": (None, "follows from the number"),
        "mask": (None, "follows from the number"),
        "exact": (None, "follows from the number"),
        "answers": (dict, "a cache"),
        "ports": (None, "a part of the constraints"),
        "demand": (None, "a part of the constraints"),
        "counted": (None, "follows from the constraints"),
        "empty": (None, "found again by the constraints"),
    },
    NodeDevices: {"tried": (dict, "of trials, which end within a call")},
    Node: {"block": (_nothing, "its place in the index, which is built anew")},
    Accounting: {"watchers": (None, "the usage history, if it is recorded; others are the host's")},
    Intake: {
        "amounts": (Vec, "of the message that is being taken in"),
        "asked": (_nothing, "for records of events, which decide nothing"),
        "ahead": (_unnamed, "of the messages that are being taken in"),
        "active": (lambda: True, "of the messages that are being taken in"),
    },
    Descent: {
        "predicates": (_nothing, "the host's"),
        "orders": (_nothing, "the host's"),
        "out": (list, "empty between two calls"),
    },
    Reservations: {
        "_nowhere": (dict, "a cache of searches without a result"),
        "_generation": (int, "tells whether `_nowhere` is valid"),
    },
    AtomicGang: {"_asks": (_nothing, "a cache")},
    GuaranteePreemption: {"attempt": (None, "a method of its plans")},
    EvictionPlans: {
        "_planned_usage": (_nothing, "a cache, computed again from the sums"),
        "_node_searches": (dict, "a cache, computed again from the allocations"),
        "_snapshot_key": (tuple, "tells whether these are valid"),
    },
    Application: {"table": (None, "follows from the dialect and the settings")},
}
"""The attributes that are left out: what makes the value of a restored object, and why. Without such a function the
value is set where the object is made (`licorne.core.checkpoint.kinds`) or at the end (`licorne.core.checkpoint.restore`)."""
