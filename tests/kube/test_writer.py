"""Events: one that says the same as one before raises its count, which costs few writes and survives what goes wrong.

Evictions that are refused are tried again, and keep nothing else waiting.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from kube.virtual import run
from licorne.kube.api import ApiError, UnansweredError
from licorne.kube.manager.commands import CreatePod, Evict, PostEvent
from licorne.kube.pauses import PauseGuard
from licorne.kube.writing import Writer
from licorne.kube.writing.writer import AT_ONCE, REFUSED_S

FAILURE = PostEvent("Pod", "ns", "p", "u", "PodBindFailure", "PodBindFailure", "no bindings today", warning=True)
OTHER = PostEvent("Pod", "ns", "p", "u", "PodBindFailure", "PodBindFailure", "the pod is gone", warning=True)


class Events:
    """The events of an API server; each call with an outcome of `outcomes`, if there is one left, ends with that."""

    def __init__(self, outcomes: list[Exception | None] | None = None) -> None:
        self.outcomes = outcomes or []
        self.by_path: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []

    def counts(self) -> list[int]:
        return [one.get("series", {"count": 1})["count"] for one in self.by_path.values()]

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self.calls.append("create")
        where = f"{path}/{body['metadata']['name']}"
        known = where in self.by_path
        self.by_path.setdefault(where, body)
        if self.outcomes and (outcome := self.outcomes.pop(0)) is not None:
            raise outcome
        if known:
            raise ApiError(409, "AlreadyExists", "there is one already")

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        self.calls.append("patch")
        if path not in self.by_path:
            raise ApiError(404, "NotFound", "there is none")
        self.by_path[path].update(body)

    async def delete_pod(self, *_: Any) -> None: ...
    async def patch_pod_status(self, *_: Any) -> None: ...


def played(client: Events, *moments: tuple[float, PostEvent], forgets_s: float | None = None) -> Events:
    """Write events at these moments; the API server forgets all events at `forgets_s`."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        writer = Writer(client, lambda *_: None, guard=guard, clock=loop.time)
        began = loop.time()
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        for moment, event in moments:
            await asyncio.sleep(began + moment - loop.time())
            if forgets_s is not None and moment >= forgets_s:
                client.by_path.clear()
            writer.write(event)
        await asyncio.sleep(10.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(play())
    return client


CASES: dict[str, tuple[list[tuple[float, PostEvent]], list[int], list[str]]] = {
    "one": ([(0, FAILURE)], [1], ["create"]),
    "two that say different things": ([(0, FAILURE), (1, OTHER)], [1, 1], ["create", "create"]),
    "the second time is written at once": ([(0, FAILURE), (1, FAILURE)], [2], ["create", "patch"]),
    "the third time is counted alone": ([(n, FAILURE) for n in range(3)], [2], ["create", "patch"]),
    "what was counted is written after ten minutes": (
        [*((n, FAILURE) for n in range(9)), (610, FAILURE)],
        [10],
        ["create", "patch", "patch"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_repeats_is_counted(name: str) -> None:
    moments, counts, calls = CASES[name]
    found = played(Events(), *moments)
    assert (found.counts(), found.calls) == (counts, calls)


def test_half_of_a_surrogate_pair_is_replaced() -> None:
    half = msgspec.structs.replace(FAILURE, note="it names \ud800")
    found = played(Events(), (0, half), (1, half))
    assert [body["note"] for body in found.by_path.values()] == ["it names ?"]
    assert found.counts() == [2]


def test_an_event_whose_answer_was_lost_is_there_once() -> None:
    found = played(Events([UnansweredError("lost")]), (0, FAILURE))
    assert (found.counts(), found.calls) == ([1], ["create", "create"])


def test_an_event_that_the_server_has_forgotten_is_posted_anew_with_its_count() -> None:
    found = played(Events(), (0, FAILURE), (1, FAILURE), (5000, FAILURE), forgets_s=5000)
    assert (found.counts(), found.calls) == ([3], ["create", "patch", "patch", "create"])


def test_an_event_that_could_not_be_posted_is_posted_the_next_time() -> None:
    found = played(Events([ApiError(403, "Forbidden", "no")]), (0, FAILURE), (1, FAILURE))
    assert found.calls == ["create", "create"]


def test_an_eviction_that_is_refused_is_tried_again_and_keeps_nothing_waiting() -> None:
    """As many are refused, three times each, as there are workers; one that is not comes last."""
    refused = [f"u{number}" for number in range(AT_ONCE)]
    left = dict.fromkeys(refused, 3)
    deleted: dict[str, float] = {}
    complaints: list[str] = []

    class Pods(Events):
        async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
            if left.get(uid):
                left[uid] -= 1
                raise ApiError(403, "Forbidden", "a webhook says no")
            deleted[uid] = asyncio.get_running_loop().time()

    async def play() -> None:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        writer = Writer(Pods(), lambda *_: None, complain=complaints.append, guard=guard, clock=loop.time)
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        began = loop.time()
        for uid in (*refused, "last"):
            writer.write(Evict("ns", uid, uid, "reason", "message", disruption=True))
        await asyncio.sleep(1.0)
        assert list(deleted) == ["last"]
        assert len(writer) == AT_ONCE
        await asyncio.sleep(4 * REFUSED_S)
        assert len(writer) == 0
        assert [deleted[uid] - began for uid in refused] == pytest.approx([3 * REFUSED_S] * AT_ONCE, abs=1.0)
        assert len(complaints) == AT_ONCE, "each is said once"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(play())


def test_a_placeholder_that_is_not_wanted_any_more_is_not_created() -> None:
    """Be it that it waits for its turn, or that the server was too busy for it before."""
    found = Events([ApiError(503, "", "busy"), None])
    wanted = {"busy", "made"}

    async def play() -> None:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        writer = Writer(found, lambda *_: None, is_wanted=lambda one: one.group in wanted, guard=guard, clock=loop.time)
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        for group in ("busy", "late", "made"):
            writer.write(CreatePod("ns", "app", group, "owner", {"metadata": {"name": group}}))
        await asyncio.sleep(0.1)
        wanted.discard("busy")
        await asyncio.sleep(10.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(play())
    assert found.calls == ["create", "create"]


def test_a_placeholder_whose_name_is_taken_is_told() -> None:
    taken: list[tuple[str, str]] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        found = Events([ApiError(409, "AlreadyExists", "there is one already")])
        writer = Writer(found, lambda *_: None, taken=lambda *what: taken.append(what), guard=guard, clock=loop.time)
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        writer.write(CreatePod("ns", "app", "g", "owner", {"metadata": {"name": "tg-app-g-1"}}))
        await asyncio.sleep(10.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(play())
    assert taken == [("app", "tg-app-g-1")]
