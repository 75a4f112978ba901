"""The internal messages that come and go by the million: asks, decisions, and the ends of allocations.

They belong to `licorne.si.messages` and should be imported from there. They have a module of their own because they are
compiled: the core, the adapters and the wire format access their fields as those of C structs, whereas making an
ordinary message object costs as much as a decision. Interpreted, they are plain dataclasses. They hold only strings,
numbers and dicts of these and so cannot be part of a cycle; therefore the garbage collector does not track them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from licorne._plain import cython


class Termination(IntEnum):
    """Why an allocation ends (*Scheduler Interface Spec*, TerminationType; numbers of 1.9)."""

    UNKNOWN = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
@dataclass(kw_only=True)
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
    application_id: str = ""
    partition: str = "default"
    resource: dict[str, int] | None = None
    priority: cython.longlong = 0
    priority_class: str = ""
    tags: dict[str, str] | None = None
    node_id: str = ""
    task_group: str = ""
    placeholder: cython.bint = False
    originator: cython.bint = False
    allow_preempt_self: cython.bint = False
    allow_preempt_other: cython.bint = False
    max_allocations: cython.longlong = 1
    timeout_ms: cython.longlong = 0
    uuid: str = ""
    independent: cython.bint = False

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


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
@dataclass
class NewAllocation:
    """A decision: this ask runs on this node. `resource` and `tags` belong to the core and must not be changed."""

    key: str
    application_id: str
    node_id: str
    resource: dict[str, int]
    partition: str = "default"
    queue: str = ""
    priority: cython.longlong = 0
    tags: dict[str, str] | None = None
    task_group: str = ""
    placeholder: cython.bint = False
    originator: cython.bint = False
    allow_preempt_self: cython.bint = False
    allow_preempt_other: cython.bint = False
    uuid: str = ""


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
@dataclass(kw_only=True)
class Release:
    """The end of an allocation, of an ask, or (key and UUID empty) of everything that an application has.

    `what` is "both" in the 1.9 interface, where one release serves asks and allocations; the first interface names
    either. With an empty `application_id`, `what` "both" means a foreign allocation; otherwise the key or the UUID
    alone identifies the ask or allocation, whatever its application.
    """

    partition: str = "default"
    application_id: str = ""
    key: str = ""
    uuid: str = ""
    termination: Termination = Termination.STOPPED_BY_RM
    message: str = ""
    what: str = "both"  # both | allocation | ask

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


@cython.freelist(1024)
@cython.no_gc
@cython.cclass
@dataclass
class Released:
    """An allocation that has ended or that the resource manager must end. `ask`: it is an ask (first interface)."""

    key: str
    application_id: str
    termination: Termination
    message: str = ""
    partition: str = "default"
    uuid: str = ""
    ask: cython.bint = False
