"""What the manager remembers: of each pod, of each application, and of the cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from licorne.core.base.states import next_state
from licorne.kube.objects import Namespace, Node, Pod, PodGroup, PriorityClass
from licorne.kube.pods.work import Gang, Work, has_generated_id
from licorne.si.messages import Allocation, Termination

from .stages import STAGES, PodEvent, Stage


@dataclass(slots=True, eq=False, repr=False)
class PodRecord:
    """What licorne knows and has told of one pod that it schedules, from its first sight to its end."""

    pod: Pod
    work: Work
    application: ApplicationRecord
    _stage: Stage = field(default=Stage.HELD, init=False)
    asked: Allocation | None = None
    """What was asked for last, be it told to the scheduler already or not."""
    awaits_class: bool = False
    """Whether the pod has come before its priority class, by another watch, and waits a moment for that."""
    node: str = ""
    """The node of a pod from ASSUMED on."""
    leaving: Termination | None = None
    """Why the scheduler wants the pod gone, if it does; its end is confirmed with the same type."""
    behind: str = ""
    """The UID of a pod with which it has claims or volumes in common, and which is asked for first; "": none."""
    failures: int = 0
    """How often it could not be bound."""
    failure: str = ""
    """Why the pod could not be bound the last time, or why it is refused or set aside; "" if it fails with its application."""
    told: str = ""
    """Which rules keep it, as its condition was last told (`Verdict.key`)."""
    told_s: float = -math.inf
    """When its condition was last told, in seconds since 1970."""
    posted: dict[str, float] = field(default_factory=dict)
    """When which reason was posted as an event last, in seconds since 1970."""

    @property
    def stage(self) -> Stage:
        """Where the pod is on its way."""
        return self._stage

    def move(self, event: PodEvent) -> None:
        """Move on to the stage that follows after an event. Raises a RuntimeError where the table has none."""
        after = next_state(STAGES, self._stage, event)
        if after is None:
            raise RuntimeError(f"pod {self.uid} {event} while it is {self._stage}")
        self._stage = after

    @property
    def is_failed(self) -> bool:
        """Whether the pod was failed with its application: its phase is being written, or not seen yet."""
        return self.stage is Stage.REFUSED and not self.failure

    @property
    def uid(self) -> str:
        """The pod's UID, which is the key of its ask and its allocation."""
        return self.pod.metadata.uid

    @property
    def is_driver(self) -> bool:
        """Whether the pod is evicted after the others of its application: the originator of one that has an id of its own."""
        return self.uid == self.application.originator and not has_generated_id(self.pod)


def as_creator(record: PodRecord) -> tuple[bool, bool, str]:
    """Return the order in which pods say what their application is: the least one does."""
    work = record.work
    return bool(work.fault), work.ask.placeholder, record.pod.metadata.creation_timestamp or ""


@dataclass(slots=True, eq=False, repr=False)
class ForeignRecord:
    """A pod of another scheduler that takes room on a node."""

    pod: Pod
    told: Allocation
    """As the scheduler is told of it, or will be when its node is known."""
    whole: bool = True
    """Whether its host ports, its labels and its demands of other pods count: not if the scheduler has refused it with them."""
    known: bool = False
    """Whether the scheduler knows it: not while its node is unknown."""


class GangStage(Enum):
    """Where an application with task groups is on its way. Its pods wait until the room is reserved."""

    NONE = "none"
    RESERVING = "reserving"
    RUNNING = "running"


@dataclass(slots=True, eq=False, repr=False)
class Creation:
    """A placeholder that is being created, until it is seen or nobody has seen it in time.

    - `group`: its task group; `owner`: the UID of the pod that it belongs to.
    - `told_s`: when the API server has said that it is there, by a clock that never goes back; None: not yet.
    - `taken`: whether another pod was there under its name.
    """

    group: str
    owner: str
    told_s: float | None = None
    taken: bool = False


@dataclass(slots=True, eq=False, repr=False)
class ApplicationRecord:
    """An application: the pods that have the same application id."""

    id: str
    gang: Gang | None = None
    gang_stage: GangStage = GangStage.NONE
    atomic: bool = False
    """Whether its gang is placed without placeholders."""
    given_up: bool = False
    """Whether its gang goes on without its room, or has failed, so that placeholders that come later are of no use."""
    undecided: PodRecord | None = None
    """A member that licorne cannot ask for, and without which the gang would not be whole: no room is reserved."""
    not_created: str = ""
    """Why the API server has refused a placeholder of a Hard gang, until it takes one; "" if it has not."""
    originator: str = ""
    """The UID of the pod that started the application, such as a driver: the first one that is no placeholder.

    Placeholders belong to it. "": not known.
    """
    reserved_for: str = ""
    """The UID of the pod to which the placeholders belong that were created last."""
    creations: dict[str, Creation] = field(default_factory=dict)
    """Placeholder pods that the API server is asked to create, by name, until they are seen or should have been."""
    spent: set[str] = field(default_factory=set)
    """Names that its next placeholders do not get: pods that have ended may still be there under them."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    noted: set[str] = field(default_factory=set)
    """The events that its pods get only once together, and have got."""
    state: str = ""
    """As the scheduler said last; "" while it does not know the application."""
    refusal: str = ""
    """Why the scheduler refused it the last time."""

    @property
    def is_failing(self) -> bool:
        """Whether the scheduler fails the application, and waits for the end of what it has placed of it."""
        return self.state == "Failing"

    @property
    def is_known(self) -> bool:
        """Whether the scheduler knows the application, and the application has not ended."""
        return self.state not in ("", "Completed", "Failed", "Expired", "Rejected")


@dataclass(slots=True, eq=False, repr=False)
class Records:
    """What is known of a cluster. Pods are known by their UIDs, other objects by their names."""

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    classes: dict[str, PriorityClass] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    groups: dict[tuple[str, str], PodGroup] = field(default_factory=dict)
    """The PodGroup objects of the cluster, by namespace and name."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    foreign: dict[str, ForeignRecord] = field(default_factory=dict)
    applications: dict[str, ApplicationRecord] = field(default_factory=dict)
    awaiting_node: dict[str, dict[str, None]] = field(default_factory=dict)
    """By the name of a node that the scheduler does not know: UIDs of its pods."""

    def await_node(self, uid: str, node: str) -> None:
        """Note that a pod's node is unknown."""
        self.awaiting_node.setdefault(node, {})[uid] = None

    def node_known(self, uid: str, node: str) -> None:
        """Note that a pod's node is known, or does not matter any more."""
        waiting = self.awaiting_node.get(node)
        if waiting is not None and waiting.pop(uid, 0) is None and not waiting:
            del self.awaiting_node[node]

    def is_gone(self, uid: str) -> bool:
        """Return whether the API server has said that a pod is gone."""
        return uid not in self.pods and uid not in self.foreign

    def node_of(self, uid: str) -> str:
        """Return the node of a pod, as the API server has shown it; "": none."""
        record = self.pods.get(uid) or self.foreign.get(uid)
        return "" if record is None else record.pod.spec.node_name
