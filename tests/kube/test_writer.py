"""Events: one that says the same as one before raises its count, which costs few writes and survives what goes wrong.

Evictions that are refused are tried again, and keep nothing else waiting.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.virtual import run
from licorne.kube.api import ApiError, Client, UnansweredError
from licorne.kube.manager.commands import CreatePod, Evict, PostEvent, SetCondition, SetGroupCondition
from licorne.kube.pauses import PauseGuard
from licorne.kube.writer import _KINDS, AT_ONCE, REFUSED_S, REPORTS_MAX, TRIES_TO_REPORT, Writer

FAILURE = PostEvent("Pod", "ns", "p", "u", "PodBindFailure", "PodBindFailure", "no bindings today", warning=True)
OTHER = PostEvent("Pod", "ns", "p", "u", "PodBindFailure", "PodBindFailure", "the pod is gone", warning=True)


class Events(Client):
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

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        self.calls.append("patch")
        if path not in self.by_path:
            raise ApiError(404, "NotFound", "there is none")
        self.by_path[path].update(body)
        return b""

    async def delete_pod(self, *_: Any) -> None: ...
    async def patch_status(self, *_: Any) -> None: ...


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
        writer = Writer(Pods(), lambda *_: None, warn=complaints.append, guard=guard, clock=loop.time)
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
    told: list[tuple[str, str, bool]] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        found = Events([ApiError(409, "AlreadyExists", "there is one already")])
        writer = Writer(
            found,
            lambda *_: None,
            exists=lambda *what, taken: told.append((*what, taken)),
            guard=guard,
            clock=loop.time,
        )
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        writer.write(CreatePod("ns", "app", "g", "owner", {"metadata": {"name": "tg-app-g-1"}}))
        await asyncio.sleep(10.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(play())
    assert told == [("app", "tg-app-g-1", True)]


BROKEN = ApiError(500, "InternalError", "failed calling webhook")
BUSY = ApiError(429, "TooManyRequests", "busy")
DENIED = ApiError(403, "Forbidden", "a webhook says no")
LOST = UnansweredError("the connection broke off")


class Tenants(Events):
    """Takes every write at once but those in the namespace `bad`, each of which takes a while, and may fail.

    `refused`: the calls that fail there.
    """

    def __init__(
        self, error: Exception | None, takes_s: float = 0.0, refused: tuple[str, ...] = ("create", "patch", "delete")
    ) -> None:
        super().__init__()
        self.error = error
        self.takes_s = takes_s
        self.refused = refused
        self.done: list[tuple[str, float]] = []
        self.told: dict[str, Any] = {}

    async def _take(self, what: str, namespace: str, name: str) -> None:
        self.calls.append(f"{what} {name}")
        if namespace == "bad":
            await asyncio.sleep(self.takes_s)
            if self.error is not None and what in self.refused:
                raise self.error
        self.done.append((f"{what} {name}", asyncio.get_running_loop().time()))

    async def create(self, path: str, body: dict[str, Any]) -> None:
        namespace = path.partition("/namespaces/")[2].partition("/")[0]
        await self._take("create", namespace, body["metadata"]["name"].partition(".")[0])

    async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
        await self._take("delete", namespace, name)

    async def patch_status(
        self, kind: Any, namespace: str, name: str, uid: str, status: Any, version: str = ""
    ) -> None:
        await self._take("patch", namespace, name)
        self.told = status


AnyWrite = CreatePod | Evict | PostEvent | SetCondition | SetGroupCondition


def written(
    client: Tenants, *moments: tuple[float, AnyWrite], until_s: float = 100.0, **more: Any
) -> tuple[dict[str, float], Writer]:
    """Write commands at these moments. Returns when which call was done, the first time."""

    async def play() -> Writer:
        loop = asyncio.get_running_loop()
        guard = PauseGuard(lambda: int(loop.time() * 1e9), loop.time)
        writer = Writer(client, lambda *_: None, guard=guard, clock=loop.time, **more)
        tasks = [asyncio.create_task(guard.watch()), asyncio.create_task(writer.run())]
        for moment, command in moments:
            await asyncio.sleep(moment - loop.time())
            writer.write(command)
        await asyncio.sleep(until_s - loop.time())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return writer

    writer = run(play())
    return dict(reversed(client.done)), writer


def creation(number: int) -> CreatePod:
    return CreatePod("bad", "app", "g", "owner", {"metadata": {"name": f"tg-{number}"}})


def eviction(name: str, namespace: str = "good") -> Evict:
    return Evict(namespace, name, name, "reason", "message")


def condition(name: str, text: str = "message") -> SetCondition:
    return SetCondition("good", name, name, "Unschedulable", text, "1")


@pytest.mark.parametrize("error", [BROKEN, BUSY, LOST], ids=str)
@pytest.mark.parametrize("what", ["creations", "evictions"])
def test_a_namespace_whose_webhook_is_down_keeps_no_other_waiting(what: str, error: Exception) -> None:
    """More writes fail there than there are workers, and are repeated for ever."""
    made = [creation(number) if what == "creations" else eviction(f"b{number}", "bad") for number in range(50)]
    event = msgspec.structs.replace(FAILURE, namespace="good", name="told")
    good: list[AnyWrite] = [eviction("victim"), condition("waits"), event]
    client = Tenants(error, refused=("create", "delete"))
    done, writer = written(client, *((0, one) for one in made), *((5.0, one) for one in good))
    for call in ("patch victim", "delete victim", "patch waits", "create told"):
        assert done[call] < 5.1, call
    assert len(writer) == len(made), "nothing is forgotten"


@pytest.mark.parametrize("what", ["creations", "evictions"])
def test_a_webhook_that_does_not_answer_holds_up_its_own_namespace_alone(what: str) -> None:
    made = [creation(number) if what == "creations" else eviction(f"b{number}", "bad") for number in range(400)]
    good = [(float(second), eviction(f"v{second}")) for second in range(1, 90)]
    done, _ = written(Tenants(BROKEN, takes_s=10.0), *((0, one) for one in made), *good)
    late = {second: done[f"delete v{second}"] - second for second in range(1, 90)}
    assert max(late.values()) < 10.1, "until the first answers nothing is known"
    assert max(took for second, took in late.items() if second > 10) < 0.1


def test_what_must_be_done_and_conditions_do_not_stand_behind_the_placeholders_of_a_large_gang() -> None:
    """A creation takes two seconds, and none fails."""
    made = [(0.0, creation(number)) for number in range(400)]
    client = Tenants(None, takes_s=2.0)
    done, writer = written(client, *made, (5.0, eviction("victim")), (5.0, condition("waits")), until_s=200.0)
    assert done["delete victim"] < 5.1
    assert done["patch waits"] < 5.1
    assert len([call for call in done if call.startswith("create tg-")]) == 400
    assert len(writer) == 0


@pytest.mark.parametrize("error", [BROKEN, DENIED, LOST, ApiError(409, "Conflict", "it has been modified")], ids=str)
def test_a_victim_that_cannot_be_told_why_it_goes_is_deleted_all_the_same(error: Exception) -> None:
    complaints: list[str] = []
    client = Tenants(error, refused=("patch",))
    done, writer = written(client, (0, eviction("victim", "bad")), warn=complaints.append)
    assert client.calls == ["patch victim"] * TRIES_TO_REPORT + ["delete victim"]
    assert done["delete victim"] < 3.0
    assert len(writer) == 0
    assert [text.split(";")[-1] for text in complaints] == [" it is evicted without the condition DisruptionTarget"]


def test_a_victim_that_is_gone_is_neither_told_nor_deleted() -> None:
    client = Tenants(ApiError(404, "NotFound", "there is none"))
    _, writer = written(client, (0, eviction("victim", "bad")))
    assert client.calls == ["patch victim"]
    assert len(writer) == 0


def test_a_victim_that_was_told_is_not_told_again() -> None:
    client = Tenants(BROKEN, refused=("delete",))
    written(client, (0, eviction("victim", "bad")), until_s=10.0)
    assert client.calls.count("patch victim") == 1
    assert client.calls.count("delete victim") > 3


def test_an_older_condition_is_not_written_after_a_newer_one() -> None:
    """The first request was refused, and is due again after the newer condition has been written."""
    texts: list[str] = []

    class Busy(Tenants):
        async def patch_status(self, kind: Any, namespace: str, name: str, uid: str, status: Any, *_: str) -> None:
            texts.append(status["conditions"][0]["message"])
            if len(texts) == 1:
                raise ApiError(429, "TooManyRequests", "busy", 20.0)

    _, writer = written(Busy(None), (0, condition("p", "older")), (10.0, condition("p", "newer")))
    assert texts == ["older", "newer"]
    assert (len(writer), writer.results.counts["condition", "left_out"]) == (0, 0)


def test_what_is_to_be_repeated_counts_among_the_conditions_that_wait() -> None:
    client = Tenants(BUSY)
    events = [msgspec.structs.replace(FAILURE, namespace="bad", uid=str(number)) for number in range(REPORTS_MAX + 10)]
    moments = [*((0.0, one) for one in events[:REPORTS_MAX]), *((0.2, one) for one in events[REPORTS_MAX:])]
    _, writer = written(client, *moments, until_s=0.21)
    assert writer.results.counts["event", "left_out"] == 10


def test_the_condition_of_a_pod_group_keeps_its_time_and_is_told_again_where_it_was_not_written() -> None:
    lost: list[str] = []

    def condition(namespace: str) -> SetGroupCondition:
        return SetGroupCondition(
            namespace, "g", "uid-g", "Unschedulable", "why", "7", 3, status=False, since="2026-01-01"
        )

    client = Tenants(ApiError(409, "Conflict", "the object has been modified"))
    written(client, (0.0, condition("good")), (1.0, condition("bad")), not_told=lost.append)
    (told,) = client.told["conditions"]
    assert (told["type"], told["status"]) == ("PodGroupInitiallyScheduled", "False")
    assert (told["observedGeneration"], told["lastTransitionTime"]) == (3, "2026-01-01")
    assert lost == ["uid-g"]


def test_the_documents_name_the_kinds_of_writes() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"
    (row,) = (
        line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `licorne_writes_total`")
    )
    assert [kind for kind in (*_KINDS.values(), "binding", "lease") if f"`{kind}`" not in row] == []
