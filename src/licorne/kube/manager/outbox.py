"""What the manager tells: messages to the scheduler in process, and commands for the API server."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from licorne.core.api import SchedulerAPI
from licorne.core.incidents import describe
from licorne.core.partition import Partition
from licorne.kube.objects import Pod
from licorne.kube.pods.work import Note
from licorne.si.constants import DEFAULT_PARTITION, NODE_PARTITION
from licorne.si.messages import Allocation, Input, NodeUpdate, Release, Termination
from licorne.si.partitions import qualified_partition

from .commands import AnyCommand, Bind, PostEvent, names_of

ASKS_A_CALL = 100
"""The most asks in one call of the scheduler. Where each has constraints of its own, 5,000 nodes make that two seconds."""


class SharedFaultError(Exception):
    """An exception, its cause, in what concerns more than the pod that is looked at: the process must not go on."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"telling the scheduler failed: {describe(cause)}")


@dataclass(slots=True, eq=False, repr=False)
class Outbox:
    """Commands in their order, and asks and releases of which the scheduler is told some at a time.

    Parameters:
        api: the scheduler, which hands its messages to `Manager.decisions`, and in which `rm_id` is registered with that as
            its callback.
        rm_id: the id of the resource manager; it may be set later, before anything is told.
        now_s: returns the time in seconds since 1970, with which ages of pods are compared.
        awake: called now and then while much is worked off in one go: the process does not stand still.
        changed: called when the scheduler is told of asks and releases, because it may then decide something, and when the
            manager is told that a pod was not bound, or is due to be asked for again.
        warn: told in a sentence what somebody should look at, with the exception that was raised, if one was.
    """

    api: SchedulerAPI
    rm_id: str = ""
    now_s: Callable[[], float] = lambda: 0.0
    awake: Callable[[], None] = lambda: None
    changed: Callable[[], None] = lambda: None
    warn: Callable[[str, Exception | None], None] = lambda *_: None
    commands: list[AnyCommand] = field(default_factory=list, init=False)
    asks: dict[str, Allocation] = field(default_factory=dict, init=False)
    """Asks and allocations that were not sent to the scheduler yet, by key, so that one whose pod is gone can be taken back."""
    releases: list[Release] = field(default_factory=list, init=False)
    """Releases that were not sent to the scheduler yet."""

    @property
    def partition(self) -> Partition:
        """The partition of the scheduler in which all pods are."""
        return self.api.cluster.partition(self.rm_id)

    # -- to the API server --------------------------------------------------------------------------------------

    def post_event(self, pod: Pod, note: Note, related: Pod | None = None) -> None:
        """Post an event about a pod; `related` is another pod that has to do with it."""
        about = None if related is None else names_of(related)
        said = PostEvent("Pod", *names_of(pod), note.reason, note.action, note.text, note.warning, about)
        self.commands.append(said)

    def withdraw_bindings(self, lost: Callable[[Bind], bool]) -> list[Bind]:
        """Take back bindings that were decided and not given out, and return them."""
        withdrawn = [one for one in self.commands if isinstance(one, Bind) and lost(one)]
        if withdrawn:
            self.commands = [one for one in self.commands if one not in withdrawn]
        return withdrawn

    # -- to the scheduler ---------------------------------------------------------------------------------------

    def ask(self, ask: Allocation) -> None:
        """Tell the scheduler of an ask or an allocation soon, in place of one with the same key that it was not told of."""
        self.asks[ask.key] = ask

    def release(self, application_id: str, uid: str, why: Termination = Termination.STOPPED_BY_RM) -> None:
        """Release a pod's ask or allocation; an ask of the pod that was not sent yet is dropped."""
        self.asks.pop(uid, None)
        self.releases.append(Release(application_id=application_id, key=uid, termination=why))

    @property
    def is_behind(self) -> bool:
        """Whether more asks wait to be told than the scheduler is given in one call (`ASKS_A_CALL`)."""
        return len(self.asks) > ASKS_A_CALL

    def send_some(self) -> None:
        """Tell the scheduler of pods that are new, changed or gone, in one call."""
        again = any(one.key in self.asks for one in self.releases)
        # The scheduler takes asks before releases, so a pod that is asked for again is released in a call before.
        keys = [] if again else list(itertools.islice(self.asks, ASKS_A_CALL))
        asks = [self.asks.pop(key) for key in keys]
        releases: list[Release] = []
        if again or not self.asks:
            releases, self.releases = self.releases, releases
        if asks or releases:
            self.changed()
            self.send(*asks, *releases)
            self.awake()

    def send(self, *messages: Input) -> None:
        """Tell the scheduler at once. Attributes of nodes name the partition with the resource manager, as REST shows it.

        Raises:
            SharedFaultError: an exception was raised.
        """
        for each in messages:
            if isinstance(each, NodeUpdate) and each.attributes is not None:
                each.attributes[NODE_PARTITION] = qualified_partition(DEFAULT_PARTITION, self.rm_id)
        try:
            self.api.submit(self.rm_id, messages)
        except Exception as error:
            raise SharedFaultError(error) from error
