"""Sends bindings, many at once, and finds out what became of each.

A binding whose answer was lost may have taken effect, so the pod is looked up before anything is repeated. Only what is
known not to be bound gives its place back. While the API server does not answer at all, places stay taken.

A binding is sent to the same node again until it is answered, so it cannot put a pod on two nodes: the API server
refuses a second one for a pod that has a node.

After a pause of the process nothing is sent that was decided before it: those pods are decided about again, when the
cluster has been read. Only requests that the client had already taken, `at_once` at most, may still arrive.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from licorne.kube.api import ApiError, UnansweredError
from licorne.kube.api.kinds import PODS, Kind
from licorne.kube.manager.commands import Bind
from licorne.kube.objects import Pod
from licorne.kube.pauses import PauseGuard

AT_ONCE: Final = 32
FIRST_WAIT_S: Final = 0.1
LONGEST_WAIT_S: Final = 20.0
ATTEMPTS: Final = 12
"""After as many refusals that may pass, a pod that is known not to be bound gives its place back."""
CONFLICT, TOO_MANY, NOT_FOUND, SERVER_ERROR = 409, 429, 404, 500


class OutdatedError(Exception):
    """A binding was decided before a pause of the process."""


class BindingClient(Protocol):
    """What the binder needs of a client."""

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod to a node."""

    async def get(self, kind: Kind[Pod], namespace: str, name: str) -> Pod:
        """Return a pod."""
        ...


class Binder:
    """Binds pods.

    Parameters:
        client: sends the calls; nothing else should use its connections.
        bound: told the UID of a pod that is bound.
        not_bound: told the UID of a pod that is not bound and will not be, and why.
        outdated: told the UID of a pod that is not bound because its binding was decided before a pause.
        guard: notices pauses of the process.
        is_gone: returns whether a pod, by its UID, is known to be gone; no request is made for one that is.
        at_once: how many bindings are under way at most.
        dice, sleep: draw and spend the waiting times; given, tests can repeat them in no time.

    `bind` may be called before `run`.
    """

    def __init__(
        self,
        client: BindingClient,
        bound: Callable[[str], None],
        not_bound: Callable[[str, str], None],
        outdated: Callable[[str], None],
        *,
        guard: PauseGuard,
        is_gone: Callable[[str], bool] = lambda _: False,
        at_once: int = AT_ONCE,
        dice: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._bound = bound
        self._not_bound = not_bound
        self._outdated = outdated
        self._guard = guard
        self._is_gone = is_gone
        self._at_once = at_once
        self._dice = dice or random.Random()  # noqa: S311  spreads load, guards nothing
        self._sleep = sleep
        # With the number of pauses when it was decided. A queue wakes one worker for each, an event would wake all.
        self._waiting: asyncio.Queue[tuple[Bind, int]] = asyncio.Queue()
        self.under_way = 0
        """Bindings that have been sent, or are about to be sent again."""
        self.sent = 0
        """Bindings that the API server has confirmed."""

    def bind(self, command: Bind) -> None:
        """Have a pod bound, after those that were given before."""
        self._waiting.put_nowait((command, self._guard.pauses))

    def __len__(self) -> int:
        """Return how many bindings are not done."""
        return self._waiting.qsize() + self.under_way

    async def run(self) -> None:
        """Send bindings until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            command, pauses = await self._waiting.get()
            self.under_way += 1
            try:
                reason = await self._bind(command, pauses)
            except OutdatedError:
                self._outdated(command.uid)
                continue
            finally:
                self.under_way -= 1
            if reason is None:
                self.sent += 1
                self._bound(command.uid)
            else:
                self._not_bound(command.uid, reason)

    async def _bind(self, command: Bind, pauses: int) -> str | None:
        """Bind one pod. Returns None, or why it is not bound.

        Raises:
            OutdatedError: it is not bound, and there was a pause since `pauses` were counted.
        """
        attempt = 0
        while True:
            if not self._guard.check() or self._guard.pauses != pauses:
                raise OutdatedError
            if self._is_gone(command.uid):
                return "the pod is gone"
            attempt += 1
            wait_s = None
            try:
                await self._client.bind(command.namespace, command.name, command.uid, command.node)
            except ApiError as error:
                if not (error.status in (CONFLICT, TOO_MANY) or error.status >= SERVER_ERROR):
                    return str(error)
                why, wait_s = str(error), error.retry_after_s
                looked_up = error.status != TOO_MANY
            except UnansweredError as error:
                why = str(error)
                looked_up = True
            else:
                return None
            if looked_up:
                found = await self._look_up(command)
                if found is None:
                    return None
                if found:
                    return found
            if attempt >= ATTEMPTS:
                return why
            await self._wait(attempt, wait_s)

    async def _look_up(self, command: Bind) -> str | None:
        """Return None if the pod is bound as wanted, "" if it still can be, else why it never will be."""
        attempt = 0
        while True:
            attempt += 1
            try:
                pod = await self._client.get(PODS, command.namespace, command.name)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return "the pod is gone"
                await self._wait(attempt, error.retry_after_s)
            except UnansweredError:
                await self._wait(attempt, None)
            else:
                break
        if pod.metadata.uid != command.uid:
            return "the pod is gone, and another has its name"
        if pod.spec.node_name:
            return None if pod.spec.node_name == command.node else f"the pod was bound to node {pod.spec.node_name}"
        return "the pod is being deleted" if pod.metadata.deletion_timestamp else ""

    async def _wait(self, attempt: int, asked_s: float | None) -> None:
        longest = min(FIRST_WAIT_S * 2 ** (attempt - 1), LONGEST_WAIT_S)
        await self._sleep(max(longest * self._dice.uniform(0.5, 1.0), asked_s or 0.0))
