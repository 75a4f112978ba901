"""Carries out commands other than bindings: what must be done is repeated until it is, what informs people may be lost.

Evictions and failures are never dropped; what binds volumes and gives devices is when the pod has lost its place, what takes
devices back when that is no longer wanted, and placeholders when their gang does not want them any more. An eviction or
a failure that the API server refuses, as an admission webhook may, is tried again every `REFUSED_S` until the pod is gone:
the scheduler waits for its room. A victim that cannot be told why it goes is deleted all the same, after `TRIES_TO_REPORT`
requests. Conditions and events share what is left of a bounded queue: above the bound, and when the API server is too busy,
they are left out and counted.

No worker waits. What is to be repeated is queued again when its time has come. Evictions and failures go first; creations
get `CREATING_AT_ONCE` of the workers at most, so that neither a victim nor a condition waits until a large gang has its
placeholders; and namespaces that fail get half of them.

After a pause of the process nothing is sent until the cluster has been read again.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from licorne.kube.api import ApiError, Client, UnansweredError
from licorne.kube.api.kinds import POD_GROUPS, PODS
from licorne.kube.backoff import Backoff
from licorne.kube.failing import FailingNamespaces
from licorne.kube.manager.commands import (
    DROPPED,
    CreatePod,
    Evict,
    Fail,
    PostEvent,
    SetCondition,
    SetGroupCondition,
    WriteClaim,
)
from licorne.kube.objects.groups import INITIALLY_SCHEDULED
from licorne.kube.objects.meta import micro_time
from licorne.kube.pauses import PauseGuard
from licorne.kube.results import Results

AT_ONCE: Final = 32
"""Requests under way at once, at most. A victim takes two, one after the other, and pods wait for its room."""
CREATING_AT_ONCE: Final = 24
"""Placeholders that are being created at once, at most."""
REPORTS_MAX: Final = 5000
"""Conditions and events that wait to be written at most."""
REPEAT_S: Final = 600.0
"""Seconds until the count of an event that repeats is written again, from its second time on."""
LATELY_MAX: Final = 10_000
"""The most events that are remembered, to count those that repeat; the ones posted first are forgotten first."""
BACKOFF: Final = Backoff(first_s=0.5, longest_s=30.0, jitter=(0.5, 1.0))
"""Nobody waits for a write as for a binding, so an API server that is too busy is left alone for longer."""
REFUSED_S: Final = 30.0
"""Seconds after which what was refused is tried again; meanwhile it keeps nothing else waiting."""
TRIES_TO_REPORT: Final = 3
"""Requests after which a condition or an event is left out, and a victim deleted though it could not be told why."""
NOTE_MAX: Final = 1024
"""Characters of an event's note, as the API server allows."""
COMPONENT: Final = "licorne"
NOT_FOUND, CONFLICT, TOO_MANY, SERVER_ERROR = 404, 409, 429, 500
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"


class _Series:
    """An event that was posted: since when, how often it has come to be, and what of this has been written."""

    __slots__ = ("count", "created", "first_s", "written_s")

    def __init__(self, now: float) -> None:
        self.first_s = now
        self.count = 1
        self.created = False
        """Whether the API server is known to have it."""
        self.written_s = now
        """When it was last given to be written."""


_Command = Evict | Fail | WriteClaim | CreatePod | SetCondition | SetGroupCondition | PostEvent
_Condition = SetCondition | SetGroupCondition
_Report = _Condition | PostEvent
_KINDS: Final[dict[type[_Command], str]] = {
    Evict: "eviction",
    Fail: "failure of a pod",
    WriteClaim: "claim",
    CreatePod: "placeholder",
    SetCondition: "condition",
    SetGroupCondition: "condition",
    PostEvent: "event",
}
"""What metrics and the log call the commands."""


class _Job:
    """A command that is to be carried out, and how often that has failed so far."""

    __slots__ = ("command", "failures", "reported", "unreported")

    def __init__(self, command: _Command) -> None:
        self.command = command
        self.failures = 0
        """How often it has failed and was to be repeated."""
        self.unreported = 0
        """How often the condition `DisruptionTarget` of the pod that is evicted could not be set."""
        self.reported = not (isinstance(command, Evict) and command.disruption)
        """Whether it is deleted next: it has been told, need not be, or cannot be."""


class Writer:
    """Writes to the API server. Commands are begun in the order given, within those that must be done, creations, and the rest.

    Parameters:
        client: sends the calls.
        not_created: told application, name and reason when a placeholder is refused for good.
        exists: told the application and the name when a placeholder has been created, or, with `taken`, when a pod of this name
            is there already.
        is_wanted: returns whether a placeholder is still to be created; asked before each request.
        is_gone: returns whether the API server has said that the pod of this UID is gone.
        not_told: told the UID of a pod or a pod group whose condition was not written.
        claims_wanted: returns whether a write for the claims of a pod is still wanted, by the number of its attempt.
        give_up_claims: told the UID of a pod, the number, why and the path, when something cannot be written for its claims.
        answered: told the object that a write for claims was answered with, as JSON.
        warn: told in a sentence what could not be written.
        guard: notices pauses of the process.
        clock: returns the time in seconds since 1970, for conditions and events.
        results: told what becomes of each request.
        rng: draws the waiting times.
    """

    def __init__(
        self,
        client: Client,
        not_created: Callable[[str, str, str], None],
        *,
        exists: Callable[..., None] = lambda *_, **__: None,
        is_wanted: Callable[[CreatePod], bool] = lambda _: True,
        is_gone: Callable[[str], bool] = lambda _: False,
        not_told: Callable[[str], None] = lambda _: None,
        claims_wanted: Callable[[str, int], bool] = lambda *_: True,
        give_up_claims: Callable[[str, int, str, str], None] = lambda *_: None,
        answered: Callable[[bytes], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        guard: PauseGuard,
        clock: Callable[[], float],
        results: Results | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._not_created = not_created
        self._exists = exists
        self._is_wanted = is_wanted
        self._is_gone = is_gone
        self._not_told = not_told
        self._claims_wanted = claims_wanted
        self._give_up_claims = give_up_claims
        self._answered = answered
        self._warn = warn
        self._guard = guard
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311  spreads load, guards nothing
        self._must: deque[_Job] = deque()
        self._creations: deque[_Job] = deque()
        self._told: deque[_Job] = deque()
        self._more = asyncio.Event()
        self._later = 0  # commands that are to be repeated after some time
        self._failing: FailingNamespaces[_Job] = FailingNamespaces(AT_ONCE, self._queue)
        self._creating = 0
        self._reports = 0  # conditions and events that are not done
        self._newest: dict[str, _Condition] = {}  # by UID: an older condition is not written after it
        self._warned: set[str] = set()  # UIDs of pods of which something was refused and is not done
        self.results = results or Results()
        self._lately: dict[_Key, _Series] = {}  # in the order in which they were posted first

    def write(self, command: _Command) -> None:
        """Have a command carried out; an event that says the same as one before raises the count of that one."""
        if isinstance(command, PostEvent) and not self._is_due(command):
            return
        if isinstance(command, _Report):
            if self._reports >= REPORTS_MAX:
                self._leave_out(command)
                return
            self._reports += 1
            if isinstance(command, _Condition):
                self._newest[command.uid] = command
        self._queue(_Job(command))

    def __len__(self) -> int:
        """Return how many commands are not done."""
        return len(self._must) + len(self._creations) + len(self._told) + self._later + len(self._failing)

    async def run(self) -> None:
        """Carry out commands until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(self._work(number))

    def _queue(self, job: _Job) -> None:
        command = job.command
        if isinstance(command, Evict | Fail | WriteClaim):
            self._must.append(job)
        elif isinstance(command, CreatePod):
            self._creations.append(job)
        else:
            self._told.append(job)
        self._more.set()

    def _next(self) -> _Job | None:
        """Return the command that a free worker begins."""
        if self._must:
            return self._must.popleft()
        if self._creations and self._creating < CREATING_AT_ONCE:
            return self._creations.popleft()
        return self._told.popleft() if self._told else None

    async def _work(self, worker: int) -> None:
        failing = self._failing
        while True:
            job = self._next()
            if job is None:
                self._more.clear()
                await self._more.wait()
                continue
            namespace = job.command.namespace or "default"
            if failing.keeps(namespace, job):
                continue
            creates = isinstance(job.command, CreatePod)
            failing.at[worker] = namespace
            self._creating += creates
            fails = await self._carry_out(job)
            self._creating -= creates
            failing.at[worker] = ""
            failing.ended(namespace, fails)

    async def _carry_out(self, job: _Job) -> bool | None:
        """Send the next request of a command. Returns whether its namespace fails, as `FailingNamespaces.ended` takes it."""
        await self._guard.recent()
        command = job.command
        if isinstance(command, CreatePod) and not self._is_wanted(command):
            return None
        if isinstance(command, WriteClaim) and not self._claims_wanted(command.uid, command.number):
            return None
        if isinstance(command, _Condition) and self._newest.get(command.uid) is not command:
            self._reports -= 1  # a newer one says what is so now
            return None
        try:
            await self._send(job)
        except (ApiError, UnansweredError) as error:
            name = command.application_id if isinstance(command, CreatePod) else command.name
            self.results.failed(_KINDS[type(command)], f"{command.namespace}/{name}", error)
            if isinstance(error, UnansweredError):
                self._try_later(job, None)
                return True
            if self._may_pass(job, error):
                self._try_later(job, error.retry_after_s)
            else:
                self._take_refusal(job, error)
            return True if error.status >= SERVER_ERROR else None
        self.results.done(_KINDS[type(command)])
        self._has_been_done(command)
        return False

    async def _send(self, job: _Job) -> None:
        client, command = self._client, job.command
        if isinstance(command, CreatePod):
            await client.create(PODS.path(command.namespace), command.body)
            self._exists(command.application_id, command.body["metadata"]["name"], taken=False)
        elif isinstance(command, Fail):
            status = {"phase": "Failed", "reason": command.reason, "message": _sendable(command.message)}
            await client.patch_status(PODS, command.namespace, command.name, command.uid, status)
        elif isinstance(command, WriteClaim):
            if command.method == "POST":
                await client.create(command.path, command.body)
            elif command.method == "DELETE":
                await client.delete(command.path, command.body["uid"])
            else:
                answer = await client.patch(command.path, command.body)
                if command.kept and f'"{command.kept}"'.encode() not in answer:
                    self._give_up_claims(command.uid, command.number, DROPPED, command.path)
                self._answered(answer)
        elif isinstance(command, Evict):
            if not job.reported:
                await self._tell_victim(job, command)
            await client.delete_pod(command.namespace, command.name, command.uid)
        elif isinstance(command, SetCondition):
            condition = self._condition("PodScheduled", "False", command.reason, command.message)
            waiting: dict[str, Any] = {"conditions": [condition]}
            if command.nominated is not None:
                waiting["nominatedNodeName"] = command.nominated or None
            names = (command.namespace, command.name, command.uid)
            await client.patch_status(PODS, *names, waiting, command.version)
        elif isinstance(command, SetGroupCondition):
            await self._tell_group(command)
        else:
            await self._post(command)

    async def _tell_group(self, command: SetGroupCondition) -> None:
        told = self._condition(INITIALLY_SCHEDULED, str(command.status), command.reason, command.message)
        condition: dict[str, Any] = {**told, "observedGeneration": command.generation}
        if command.since:
            condition["lastTransitionTime"] = command.since
        names = (command.namespace, command.name, command.uid)
        await self._client.patch_status(POD_GROUPS, *names, {"conditions": [condition]}, command.version)

    async def _tell_victim(self, job: _Job, command: Evict) -> None:
        """Set the condition `DisruptionTarget` of a pod that is to be evicted.

        Raises:
            ApiError, UnansweredError: it could not be set, and is to be tried again.
        """
        condition = self._condition("DisruptionTarget", "True", command.reason, command.message)
        try:
            names = (command.namespace, command.name, command.uid)
            await self._client.patch_status(PODS, *names, {"conditions": [condition]})
        except (ApiError, UnansweredError) as error:
            job.unreported += 1
            gone = isinstance(error, ApiError) and self._says_gone(command, error)
            if gone or job.unreported < TRIES_TO_REPORT:
                raise
            self._warn_once(command, f"{error}; it is evicted without the condition DisruptionTarget")
        job.reported = True
        await self._guard.recent()

    def _may_pass(self, job: _Job, error: ApiError) -> bool:
        """Return whether a command that was refused is repeated soon.

        A conflict about an existing pod means that somebody else is changing it, or that it is gone and another has its
        name. The watch tells the two apart. A condition with a version that has changed is not written.
        """
        command = job.command
        if error.status == TOO_MANY or error.status >= SERVER_ERROR:
            return True
        if isinstance(command, Evict) and not job.reported:
            return not self._says_gone(command, error)
        return isinstance(command, Evict | Fail) and error.status == CONFLICT and not self._is_gone(command.uid)

    def _says_gone(self, command: Evict | Fail, error: ApiError) -> bool:
        return error.status == NOT_FOUND or (error.status == CONFLICT and self._is_gone(command.uid))

    def _try_later(self, job: _Job, asked_s: float | None) -> None:
        """Repeat a command after some time, which grows; a condition or an event that has failed often is left out."""
        command = job.command
        if isinstance(command, _Report) and job.failures >= TRIES_TO_REPORT - 1:
            self._give_up(command)
            return
        job.failures += 1
        self._put_back_after(BACKOFF.wait_s(job.failures, self._rng, asked_s), job)

    def _put_back_after(self, wait_s: float, job: _Job) -> None:
        self._later += 1
        asyncio.get_running_loop().call_later(wait_s, self._put_back, job)

    def _put_back(self, job: _Job) -> None:
        self._later -= 1
        self._queue(job)

    def _has_been_done(self, command: _Command) -> None:
        if isinstance(command, Evict | Fail):
            self._warned.discard(command.uid)
        elif isinstance(command, _Report):
            self._reports -= 1
            if isinstance(command, _Condition) and self._newest.get(command.uid) is command:
                del self._newest[command.uid]

    def _take_refusal(self, job: _Job, error: ApiError) -> None:
        command = job.command
        if isinstance(command, CreatePod):
            if error.status == CONFLICT:  # it is there already: an answer was lost, or one has ended before
                self._exists(command.application_id, command.body["metadata"]["name"], taken=True)
            else:
                self._not_created(command.application_id, command.body["metadata"]["name"], str(error))
        elif isinstance(command, WriteClaim):
            shown = (CONFLICT, NOT_FOUND) if command.method == "DELETE" else (CONFLICT,)
            if not (command.watched and error.status in shown):
                self._give_up_claims(command.uid, command.number, str(error), command.path)
        elif isinstance(command, _Report):
            self._give_up(command)
        elif error.status in (NOT_FOUND, CONFLICT) or self._is_gone(command.uid):  # that is what was wanted
            self._warned.discard(command.uid)
        else:
            self._put_back_after(REFUSED_S, job)
            self._warn_once(command, f"{error}; tried again every {REFUSED_S:.0f} s")

    def _warn_once(self, command: Evict | Fail, text: str) -> None:
        if command.uid not in self._warned:
            self._warned.add(command.uid)
            self._warn(f"pod {command.namespace}/{command.name}: {text}")

    # -- what people are told -----------------------------------------------------------------------------------

    def _is_due(self, event: PostEvent) -> bool:
        """Count an event, and return whether something of it is to be written now.

        That is so for the first and the second time, and then not more often than each `REPEAT_S`.
        """
        now = self._clock()
        series = self._lately.get(_key(event))
        if series is None:
            if len(self._lately) >= LATELY_MAX:
                del self._lately[next(iter(self._lately))]
            self._lately[_key(event)] = _Series(now)
            return True
        series.count += 1
        if series.count > 2 and 0 <= now - series.written_s < REPEAT_S:
            return False
        series.written_s = now
        return True

    def _give_up(self, command: _Report) -> None:
        self._has_been_done(command)
        self._leave_out(command)

    def _leave_out(self, command: _Report) -> None:
        self.results.counts[_KINDS[type(command)], "left_out"] += 1
        if isinstance(command, _Condition):
            self._not_told(command.uid)
        elif (series := self._lately.get(_key(command))) is not None and not series.created:
            del self._lately[_key(command)]

    async def _post(self, command: PostEvent) -> None:
        """Create an event, or write how often it has come to be. Raises ApiError, UnansweredError."""
        series = self._lately.get(_key(command)) or _Series(self._clock())
        path = EVENTS.format(command.namespace or "default")
        body = self._event(command, series)
        if series.created:
            try:
                await self._client.patch(f"{path}/{body['metadata']['name']}", {"series": body["series"]})
            except ApiError as error:
                if error.status != NOT_FOUND:  # else the API server has forgotten it, as it does after an hour
                    raise
            else:
                return
        try:
            await self._client.create(path, body)
        except ApiError as error:
            if error.status != CONFLICT:  # else it is there: an answer was lost
                raise
        series.created = True

    def _condition(self, kind: str, status: str, reason: str, message: str) -> dict[str, str]:
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": _sendable(message[:NOTE_MAX]),
            "lastTransitionTime": datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def _event(self, command: PostEvent, series: _Series) -> dict[str, Any]:
        """Return an event. Its name follows from what it says, about what, and since when; so it is created once."""
        seed = f"{command.uid}/{command.reason}/{command.note}/{series.first_s}"
        ending = hashlib.sha256(_sendable(seed).encode()).hexdigest()[:16]
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{command.name}.{ending}"[-253:], "namespace": command.namespace or "default"},
            "eventTime": micro_time(series.first_s),
            "reportingController": COMPONENT,
            "reportingInstance": COMPONENT,
            "action": command.action,
            "reason": command.reason,
            "type": "Warning" if command.warning else "Normal",
            "note": _sendable(command.note[:NOTE_MAX]),
            "regarding": _reference(command.kind, command.namespace, command.name, command.uid),
        }
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": micro_time(series.written_s)}
        if command.related is not None:
            body["related"] = _reference("Pod", *command.related)
        return body


_Key = tuple[str, str, str]


def _key(event: PostEvent) -> _Key:
    """Return what is equal of events that say the same about the same object."""
    return event.uid, event.reason, event.note


def _sendable(text: str) -> str:
    """Return a text that can be sent: half of a surrogate pair, as a JSON escape may have it, becomes a question mark."""
    return text.encode(errors="replace").decode()


def _reference(kind: str, namespace: str, name: str, uid: str) -> dict[str, str]:
    version = POD_GROUPS.group.removeprefix("/apis/") if kind == POD_GROUPS.name else "v1"
    return {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name, "uid": uid}
