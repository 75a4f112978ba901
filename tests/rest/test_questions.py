"""`/api/v1/why` and `/api/v1/shares`: what they answer, who may ask, and what happens when two ask at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from licorne.host.web.rest import Access
from licorne.si.messages import Allocation
from licorne.state.recording import Recorder
from rest.world import SECOND_NS, START_NS, World, busy, run


def test_all_that_waits(world: World) -> None:
    answer = world.get("/api/v1/why")
    assert (answer["type"], answer["running"], answer["waiting"]) == ("overview", 1, 2)
    assert {group["oldest"] for group in answer["groups"]} == {"k2", "k3"}


def test_why_an_ask_and_an_application_wait(world: World) -> None:
    ask = world.get("/api/v1/why/k2")
    assert (ask["type"], ask["key"], ask["queue"], ask["state"]) == ("ask", "k2", "root.a", "waits")
    assert ask["proposals"]["found"], ask
    application = world.get("/api/v1/why/app-2?prove=false")
    assert (application["type"], application["waiting"]) == ("application", 1)
    assert application["first"]["key"] == "k3"
    assert application["first"]["proposals"] is None


def test_why_an_ask_waits_whose_user_has_a_name_of_any_form() -> None:
    world = World().register().node("n1", vcore=1000).application("num", "root.b.dyn", "1001")
    wanted = {"vcore": 600}
    for key in ("k1", "k2"):
        world.submit(
            Allocation(
                key=key, application_id="num", resource=wanted, allow_preempt_self=True, allow_preempt_other=True
            )
        )
    world.schedule(1.0)
    answer = world.get("/api/v1/why/num")
    assert (answer["running"], answer["waiting"]) == (1, 1)
    assert any("in place of" in proposal["text"] for proposal in answer["first"]["proposals"]["found"])
    [part] = world.get("/api/v1/shares")["partitions"]
    assert [row["used"] for row in part["people"] if row["name"] == "1001" and row["kind"] == "user"] == [600]


def test_who_has_what(world: World) -> None:
    [part] = world.get("/api/v1/shares")["partitions"]
    used = {(row["queue"], row["resource"]): row["used"] for row in part["queues"]}
    assert used["root.a", "memory"] == 10**6


def test_what_was_used_since_a_time_is_told_from_the_recording(tmp_path: Path) -> None:
    world = World()
    recorder = world.api.input_log = Recorder(tmp_path)
    world.register().node("n1", vcore=4_000).application("app-1").ask("k1", "app-1", vcore=1_000).schedule()
    world.schedule(3600.0)
    recorder.close()  # which writes what is recorded; a service goes on, and tells as much as is written
    begun = START_NS // SECOND_NS
    found = world.get(f"/api/v1/shares?since={begun + 1800}")["hours"]
    used = {(row["kind"], row["name"], row["resource"]): row["hours"] for row in found["used"]}
    assert (found["since_s"], found["until_s"]) == (begun + 1800, begun + 3600)
    assert used["queue", "root.a", "vcore"] == used["user", "alice", "vcore"] == 500
    assert world.get("/api/v1/shares")["hours"] is None


def test_what_was_used_is_not_told_without_a_recording_or_a_time(world: World, tmp_path: Path) -> None:
    said = "since=2026-11-03: nothing is recorded here, so nothing is known of the time before"
    assert world.get("/api/v1/shares?since=2026-11-03", 400)["message"] == said
    recorded = World()
    with Recorder(tmp_path) as recorder:
        recorded.api.input_log = recorder
        recorded.register()
        assert "since=yesterday: is no time" in recorded.get("/api/v1/shares?since=yesterday", 400)["message"]


def test_nothing_changes_by_a_question(world: World) -> None:
    before = world.get("/debug/fullstatedump")
    world.get("/api/v1/why/k2")
    assert world.get("/debug/fullstatedump") == before


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/api/v1/why/k9", "no application, ask, allocation or pod is named 'k9'"),
        ("/api/v1/why/k2?partition=gpu", "there is no partition 'gpu'; there are: default"),
        ("/api/v1/shares?partition=gpu", "there is no partition 'gpu'"),
    ],
)
def test_what_is_not_there_is_a_404_that_says_what_there_is(world: World, path: str, said: str) -> None:
    assert said in world.get(path, 404)["message"]


def test_without_a_resource_manager_nothing_can_be_asked() -> None:
    assert World().get("/api/v1/why", 404)["message"] == "No resource manager is registered yet"


def test_one_question_at_a_time(world: World) -> None:
    async def both() -> tuple[httpx.Response, httpx.Response]:
        async with world.client() as client:
            return await asyncio.gather(client.get("/api/v1/why"), client.get("/api/v1/shares"))

    first, second = run(both())
    assert (first.status_code, second.status_code) == (200, 503)
    assert second.headers["retry-after"] == "5"
    assert world.get("/api/v1/shares")


def test_a_client_that_goes_away_leaves_no_process(world: World) -> None:
    async def gone() -> None:
        async with world.client() as client:
            asking = asyncio.create_task(client.get("/api/v1/why"))
            await asyncio.sleep(0.05)  # less than Python takes to start
            asking.cancel()
            await asyncio.wait([asking])

    run(gone())
    assert world.get("/api/v1/why")["waiting"] == 2


def test_a_token_that_may_read_may_ask() -> None:
    home = busy()
    world = World(Access(read_tokens=("r",), admin_tokens=("a",)))
    assert world.request("GET", "/api/v1/why").status_code == 401
    assert world.request("GET", "/api/v1/why", headers={"Authorization": "Bearer r"}).status_code == 404
    assert home.request("GET", "/api/v1/why").status_code == 200


@pytest.fixture(scope="module")
def world() -> Any:
    return busy()
