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
from typing import Final, NamedTuple

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


class _Binding:
    """A command to bind a pod, the number of pauses when it was decided, and what has become of it."""

    __slots__ = ("attempts", "command", "look_ups", "pauses", "unknown", "why")

    def __init__(self, command: Bind, pauses: int) -> None:
        self.command = command
        self.pauses = pauses
        self.attempts = 0
        """How often the binding was sent, and not confirmed."""
        self.unknown = False
        """Whether the binding may have taken effect."""
        self.look_ups = 0
        """How many look-ups of the pod have told nothing since the binding was sent last."""
        self.why = ""
        """Why the API server refused the binding the last time."""


class _Later(NamedTuple):
    """A pod is not bound yet, or it is not known whether it is; the next step is due after `wait_s`.

    `fails`: whether its namespace fails, as `FailingNamespaces.ended` takes it.
    """

    wait_s: float
    fails: bool | None


_Outcome = str | _Later | None
"""What has become of a binding: None: the pod is bound; a text: it is not, and will not be, and why; OUTDATED: it is not, and the
binding was decided before a pause of the process."""
OUTDATED: Final = "its binding was decided before a pause"


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
        self._waiting.put_nowait(_Binding(command, self._guard.pauses))

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
            command = binding.command
            if failing.kept and failing.keeps(command.namespace, binding):
                continue
            failing.at[worker] = command.namespace
            outcome = await self._bind(binding)
            failing.at[worker] = ""
            fails = False if outcome is None else None
            if isinstance(outcome, _Later):
                fails = outcome.fails
                self._later += 1
                asyncio.get_running_loop().call_later(outcome.wait_s, self._put_back, binding)
            if fails or failing.kept:
                failing.ended(command.namespace, fails)
            if outcome is None:
                self.results.done("binding")
                self._bound(command.uid)
            elif outcome is OUTDATED:
                self._outdated(command.uid)
            elif isinstance(outcome, str):
                self._not_bound(command.uid, outcome)

    def _put_back(self, binding: _Binding) -> None:
        self._later -= 1
        self._waiting.put_nowait(binding)

    async def _bind(self, binding: _Binding) -> _Outcome:
        """Take the next step with one pod: bind it, or look it up."""
        command = binding.command
        recent = self._guard.check()
        if not recent or self._guard.pauses != binding.pauses:
            if not binding.unknown:
                return OUTDATED
            if not recent:
                return _Later(READING_S, None)
            if not self._node_of(command.uid):
                return OUTDATED
        if self._is_gone(command.uid):
            return "the pod is gone"
        if binding.attempts:
            node = self._node_of(command.uid)
            if node:
                return _as_wanted(node, command)
            if binding.unknown and binding.look_ups < LOOK_UPS:
                return await self._look_up(binding, None, fails=None)
        try:
            await self._client.bind(command.namespace, command.name, command.uid, command.node)
        except (ApiError, UnansweredError) as error:
            return await self._after(binding, error)
        return None

    async def _after(self, binding: _Binding, error: ApiError | UnansweredError) -> _Outcome:
        """Find out what became of a binding that was not confirmed."""
        command = binding.command
        self.results.failed("binding", f"{command.namespace}/{command.name}", error)
        binding.attempts += 1
        binding.look_ups = 0
        if isinstance(error, UnansweredError):
            binding.why = str(error)
            binding.unknown = True
            return await self._look_up(binding, None, fails=True)
        may_pass = error.status in (CONFLICT, TOO_MANY) or error.status >= SERVER_ERROR
        # A refusal says nothing of an earlier request, which may have put the pod on the node.
        if error.status == NOT_FOUND or not (may_pass or binding.unknown):
            return str(error)
        binding.why = str(error)
        if error.status == TOO_MANY and not binding.unknown:
            return self._refused(binding, error.retry_after_s, fails=None)
        binding.unknown = True
        fails = True if error.status >= SERVER_ERROR else None
        return await self._look_up(binding, error.retry_after_s, fails=fails)

    async def _look_up(self, binding: _Binding, asked_s: float | None, *, fails: bool | None) -> _Outcome:
        """Look a pod up whose binding may have taken effect."""
        command = binding.command
        try:
            pod = await self._client.get(PODS, command.namespace, command.name)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return "the pod is gone"
            binding.look_ups += 1
            return self._wait(binding, error.retry_after_s, fails=True if error.status >= SERVER_ERROR else fails)
        except UnansweredError:
            binding.look_ups += 1
            return self._wait(binding, None, fails=True)
        binding.unknown = False
        binding.look_ups = 0
        if pod.metadata.uid != command.uid:
            return "the pod is gone, and another has its name"
        if pod.spec.node_name:
            return _as_wanted(pod.spec.node_name, command)
        if pod.metadata.deletion_timestamp:
            return "the pod is being deleted"
        return self._refused(binding, asked_s, fails=fails)

    def _refused(self, binding: _Binding, asked_s: float | None, *, fails: bool | None) -> _Outcome:
        """Return why a pod is not bound if its binding was refused `ATTEMPTS` times; else it is repeated."""
        return binding.why if binding.attempts >= ATTEMPTS else self._wait(binding, asked_s, fails=fails)

    def _wait(self, binding: _Binding, asked_s: float | None, *, fails: bool | None) -> _Later:
        return _Later(BACKOFF.wait_s(binding.attempts + binding.look_ups, self._rng, asked_s), fails)


def _as_wanted(node: str, command: Bind) -> str | None:
    """Return None if a pod that is bound is on the node that was decided, else where it is."""
    return None if node == command.node else f"the pod was bound to node {node}"
