"""The internal messages that come and go by the million: asks, decisions, and the ends of allocations.

They belong to `licorne.si.messages` and should be imported from there. They have a module of their own because they are
compiled: the core, the adapters and the wire format access their fields as those of C structs, whereas making an
ordinary message object costs as much as a decision. Interpreted, they are plain classes. They hold only strings,
numbers and dicts of these and so cannot be part of a cycle; therefore the garbage collector does not track them.
"""

from __future__ import annotations

from enum import IntEnum

from licorne._plain import cython


class Termination(IntEnum):
    """Why an allocation ends (*Scheduler Interface Spec*, TerminationType; numbers of 1.9)."""

    UNKNOWN = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4


STOPPED_BY_RM = Termination.STOPPED_BY_RM


def _shown(message: Allocation | NewAllocation | Release | Released) -> str:
    fields = ", ".join(f"{name}={value!r}" for name, value in message.fields().items())
    return f"{type(message).__name__}({fields})"


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class Allocation:
    """An ask; with `node_id` an existing allocation; with the tag `foreign` an allocation of another scheduler.

    `resource` is None if the message has none. Both dialects repeat a known key to change an ask or allocation, so only
    the core can tell whether this one is new. Numbers have 64 bits.

    Five fields serve the first interface alone: `max_allocations` is the repeat count of an ask, `uuid` names one
    allocation of a repeated ask, `priority_class` is resolved by the core from its settings, and `timeout_ms` is the
    execution timeout of an ask (0 or negative: never). `independent` means that the message named no application:
    `application_id` is then the key, and the core makes and ends that application itself
    (docs/spec/scheduler-interface.md, section 9).
    """

    key: str
    application_id: str
    partition: str
    resource: dict[str, int] | None
    priority: cython.longlong
    priority_class: str
    tags: dict[str, str] | None
    node_id: str
    task_group: str
    placeholder: cython.bint
    originator: cython.bint
    allow_preempt_self: cython.bint
    allow_preempt_other: cython.bint
    max_allocations: cython.longlong
    timeout_ms: cython.longlong
    uuid: str
    independent: cython.bint

    def __init__(
        self,
        *,
        key: str,
        application_id: str = "",
        partition: str = "default",
        resource: dict[str, int] | None = None,
        priority: int = 0,
        priority_class: str = "",
        tags: dict[str, str] | None = None,
        node_id: str = "",
        task_group: str = "",
        placeholder: bool = False,
        originator: bool = False,
        allow_preempt_self: bool = False,
        allow_preempt_other: bool = False,
        max_allocations: int = 1,
        timeout_ms: int = 0,
        uuid: str = "",
        independent: bool = False,
    ) -> None:
        self.key = key
        self.application_id = application_id
        self.partition = partition
        self.resource = resource
        self.priority = priority
        self.priority_class = priority_class
        self.tags = tags
        self.node_id = node_id
        self.task_group = task_group
        self.placeholder = placeholder
        self.originator = originator
        self.allow_preempt_self = allow_preempt_self
        self.allow_preempt_other = allow_preempt_other
        self.max_allocations = max_allocations
        self.timeout_ms = timeout_ms
        self.uuid = uuid
        self.independent = independent

    def fields(self) -> dict[str, object]:
        """Return all fields by name."""
        return {
            "key": self.key,
            "application_id": self.application_id,
            "partition": self.partition,
            "resource": self.resource,
            "priority": self.priority,
            "priority_class": self.priority_class,
            "tags": self.tags,
            "node_id": self.node_id,
            "task_group": self.task_group,
            "placeholder": self.placeholder,
            "originator": self.originator,
            "allow_preempt_self": self.allow_preempt_self,
            "allow_preempt_other": self.allow_preempt_other,
            "max_allocations": self.max_allocations,
            "timeout_ms": self.timeout_ms,
            "uuid": self.uuid,
            "independent": self.independent,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allocation) and self.fields() == other.fields()

    def __hash__(self) -> int:
        raise TypeError("an Allocation can change, so it has no hash")

    def __repr__(self) -> str:
        return _shown(self)


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class NewAllocation:
    """A decision: this ask runs on this node. `resource` and `tags` belong to the core and must not be changed."""

    key: str
    application_id: str
    node_id: str
    resource: dict[str, int]
    partition: str
    queue: str
    priority: cython.longlong
    tags: dict[str, str] | None
    task_group: str
    placeholder: cython.bint
    originator: cython.bint
    allow_preempt_self: cython.bint
    allow_preempt_other: cython.bint
    uuid: str

    def __init__(
        self,
        key: str,
        application_id: str,
        node_id: str,
        resource: dict[str, int],
        *,
        partition: str = "default",
        queue: str = "",
        priority: int = 0,
        tags: dict[str, str] | None = None,
        task_group: str = "",
        placeholder: bool = False,
        originator: bool = False,
        allow_preempt_self: bool = False,
        allow_preempt_other: bool = False,
        uuid: str = "",
    ) -> None:
        self.key = key
        self.application_id = application_id
        self.node_id = node_id
        self.resource = resource
        self.partition = partition
        self.queue = queue
        self.priority = priority
        self.tags = tags
        self.task_group = task_group
        self.placeholder = placeholder
        self.originator = originator
        self.allow_preempt_self = allow_preempt_self
        self.allow_preempt_other = allow_preempt_other
        self.uuid = uuid

    def fields(self) -> dict[str, object]:
        """Return all fields by name."""
        return {
            "key": self.key,
            "application_id": self.application_id,
            "node_id": self.node_id,
            "resource": self.resource,
            "partition": self.partition,
            "queue": self.queue,
            "priority": self.priority,
            "tags": self.tags,
            "task_group": self.task_group,
            "placeholder": self.placeholder,
            "originator": self.originator,
            "allow_preempt_self": self.allow_preempt_self,
            "allow_preempt_other": self.allow_preempt_other,
            "uuid": self.uuid,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NewAllocation) and self.fields() == other.fields()

    def __hash__(self) -> int:
        raise TypeError("a NewAllocation can change, so it has no hash")

    def __repr__(self) -> str:
        return _shown(self)


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class Release:
    """The end of an allocation, of an ask, or (key and UUID empty) of everything that an application has.

    `what` is "both" in the 1.9 interface, where one release serves asks and allocations; the first interface names
    either. With an empty `application_id`, `what` "both" means a foreign allocation; otherwise the key or the UUID
    alone identifies the ask or allocation, whatever its application.
    """

    partition: str
    application_id: str
    key: str
    uuid: str
    termination: Termination
    message: str
    what: str  # both | allocation | ask

    def __init__(
        self,
        *,
        partition: str = "default",
        application_id: str = "",
        key: str = "",
        uuid: str = "",
        termination: Termination = STOPPED_BY_RM,
        message: str = "",
        what: str = "both",
    ) -> None:
        self.partition = partition
        self.application_id = application_id
        self.key = key
        self.uuid = uuid
        self.termination = termination
        self.message = message
        self.what = what

    def fields(self) -> dict[str, object]:
        """Return all fields by name."""
        return {
            "partition": self.partition,
            "application_id": self.application_id,
            "key": self.key,
            "uuid": self.uuid,
            "termination": self.termination,
            "message": self.message,
            "what": self.what,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.fields() == other.fields()

    def __hash__(self) -> int:
        raise TypeError("a Release can change, so it has no hash")

    def __repr__(self) -> str:
        return _shown(self)


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
class Released:
    """An allocation that has ended or that the resource manager must end. `ask`: it is an ask (first interface)."""

    key: str
    application_id: str
    termination: Termination
    message: str
    partition: str
    uuid: str
    ask: cython.bint

    def __init__(
        self,
        key: str,
        application_id: str,
        termination: Termination,
        message: str = "",
        partition: str = "default",
        uuid: str = "",
        *,
        ask: bool = False,
    ) -> None:
        self.key = key
        self.application_id = application_id
        self.termination = termination
        self.message = message
        self.partition = partition
        self.uuid = uuid
        self.ask = ask

    def fields(self) -> dict[str, object]:
        """Return all fields by name."""
        return {
            "key": self.key,
            "application_id": self.application_id,
            "termination": self.termination,
            "message": self.message,
            "partition": self.partition,
            "uuid": self.uuid,
            "ask": self.ask,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Released) and self.fields() == other.fields()

    def __hash__(self) -> int:
        raise TypeError("a Released can change, so it has no hash")

    def __repr__(self) -> str:
        return _shown(self)
