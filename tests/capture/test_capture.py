"""A workload captured from what a yunikorn-core answered: the one that was played to it, whatever becomes of the connection."""

from __future__ import annotations

import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.playback import EVERY_S, STEP_S, Playback, Recorded, served
from capture.played import assert_agrees, workload
from cli.conftest import Command, licorne
from common.examples import examples
from common.waiting import wait_for
from licorne.si import rest_objects as objects
from licorne.state.recording import Names
from licorne.state.recording.anonymous import AnonymityError
from licorne.state.source import Server, SourceError
from licorne.workload import lines
from licorne.workload.capture import Captured, Options, capture
from licorne.workload.capture.tracker import Tracker
from licorne.workload.workload import Mode, Workload, read_workload

__all__ = ["licorne"]

RECORDED = Recorded()
BEGIN_NS = 10**18
EMPTY = {"/ws/v1/clusters": b"[]", "/ws/v1/config": b"{}", "/ws/v1/partitions": b"[]"}
"""What a scheduler answers that has no resource manager; there is no partition, so nothing else is found."""
TOKEN = "of a test"  # noqa: S105  of a server that the test itself starts


def tracked(every_s: float, *, events: bool = True, late: list[bool] | None = None) -> tuple[Workload, Tracker]:
    """Return what a tracker makes of the recorded answers. `late`: before which polls the events came only after it."""
    put: list[tuple[int, int, int, lines.Line]] = []

    def take(at_ns: int, line: lines.Line, since_ns: int | None) -> None:
        put.append((max(at_ns, 0), at_ns if since_ns is None else since_ns, len(put), line))

    tracker = Tracker(RECORDED.begin_ns, take)
    delayed = iter(late or [])
    waiting: list[objects.EventRecord] = []
    for poll in RECORDED.polls(every_s):
        waiting += poll.events if events else []
        if not next(delayed, False):
            for event in waiting:
                tracker.event(event)
            waiting = []
        tracker.queues(poll.queues)
        tracker.nodes(poll.nodes, poll.now_ns)
        tracker.applications(poll.applications, poll.now_ns)
    for event in waiting:
        tracker.event(event)
    tracker.rejected(RECORDED.objects("applications/rejected", RECORDED.lasts_s, list[objects.Application]))
    if tracker.undescribed():
        tracker.completed(RECORDED.objects("applications/completed", RECORDED.lasts_s, list[objects.Application]))
    tracker.finish()
    made = [line for _, _, _, line in sorted(put, key=lambda each: each[:3])]
    return Workload(name="tracked", mode=Mode.TIMED, lines=made), tracker


@pytest.mark.parametrize("every_s", [0.2, 1.0, 1.4])
def test_polls_and_events_together_give_what_was_played(every_s: float) -> None:
    found, tracker = tracked(every_s)
    assert_agrees(found, workload())
    assert tracker.missed["started"] == tracker.missed["ended"] == tracker.missed["nobody"] == 0
    assert (tracker.missed["running"], tracker.missed["rejected"]) == (1, 1)
    assert [line.id for line in found.lines if isinstance(line, lines.App)].count("refused") == 1


@examples(60)
@given(late=st.lists(st.booleans(), min_size=12, max_size=12))
def test_events_that_come_behind_their_poll_change_nothing_but_what_is_not_known(late: list[bool]) -> None:
    """As long as no two polls in a row are without their events."""
    single = [is_late and not (place and late[place - 1]) for place, is_late in enumerate(late)]
    found, _ = tracked(0.7, late=single)
    assert_agrees(found, workload())


def test_without_events_polls_tell_what_they_see_and_how_much_they_miss() -> None:
    found, tracker = tracked(0.5, events=False)
    asks = {line.key: line for line in found.lines if isinstance(line, lines.Ask)}
    expected = {line.key: line for line in workload() if isinstance(line, lines.Ask)}
    assert len(expected) > len(asks) >= len(expected) // 2
    assert all((ask.app, ask.res) == (expected[key].app, expected[key].res) for key, ask in asks.items())
    assert tracker.missed["ended"] >= 10
    assert tracker.missed["started"] >= 10


# -- worked examples ----------------------------------------------------------------------------------------


def app(*requests: objects.Ask, running: tuple[objects.Allocation, ...] = (), **more: Any) -> objects.Application:
    fields = {"user": "ann", "groups": ["dev"], **more}
    return objects.Application(
        application_id="a",
        partition="default",
        queue_name="root.a",
        submission_time=BEGIN_NS,
        start_time=0,
        resource_history=objects.ResourceHistory(),
        requests=list(requests),
        allocations=list(running),
        **fields,
    )


def at(seconds: float) -> int:
    return BEGIN_NS + int(seconds * 10**9)


def request(key: str, asked_s: float, **more: Any) -> objects.Ask:
    return objects.Ask(allocation_key=key, request_time=at(asked_s), resource={"vcore": 1}, priority="0", **more)


def running(key: str, asked_s: float, started_s: float | None = None, **more: Any) -> objects.Allocation:
    """Return an allocation as licorne shows it, or as YuniKorn does, which has the time of the ask in place of the start."""
    started_ns = at(asked_s if started_s is None else started_s)
    return objects.Allocation(
        allocation_key=key,
        request_time=at(asked_s),
        allocation_time=started_ns,
        resource={"vcore": 1},
        priority="0",
        node_id="n",
        **more,
    )


def put_by(*polls: tuple[float, objects.Application | None]) -> tuple[dict[str, lines.Line], Tracker]:
    found: dict[str, lines.Line] = {}

    def take(at_ns: int, line: lines.Line, _since_ns: int | None) -> None:
        line.at = at_ns / 10**9
        found[f"{type(line).__name__} {getattr(line, 'key', '')}".strip()] = line

    tracker = Tracker(BEGIN_NS, take)
    for seconds, shown in polls:
        tracker.applications([] if shown is None else [shown], at(seconds))
    tracker.finish()
    return found, tracker


def test_a_pod_that_ran_at_the_beginning_stays_on_its_node_and_runs_as_long_as_it_still_ran() -> None:
    found, tracker = put_by((0, app(running=(running("p", -50),))), (10, None), (20, None))
    ask = found["Ask p"]
    assert isinstance(ask, lines.Ask)
    assert (ask.at, ask.node, ask.duration_s) == (0, "n", 10)
    assert tracker.missed["present"] == tracker.missed["ended"] == 1


def test_licornes_times_of_placement_count() -> None:
    found, tracker = put_by((0, app()), (10, app(running=(running("p", 3, 4),))), (20, None), (30, None))
    ask = found["Ask p"]
    assert isinstance(ask, lines.Ask)
    assert (ask.at, ask.node, ask.duration_s) == (3, "", 16)
    assert tracker.missed["started"] == 0


def test_yunikorn_does_not_tell_when_a_pod_was_placed() -> None:
    found, tracker = put_by((0, app(request("p", -1))), (10, app(running=(running("p", -1),))))
    ask = found["Ask p"]
    assert isinstance(ask, lines.Ask)
    assert (ask.at, ask.node, ask.duration_s) == (-1, "", None)
    assert tracker.missed["started"] == tracker.missed["running"] == 1


def test_an_ask_that_is_taken_back_is_released() -> None:
    found, _ = put_by((0, app(request("p", 0))), (10, app()), (20, app()))
    assert found["Release p"].at == 10


def test_one_poll_that_does_not_show_a_pod_does_not_end_it() -> None:
    found, tracker = put_by((0, app(request("p", 0))), (10, app()), (20, app(request("p", 0))))
    assert "Release p" not in found
    assert tracker.missed["ended"] == 0


def test_a_gang_has_the_sum_of_its_placeholders() -> None:
    groups = [objects.Placeholders(task_group_name=name, count=2, min_resource={"vcore": 3}) for name in "xy"]
    pod = running("p", 0, placeholder=True, task_group_name="x")
    found, tracker = put_by((0, app(running=(pod,), placeholder_data=groups)))
    line, ask = found["App"], found["Ask p"]
    assert isinstance(line, lines.App)
    assert isinstance(ask, lines.Ask)
    assert (line.ph_ask, line.style, ask.ph, ask.group) == ({"vcore": 12}, "Soft", True, "x")
    assert tracker.missed["gang"] == 1


# -- over HTTP ----------------------------------------------------------------------------------------------


def captured(play: Playback, file: Path, names: Names | None = None) -> tuple[Captured, Workload]:
    def ends() -> bool:
        """Tell whether some polls have shown the end, and the last events have come too."""
        return play.at > play.recorded.lasts_s + 5 * STEP_S

    with served(play) as url:
        done = capture(Server(url, token=play.token), file, Options(every_s=EVERY_S), names=names, stop=ends)
    return done, read_workload(file)


def keys(found: Workload) -> set[str]:
    return {line.key for line in found.lines if isinstance(line, lines.Ask)}


EXPECTED = {line.key for line in workload() if isinstance(line, lines.Ask)}


@pytest.mark.parametrize("how", ["stream", "batches"])
def test_over_http(tmp_path: Path, how: str) -> None:
    play = Playback(has_stream=how == "stream", token=TOKEN)
    done, found = captured(play, tmp_path / "week.jsonl")
    assert keys(found) == EXPECTED
    assert done.asks == len(EXPECTED)
    assert found.notes == list(done.notes)
    assert not any("events" in note and "no events were read" in note for note in done.notes)
    assert ("/ws/v1/events/batch" in play.asked) == (how == "batches")
    assert [path.name for path in tmp_path.iterdir()] == ["week.jsonl"]
    assert (tmp_path / "week.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_lost_connection_is_told_and_what_happened_meanwhile_comes_from_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licorne.workload.capture.capturing.PAUSES_S", (0.05, 0.1))
    monkeypatch.setattr("licorne.workload.capture.events.PAUSES_S", (0.05, 0.1))
    done, found = captured(Playback(down=(2.0, 4.5)), tmp_path / "week.jsonl")
    assert keys(found) == EXPECTED
    assert any("could not be reached 1 times" in note for note in done.notes)
    assert not any("gaps" in note for note in done.notes)


def test_a_scheduler_without_events_is_told(tmp_path: Path) -> None:
    done, found = captured(Playback(has_events=False), tmp_path / "week.jsonl")
    assert keys(found) < EXPECTED
    assert any("no events were read, so what happened between two polls is not known" in note for note in done.notes)


def test_a_scheduler_that_does_not_answer_at_the_beginning_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with served(Playback(token=TOKEN)) as url, pytest.raises(SourceError, match="asks for a token"):
        capture(Server(url), tmp_path / "week.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_without_a_resource_manager_is_told_as_such(tmp_path: Path) -> None:
    class Empty(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            found = EMPTY.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(found or b"")

    def serve() -> str:
        with HTTPServer(("127.0.0.1", 0), Empty) as http:
            threading.Thread(target=http.serve_forever, daemon=True).start()
            try:
                with pytest.raises(SourceError) as caught:
                    capture(Server(f"http://127.0.0.1:{http.server_port}"), tmp_path / "week.jsonl")
            finally:
                http.shutdown()
        return str(caught.value)

    assert "no resource manager is registered with the scheduler, so there is nothing to record yet" in serve()
    EMPTY.pop("/ws/v1/partitions")
    assert "404: no REST interface of a scheduler is here" in serve()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gate
def test_names_are_replaced_or_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "week.jsonl"
    captured(Playback(), file, names=Names())
    text = file.read_text(encoding="utf-8")
    assert [name for name in ('"ann"', '"bob"', '"cem"', '"dan"', '"dev"', '"ops"', "- bob") if name in text] == []
    file.unlink()
    play = Playback()
    body = play.recorded.bodies["/ws/v1/config"][0]
    rule = body[1].replace('"Name":"provided"', '"Name":"user"')
    assert rule != body[1]
    play.recorded.bodies["/ws/v1/config"] = [(body[0], rule)]
    with served(play) as url, pytest.raises(AnonymityError):
        capture(Server(url), file, names=Names())
    assert list(tmp_path.iterdir()) == []


# -- the command --------------------------------------------------------------------------------------------


def test_ctrl_c_ends_with_a_complete_file(tmp_path: Path, licorne: Command) -> None:
    file = tmp_path / "week.jsonl"
    play = Playback()

    def interrupt() -> None:
        wait_for(lambda: play.at > 6)
        os.kill(os.getpid(), signal.SIGINT)

    with served(play) as url:
        interrupting = threading.Thread(target=interrupt, daemon=True)
        interrupting.start()
        done = licorne("convert", url, "-o", file, "--every", "0.2")
        interrupting.join()
    assert done.status == 0, done.err
    assert len(keys(read_workload(file))) > 5
    assert licorne("simulate", file).status == 0


def test_the_limit_of_asks_ends_it(tmp_path: Path, licorne: Command) -> None:
    with served(Playback()) as url:
        done = licorne("convert", url, "-o", tmp_path / "week.jsonl", "--every", "0.1", "--max-asks", "4")
    assert done.status == 0
    assert "note: the recording ended as it had 4 asks" in done.err


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("http://127.0.0.1:1",), 4, "nothing listens there"),
        (("http://127.0.0.1:1", "--for", "soon"), 2, "--for: soon: give seconds"),
        (("http://127.0.0.1:1", "--token-file", "nowhere"), 4, "nowhere"),
    ],
)
def test_errors_say_what_to_do(
    tmp_path: Path, licorne: Command, arguments: tuple[str, ...], status: int, expected: str
) -> None:
    done = licorne("convert", *arguments, "-o", tmp_path / "week.jsonl")
    assert done.status == status
    assert expected in done.err
    assert list(tmp_path.iterdir()) == []
