"""Applications: made known to the scheduler with their first pod, and forgotten when it has forgotten them.

A queue that was made for a namespace takes its quota from applications, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from licorne.kube.pods.namespaces import namespace_tags
from licorne.si.constants import NOBODY_USER, TAG_CREATE_FORCE, TAG_NAMESPACE
from licorne.si.messages import AddApplication, RemoveApplication

from .gangs import Gangs
from .holding import Holding
from .outbox import Outbox
from .records import ApplicationRecord, PodRecord, Records, as_creator
from .stages import WAITING, Stage


@dataclass(slots=True, eq=False, repr=False)
class Applications:
    """The applications of all pods. What `flush` tells, the scheduler knows before it is told of an application."""

    _records: Records
    _outbox: Outbox
    _holding: Holding
    _gangs: Gangs
    _flush: Callable[[], None]
    has_ended: dict[ApplicationRecord, None] = field(default_factory=dict, init=False)
    """Those whose pods may begin anew, or that may be forgotten, when all that has happened is known."""

    def announce(self, record: PodRecord) -> bool:
        """Make the pod's application known to the scheduler if it is not; return False if it is refused."""
        application = record.application
        if application.is_known:
            return True
        self._flush()
        first = _creator(record)
        message = self._gangs.announcement(application, first.work)
        if record.node:  # what runs must count, though the pod that says what the application is may wait
            message = msgspec.structs.replace(message, tags=message.tags | {TAG_CREATE_FORCE: "true"})
        namespace = self._records.namespaces.get(first.pod.metadata.namespace)
        if namespace is not None:
            message = msgspec.structs.replace(message, tags=message.tags | namespace_tags(namespace))
        why = ""
        for attempt in _attempts(message) if record.node else [message]:
            application.state = "New"
            self._outbox.send(attempt)
            if application.is_known:
                if why:
                    self._outbox.warn(f"application {application.id} runs, and counts all the same: {why}", None)
                self._gangs.begin(application, first)
                return True
            why = application.refusal
        for one in application.pods.values():
            if one.stage in WAITING and not (one.node or one.pod.spec.node_name):
                self._holding.fail(one, "ApplicationRejected", application.refusal)
        return False

    def forget_unused(self, application: ApplicationRecord) -> None:
        """Forget an application that has no pods, if the scheduler does not know it or was never asked for one of them."""
        if application.state == "New" and not application.pods:
            self._remove(application)
        self.forget_if_done(application)

    def _remove(self, application: ApplicationRecord) -> None:
        """Have the scheduler forget an application without pods to which no ask has ever come.

        It completes applications when their last ask or allocation ends, so this one it would keep, and a later pod with
        the same id would be in the queue of the one before.
        """
        self._flush()
        self._outbox.send(RemoveApplication(application_id=application.id))
        application.state = ""

    def ended(self, application: ApplicationRecord) -> None:
        """Take in a new state of an application: pods that wait begin anew if the scheduler has forgotten it."""
        if not application.is_known:
            self.has_ended[application] = None
        self.forget_if_done(application)

    def forget_if_done(self, application: ApplicationRecord) -> None:
        """Forget an application without pods that the scheduler does not know, and no later one with the same id."""
        if (
            not application.is_known
            and not application.pods
            and self._records.applications.get(application.id) is application
        ):
            del self._records.applications[application.id]

    def tell_of_quota(self, namespace: str, tags: dict[str, str]) -> None:
        """Have the queues that were made for a namespace get its new quota.

        The scheduler takes a quota from each application that is added to such a queue. So one without pods is added to each
        of them, like one that is there, and removed at once. One that is there may have no pods, and get new ones.
        """
        known = [one for one in self._outbox.partition.applications.values() if not one.queue.managed]
        queues = {one.queue.path: one for one in known if one.tags.get(TAG_NAMESPACE) == namespace}
        for number, (path, like) in enumerate(queues.items()):
            new = AddApplication(
                application_id=f"licorne-quota-{namespace}-{number}",
                queue=path,
                user=like.user,
                groups=like.groups,
                tags={TAG_NAMESPACE: namespace, **tags},
            )
            self._outbox.send(new)
            self._outbox.send(RemoveApplication(application_id=new.application_id))
        self._outbox.changed()


def _creator(record: PodRecord) -> PodRecord:
    """Return the pod whose keys say what an application is that must be made known for this one.

    It is the oldest that runs or may still run, even if it must wait itself. One that has a fault, such as a queue's name
    that is too long, says it only where there is no other, because it would have the others refused. So does a placeholder:
    the user that it names, if any, is the scheduler that has created it, as an admission controller writes it.
    """
    able = (
        one
        for one in record.application.pods.values()
        if one is record
        or (one.stage is not Stage.REFUSED and (one.pod.spec.node_name or not one.pod.metadata.deletion_timestamp))
    )
    return min(able, key=as_creator)


def _attempts(message: AddApplication) -> list[AddApplication]:
    """Return what may make an application of running pods known, to be sent until the scheduler accepts one.

    Their amounts must count, even if no queue can have the name that they give, the queue does not admit the user, or the
    user's name is invalid. So first the queue is left out, and then they belong to nobody.
    """
    owners = dict.fromkeys([(message.user, message.groups), (NOBODY_USER, ())])
    queues = dict.fromkeys([message.queue, ""])
    return [
        msgspec.structs.replace(message, queue=queue, user=user, groups=groups)
        for user, groups in owners
        for queue in queues
    ]
