"""Native pod groups: what follows when one comes, changes or goes, and what is told of it (`licorne.kube.pods.groups`).

The condition `PodGroupInitiallyScheduled` is written as conditions of pods are: False with what its first pod that waits was
told, and again when that was told something else; True when its pods have nodes. True stays, whatever becomes of the pods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Final

from licorne.kube.objects import PodGroup
from licorne.kube.objects.groups import INITIALLY_SCHEDULED, GroupCondition
from licorne.kube.pods.groups import group_application, group_tags
from licorne.kube.pods.work import PodContext
from licorne.si.messages import ChangeApplication

from .commands import PostEvent, SetGroupCondition
from .outbox import Outbox
from .records import ApplicationRecord, PodRecord, Records, as_creator
from .stages import PLACED
from .waiting import AGAIN_S, CONDITIONS_MAX, ERROR, LOOKED_AT_MAX, UNSCHEDULABLE, Verdict, is_within, told_why

SCHEDULED: Final = "Scheduled"


class _Open:
    """A group that has not been scheduled yet, as far as has been told."""

    __slots__ = ("told", "told_s")

    def __init__(self) -> None:
        self.told = ""
        self.told_s = -math.inf


class PodGroups:
    """The native pod groups of a cluster.

    Parameters:
        flush: tells the scheduler what it was not told yet.
        read_anew: reads a pod again whose group is another than before.
    """

    def __init__(
        self,
        records: Records,
        outbox: Outbox,
        context: PodContext,
        flush: Callable[[], None],
        read_anew: Callable[[PodRecord], None],
    ) -> None:
        self._records = records
        self._outbox = outbox
        self._context = context
        self._flush = flush
        self._read_anew = read_anew
        self._open: dict[tuple[str, str], _Open] = {}
        self._names: dict[str, tuple[str, str]] = {}
        """By the UID of an open group, its name."""

    # -- what happens -------------------------------------------------------------------------------------------

    def seen(self, group: PodGroup) -> None:
        """Take in a group that is new or has changed."""
        name = group.key
        before = self._records.groups.get(name)
        self._records.groups[name] = group
        if before is not None and before.metadata.uid != group.metadata.uid:
            self._close(before)
        known = _condition(group)
        if known is not None and known.status == "True":
            self._close(group)
        else:
            self._open.setdefault(name, _Open())
            self._names[group.metadata.uid] = name
        if before is None or (before.metadata.uid, before.spec) != (group.metadata.uid, group.spec):
            self._changed(name, group)

    def gone(self, group: PodGroup) -> None:
        """Forget a group. Its pods that run go on; those that wait do so until a group of this name comes."""
        name = group.key
        known = self._records.groups.pop(name, None)
        if known is not None:
            self._close(known)
            self._changed(name, None)

    def _close(self, group: PodGroup) -> None:
        """Note that there is nothing more to tell a group."""
        self._open.pop(group.key, None)
        self._names.pop(group.metadata.uid, None)

    def _changed(self, name: tuple[str, str], group: PodGroup | None) -> None:
        application = self._application(name)
        if application is None:
            return
        if group is not None and application.is_known:
            self._flush()
            tags = group_tags(group, gangs=self._context.settings.gangs)
            self._outbox.send(ChangeApplication(application_id=application.id, tags=tags))
            self._outbox.changed()
        # The one that says what the application is comes first, since each may have the scheduler told of it.
        for record in sorted(application.pods.values(), key=as_creator):
            self._read_anew(record)

    def _application(self, name: tuple[str, str]) -> ApplicationRecord | None:
        return self._records.applications.get(group_application(*name))

    # -- what is told -------------------------------------------------------------------------------------------

    def review(self) -> int:
        """Tell groups whether they are scheduled, and return how many were told; to be called about once a second."""
        now = self._outbox.now_s()
        told = 0
        for name in list(islice(self._open, LOOKED_AT_MAX)):
            if told >= CONDITIONS_MAX:
                break  # the others come first in the next review
            self._open[name] = one = self._open.pop(name)
            application = self._application(name)
            if application is not None and application.pods:
                told += self._look(self._records.groups[name], one, application, now)
        return told

    def _look(self, group: PodGroup, one: _Open, application: ApplicationRecord, now: float) -> bool:
        placed = sum(record.stage in PLACED for record in application.pods.values())
        if not one.told and is_within(now, one.told_s, AGAIN_S):
            return False  # what it was told was refused
        if placed >= group.needed:
            return self._tell(
                group, one, Verdict(SCHEDULED, f"{placed} pods of the group have a node.", SCHEDULED), now
            )
        if is_within(now, one.told_s, AGAIN_S):
            return False
        waiting = (record.pod for record in application.pods.values() if record.stage not in PLACED)
        why = next((found for pod in waiting if (found := told_why(pod)) is not None), None)
        if why is None:
            return False
        return self._tell(group, one, Verdict(ERROR if why.reason == ERROR else UNSCHEDULABLE, why.message), now)

    def _tell(self, group: PodGroup, one: _Open, verdict: Verdict, now: float) -> bool:
        if one.told == verdict.key:
            return False
        one.told, one.told_s = verdict.key, now
        meta, status = group.metadata, verdict.reason == SCHEDULED
        known = _condition(group)
        same = known is not None and known.status == str(status)
        if known is not None and same and (known.reason, known.message) == (verdict.reason, verdict.message):
            return False  # told before this process began
        since = (known.last_transition_time or "") if known is not None and same else ""
        names = (meta.namespace, meta.name, meta.uid)
        self._outbox.commands.append(
            SetGroupCondition(
                *names, verdict.reason, verdict.message, meta.resource_version, meta.generation, status, since
            )
        )
        reason = SCHEDULED if status else "FailedScheduling"
        self._outbox.commands.append(PostEvent("PodGroup", *names, reason, reason, verdict.message, warning=not status))
        return True

    def not_told(self, uid: str) -> None:
        """Note that a condition was not written, because the group had changed: it is looked at again."""
        name = self._names.get(uid)
        if name is not None:
            self._open[name].told = ""


def _condition(group: PodGroup) -> GroupCondition | None:
    return next((one for one in group.status.conditions or () if one.type == INITIALLY_SCHEDULED), None)
