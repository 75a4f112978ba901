"""The way of each pod from stage to stage: what follows from each change of a pod and from what became of its binding.

Nothing here reads a clock, waits, or talks to the API server, so each step can be tested by itself.

Two rules make it safe. A place is counted from the decision on, before the binding is sent, and given back only when
the API server says that the pod is gone, or that it was not bound. And a pod that the scheduler wants gone keeps its
place until the API server says that it is.

An exception that is raised for one pod, by a fault of licorne that this pod brings out, must neither stop the others nor end
the process, which would meet the pod again after each start. So such a pod is set aside: it counts if it runs, and waits
otherwise, and log and event say so. An exception in what concerns all of them ends the process: a new one reads everything
again, whereas this one would go on with records that the scheduler does not share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from licorne.core.incidents import describe
from licorne.kube.backoff import Backoff
from licorne.kube.objects import Pod
from licorne.kube.pods.work import (
    Note,
    PodContext,
    ask_with,
    asks_the_same,
    has_generated_id,
    in_application,
    is_managed,
    is_over,
    lacks_class,
    read_pod,
    unix_seconds,
    with_surroundings,
)
from licorne.si.constants import (
    TAG_ALLOCATION_CREATION_TIME,
    TAG_ENDING,
    TAG_NODE_CONSTRAINTS,
    TAG_POD,
    TAG_POD_TERMS,
    TAG_REQUIRED_NODE,
)
from licorne.si.messages import Allocation, Termination

from .applications import Applications
from .budgets import Budgets
from .claims import RELEASE, ClaimAttempts
from .commands import AskAgain, Bind, names_of
from .devices import Devices
from .foreign import ForeignPods
from .gangs import Gangs
from .holding import Holding
from .outbox import Outbox, SharedFaultError
from .pod_groups import PodGroups
from .records import ApplicationRecord, GangStage, PodRecord, Records
from .stages import COUNTED, ON_THE_WAY, PLACED, PodEvent, Stage
from .volumes import Volumes
from .waiting import Waiting

ASK_AGAIN_BACKOFF: Final = Backoff(first_s=1.0, longest_s=20.0)
"""How long a pod that could not be bound waits before it is asked for again: not as long as the scheduler keeps an application
of which nothing runs or waits (`COMPLETING_TIMEOUT_NS`), so that it need not begin anew."""
CLASS_WAIT_S = 1.0
"""How long a pod waits for its priority class at most. The class was there before the pod, but may be gone by now."""
CLASS_AGE_S = 60.0
"""A pod older than this, in seconds, does not wait for an unknown priority class: the class was deleted after the pod was created."""
PODS_A_BEAT = 1000
"""How many pods are read at the start between two calls of `Outbox.awake`, by which a watchdog knows that the process works."""
NOTED_MAX = 20
"""The most events about misspelled keys that the pods of an application get together."""

KEPT = (TAG_NODE_CONSTRAINTS, TAG_POD_TERMS)
"""Tags that an ask keeps when it is told again without them."""

T = TypeVar("T")
R = TypeVar("R")


class PodLifecycle:
    """The pods of a cluster, and what the scheduler knows of them.

    The fields of `context`, which says what pods mean besides themselves, may be set before anything is seen.
    """

    def __init__(self, records: Records, outbox: Outbox) -> None:
        self._records = records
        self._outbox = outbox
        self.attempts = ClaimAttempts()
        self.volumes = Volumes(records, outbox, self.attempts)
        self.devices = Devices(records, outbox, self.attempts, self.volumes.storage.where)
        self.context = PodContext(
            records.classes,
            records.namespaces,
            storage=self.volumes.storage,
            devices=self.devices.store,
            groups=records.groups,
        )
        self.foreign = ForeignPods(records, outbox, self.context)
        self.budgets = Budgets(records, outbox)
        self.scheduled_events = False
        """Whether an event is posted on each pod that is bound, as kube-scheduler does."""
        self.holding = Holding(records, outbox, self.attempts, self.volumes, self.devices)
        self.waiting = Waiting(records, outbox)
        self.gangs = Gangs(records, outbox, self.holding, self.release_held)
        self.applications = Applications(records, outbox, self.holding, self.gangs, self.flush)
        self.groups = PodGroups(
            records,
            outbox,
            self.context,
            self.flush,
            lambda record: self.run_isolated(record.pod, self._read_anew, record),
        )
        self.asides = 0
        """How many times a pod was set aside because of an exception."""

    def flush(self) -> None:
        """Tell the scheduler which pods are new, changed and gone.

        Raises:
            SharedFaultError: an exception was raised.
        """
        outbox = self._outbox
        try:
            self.budgets.send()
            while outbox.asks or outbox.releases:
                outbox.send_some()
        except SharedFaultError:
            raise
        except Exception as error:
            raise SharedFaultError(error) from error

    # -- pods that are shown ------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        """Take in a pod that is new or has changed."""
        if is_over(pod):
            self.pod_gone(pod)
        else:
            self.run_isolated(pod, self._seen, pod)

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.volumes.pod_seen(pod)
        self.devices.pod_seen(pod)
        if uid in self._records.foreign or not (uid in self._records.pods or is_managed(pod, self.context.settings)):
            self.foreign.seen(pod)
        elif uid in self._records.pods:
            self._changed(self._records.pods[uid], pod)
        elif (record := self._take(pod)) is not None:
            self._enter(record)

    def pods_read(self, pods: Iterable[Pod]) -> None:
        """Take in all pods that a process has read when it starts, in any order.

        All are known before the first one is placed. Those with a node are placed first, because what runs must count
        before anything is asked for; but the oldest pod of an application says what it is, and that one may wait while
        its placeholders have a node.
        """
        new: list[PodRecord] = []
        take = partial(self._take, read_at_start=True)
        for number, pod in enumerate(sorted(pods, key=_age)):
            if number % PODS_A_BEAT == 0:
                self._outbox.awake()
            if is_over(pod) or pod.metadata.uid in self._records.pods or not is_managed(pod, self.context.settings):
                self.pod_seen(pod)
            elif (record := self.run_isolated(pod, take, pod)) is not None:
                new.append(record)
        new.sort(key=lambda record: not record.pod.spec.node_name)
        for number, record in enumerate(new):
            if number % PODS_A_BEAT == 0:
                self._outbox.awake()
            if self._records.pods.get(record.uid) is record:  # else it has been set aside
                self.run_isolated(record.pod, self._enter, record)

    # -- pods for which an exception is raised --------------------------------------------------------------------

    def run_isolated(self, pod: Pod, step: Callable[[T], R], argument: T) -> R | None:
        """Call `step` with `argument`, which concerns this pod alone; where that raises, set the pod aside and return None."""
        try:
            return step(argument)
        except SharedFaultError:
            raise
        except Exception as error:  # noqa: BLE001  it may be any fault, and the other pods go on
            self._set_aside(pod, error)
            return None

    def _set_aside(self, pod: Pod, error: Exception) -> None:
        """Stop scheduling a pod because of an exception.

        One that runs counts as another scheduler's; one without a node waits until it is changed.

        A binding that was sent cannot be taken back, so such a pod keeps its place, and its node will be seen.
        """
        self.asides += 1
        meta = pod.metadata
        why = f"a fault of licorne: {describe(error)}"
        self._outbox.warn(f"pod {meta.namespace}/{meta.name} is set aside: {why}", error)
        record = self._records.pods.get(meta.uid)
        if record is not None:
            record.pod = pod
        if pod.spec.node_name:
            try:
                if record is not None:
                    self.count_as_foreign(record, why)
                else:
                    self.foreign.counted(pod, why)
            except Exception as again:  # noqa: BLE001  as above
                self._outbox.warn(f"pod {meta.namespace}/{meta.name} runs and is not counted", again)
        elif record is None:
            self._outbox.post_event(
                pod, Note("FailedScheduling", "FailedScheduling", f"The pod is not scheduled: {why}")
            )
        elif (
            not record.node
            or record.stage is Stage.AWAITS_CLAIMS
            or self._outbox.withdraw_bindings(lambda command: command.uid == meta.uid)
        ):
            self.holding.leave(record)
            record.move(PodEvent.SET_ASIDE)
            record.node, record.failure = "", why
            self.waiting.add(meta.uid)

    def pod_gone(self, pod: Pod) -> None:
        """Forget a pod that has ended, or is no longer there."""
        uid = pod.metadata.uid
        record = self._records.pods.pop(uid, None)
        evicted = record is not None and record.leaving is Termination.PREEMPTED_BY_SCHEDULER
        self.budgets.pod_gone(uid, evicted=evicted)
        self.waiting.forget(uid)
        self.volumes.pod_gone(uid)
        self.devices.pod_gone(pod)
        if self.foreign.gone(uid):
            return
        if record is None:
            return
        self.holding.leave(record, record.leaving)
        application = record.application
        del application.pods[uid]
        self.gangs.pod_gone(record)
        self.applications.forget_unused(application)

    # -- namespaces ---------------------------------------------------------------------------------------------

    def namespace_changed(self, name: str) -> None:
        """Tell the scheduler again of the pods of a namespace: its labels have changed, or the selectors of its workloads."""
        for record in list(self._records.pods.values()):
            if record.pod.metadata.namespace == name:
                self.run_isolated(record.pod, self._surroundings_changed, record)
        for foreign in list(self._records.foreign.values()):
            if foreign.pod.metadata.namespace == name:
                self.run_isolated(foreign.pod, self.foreign.ask_again, foreign)

    def _surroundings_changed(self, record: PodRecord) -> None:
        was, record.work = record.work, with_surroundings(record.work, record.pod, self.context)
        if record.work is was:
            return
        if record.stage is Stage.ASKED:
            self.ask(record)
        elif record.stage in COUNTED:
            self.report(record)

    # -- volumes ------------------------------------------------------------------------------------------------

    def read_anew(self) -> None:
        """Look again at the pods for whose claims something has changed; not within another step, which may be about one of them."""
        for uid in dict.fromkeys((*self.volumes.take_changed(), *self.devices.take_changed())):
            if (record := self._records.pods.get(uid)) is not None:
                self.run_isolated(record.pod, self._read_anew, record)
            elif (foreign := self._records.foreign.get(uid)) is not None:
                self.run_isolated(foreign.pod, self.foreign.ask_again, foreign)

    def _read_anew(self, record: PodRecord) -> None:
        """Look at a pod again for whose claims something has changed."""
        self._changed(record, record.pod, anew=True)
        self.devices.settle(record)
        if record.stage is Stage.AWAITS_CLAIMS:
            attempt = self.attempts.of_pod[record.uid]
            bound, why = self.volumes.bindings.look(attempt)
            given, why_not = (False, why) if why else self.devices.look(record, attempt)
            why = why or why_not
            if bound and given:
                self._outbox.commands.append(Bind(*names_of(record.pod), record.node))
                record.move(PodEvent.COMPLETE)
                self.volumes.give_back(record.uid)
                attempt.number = RELEASE  # its time is over; it is kept while it may have to be taken back
            elif why:
                self.claims_failed(record.uid, why)
        elif record.stage is Stage.HELD and self.volumes.turns.waits(record.uid):
            self.report_or_ask(record)

    def give_up_claims(self, uid: str, number: int, reason: str = "", path: str = "") -> None:
        """Release the place of a pod whose claims could not be written, at `path`, or did not get all in time, as `not_bound`."""
        if number == RELEASE:
            self.devices.not_released(uid, path)
        elif self.holding.awaits(uid, number):
            late = f"its claims did not get their volumes and devices within {self.attempts.timeout_s:g} s"
            self.claims_failed(uid, reason or late)
            self.devices.refused(reason)

    def claims_failed(self, uid: str, reason: str) -> None:
        """Release the place of a pod whose claims will not get what was decided, as `not_bound`."""
        self._give_place_back(uid, Note("PodVolumesBindFailure", "PodVolumesBindFailure", reason))

    def pass_turns(self) -> None:
        """Let other pods have a try whose claims or volumes pods have in common that find no node."""
        self.devices.pass_on()
        for record in self.volumes.pass_turns():
            self.run_isolated(record.pod, self._pass_turn, record)

    def _pass_turn(self, record: PodRecord) -> None:
        if record.stage is Stage.ASKED:
            self.holding.hold(record)
            self.hold_or_ask(record)

    # -- pods of ours -------------------------------------------------------------------------------------------

    def _take(self, pod: Pod, *, read_at_start: bool = False) -> PodRecord | None:
        """Make a pod known here, and say nothing of it to the scheduler yet; None: it is not to be known.

        One that has a node when the process starts was told before what its user should know.
        """
        if pod.metadata.deletion_timestamp and not pod.spec.node_name:
            return None  # it ends before it began
        self.volumes.pod_seen(pod)
        self.devices.pod_seen(pod)
        work = read_pod(pod, self.context)
        application_id = work.ask.application_id
        application = self._records.applications.get(application_id)
        if application is None:
            application = ApplicationRecord(application_id)
            self._records.applications[application_id] = application
        record = PodRecord(pod, work, application)
        if self._is_before_class(pod):
            record.awaits_class = True
            self._outbox.commands.append(AskAgain(record.uid, CLASS_WAIT_S))
        self._records.pods[record.uid] = application.pods[record.uid] = record
        self.gangs.note_originator(record)
        self.gangs.remove_late(record, read_at_start=read_at_start)
        self.budgets.pod_seen(pod)
        for note in () if read_at_start and pod.spec.node_name else work.notes:
            if note.once and not has_generated_id(pod):
                if note.text in application.noted or len(application.noted) >= NOTED_MAX:
                    continue
                application.noted.add(note.text)
            self._outbox.post_event(pod, note)
        self._tell_uncounted(record)
        return record

    def _is_before_class(self, pod: Pod) -> bool:
        """Return whether a new pod may have come before its priority class, by another watch.

        Where no priority class is known at all, licorne may not read them, and nobody waits for one.
        """
        if pod.spec.node_name or not self._records.classes or not lacks_class(pod, self._records.classes):
            return False
        return unix_seconds(pod.metadata.creation_timestamp) > self._outbox.now_s() - CLASS_AGE_S

    def _tell_uncounted(self, record: PodRecord) -> None:
        """Post an event that names the resources of which a running pod's amounts do not count: others may get what it uses."""
        if names := record.work.uncounted:
            shown = ", ".join(name[:100] for name in names[:5])
            text = f"The pod runs, and of these resources its amounts cannot be counted, and do not count: {shown}"
            self._outbox.post_event(record.pod, Note("AmountNotCounted", "Scheduling", text))

    def _enter(self, record: PodRecord) -> None:
        """Tell the scheduler of a pod, or hold it."""
        self.gangs.changed(record)
        self.report_or_ask(record)

    def report_or_ask(self, record: PodRecord) -> None:
        """Report a pod that has a node; ask for another one, unless it must wait."""
        if record.node or record.pod.spec.node_name:  # be it that its binding is under way
            self.report(record)
        else:
            self.hold_or_ask(record)

    def hold_or_ask(self, record: PodRecord) -> None:
        """Ask for a pod without a node, unless something must happen first."""
        if record.stage is Stage.REFUSED:
            return  # it was failed together with its application, before its own turn
        work = record.work
        asked = record.stage is Stage.ASKED
        self.waiting.add(record.uid)
        if (
            work.gates
            or work.later
            or work.fault
            or record.pod.metadata.deletion_timestamp
            or record.leaving is not None
            or record.awaits_class
            or record.application.is_failing
            or self.waiting.is_early(record)
        ):
            self.holding.hold(record)
            return
        if not self.applications.announce(record):
            return
        if record.application.gang_stage is GangStage.RESERVING and not work.ask.placeholder:
            self.holding.hold(record)
            self.gangs.held(record)
            return
        if not self.volumes.may_ask(record):  # its turn comes, so it does not leave
            if asked:
                self._outbox.release(record.application.id, record.uid)
            record.move(PodEvent.HOLD)
            record.behind = self.volumes.turns.before(record.uid)
            return
        self.ask(record)

    def ask(self, record: PodRecord) -> None:
        """Submit the ask of a pod. A pending ask that has changed keeps its age if the scheduler can change it in place."""
        ask = ask_with(record.work.ask, originator=True) if record.is_driver else record.work.ask
        was, record.asked = record.asked, ask
        untold = record.uid in self._outbox.asks
        if record.stage is Stage.ASKED and was is not None and (untold or not _is_alike(ask, was)):
            tags, had = ask.tags or {}, was.tags or {}
            # The scheduler changes what waits, but not which node it requires, nor what is to replace a placeholder.
            if self.waiting.ask_of(record) is not None and tags.get(TAG_REQUIRED_NODE) == had.get(TAG_REQUIRED_NODE):
                # An ask without such a tag would keep what the scheduler has.
                gone = [name for name in KEPT if name not in tags and (name in had or untold)]
                if gone:
                    ask = ask_with(ask, tags=tags | dict.fromkeys(gone, "{}"))
            elif not _is_alike(ask, was):
                self._outbox.release(record.application.id, record.uid)
        record.move(PodEvent.ASK)
        record.behind = ""
        self._outbox.ask(ask)

    def release_held(self, application: ApplicationRecord) -> None:
        """Ask for the pods that waited for the room of their gang."""
        for record in list(application.pods.values()):
            if record.stage is Stage.HELD:
                self.run_isolated(record.pod, self.report_or_ask, record)

    def report(self, record: PodRecord) -> None:
        """Tell the scheduler of a pod that has a node."""
        node = record.pod.spec.node_name or record.node
        record.node = node
        if node not in self._records.nodes:
            if record.stage is Stage.ASKED:  # somebody else has bound it
                self.holding.leave(record)
            record.move(PodEvent.LOSE)
            self._records.await_node(record.uid, node)
            return
        if not self.applications.announce(record):
            if record.pod.spec.node_name:
                why = f"application {record.application.id} is refused: {record.application.refusal}"
                self.count_as_foreign(record, why)
            elif record.stage is Stage.AWAITS_CLAIMS:
                self._take_back(record.uid)
                self.hold_or_ask(record)
            else:
                record.move(PodEvent.FORGET)
            return
        record.move(PodEvent.SEE if record.pod.spec.node_name else PodEvent.COUNT)
        tags = {**(record.work.ask.tags or {})}
        if TAG_ALLOCATION_CREATION_TIME not in tags:  # it was bound here, and read when it had no node
            tags[TAG_ALLOCATION_CREATION_TIME] = str(unix_seconds(record.pod.metadata.creation_timestamp))
        if record.asked is not None and TAG_POD_TERMS in (record.asked.tags or {}):
            tags.setdefault(TAG_POD_TERMS, "{}")  # else its claims without devices would be kept
        if record.leaving is not None or record.pod.metadata.deletion_timestamp:
            tags[TAG_ENDING] = "true"  # perhaps evicted before a restart, or before its node came again
        self._outbox.ask(ask_with(record.work.ask, node_id=node, originator=record.is_driver, tags=tags))
        self.gangs.placed(record)

    def count_as_foreign(self, record: PodRecord, why: str) -> None:
        """Count a pod that runs as if another scheduler had placed it, because the scheduler refuses it as one of its application.

        It then counts on its node, and for no queue and no user, and is not evicted. That lasts until it ends.
        """
        uid, pod = record.uid, record.pod
        assert pod.spec.node_name, f"pod {uid} has no node to count on"
        self.holding.leave(record)
        del self._records.pods[uid], record.application.pods[uid]
        self.waiting.forget(uid)
        self.applications.has_ended[record.application] = None
        self.foreign.counted(pod, why)

    def _changed(self, record: PodRecord, pod: Pod, *, anew: bool = False) -> None:
        known = not anew and pod.spec.node_name in ("", record.node) and asks_the_same(record.pod, pod)
        work = record.work if known else in_application(record.application.id, read_pod(pod, self.context))
        was = record.work
        differs = not _is_alike(work.ask, was.ask)
        self.budgets.pod_seen(pod, record.pod)
        record.pod, record.work = pod, work
        self.gangs.changed(record)
        if work.uncounted != was.uncounted:
            self._tell_uncounted(record)
        node = pod.spec.node_name
        if node and record.stage not in PLACED:
            self.report(record)  # somebody else has bound it
        elif node and node != record.node:
            self._moved(record)
        elif node and record.stage in ON_THE_WAY:
            self.holding.give_back(record.uid)
            self._outbox.withdraw_bindings(
                lambda command: command.uid == record.uid
            )  # somebody else has bound it there
            record.move(PodEvent.SEE)
            if differs:
                self.report(record)
        elif differs and record.stage in COUNTED:
            self.report(record)
        elif not node and record.stage in (Stage.HELD, Stage.ASKED, Stage.REFUSED):
            self._waiting_changed(record, was != work)

    def _waiting_changed(self, record: PodRecord, changed: bool) -> None:
        if record.pod.metadata.deletion_timestamp:
            self.holding.hold(record)
        elif changed:
            if record.stage is Stage.REFUSED and record.failure:  # perhaps not any more, as it is now
                record.move(PodEvent.HOLD)
            self.report_or_ask(record)

    def _moved(self, record: PodRecord) -> None:
        """Take back a decision that another scheduler was faster than: the pod runs on another node."""
        self.holding.leave(record)
        self.flush()
        self.report(record)

    def not_told(self, uid: str) -> None:
        """Note that the condition of a pod or a pod group was not written."""
        self.waiting.not_told(uid)
        self.groups.not_told(uid)

    # -- what became of bindings --------------------------------------------------------------------------------

    def bound(self, uid: str) -> None:
        """Post an event that a pod was bound, if such are wanted; it stays assumed until it is seen with its node."""
        record = self._records.pods.get(uid)
        if record is not None and self.scheduled_events:
            meta = record.pod.metadata
            text = f"Successfully assigned {meta.namespace}/{meta.name} to node {record.node}"
            self._outbox.post_event(record.pod, Note("Scheduled", "Scheduled", text, warning=False))
            self._outbox.changed()

    def not_bound(self, uid: str, reason: str) -> None:
        """Release the place of a pod whose binding the binder has given up, and have the pod asked for again later.

        The wait doubles each time. If the pod is gone, or somebody else has bound it, the API server says
        so before that.
        """
        self._give_place_back(uid, Note("PodBindFailure", "PodBindFailure", reason))

    def _give_place_back(self, uid: str, why: Note) -> None:
        record = self._take_back(uid)
        if record is None:
            return
        self._outbox.post_event(record.pod, why)
        record.failure = why.text
        self.waiting.add(uid)
        record.failures += 1
        self._outbox.commands.append(AskAgain(uid, ASK_AGAIN_BACKOFF.wait_s(record.failures)))

    def outdated(self, uid: str) -> None:
        """Release the place of a pod whose binding is not sent, since it was decided on a past state, and ask again at once."""
        record = self._take_back(uid)
        if record is not None:
            self.run_isolated(record.pod, self.hold_or_ask, record)

    def _take_back(self, uid: str) -> PodRecord | None:
        """Release the place of a pod that was not bound, and return the pod's record if it must be asked for again."""
        self._outbox.changed()
        record = self._records.pods.get(uid)
        if record is None or record.pod.spec.node_name:
            return None
        # NODE_UNKNOWN: the node has gone between decision and binding. HELD with a node: its application was refused meanwhile.
        places = (*ON_THE_WAY, Stage.NODE_UNKNOWN)
        if record.stage not in places and not (record.stage is Stage.HELD and record.node):
            return None
        self.holding.leave(record, record.leaving)
        record.move(PodEvent.UNBIND)
        record.node = ""
        # One that was to go anyway, and never ran, is not asked for: whoever waits for its place has it now.
        return record if record.leaving is None else None

    def ask_again(self, uid: str) -> None:
        """Ask for a pod again that could not be bound, or for one whose priority class has not been seen."""
        self._outbox.changed()
        record = self._records.pods.get(uid)
        if record is None:
            return
        awaited, record.awaits_class = record.awaits_class, False
        if record.stage is Stage.UNBOUND or (awaited and record.stage is Stage.HELD):
            self.run_isolated(record.pod, self.hold_or_ask, record)


def _is_alike(ask: Allocation, other: Allocation) -> bool:
    """Return whether two asks of a pod say the same of where it may run, and what it takes."""
    tags, others = ask.tags or {}, other.tags or {}
    alike = all(tags.get(name) == others.get(name) for name in (*KEPT, TAG_POD, TAG_REQUIRED_NODE))
    return alike and ask.resource == other.resource


def _age(pod: Pod) -> tuple[str, bool, str, str]:
    meta = pod.metadata
    return (meta.creation_timestamp or "", not pod.spec.node_name, meta.namespace, meta.name)
