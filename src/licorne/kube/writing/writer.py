"""Carries out commands other than bindings: what must be done is repeated until it is, what informs people may be lost.

Evictions and failures are never dropped, and placeholders only when their gang does not want them any more. An eviction or a failure that the API server refuses, as an admission
webhook may, is tried again every `REFUSED_S` until the pod is gone: the scheduler waits for its room. Conditions and events
share what is left of a bounded queue: above the bound, and when the API server is too busy, they are left out and counted.

After a pause of the process nothing is sent until the cluster has been read again.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from licorne.kube.api import ApiError, UnansweredError
from licorne.kube.api.kinds import PODS
from licorne.kube.manager.commands import CreatePod, Evict, Fail, PostEvent, SetCondition
from licorne.kube.pauses import PauseGuard

AT_ONCE: Final = 8
TOLD_MAX: Final = 5000
"""Conditions and events that wait to be written at most."""
REPEAT_S: Final = 600.0
"""Seconds until the count of an event that repeats is written again, from its second time on."""
LATELY_MAX: Final = 10_000
"""The most events that are remembered, to count those that repeat; the ones posted first are forgotten first."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
REFUSED_S: Final = 30.0
"""Seconds after which what was refused is tried again; meanwhile it keeps nothing else waiting."""
TRIES_TO_TELL: Final = 3
NOTE_MAX: Final = 1024
"""Characters of an event's note, as the API server allows."""
COMPONENT: Final = "licorne"
NOT_FOUND, CONFLICT, TOO_MANY, SERVER_ERROR = 404, 409, 429, 500
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"


class WritingClient(Protocol):
    """What the writer needs of a client."""

    async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
        """Delete a pod."""

    async def patch_pod_status(
        self, namespace: str, name: str, uid: str, status: dict[str, Any], version: str = ""
    ) -> None:
        """Change fields of a pod's status, if it has the version, where one is given."""

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object."""

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        """Change fields of an object."""


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


class Writer:
    """Writes to the API server, in the order of the commands for each pod that must be done.

    Parameters:
        client: sends the calls.
        not_created: told the application and the reason when a placeholder is refused for good.
        created: told the application when a placeholder has been created.
        taken: told the application and the name when a pod of a placeholder's name is there already.
        is_wanted: returns whether a placeholder is still to be created; asked before each request.
        is_gone: returns whether the API server has said that the pod of this UID is gone.
        not_told: told the UID of a pod whose condition was not written.
        complain: told in a sentence what could not be written.
        guard: notices pauses of the process.
        clock: returns the time in seconds since 1970, for conditions and events.
    """

    def __init__(
        self,
        client: WritingClient,
        not_created: Callable[[str, str], None],
        *,
        created: Callable[[str], None] = lambda _: None,
        taken: Callable[[str, str], None] = lambda *_: None,
        is_wanted: Callable[[CreatePod], bool] = lambda _: True,
        is_gone: Callable[[str], bool] = lambda _: False,
        not_told: Callable[[str], None] = lambda _: None,
        complain: Callable[[str], None] = lambda _: None,
        guard: PauseGuard,
        clock: Callable[[], float],
        dice: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._not_created = not_created
        self._created = created
        self._taken = taken
        self._is_wanted = is_wanted
        self._is_gone = is_gone
        self._not_told = not_told
        self._complain = complain
        self._guard = guard
        self._clock = clock
        self._dice = dice or random.Random()  # noqa: S311  spreads load, guards nothing
        self._sleep = sleep
        self._done_first: deque[Evict | Fail | CreatePod] = deque()
        self._refused: deque[Evict | Fail] = deque()  # to be tried again
        self._complained: set[str] = set()  # UIDs of pods of which something was refused and is not done
        self._told: deque[SetCondition | PostEvent] = deque()
        self._more = asyncio.Event()
        self._some_refused = asyncio.Event()
        self.written = 0
        """Requests that the API server has confirmed."""
        self.left_out = 0
        """Conditions and events that were not written."""
        self.repeated = 0
        """Events that only raised the count of an equal one, which is written later."""
        self._lately: dict[_Key, _Series] = {}  # in the order in which they were posted first

    def write(self, command: Evict | Fail | CreatePod | SetCondition | PostEvent) -> None:
        """Have a command carried out; an event that says the same as one before raises the count of that one."""
        if isinstance(command, Evict | Fail | CreatePod):
            self._done_first.append(command)
        elif isinstance(command, PostEvent) and not self._is_due(command):
            self.repeated += 1
        elif len(self._told) < TOLD_MAX:
            self._told.append(command)
        else:
            self._leave_out(command)
        self._more.set()

    def __len__(self) -> int:
        """Return how many commands wait."""
        return len(self._done_first) + len(self._refused) + len(self._told)

    async def run(self) -> None:
        """Carry out commands until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work())
            group.create_task(self._try_again())

    async def _work(self) -> None:
        while True:
            while not (self._done_first or self._told):
                self._more.clear()
                await self._more.wait()
            if self._done_first:
                await self._do(self._done_first.popleft())
            elif self._told:
                await self._tell(self._told.popleft())

    async def _try_again(self) -> None:
        while True:
            await self._some_refused.wait()
            self._some_refused.clear()
            await self._sleep(REFUSED_S)
            self._done_first += self._refused
            self._refused.clear()
            self._more.set()

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

    # -- what must be done --------------------------------------------------------------------------------------

    async def _do(self, command: Evict | Fail | CreatePod) -> None:
        attempt = 0
        while True:
            await self._guard.recent()
            if isinstance(command, CreatePod) and not self._is_wanted(command):
                return
            try:
                await self._carry_out(command)
            except ApiError as error:
                if not self._may_pass(command, error):
                    self._take_refusal(command, error)
                    return
                wait_s = error.retry_after_s
            except UnansweredError:
                wait_s = None
            else:
                self.written += 1
                if not isinstance(command, CreatePod):
                    self._complained.discard(command.uid)
                return
            longest = min(FIRST_WAIT_S * 2**attempt, LONGEST_WAIT_S)
            attempt = min(attempt + 1, 10)
            await self._sleep(max(longest * self._dice.uniform(0.5, 1.0), wait_s or 0.0))

    async def _carry_out(self, command: Evict | Fail | CreatePod) -> None:
        client = self._client
        if isinstance(command, CreatePod):
            await client.create(PODS.path(command.namespace), command.body)
            self._created(command.application_id)
        elif isinstance(command, Fail):
            status = {"phase": "Failed", "reason": command.reason, "message": _sendable(command.message)}
            await client.patch_pod_status(command.namespace, command.name, command.uid, status)
        else:
            if command.disruption:
                condition = self._condition("DisruptionTarget", "True", command.reason, command.message)
                await client.patch_pod_status(command.namespace, command.name, command.uid, {"conditions": [condition]})
                self.written += 1
                await self._guard.recent()
            await client.delete_pod(command.namespace, command.name, command.uid)

    def _may_pass(self, command: Evict | Fail | CreatePod, error: ApiError) -> bool:
        """Return whether a command that was refused may be accepted later.

        A conflict about an existing pod means that somebody else is changing it, or that it is gone and another has its
        name. The watch tells the two apart.
        """
        if error.status == CONFLICT and not isinstance(command, CreatePod):
            return not self._is_gone(command.uid)
        return error.status == TOO_MANY or error.status >= SERVER_ERROR

    def _take_refusal(self, command: Evict | Fail | CreatePod, error: ApiError) -> None:
        if isinstance(command, CreatePod):
            if error.status == CONFLICT:  # it is there already: an answer was lost, or one has ended before
                self._taken(command.application_id, command.body["metadata"]["name"])
            else:
                self._not_created(command.application_id, str(error))
        elif error.status in (NOT_FOUND, CONFLICT) or self._is_gone(command.uid):  # that is what was wanted
            self._complained.discard(command.uid)
        else:
            self._refused.append(command)
            self._some_refused.set()
            if command.uid not in self._complained:
                self._complained.add(command.uid)
                self._complain(f"pod {command.namespace}/{command.name}: {error}; tried again every {REFUSED_S:.0f} s")

    # -- what people are told -----------------------------------------------------------------------------------

    async def _tell(self, command: SetCondition | PostEvent) -> None:
        for attempt in range(TRIES_TO_TELL):
            await self._guard.recent()
            try:
                if isinstance(command, SetCondition):
                    condition = self._condition("PodScheduled", "False", command.reason, command.message)
                    await self._client.patch_pod_status(
                        command.namespace, command.name, command.uid, {"conditions": [condition]}, command.version
                    )
                else:
                    await self._post(command)
            except ApiError as error:
                if not (error.status == TOO_MANY or error.status >= SERVER_ERROR):
                    break
                await self._sleep(max(FIRST_WAIT_S * 2**attempt, error.retry_after_s or 0.0))
            except UnansweredError:
                await self._sleep(FIRST_WAIT_S * 2**attempt)
            else:
                self.written += 1
                return
        self._leave_out(command)

    def _leave_out(self, command: SetCondition | PostEvent) -> None:
        self.left_out += 1
        if isinstance(command, SetCondition):
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
            "eventTime": _microseconds(series.first_s),
            "reportingController": COMPONENT,
            "reportingInstance": COMPONENT,
            "action": command.action,
            "reason": command.reason,
            "type": "Warning" if command.warning else "Normal",
            "note": _sendable(command.note[:NOTE_MAX]),
            "regarding": _reference(command.kind, command.namespace, command.name, command.uid),
        }
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": _microseconds(series.written_s)}
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


def _microseconds(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reference(kind: str, namespace: str, name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name, "uid": uid}
