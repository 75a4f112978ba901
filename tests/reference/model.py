"""The objects of the reference scheduler: plain records, and hardly a number that could be computed from them.

All allocated, pending, used, free or reserved amounts are summed up from these records when they are asked for
(`reference.sums`). Sections are those of docs/spec/scheduling.md, a "difference" is a row of `docs/reference/differences.md`.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from licorne.config.model import PartitionConfig, TemplateConfig
from licorne.config.properties import QueueProperties, parse_properties
from licorne.si.messages import Output

SECOND_NS = 10**9
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1

Amounts = dict[str, int]
Key = tuple[str, str, str]
"""Who is limited where: ("user" or "group", name, path of a queue)."""
Predicate = Callable[[str, str, bool], bool]


# -- amounts (section 1) ---------------------------------------------------------------------------------


def pruned(amounts: Amounts | None) -> Amounts:
    """Without zeros."""
    return {name: amount for name, amount in (amounts or {}).items() if amount}


def plus(one: Amounts, other: Amounts, times: int = 1) -> Amounts:
    """Union of types, missing is 0."""
    return {name: one.get(name, 0) + other.get(name, 0) * times for name in one | other}


def minus(one: Amounts, other: Amounts) -> Amounts:
    """Union of types, missing is 0."""
    return plus(one, other, -1)


def rest(limit: Amounts, used: Amounts) -> Amounts:
    """The rest of a limit, for the types that it lists (SubOnlyExisting)."""
    return {name: amount - used.get(name, 0) for name, amount in limit.items()}


def lowest(one: Amounts, other: Amounts) -> Amounts:
    """The smaller of two rooms, where a type that is not listed is unlimited (ComponentWiseMin)."""
    return {name: min(room[name] for room in (one, other) if name in room) for name in one | other}


def fits(room: Amounts, ask: Amounts) -> bool:
    """FitIn: a type that the room lacks is 0, and so is what is negative."""
    return all(amount <= max(0, room.get(name, 0)) for name, amount in ask.items())


def fits_limit(room: Amounts, ask: Amounts) -> bool:
    """FitInMaxUndef: a type that the room lacks is unlimited."""
    return all(amount <= max(0, room[name]) for name, amount in ask.items() if name in room)


# -- objects (section 2) ---------------------------------------------------------------------------------


@dataclass(eq=False)
class Reservation:
    """An ask is tied to a node."""

    node: Node
    made_ns: int


@dataclass(eq=False)
class Ask:
    """An ask, or with `node` an allocation. `arrived` counts arrivals, `placed` moments of coming to a node.

    `place` is the placeholder of a real ask whose replacement is in flight, `since` numbers placeholders as they are placed.
    """

    key: str
    app: App
    amounts: Amounts
    priority: int
    created_ns: int
    arrived: int
    id: str = ""
    repeats: int = 1
    required: str = ""
    constraints: str = ""
    timeout_ns: int = 0
    originator: bool = False
    allow_self: bool = False
    allow_other: bool = False
    node: Node | None = None
    placed: int = 0
    reservation: Reservation | None = None
    shunned: Node | None = None
    attempted: bool = False
    reported: bool = False
    triggered: bool = False
    claim: Any = None  # `reference.claims.Claim`
    gave_up_ns: int | None = None  # when others were evicted for what it has given up last
    preempted: bool = False
    overdue: bool = False
    released: bool = False
    task_group: str = ""
    placeholder: bool = False
    place: Ask | None = None
    since: int = 0
    bound_ns: int = 0


@dataclass
class Gang:
    """The placeholders of an application (`reference.gangs`). `flying`: replacements decided, and not confirmed yet."""

    hard: bool = False
    timeout_ns: int = 0  # 0: not a word of placeholders yet
    created_ns: int | None = None  # as tagged
    announced: Amounts = field(default_factory=dict)
    gained: Amounts = field(default_factory=dict)
    whole: bool = False
    fallen: bool = False
    clock: int = 0
    flying: list[Ask] = field(default_factory=list)


@dataclass(eq=False)
class App:
    """An application. `holds_slot`: Accepted, and counted as running all the same (section 10)."""

    id: str
    arrived: int
    submitted_ns: int
    queue: Queue
    user: str
    groups: tuple[str, ...]
    running_timeout_ns: int = 0
    state: str = "New"
    state_entered: int = 0
    asks: dict[str, Ask] = field(default_factory=dict)
    allocations: dict[str, Ask] = field(default_factory=dict)
    holds_slot: bool = False
    backoff_until_ns: int = 0
    group: str | None = None
    group_chosen: bool = False
    in_sets: bool = False  # it counts among the applications of its user and group (section 11.1)
    running_timer: bool = False
    gang: Gang = field(default_factory=Gang)
    running_due_ns: int = 0
    atomic: Any = None  # `reference.atomic`, until it has started


@dataclass(eq=False)
class Node:
    """A node. The allocations on it are found among those of the applications."""

    id: str
    attributes: dict[str, str]
    capacity: Amounts
    schedulable: bool
    occupied: Amounts = field(default_factory=dict)
    foreign: dict[str, Amounts] = field(default_factory=dict)
    reserved_by: list[Ask] = field(default_factory=list)


@dataclass(eq=False)
class Queue:
    """A queue. `running` alone is a kept number: section 10 says how it changes, not what it is the sum of."""

    name: str
    parent: Queue | None
    leaf: bool
    managed: bool
    draining: bool = False
    children: dict[str, Queue] = field(default_factory=dict)
    maximum: Amounts = field(default_factory=dict)
    guaranteed: Amounts = field(default_factory=dict)
    max_apps: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    settings: QueueProperties = field(default_factory=QueueProperties)
    template: TemplateConfig | None = None
    running: int = 0
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.path = self.name if self.parent is None else f"{self.parent.path}.{self.name}"

    def set_properties(self, properties: dict[str, str]) -> None:
        """Set the properties; one that is gone has its default again (difference 15)."""
        self.properties = properties
        self.settings = parse_properties(properties)

    def lineage(self) -> list[Queue]:
        """This queue and its ancestors, root last."""
        return [self] if self.parent is None else [self, *self.parent.lineage()]

    def walk(self) -> Iterator[Queue]:
        """Children first, and then this queue."""
        for child in list(self.children.values()):
            yield from child.walk()
        yield self


@dataclass(frozen=True)
class Limit:
    """The limit of one user or group: no `amounts`, or 0 applications, is no limit of that kind."""

    amounts: Amounts
    apps: int


@dataclass
class QueueLimits:
    """The limits of users and groups in a queue's configuration, in its order."""

    users: dict[str, Limit] = field(default_factory=dict)
    groups: dict[str, Limit] = field(default_factory=dict)


@dataclass
class Deadline:
    """Something that happens when time has come; equal ones in the order in which they were set."""

    due_ns: int
    number: int
    act: Callable[[], None]


@dataclass(eq=False)
class Budget:
    """A disruption budget: ids of its members, and of those that were evicted."""

    allowed: int = 0
    members: set[str] = field(default_factory=set)
    going: set[str] = field(default_factory=set)

    def left(self) -> int:
        """How many more members may be evicted."""
        return max(0, self.allowed - len(self.going))


@dataclass(eq=False)
class Partition:
    """A partition of a resource manager. `starting`: applications may be Starting."""

    name: str
    config: PartitionConfig
    root: Queue
    now_ns: int
    started_ns: int
    first_interface: bool
    starting: bool
    reservation_delay_ns: int | None
    priority_classes: dict[str, int]
    predicate: Predicate | None = None
    limits: dict[str, QueueLimits] = field(default_factory=dict)
    apps: dict[str, App] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    deadlines: list[Deadline] = field(default_factory=list)
    out: list[Output] = field(default_factory=list)
    inspected_ns: int = 0
    owner: str = ""
    atomic: Any = None
    last_moment_ns: int = 0
    cleaner_due: bool = False
    quota_starts: dict[Queue, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    checks: dict[Ask, Any] = field(default_factory=dict)  # searches for victims in vain (`reference.preempting`)
    pauses: dict[Queue, int] = field(default_factory=dict)
    budgets: dict[str, Budget] = field(default_factory=dict)

    def number(self, of: str) -> int:
        """The next number of a kind: of an ask, an application, a deadline."""
        self.numbers[of] = self.numbers.get(of, 0) + 1
        return self.numbers[of]

    def at(self, due_ns: int, act: Callable[[], None]) -> None:
        """Do this when it is due."""
        self.deadlines.append(Deadline(due_ns, self.number("deadline"), act))

    def apps_of(self, queue: Queue) -> list[App]:
        """The applications of a queue, in the order of their arrival."""
        return [app for app in self.apps.values() if app.queue is queue]

    def allocations(self) -> Iterator[Ask]:
        """All of them."""
        for app in self.apps.values():
            yield from app.allocations.values()


def next_uuid(partition: Partition) -> str:
    """The UUID of the next allocation in the first interface (difference 10); it also tells equally old ones apart."""
    digest = hashlib.sha256(f"{partition.owner}\0{partition.name}".encode()).digest()
    first, second = int.from_bytes(digest[:8]), int.from_bytes(digest[8:16])
    high = _mixed(first + partition.number("uuid") * 0x9E3779B97F4A7C15)
    number = high << 64 | _mixed(high ^ second)
    version, variant = 0xF << 76, 0x3 << 62
    return str(uuid.UUID(int=number & ~version & ~variant | 8 << 76 | 2 << 62))


def _mixed(number: int) -> int:
    """The finalizer of SplitMix64."""
    number %= 1 << 64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    number = (number ^ number >> 27) * 0x94D049BB133111EB % (1 << 64)
    return number ^ number >> 31
