"""What the manager wants done at the API server. It does nothing itself; whoever runs it carries these out in order."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from licorne.kube.objects import Pod


def names_of(pod: Pod) -> tuple[str, str, str]:
    """Return the namespace, the name and the UID of a pod, which say which pod a command means."""
    meta = pod.metadata
    return meta.namespace, meta.name, meta.uid


class Command(msgspec.Struct, frozen=True, gc=False):
    """Base of the commands. Names and UID say which pod is meant; a pod of the same name with another UID is not."""

    namespace: str
    name: str
    uid: str


class Bind(Command, frozen=True, gc=False):
    """Bind the pod to the node that was decided. The outcome is told to `PodLifecycle.bound` or `PodLifecycle.not_bound`."""

    node: str


class Evict(Command, frozen=True, gc=False):
    """Delete the pod, with its grace period, after the condition `DisruptionTarget` says why."""

    reason: str
    message: str
    disruption: bool = True
    """Whether the condition is set: for victims, not for placeholders that are no longer needed."""


class Fail(Command, frozen=True, gc=False):
    """Set the phase of the pod to Failed."""

    reason: str
    message: str


class SetCondition(Command, frozen=True, gc=False):
    """Set the condition `PodScheduled` of a pod that waits to False, if the pod still has this version.

    So a condition never arrives after a binding. When it was not written, `Waiting.not_told` is called.
    """

    reason: str
    message: str
    version: str
    nominated: str | None = None
    """What `nominatedNodeName` becomes; "": it is cleared; None: it stays."""


class SetGroupCondition(Command, frozen=True, gc=False):
    """Set the condition `PodGroupInitiallyScheduled` of a pod group, if the group still has this version.

    When it was not written, `PodGroups.not_told` is called.
    """

    reason: str
    message: str
    version: str
    generation: int
    status: bool
    since: str
    """Since when the status is so, as it was told before; "": it is new."""


class CreatePod(msgspec.Struct, frozen=True):
    """Create a placeholder, if `Gangs.is_wanted` at that time. A failure is told to `Gangs.not_created`.

    `owner` is the UID of the pod that it belongs to.
    """

    namespace: str
    application_id: str
    group: str
    owner: str
    body: dict[str, Any]


class PostEvent(msgspec.Struct, frozen=True, gc=False):
    """Post an event about an object. One that says the same as one before raises its count; too many are left out."""

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    action: str
    note: str
    warning: bool = False
    related: tuple[str, str, str] | None = None
    """Namespace, name and UID of another pod that has to do with it."""


class AskAgain(msgspec.Struct, frozen=True, gc=False):
    """Call `PodLifecycle.ask_again` after some time, for a pod that could not be bound, or whose priority class is not known."""

    uid: str
    after_s: float


CLAIM_STATUS: Final = "extendedResourceClaimStatus"
DROPPED: Final = (
    f"the API server does not keep `{CLAIM_STATUS}` of pods: its feature gate DRAExtendedResource is off, "
    "as it is by default before Kubernetes 1.36"
)


class WriteClaim(Command, frozen=True, gc=False):
    """Write a claim, a volume or the status of a pod, so that a claim of the pod gets its volume or devices, or gives them back.

    `path` is that of the object on the API server, `body` what is sent, `number` that of the attempt (`ClaimAttempt`). It is
    sent only while that is wanted (`Holding.awaits`). A refusal is told to `PodLifecycle.give_up_claims`.
    `watched`: not if the object has changed, as the manager goes on when it is shown that.
    `method`: `PATCH` the object, `POST` it to its collection, or `DELETE` it.
    `kept`: a field that the object must have in the answer; where the API server drops it, that is a refusal, `DROPPED`.
    """

    number: int
    path: str
    body: dict[str, Any]
    watched: bool = False
    method: str = "PATCH"
    kept: str = ""


class GiveUpClaims(msgspec.Struct, frozen=True, gc=False):
    """Call `PodLifecycle.give_up_claims` after some time: an attempt for the claims of a pod that is not over by then is given up."""

    uid: str
    node: str
    number: int
    after_s: float


AnyCommand = (
    AskAgain
    | GiveUpClaims
    | WriteClaim
    | Bind
    | Evict
    | Fail
    | SetCondition
    | SetGroupCondition
    | CreatePod
    | PostEvent
)
