"""Bindings: what is repeated, what is looked up, what gives the place back; in order, and never too many at once."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable

import msgspec
import pytest

from licorne.kube.api import ApiError, Kind, UnansweredError
from licorne.kube.binding import Binder
from licorne.kube.manager.commands import Bind
from licorne.kube.objects import Pod
from licorne.kube.pauses import PAUSE_S, PauseGuard

BUSY = ApiError(429, "TooManyRequests", "busy", 9.0)
CONFLICT = ApiError(409, "Conflict", "the object has been modified")
BROKEN = ApiError(500, "InternalError", "etcd")
DENIED = ApiError(403, "Forbidden", "denied by a plugin")
LOST = UnansweredError("the connection broke off")
GONE = ApiError(404, "NotFound", "no such pod")


def pod(node: str = "", uid: str = "u1", *, ends: bool = False) -> Pod:
    """Return a pod as the API server has it."""
    meta = {
        "name": "p1",
        "namespace": "n",
        "uid": uid,
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if ends else {}),
    }
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}}, Pod)


class Answers:
    """Answers bindings and look-ups one after the other; None: the binding took effect."""

    def __init__(self, bindings: list[Exception | None], pods: list[Pod | Exception]) -> None:
        self.bindings = bindings
        self.pods = pods
        self.calls: list[str] = []
        self.waits: list[float] = []
        self.outcome = ""

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Take a binding."""
        self.calls.append(f"bind {node}")
        answer = self.bindings.pop(0)
        if answer is not None:
            raise answer

    async def get(self, kind: Kind[Pod], namespace: str, name: str) -> Pod:
        """Take a look-up."""
        self.calls.append("get")
        answer = self.pods.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        """Note a waiting time."""
        self.waits.append(seconds)


CASES: dict[str, tuple[list[Exception | None], list[Pod | Exception], list[str], str]] = {
    "at once": ([None], [], ["bind"], "bound"),
    "busy: it had no effect, so it is repeated": ([BUSY, None], [], ["bind", "bind"], "bound"),
    "conflict, and the pod waits still": ([CONFLICT, None], [pod()], ["bind", "get", "bind"], "bound"),
    "a lost answer that had taken effect": ([LOST], [pod("n1")], ["bind", "get"], "bound"),
    "a lost answer that had not": ([LOST, None], [pod()], ["bind", "get", "bind"], "bound"),
    "a lost look-up is repeated, not the binding": ([LOST], [LOST, BROKEN, pod("n1")], ["bind", *["get"] * 3], "bound"),
    "an error of the server that had taken effect": ([BROKEN], [pod("n1")], ["bind", "get"], "bound"),
    "somebody else was faster": ([CONFLICT], [pod("n2")], ["bind", "get"], "the pod was bound to node n2"),
    "the pod is gone": ([CONFLICT], [GONE], ["bind", "get"], "the pod is gone"),
    "another has its name": ([CONFLICT], [pod(uid="u2")], ["bind", "get"], "the pod is gone, and another has its name"),
    "it is being deleted": ([CONFLICT], [pod(ends=True)], ["bind", "get"], "the pod is being deleted"),
    "denied for good": ([DENIED], [], ["bind"], "403 Forbidden: denied by a plugin"),
}


def play(
    answers: Answers, count: int = 1, at_once: int = 32, is_gone: Callable[[str], bool] = lambda _: False
) -> Binder:
    """Bind pods until all have an outcome."""

    async def main() -> Binder:
        done = asyncio.Event()

        def told(_: str, reason: str = "bound") -> None:
            answers.outcome = reason
            if len(binder) == 0:
                done.set()

        guard = Clocks().guard
        binder = Binder(
            answers,
            told,
            told,
            told,
            guard=guard,
            is_gone=is_gone,
            at_once=at_once,
            dice=random.Random(1),
            sleep=answers.sleep,
        )
        for number in range(1, count + 1):
            binder.bind(Bind("n", f"p{number}", f"u{number}", f"n{number}"))
        task = asyncio.create_task(binder.run())
        async with asyncio.timeout(5.0):
            await done.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return binder

    return asyncio.run(main())


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_a_binding(name: str) -> None:
    bindings, pods, calls, outcome = CASES[name]
    answers = Answers(list(bindings), list(pods))
    play(answers)
    assert [call.split()[0] for call in answers.calls] == calls
    assert answers.outcome == outcome
    assert all(call in ("bind n1", "get") for call in answers.calls), "always to the same node"


def test_the_server_says_how_long_it_wants_to_be_left_alone() -> None:
    answers = Answers([BUSY, None], [])
    play(answers)
    assert answers.waits == [9.0]


def test_waits_grow_and_are_drawn() -> None:
    answers = Answers([BROKEN] * 11 + [None], [pod()] * 11)
    play(answers)
    for number, wait in enumerate(answers.waits):
        longest = min(0.1 * 2**number, 20.0)
        assert longest / 2 <= wait <= longest
    assert len(answers.waits) == 11


def test_what_fails_again_and_again_gives_the_place_back() -> None:
    answers = Answers([BROKEN] * 12, [pod()] * 12)
    play(answers)
    assert answers.outcome == str(BROKEN)


@pytest.mark.parametrize("at_once", [1, 4, 32])
def test_in_the_order_of_decisions_and_never_too_many_at_once(at_once: int) -> None:
    class Slow(Answers):
        under_way = 0
        most = 0

        async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.calls.append(node)
            await asyncio.sleep(0.001)
            self.under_way -= 1

    answers = Slow([], [])
    binder = play(answers, count=100, at_once=at_once)
    assert answers.calls == [f"n{number}" for number in range(1, 101)]
    assert answers.most == at_once
    assert binder.sent == 100


@pytest.mark.parametrize("after", [0, 1])
def test_no_request_is_made_for_a_pod_that_is_known_to_be_gone(after: int) -> None:
    """Its binding may wait for its turn, or to be repeated, while the pod is deleted."""

    class Gone(Answers):
        def __call__(self, _: str) -> bool:
            return len(self.calls) >= after

    answers = Gone([BUSY], [])
    play(answers, is_gone=answers)
    assert (answers.calls, answers.outcome) == (["bind n1"] * after, "the pod is gone")


class Clocks:
    """Two clocks that are set by hand."""

    def __init__(self) -> None:
        self.steady_s = self.wall_s = 0.0
        self.guard = PauseGuard(lambda: int(self.steady_s * 1e9), lambda: self.wall_s)


@pytest.mark.parametrize("clock", ["steady_s", "wall_s"])
def test_what_was_decided_before_a_pause_is_not_sent(clock: str) -> None:
    """It is not sent even if nothing but the sending itself notices the pause, and what is decided later is."""

    async def main() -> None:
        clocks = Clocks()
        answers = Answers([None], [])
        outdated: list[str] = []
        binder = Binder(answers, lambda _: None, lambda *_: None, outdated.append, guard=clocks.guard)
        binder.bind(Bind("n", "p1", "u1", "n1"))
        setattr(clocks, clock, PAUSE_S + 0.1)
        task = asyncio.create_task(binder.run())
        await asyncio.sleep(0.01)
        assert (answers.calls, outdated) == ([], ["u1"])
        clocks.guard.was_read(clocks.guard.pauses)
        binder.bind(Bind("n", "p2", "u2", "n1"))
        await asyncio.sleep(0.01)
        assert (answers.calls, outdated) == (["bind n1"], ["u1"])
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_binding_is_not_repeated_after_a_pause() -> None:
    async def main() -> None:
        clocks = Clocks()
        answers = Answers([ApiError(429, "TooManyRequests", "busy"), None], [])
        outdated: list[str] = []

        async def sleep(_: float) -> None:
            clocks.steady_s += 60.0

        binder = Binder(answers, lambda _: None, lambda *_: None, outdated.append, guard=clocks.guard, sleep=sleep)
        binder.bind(Bind("n", "p1", "u1", "n1"))
        task = asyncio.create_task(binder.run())
        await asyncio.sleep(0.01)
        assert (answers.calls, outdated) == (["bind n1"], ["u1"])
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
