"""Pods that the scheduler is to place no more: held until something has changed, failed, or, as placeholders, removed."""

from __future__ import annotations

from dataclasses import dataclass

from licorne.si.messages import Termination

from .claims import RELEASE, ClaimAttempts
from .commands import Evict, Fail, GiveUpClaims, names_of
from .devices import Devices
from .outbox import Outbox
from .records import PodRecord, Records
from .stages import COUNTED, PodEvent, Stage
from .volumes import Volumes


@dataclass(slots=True, eq=False, repr=False)
class Holding:
    """Withdraws the asks and the places of pods, and holds, fails or removes these."""

    _records: Records
    _outbox: Outbox
    attempts: ClaimAttempts
    volumes: Volumes
    devices: Devices

    def leave(self, record: PodRecord, why: Termination | None = None) -> None:
        """Undo what the stage of a pod stands for: an ask, a place, volumes and devices, a binding not given out, a wait for its node."""
        if record.stage is Stage.NODE_UNKNOWN:
            self._records.node_known(record.uid, record.node)
        elif record.stage is Stage.ASSUMED:
            self._outbox.withdraw_bindings(lambda command: command.uid == record.uid)
        self.give_back(record.uid)
        if record.stage is Stage.ASKED:  # what confirms the end of an allocation, such as TIMEOUT, leaves an ask
            why = None
        if record.stage in (Stage.ASKED, *COUNTED):
            self._outbox.release(record.application.id, record.uid, why or Termination.STOPPED_BY_RM)

    def reserve(self, record: PodRecord) -> str:
        """Have the claims of a pod get their volumes and devices on its node; return why they cannot, or ""."""
        attempt = self.attempts.begin(record)
        why = self.volumes.reserve(record, attempt) if record.work.volumes.waiting else ""
        if record.work.devices.claims and not why:
            why = self.devices.reserve(record, attempt)
        if not why:
            late = GiveUpClaims(record.uid, record.node, attempt.number, self.attempts.timeout_s)
            self._outbox.commands.append(late)
        return why

    def awaits(self, uid: str, number: int) -> bool:
        """Return whether a write for the claims of a pod is still wanted: its attempt goes on, or what it wrote is taken back."""
        return self.devices.is_releasing(uid) if number == RELEASE else self.attempts.is_current(uid, number)

    def give_back(self, uid: str) -> None:
        """Release what was decided of the claims of a pod."""
        self.volumes.give_back(uid)
        self.devices.give_back(uid)
        self.attempts.of_pod.pop(uid, None)

    def hold(self, record: PodRecord) -> None:
        """Withdraw a pod's ask, and hold the pod until it, its application or its gang changes."""
        self.leave(record)
        record.move(PodEvent.HOLD)

    def fail(self, record: PodRecord, reason: str, message: str) -> None:
        """Have a pod without a node failed, because its application was refused, or fails."""
        record.move(PodEvent.FAIL)
        record.failure = ""
        self._outbox.commands.append(Fail(*names_of(record.pod), reason, message))

    def remove_placeholder(self, record: PodRecord, why: str) -> None:
        """Have a placeholder deleted that is of no use any more; one that waits is not asked for any longer."""
        if record.leaving is None:
            record.leaving = Termination.STOPPED_BY_RM
            if record.stage is Stage.ASKED:
                self.hold(record)
            self._outbox.commands.append(Evict(*names_of(record.pod), "Unneeded", why, disruption=False))
