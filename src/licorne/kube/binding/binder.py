"""Sends bindings, many at once, and finds out what became of each.

A binding whose answer was lost may have taken effect, so the pod is looked up before anything is repeated. Only what is
known not to be bound gives its place back. While the API server does not answer at all, places stay taken.

A binding is sent to the same node again until it is answered, so it cannot put a pod on two nodes: the API server
refuses a second one for a pod that has a node. So it may also be sent again where the pod cannot be looked up, as without
the permission for it: either it is bound then, or the API server says that it has a node, and the watch shows which.

No worker waits. What is to be repeated is queued again when its time has come, behind what was decided meanwhile, so pods
that cannot be bound for now keep no others waiting. Pods of namespaces that fail get half of the workers at most.

After a pause of the process nothing is sent that was decided before it: those pods are decided about again, when the
cluster has been read. Only requests that the client had already taken, `at_once` at most, may still arrive.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from licorne.kube.api import ApiError, Client, UnansweredError
from licorne.kube.api.kinds import PODS
from licorne.kube.backoff import Backoff
from licorne.kube.failing import FailingNamespaces
from licorne.kube.manager.commands import Bind
from licorne.kube.pauses import PauseGuard
from licorne.kube.results import Results

AT_ONCE: Final = 32
BACKOFF: Final = Backoff(first_s=0.1, longest_s=20.0, jitter=(0.5, 1.0))
"""Most refusals pass at once, as that of a pod which somebody else changes; one that lasts may be a webhook that is down."""
ATTEMPTS: Final = 12
"""After as many refusals that may pass, a pod that is known not to be bound gives its place back."""
LOOK_UPS: Final = 4
"""After as many look-ups in a row that tell nothing, the binding is sent again."""
READING_S: Final = 1.0
"""How often a binding that may have taken effect is thought of while the cluster is read again, which shows it."""
CONFLICT, TOO_MANY, NOT_FOUND, SERVER_ERROR = 409, 429, 404, 500


class OutdatedError(Exception):
    """A binding was decided before a pause of the process, and has not taken effect."""


class LaterError(Exception):
    """A pod is not bound yet, or it is not known whether it is; the next step is due after `wait_s`.

    `fails`: whether its namespace fails, as `FailingNamespaces.ended` takes it.
    """

    def __init__(self, past: _Past, wait_s: float, *, fails: bool | None) -> None:
        self.past = past
        self.wait_s = wait_s
        self.fails = fails


class _Past:
    """What is known of a binding that was sent before. Most bindings succeed at once, and have none."""

    __slots__ = ("attempts", "look_ups", "unknown", "why")

    def __init__(self) -> None:
        self.attempts = 0
        """How often the binding was sent."""
        self.unknown = False
        """Whether the binding may have taken effect."""
        self.look_ups = 0
        """How many look-ups of the pod have told nothing since the binding was sent last."""
        self.why = ""
        """Why the API server refused the binding the last time."""


_Binding = tuple[Bind, int, _Past | None]
"""A command to bind a pod, the number of pauses when it was decided, and what has become of it; None: it was not sent."""


class Binder:
    """Binds pods.

    Parameters:
        client: sends the calls; nothing else should use its connections.
        bound: told the UID of a pod that is bound.
        not_bound: told the UID of a pod that is not bound and will not be, and why.
        outdated: told the UID of a pod that is not bound because its binding was decided before a pause.
        guard: notices pauses of the process.
        is_gone: returns whether a pod, by its UID, is known to be gone; no request is made for one that is.
        node_of: returns the node of a pod, by its UID, as the API server has shown it; "": none. Nothing is repeated for
            a pod that has one.
        at_once: how many bindings are under way at most.
        results: told what becomes of each request.
        rng: draws the waiting times.

    `bind` may be called before `run`.
    """

    def __init__(
        self,
        client: Client,
        bound: Callable[[str], None],
        not_bound: Callable[[str, str], None],
        outdated: Callable[[str], None],
        *,
        guard: PauseGuard,
        is_gone: Callable[[str], bool] = lambda _: False,
        node_of: Callable[[str], str] = lambda _: "",
        at_once: int = AT_ONCE,
        results: Results | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._bound = bound
        self._not_bound = not_bound
        self._outdated = outdated
        self._guard = guard
        self._is_gone = is_gone
        self._node_of = node_of
        self._at_once = at_once
        self.results = results or Results()
        self._rng = rng or random.Random()  # noqa: S311  spreads load, guards nothing
        # A queue wakes one worker for each, an event would wake all.
        self._waiting: asyncio.Queue[_Binding] = asyncio.Queue()
        self._later = 0  # bindings whose next step is due after some time
        self._failing: FailingNamespaces[_Binding] = FailingNamespaces(at_once, self._waiting.put_nowait)

    def bind(self, command: Bind) -> None:
        """Have a pod bound, after those that were given before."""
        self._waiting.put_nowait((command, self._guard.pauses, None))

    def __len__(self) -> int:
        """Return how many bindings are not done."""
        return self._waiting.qsize() + len(self._failing) + self._later

    async def run(self) -> None:
        """Send bindings until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._at_once):
                group.create_task(self._work(number))

    async def _work(self, worker: int) -> None:
        failing = self._failing
        while True:
            binding = await self._waiting.get()
            command, pauses, past = binding
            if failing.kept and failing.keeps(command.namespace, binding):
                continue
            failing.at[worker] = command.namespace
            try:
                reason = await self._bind(command, pauses, past)
            except (OutdatedError, LaterError) as error:
                failing.at[worker] = ""
                self._take_delay(command, pauses, error)
                continue
            failing.at[worker] = ""
            if failing.kept:
                failing.ended(command.namespace, fails=False if reason is None else None)
            if reason is None:
                self.results.done("binding")
                self._bound(command.uid)
            else:
                self._not_bound(command.uid, reason)

    def _take_delay(self, command: Bind, pauses: int, error: OutdatedError | LaterError) -> None:
        fails = None
        if isinstance(error, LaterError):
            fails = error.fails
            self._later += 1
            asyncio.get_running_loop().call_later(error.wait_s, self._put_back, (command, pauses, error.past))
        if fails or self._failing.kept:
            self._failing.ended(command.namespace, fails)
        if isinstance(error, OutdatedError):
            self._outdated(command.uid)

    def _put_back(self, binding: _Binding) -> None:
        self._later -= 1
        self._waiting.put_nowait(binding)

    async def _bind(self, command: Bind, pauses: int, past: _Past | None) -> str | None:
        """Take the next step with one pod: bind it, or look it up. Returns None, or why it is not bound.

        Raises:
            OutdatedError: it is not bound, and there was a pause since `pauses` were counted.
            LaterError: neither is known.
        """
        recent = self._guard.check()
        if not recent or self._guard.pauses != pauses:
            if past is None or not past.unknown:
                raise OutdatedError
            if not recent:
                raise LaterError(past, READING_S, fails=None)
            if not self._node_of(command.uid):
                raise OutdatedError
        if self._is_gone(command.uid):
            return "the pod is gone"
        if past is not None:
            node = self._node_of(command.uid)
            if node:
                return _as_wanted(node, command)
            if past.unknown and past.look_ups < LOOK_UPS:
                return await self._look_up(command, past, None, fails=None)
        try:
            await self._client.bind(command.namespace, command.name, command.uid, command.node)
        except (ApiError, UnansweredError) as error:
            return await self._after(command, past or _Past(), error)
        return None

    async def _after(self, command: Bind, past: _Past, error: ApiError | UnansweredError) -> str | None:
        """Find out what became of a binding that was not confirmed. Returns and raises as `_bind`."""
        self.results.failed("binding", f"{command.namespace}/{command.name}", error)
        past.attempts += 1
        past.look_ups = 0
        if isinstance(error, UnansweredError):
            past.why = str(error)
            past.unknown = True
            return await self._look_up(command, past, None, fails=True)
        may_pass = error.status in (CONFLICT, TOO_MANY) or error.status >= SERVER_ERROR
        # A refusal says nothing of an earlier request, which may have put the pod on the node.
        if error.status == NOT_FOUND or not (may_pass or past.unknown):
            return str(error)
        past.why = str(error)
        if error.status == TOO_MANY and not past.unknown:
            return self._refused(past, error.retry_after_s, fails=None)
        past.unknown = True
        fails = True if error.status >= SERVER_ERROR else None
        return await self._look_up(command, past, error.retry_after_s, fails=fails)

    async def _look_up(self, command: Bind, past: _Past, asked_s: float | None, *, fails: bool | None) -> str | None:
        """Look a pod up whose binding may have taken effect. Returns and raises as `_bind`."""
        try:
            pod = await self._client.get(PODS, command.namespace, command.name)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return "the pod is gone"
            past.look_ups += 1
            fails = True if error.status >= SERVER_ERROR else fails
            raise LaterError(past, self._wait_s(past, error.retry_after_s), fails=fails) from None
        except UnansweredError:
            past.look_ups += 1
            raise LaterError(past, self._wait_s(past, None), fails=True) from None
        past.unknown = False
        past.look_ups = 0
        if pod.metadata.uid != command.uid:
            return "the pod is gone, and another has its name"
        if pod.spec.node_name:
            return _as_wanted(pod.spec.node_name, command)
        if pod.metadata.deletion_timestamp:
            return "the pod is being deleted"
        return self._refused(past, asked_s, fails=fails)

    def _refused(self, past: _Past, asked_s: float | None, *, fails: bool | None) -> str:
        """Return why a pod is not bound if its binding was refused `ATTEMPTS` times; else raise LaterError, to repeat it."""
        if past.attempts >= ATTEMPTS:
            return past.why
        raise LaterError(past, self._wait_s(past, asked_s), fails=fails)

    def _wait_s(self, past: _Past, asked_s: float | None) -> float:
        return BACKOFF.wait_s(past.attempts + past.look_ups, self._rng, asked_s)


def _as_wanted(node: str, command: Bind) -> str | None:
    """Return None if a pod that is bound is on the node that was decided, else where it is."""
    return None if node == command.node else f"the pod was bound to node {node}"
