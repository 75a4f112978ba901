"""`licorne replay`, and `licorne why` and `shares` at a moment of a recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from licorne import SchedulerAPI, explain
from licorne.cli.recordings import moment_ns
from licorne.cli.statuses import Status
from licorne.core.base.states import SECOND_NS
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate
from licorne.state.recording import Recorder, Replay, list_runs

Command = Callable[..., Any]
HOLIDAY = Path(__file__).resolve().parents[2] / "examples" / "gpu-holiday" / "workload.jsonl"
DUMP = HOLIDAY.parents[1] / "pods-wait" / "dump.json"
BACK_S = 6 * 3600 + 30
"""Half a minute after the second team is back, which finds no GPU free."""


@pytest.fixture
def recording(licorne: Command, tmp_path: Path) -> Path:
    folder = tmp_path / "recording"
    assert licorne("simulate", str(HOLIDAY), "--record", str(folder)).status == Status.DONE
    return folder


def test_the_outcome_is_told_as_text_and_as_data(licorne: Command, recording: Path) -> None:
    told = licorne("replay", recording)
    assert told.status == Status.DONE
    assert "the decisions are those of the recording" in told.out
    answer = json.loads(licorne("replay", recording, "--json").out)
    assert (answer["runs"], answer["outcome"]["allocations"], answer["outcome"]["remark"]) == (1, 64, "")
    assert answer["outcome"]["checked"] == answer["outcome"]["messages"]


def test_a_moment_before_the_end_is_told_as_such(licorne: Command, recording: Path) -> None:
    told = licorne("replay", recording, "--at", BACK_S)
    assert told.status == Status.DONE
    assert "of the messages the recording confirms the first 0; its next digest comes later" in told.out


def test_runs_are_listed(licorne: Command, recording: Path) -> None:
    licorne("simulate", HOLIDAY, "--record", recording)
    assert licorne("replay", recording, "--runs").out.splitlines() == [
        "run 1: from 1970-01-01T00:00:00.000Z",
        "run 2: from 1970-01-01T00:00:00.000Z",
    ]
    assert [each["run"] for each in json.loads(licorne("replay", recording, "--runs", "--json").out)] == [1, 2]
    assert "run 1 of 2" in licorne("replay", recording, "--run", 1).out
    (recording / "run-00000003").mkdir()  # as of a service that was killed within its first second
    refused = licorne("replay", recording, "--run", 3)
    assert (refused.status, "run 3: empty" in refused.err) == (Status.FILE, True)


def test_other_decisions_end_with_a_status_of_their_own(
    licorne: Command, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = list_runs(recording)
    decide = Replay._decide

    def lazy(replay: Replay, limit: int, made: int) -> None:
        decide(replay, min(limit, 1), made)

    monkeypatch.setattr(Replay, "_decide", lazy)
    told = licorne("replay", recording)
    assert told.status == Status.NO
    assert f"{run.folder}: the decisions differ: a call made 1 allocation where" in told.err


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("--run", "7"), Status.FILE, "has no run 7; there are: 1"),
        (("--at", "yesterday"), Status.USAGE, "--at yesterday: is no time; give one like 2026-11-03T14:00 (UTC)"),
    ],
)
def test_what_is_not_there_is_told(
    licorne: Command, recording: Path, arguments: tuple[str, ...], status: Status, expected: str
) -> None:
    told = licorne("replay", recording, *arguments)
    assert told.status == status
    assert expected in told.err


def test_a_folder_that_is_no_recording_is_told(licorne: Command, tmp_path: Path) -> None:
    told = licorne("replay", tmp_path)
    assert told.status == Status.FILE
    assert "no recording, it has no manifest.json; give a folder of --record" in told.err
    (tmp_path / "notes").touch()
    told = licorne("simulate", HOLIDAY, "--record", tmp_path)
    assert told.status == Status.FILE
    assert "holds other files" in told.err


@pytest.mark.parametrize("at_s", [BACK_S, 21_600, 21_800, 22_000, 40_000])
def test_a_dump_and_the_recording_of_a_moment_give_the_same_answers(
    licorne: Command, recording: Path, tmp_path: Path, at_s: int
) -> None:
    dump = tmp_path / "dump.json"
    licorne("replay", recording, "--at", at_s, "--output", dump)
    for command in ("why", "shares"):
        from_recording = json.loads(licorne(command, "--from", recording, "--at", at_s, "--json").out)
        from_dump = json.loads(licorne(command, "--from", dump, "--json").out)
        assert from_recording.pop("notes") == []
        from_dump.pop("notes")
        for answer in (from_recording, from_dump):
            answer.pop("at_s", None)
        assert from_recording == from_dump


def test_a_recorded_moment_is_asked_with_another_configuration(
    licorne: Command, recording: Path, tmp_path: Path
) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
        "[{name: vision}, {name: language, resources: {max: {vcore: 4}}}]}]}]",
        encoding="utf-8",
    )
    told = licorne("why", "--from", recording, "--at", BACK_S, "--config", queues)
    assert "root.language" in told.out
    assert "larger than the max of queue root.language (vcore)" in told.out


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("0", 0),
        ("21630", 21_630 * 10**9),
        ("1.000000001", 1_000_000_001),
        ("1970-01-01T00:01", 60 * 10**9),
        ("1970-01-01", 0),
        ("1970-01-01T02:00+02:00", 0),
        ("2026-11-03T14:00:00.25Z", 1_793_714_400_250_000_000),
    ],
)
def test_times_are_utc_unless_they_say_otherwise(text: str, expected_ns: int) -> None:
    assert moment_ns(text) == expected_ns


def test_an_anonymous_recording_replays_and_names_nobody(licorne: Command, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    told = licorne("simulate", HOLIDAY, "--record", folder, "--anonymous")
    assert told.status == Status.DONE
    assert "the decisions are those of the recording" in licorne("replay", folder).out
    state = tmp_path / "state.json"
    assert licorne("replay", folder, "--at", BACK_S, "-o", state).status == Status.DONE
    users = {app["user"] for app in json.loads(state.read_bytes())["applications"]}
    assert len(users) == 3
    assert users.isdisjoint({"vera", "lena", "victor"})
    assert licorne("simulate", HOLIDAY, "--anonymous").status == Status.USAGE


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """Return a recording of a scheduler whose resource manager ended in good order, ten seconds after its ask."""
    folder = tmp_path / "ended"
    api = SchedulerAPI()
    recorder = Recorder(folder)
    api.input_log = recorder
    config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
    api.register_resource_manager(
        v19.RegisterResourceManagerRequest(rm_id="rm", config=config), now_ns=1000 * SECOND_NS
    )
    node = NodeUpdate(node_id="n0", action=NodeAction.CREATE, capacity={"vcore": 1000})
    app = AddApplication(application_id="app", queue="root.a", user="ann")
    asks = [Allocation(key=key, application_id="app", resource={"vcore": 600}) for key in ("k0", "k1")]
    api.submit("rm", [node, app, *asks], now_ns=1010 * SECOND_NS)
    api.schedule(now_ns=1010 * SECOND_NS)
    api.stop("rm", now_ns=1020 * SECOND_NS)
    recorder.close()
    return folder


def test_without_a_moment_a_service_that_ended_is_asked_about_just_before(licorne: Command, ended: Path) -> None:
    said = licorne("why", "--from", ended)
    assert said.status == Status.DONE, said.err
    assert "1 ask waiting, 1 allocation running" in said.out
    note = "left out: the end of the last resource manager, at 1970-01-01T00:17:00.000Z; the answer is about just before it"
    assert note in said.out
    assert note in licorne("shares", "--from", ended).out
    (ended.parent / "queues.yaml").write_text("partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]")
    checked = licorne("config", "check", ended.parent / "queues.yaml", "--from", ended)
    assert checked.status == Status.DONE, checked.err
    assert note in checked.err
    assert str(explain(ended).notes[0]) == note
    assert "no resource manager is registered at this time" in licorne("why", "--from", ended, "--at", 1020).err


def test_a_moment_after_the_end_is_told_as_such(licorne: Command, recording: Path) -> None:
    end = "1970-01-02T06:01:30.000Z"
    for command in ("why", "shares"):
        said = licorne(command, "--from", recording, "--at", "1970-01-05").out
        assert f"At {end} of the recording:" in said
        assert (
            f"run 1 of the recording ends at {end}; the answer is about then, not about 1970-01-05T00:00:00.000Z"
            in said
        )
    said = licorne("shares", "--from", recording, "--since", "1970-01-04").out
    assert "what was used from 1970-01-04T00:00:00.000Z on: what was recorded ends before" in said
    assert "ends before" not in licorne("shares", "--from", recording, "--since", "1970-01-01").out
    assert "left out" not in licorne("why", "--from", recording, "--at", end).out
    assert "At 1970-01-01T06:00:30.000Z of the recording:" in licorne("why", "--from", recording, "--at", BACK_S).out


def test_a_configuration_is_checked_beside_a_moment(licorne: Command, recording: Path, tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
        "[{name: vision}, {name: language, resources: {max: {nvidia.com/gpu: 1000}}}]}]}]"
    )
    check = ("config", "check", tmp_path / "queues.yaml", "--from")
    assert licorne(*check, recording, "--at", BACK_S).status == Status.DONE
    early = licorne(*check, recording, "--at", "yesterday")
    assert (early.status, "--at yesterday: is no time" in early.err) == (Status.USAGE, True)
    for other in (HOLIDAY, DUMP):
        refused = licorne(*check, other, "--at", BACK_S)
        assert (refused.status, "only a recording has other moments; give its folder: --from DIR" in refused.err) == (
            Status.USAGE,
            True,
        )
