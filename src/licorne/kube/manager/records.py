"""What the manager remembers of each pod and each application."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from licorne.core.base.states import next_state
from licorne.kube.objects import Pod
from licorne.kube.pods import Gang, Work, has_generated_id
from licorne.si import v19

from .stages import STAGES, PodEvent, Stage


class Asked(NamedTuple):
    """What the ask of a pod says of where it may run, and what it takes.

    `constraints`: its node constraints, as JSON; `node`: the node that it requires; "": none.
    """

    constraints: str = ""
    node: str = ""
    resource: Mapping[str, int] | None = None


class PodRecord:
    """A pod that is managed here."""

    __slots__ = (
        "_stage",
        "application",
        "asked",
        "awaits_class",
        "failure",
        "failures",
        "leaving",
        "node",
        "pod",
        "posted",
        "told",
        "told_s",
        "work",
    )

    def __init__(self, pod: Pod, work: Work, application: ApplicationRecord) -> None:
        self.pod = pod
        self.work = work
        self.application = application
        self._stage = Stage.HELD
        self.asked = Asked()
        """What was asked for last, be it told to the scheduler already or not."""
        self.awaits_class = False
        """Whether the pod has come before its priority class, by another watch, and waits a moment for that."""
        self.node = ""
        """The node of a pod from ASSUMED on."""
        self.leaving: v19.TerminationType | None = None
        """Why the scheduler wants the pod gone, if it does; its end is confirmed with the same type."""
        self.failures = 0
        """How often it could not be bound."""
        self.failure = ""
        """Why the pod could not be bound the last time, or why it is refused or set aside; "" if it fails with its application."""
        self.told = ""
        """Which rules keep it, as its condition was last told (`Verdict.key`)."""
        self.told_s = -math.inf
        """When its condition was last told, in seconds since 1970."""
        self.posted: dict[str, float] = {}
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


class ForeignRecord:
    """A pod of another scheduler that takes room on a node."""

    __slots__ = ("known", "pod", "resources", "with_ports")

    def __init__(self, pod: Pod, resources: dict[str, int]) -> None:
        self.pod = pod
        self.resources = resources
        self.with_ports = True
        """Whether its host ports count: not if the scheduler has refused it because of them."""
        self.known = False
        """Whether the scheduler knows it: not while its node is unknown."""


class GangStage(Enum):
    """Where an application with task groups is on its way. Its pods wait until the room is reserved."""

    NONE = "none"
    RESERVING = "reserving"
    RUNNING = "running"


class Creation:
    """A placeholder that is being created, until it is seen or nobody has seen it in time.

    - `group`: its task group; `owner`: the UID of the pod that it belongs to.
    - `told_s`: when the API server has said that it is there, by a clock that never goes back; None: not yet.
    - `taken`: whether another pod was there under its name.
    """

    __slots__ = ("group", "owner", "taken", "told_s")

    def __init__(self, group: str, owner: str) -> None:
        self.group = group
        self.owner = owner
        self.told_s: float | None = None
        self.taken = False


class ApplicationRecord:
    """An application: the pods that have the same application id."""

    __slots__ = (
        "atomic",
        "creations",
        "gang",
        "gang_stage",
        "given_up",
        "id",
        "not_created",
        "noted",
        "originator",
        "pods",
        "refusal",
        "reserved_for",
        "spent",
        "state",
        "undecided",
    )

    def __init__(self, application_id: str) -> None:
        self.id = application_id
        self.gang: Gang | None = None
        self.gang_stage = GangStage.NONE
        self.atomic = False
        """Whether its gang is placed without placeholders."""
        self.given_up = False
        """Whether its gang goes on without its room, or has failed, so that placeholders that come later are of no use."""
        self.undecided: PodRecord | None = None
        """A member that licorne cannot ask for, and without which the gang would not be whole: no room is reserved."""
        self.not_created = ""
        """Why the API server has refused a placeholder of a Hard gang, until it takes one; "" if it has not."""
        self.originator = ""
        """The UID of the pod that started the application, such as a driver: the first one that is no placeholder.

        Placeholders belong to it. "": not known.
        """
        self.reserved_for = ""
        """The UID of the pod to which the placeholders belong that were created last."""
        self.creations: dict[str, Creation] = {}
        """Placeholder pods that the API server is asked to create, by name, until they are seen or should have been."""
        self.spent: set[str] = set()
        """Names that its next placeholders do not get: pods that have ended may still be there under them."""
        self.pods: dict[str, PodRecord] = {}
        self.noted: set[str] = set()
        """The events that its pods get only once together, and have got."""
        self.state = ""
        """As the scheduler said last; "" while it does not know the application."""
        self.refusal = ""
        """Why the scheduler refused it the last time."""

    @property
    def is_failing(self) -> bool:
        """Whether the scheduler fails the application, and waits for the end of what it has placed of it."""
        return self.state == "Failing"

    @property
    def is_known(self) -> bool:
        """Whether the scheduler knows the application, and the application has not ended."""
        return self.state not in ("", "Completed", "Failed", "Expired", "Rejected")
