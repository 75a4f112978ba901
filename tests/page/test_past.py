"""Time: moments of the recording of a scheduler that runs, two moments side by side, and the time before a moment."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from common.waiting import WAIT_S
from licorne.host.web.page import past as past_module
from licorne.host.web.page.past import Past
from licorne.host.web.rest import Access, RequestLimits
from licorne.host.web.rest.errors import RestError
from licorne.state.recording import Recorder
from page.clients import shown, text_of
from rest.world import SECOND_NS, START_NS, World, run

START = START_NS // SECOND_NS
FAIR = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - {name: a, resources: {guaranteed: {vcore: 2}}}
          - {name: b}
"""


def night(folder: Path, access: Access | None = None) -> World:
    """b takes the node; a minute later a wants its guarantee, which it gets when b ends after another minute."""
    world = World(access, limits=RequestLimits(request_s=WAIT_S))
    world.api.input_log = Recorder(folder)
    world.register(text=FAIR).node("n1", vcore=3_000)
    world.application("of-b", "root.b", "bob").application("of-a", "root.a", "ann")
    world.ask("b1", "of-b", vcore=3_000).schedule(1.0)
    world.ask("a1", "of-a", vcore=2_000).schedule(60.0)
    world.release("b1", "of-b")
    world.schedule(60.0)
    world.schedule(60.0)
    return world


def closed(world: World) -> World:
    """A world whose recording is complete on the disk, and goes on."""
    log = world.api.input_log
    assert isinstance(log, Recorder)
    assert log.close()
    return world


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(past_module, "LIMIT_S", WAIT_S)
    return closed(night(tmp_path / "night"))


def asked(world: World, *addresses: str, cookie: str = "") -> list[httpx.Response]:
    """What a scheduler that runs answers, in one loop, which ends the process of the past."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(world.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            found = [await client.get(address, headers={"cookie": cookie}) for address in addresses]
        world.app.handlers.ending.set()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        return found

    found: list[httpx.Response] = run(ask())
    assert not world.failures
    return found


def test_a_scheduler_that_runs_shows_the_moments_of_its_recording(world: World) -> None:
    now, before, later, wrong = asked(world, "/", f"/?t={START + 30}", f"/queues?t={START + 90}", "/?t=yesterday")
    assert 'type="range"' in now.text and "Compare with" not in now.text
    assert "<b>1</b> pod runs" in before.text and ">Recorded</b> <b>night" in before.text
    assert f'href="/nodes?t={START + 30}"' in before.text
    assert "root.a" in later.text
    assert wrong.status_code == 400 and "is no time" in wrong.text


def test_who_has_logged_in_can_log_out_of_the_past_too(tmp_path: Path) -> None:
    world = closed(night(tmp_path / "night", Access(read_tokens=("secret",))))
    headers = {"origin": "http://scheduler", "content-type": "application/x-www-form-urlencoded"}
    cookie = world.request("POST", "/login", "token=secret", headers).headers["set-cookie"].partition(";")[0]
    [answer] = asked(world, f"/?t={START + 30}", cookie=cookie)
    assert ">Recorded</b> <b>night" in answer.text and "Log out" in answer.text


def test_without_a_recording_only_the_present_is_there() -> None:
    world = World().register()
    [answer] = asked(world, f"/?t={START}")
    assert answer.status_code == 404 and "--record" in answer.text


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("/", ["Pods", "waiting", "2 cores"]),
        ("/queues", ["root.a", "Waiting", "root.b", "Used"]),
        ("/applications", ["of-a", "Pods running", "of-b"]),
        ("/nodes", ["n1", "Used"]),
        ("/people", ["ann", "bob"]),
        ("/configuration", ["nothing that this view shows"]),
    ],
)
def test_two_moments_side_by_side(world: World, view: str, expected: list[str]) -> None:
    [answer] = asked(world, f"{view}?t={START + 150}&against={START + 30}")
    assert answer.status_code == 200, answer.text
    main = answer.text.partition("<main")[2]
    assert "what has changed" in main
    assert [text for text in expected if text not in main] == []


def test_what_has_no_table_is_not_compared(world: World) -> None:
    [answer] = asked(world, f"/decisions?t={START + 150}&against={START + 90}")
    assert answer.status_code == 200 and "Two are compared in: Now, Queues, Applications" in answer.text
    find = answer.text.partition('<form class="find"')[2].partition("</form>")[0]
    assert f'name="t" value="{START + 150}"' in find  # what is found is shown at the same moment


def test_fairness_tells_who_was_below_its_guarantee_and_since_when(world: World) -> None:
    waits, got = asked(world, f"/fairness?t={START + 100}", f"/fairness?t={START + 170}")
    row = waits.text.partition('<th scope="row">')[2].partition("</tr>")[0]
    assert "root.a" in row and "0 %" in row and "UTC" in row
    row = got.text.partition('<th scope="row">')[2].partition("</tr>")[0]
    assert "100 %" in row and "UTC" not in row and "data-plot" in got.text


def test_decisions_lead_to_the_state_that_they_were_based_on(world: World) -> None:
    [answer] = asked(world, f"/decisions?t={START + 150}")
    assert f"t={START + 120}.999999999" in answer.text
    assert answer.text.index(">a1<") < answer.text.index(">b1<")  # the newest first


def test_live_both_show_what_this_process_has_noted(world: World) -> None:
    run(world.monitor.sample())
    assert "root.a" in text_of(world, "/fairness")
    assert "b1" in text_of(world, "/decisions?queue=root.b")
    assert "a1" not in text_of(world, "/decisions?queue=root.b")


def test_names_are_only_text(tmp_path: Path) -> None:
    name = "<img src=x>"
    world = night(tmp_path / "night").application(name, "root.b", name).ask(name, name, vcore=1)
    world.schedule(1.0)
    run(world.monitor.sample())
    for address in ("/decisions", "/fairness", f"/decisions?queue={name}", f"/fairness?queue={name}&window={name}"):
        assert "<img" not in shown(world, address)
    closed(world)
    [answer] = asked(world, f"/applications?t={START + 190}&against={START + 30}")
    assert "&lt;img" in answer.text and "<img" not in answer.text


def test_too_many_who_wait_and_a_process_that_ends_are_told(tmp_path: Path) -> None:
    async def ask(past: Past) -> Any:
        with pytest.raises(RestError) as refused:
            await past.page("/", "")
        ending.set()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        return refused.value.status

    ending = asyncio.Event()
    past = Past(tmp_path / "none", ending)
    assert run(ask(past)) == 503
    past._waiting = 16
    assert run(ask(past)) == 503
