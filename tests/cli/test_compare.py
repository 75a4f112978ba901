"""`licorne compare`: two configurations on one workload or recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from licorne.cli.statuses import Status

Command = Callable[..., Any]
HOLIDAY = Path(__file__).resolve().parents[2] / "examples" / "gpu-holiday"
WORKLOAD = HOLIDAY / "workload.jsonl"
NO_PREEMPTION = HOLIDAY / "no-preemption.yaml"


def compared(licorne: Command, *arguments: object) -> dict[str, Any]:
    done = licorne("compare", *arguments, "--json")
    assert done.status == Status.DONE, done.err
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def test_a_workload_and_its_recording_compare_alike(licorne: Command, tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    assert licorne("simulate", WORKLOAD, "--record", folder).status == Status.DONE
    answers = [compared(licorne, "own", NO_PREEMPTION, source) for source in (WORKLOAD, folder)]
    for answer in answers:
        answer.pop("workload")
        answer.pop("notes")
        answer["old"].pop("configuration")
    assert answers[0] == answers[1]
    answer = answers[0]
    shown = licorne("compare", "own", NO_PREEMPTION, WORKLOAD).out.splitlines()
    assert shown[1] == f"old: own, new: {NO_PREEMPTION}"
    assert shown[-2:] == [f"{which} digest {answer[which]['digest']}" for which in ("old", "new")]
    assert not answer["same"]
    assert (answer["old"]["preempted"], answer["new"]["preempted"]) == (16, 0)
    language, vision = answer["queues"]
    assert (language["queue"], language["old"]["mean_wait_s"], language["new"]["mean_wait_s"]) == (
        "root.language", 90.0, 55800.0
    )  # fmt: skip
    assert (vision["queue"], vision["old"]["evicted"], vision["new"]["evicted"]) == ("root.vision", 16, 0)


def test_the_runs_that_are_left_out_are_named_and_can_be_chosen(licorne: Command, tmp_path: Path) -> None:
    other = HOLIDAY.parent / "lowered-quota" / "workload.jsonl"
    for source in (WORKLOAD, other):
        assert licorne("simulate", source, "--record", tmp_path / "recording").status == Status.DONE
    last, first = (
        compared(licorne, "own", NO_PREEMPTION, tmp_path / "recording", *chosen) for chosen in ((), ("--run", "1"))
    )
    assert any("this is run 2 of the recording, from 1970" in note for note in last["notes"])
    assert any("other runs are left out: 2 from 1970-01-01T00:00:00.000Z; --run" in note for note in first["notes"])
    assert first["old"]["preempted"] == 16 != last["old"]["preempted"]
    made = tmp_path / "first.jsonl"
    assert "note: this is run 1" in licorne("convert", tmp_path / "recording", "--run", "1", "-o", made).err
    simulated = [
        licorne("simulate", *source, "--json").out for source in ((tmp_path / "recording", "--run", "1"), (made,))
    ]
    assert {json.loads(out)["digest"] for out in simulated} == {first["old"]["digest"]}
    assert "has no run 3; there are: 1, 2" in licorne("simulate", tmp_path / "recording", "--run", "3").err
    assert licorne("simulate", WORKLOAD, "--run", "1").status == Status.USAGE


def test_what_only_one_configuration_refuses_is_told(licorne: Command, tmp_path: Path) -> None:
    smaller = tmp_path / "queues.yaml"
    smaller.write_text(
        "partitions: [{name: default, queues: [{name: root, queues: [{name: vision, submitacl: '*'}]}]}]",
        encoding="utf-8",
    )
    answer = compared(licorne, "own", smaller, WORKLOAD)
    assert [(row["queue"], row["applications"]) for row in answer["rejected"]] == [("root.language", 1)]
    assert answer["admitted"] == []
    answer = compared(licorne, smaller, "own", WORKLOAD)
    assert [row["queue"] for row in answer["admitted"]] == ["root.language"]
    told = licorne("compare", "own", smaller, WORKLOAD)
    assert "refused only by the new configuration" in told.out


def test_a_queue_whose_pods_are_never_placed_waits_longer(licorne: Command, tmp_path: Path) -> None:
    low = tmp_path / "queues.yaml"
    low.write_text(
        "partitions: [{name: default, queues: [{name: root, queues: [{name: vision, submitacl: '*'}, "
        "{name: language, submitacl: '*', resources: {max: {vcore: 1}}}]}]}]",
        encoding="utf-8",
    )
    language = compared(licorne, "own", low, WORKLOAD)["queues"][0]
    assert (language["queue"], language["new"]["never_placed"]) == ("root.language", 16)
    assert (language["new"]["mean_wait_s"], language["new"]["mean_wait_least_s"]) == (None, 70200.0)
    (row, *_) = (line for line in licorne("compare", "own", low, WORKLOAD).out.splitlines() if "root.language" in line)
    assert "1 min 30 s → ≥ 19 h 30 min   +19 h 28 min " in row


def test_the_same_decisions_are_said_to_be_the_same(licorne: Command) -> None:
    answer = compared(licorne, NO_PREEMPTION, NO_PREEMPTION, WORKLOAD)
    assert answer["same"]
    assert "every decision is the same" in licorne("compare", NO_PREEMPTION, NO_PREEMPTION, WORKLOAD).out


def test_where_nothing_is_placed_nothing_is_the_same(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.jsonl"
    node = '{"t": "node", "id": "n", "res": {"vcore": 1}, "attrs": {"si/node-partition": "other"}, "at": 0}'
    asks = WORKLOAD.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(node if '"t":"node"' in line else line for line in asks), encoding="utf-8")
    answer = compared(licorne, "own", NO_PREEMPTION, path)
    assert not answer["same"]
    assert any("nodes refused, such as n: " in note for note in answer["notes"])
    said = licorne("compare", "own", NO_PREEMPTION, path).out
    assert "every decision" not in said
    assert "nothing was placed under either configuration" in said


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (("own", "own", WORKLOAD), Status.USAGE, "own and own are the same configuration"),
        (("own", "missing.yaml", WORKLOAD), Status.FILE, "missing.yaml"),
        (("own", NO_PREEMPTION, "missing.jsonl"), Status.FILE, "missing.jsonl: no such file"),
        (("own", WORKLOAD, WORKLOAD), Status.CONFIGURATION, "workload.jsonl"),
    ],
)
def test_what_cannot_be_compared_is_told(
    licorne: Command, arguments: tuple[object, ...], status: Status, expected: str
) -> None:
    told = licorne("compare", *arguments)
    assert told.status == status
    assert expected in told.err


def test_a_state_dump_is_told_from_a_workload(licorne: Command) -> None:
    dump = "examples/pods-wait/dump.json"
    done = licorne("compare", "own", NO_PREEMPTION, dump)
    assert (done.status, done.out) == (1, "")
    assert f"ask with licorne why --from {dump}" in done.err
