"""Attempts to have the claims of a pod that has a node get what was decided for them there: volumes, devices or both.

The objects say how far an attempt is, so a process that is killed between two writes and started again goes on. What was written
for an attempt that is over has no effect: each write names its attempt, and is not sent once that one has ended.
"""

from __future__ import annotations

from typing import Final

import msgspec

from licorne.kube.pods.storage import ClaimKey

from .commands import names_of
from .records import PodRecord

RELEASE: Final = 0
"""The number of no attempt: that of writes which take back what is reserved for a pod."""
TIMEOUT_S: Final = 600.0
"""How long a pod waits for its claims, unless `service.volumeBindTimeout` says otherwise."""


class ClaimAttempt(msgspec.Struct):
    """An attempt to have the claims of a pod get volumes and devices on `node`.

    `names`: namespace, name and UID of the pod; `number`: that of the attempt, RELEASE once the claims have all.
    `chosen`: of each PersistentVolumeClaim the volume that was chosen, "" if one is made; `uids`: its UID; `selected`: those that
    have been seen with the node of the pod; if one loses it, the provisioner cannot make the volume there.
    `devices`: of each ResourceClaim its UID, "" of one that is not made yet. `told`: the status of the pod has been written, which
    names the claim for its extended resources.
    """

    names: tuple[str, str, str]
    node: str
    number: int
    chosen: dict[ClaimKey, str] = {}
    uids: dict[ClaimKey, str] = {}
    selected: set[ClaimKey] = set()
    devices: dict[ClaimKey, str] = {}
    told: bool = False


class ClaimAttempts:
    """The attempts that are under way or have succeeded. `timeout_s`: how long one may take."""

    def __init__(self) -> None:
        self._number = RELEASE
        self.of_pod: dict[str, ClaimAttempt] = {}
        """By the UID of a pod."""
        self.timeout_s = TIMEOUT_S

    def begin(self, record: PodRecord) -> ClaimAttempt:
        """Begin an attempt for the node of a pod."""
        self._number += 1
        made = self.of_pod[record.uid] = ClaimAttempt(names_of(record.pod), record.node, self._number)
        return made

    def is_current(self, uid: str, number: int) -> bool:
        """Return whether the claims of a pod are still to get what was decided by this attempt."""
        known = self.of_pod.get(uid)
        return known is not None and known.number == number
