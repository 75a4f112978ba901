"""Which placement rules the applications of a workload or of a recording use, and the warning about the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from licorne.answers.partitions import Submitted, rules_used
from licorne.cli import run
from licorne.config import load
from licorne.config.model import PartitionConfig
from licorne.state.recording import Recorder
from rest.world import World

RULES = "{name: provided, filter: {users: [ann]}}, {name: tag, value: team, create: true}, {name: fixed, value: other}"
CONFIG = f"""
partitions:
  - name: default
    placementrules: [{RULES}]
    queues: [{{name: root, submitacl: '*', queues: [{{name: a}}, {{name: other}}]}}]
"""


def partition() -> PartitionConfig:
    return load(CONFIG).partitions[0]


@pytest.mark.parametrize(
    ("app", "used"),
    [
        (Submitted("root.a", "ann", (), {}), {1: 1}),
        (Submitted("root.a", "ben", (), {}), {3: 1}),  # the filter
        (Submitted("", "ben", (), {"team": "blue"}), {2: 1}),
        (Submitted("", "ann", (), {}), {3: 1}),
        (Submitted("root.a", "", (), {}), {}),  # is refused
        (Submitted("", "", (), {"application.create.force": "true"}), {3: 1}),
    ],
)
def test_the_rule_that_places_an_application_is_counted(app: Submitted, used: dict[int, int]) -> None:
    assert rules_used([app], partition()) == used
    assert rules_used([app, app], partition()) == {position: 2 * number for position, number in used.items()}


def warned(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, beside: Path, *rules: str, config: str = CONFIG
) -> list[str]:
    file = tmp_path / "queues.yaml"
    file.write_text(config)
    assert run(["config", "check", str(file), f"--from={beside}", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return [
        f"{each['rule']} {each['place']}" for each in found["warnings"] if each["rule"] in (rules or ("rule-idle",))
    ]


def test_config_check_warns_of_the_other_rules_beside_a_workload(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = [
        {"t": "meta", "name": "w", "version": 2},
        {"t": "node", "id": "n", "res": {"vcore": 4000}},
        {"t": "app", "id": "x", "queue": "root.a", "user": "ann"},
        {"t": "app", "id": "y", "user": "ben"},
        {"t": "ask", "app": "x", "key": "k", "res": {"vcore": 1000}, "duration_s": 1},
    ]
    workload = tmp_path / "w.jsonl"
    workload.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert warned(capsys, tmp_path, workload) == ["rule-idle partition default: placementrules[1].name"]


def test_and_beside_a_recording(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    with Recorder(folder) as recorder:
        world = World()
        world.api.input_log = recorder
        world.register(text=CONFIG).node("n1", vcore=4_000)
        world.application("x", "root.a", "ann").application("y", "", "ben", tags={"team": "blue"}).schedule()
    assert warned(capsys, tmp_path, folder) == ["rule-idle partition default: placementrules[2].name"]


QUEUES = """
partitions:
  - name: default
    queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b}, {name: c}]}]
"""


def test_a_workload_and_the_recording_of_it_are_warned_of_alike(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = [
        {"t": "meta", "name": "w", "version": 2},
        {"t": "config", "yaml": QUEUES},
        {"t": "node", "id": "n", "res": {"vcore": 4000}},
        {"t": "app", "id": "x", "queue": "root.a", "user": "ann"},
        {"t": "app", "id": "y", "queue": "B", "user": "ann"},
        {"t": "ask", "app": "x", "key": "k", "res": {"vcore": 1000}, "duration_s": 1},
        {"t": "ask", "app": "y", "key": "l", "res": {"vcore": 5000}, "duration_s": 1},
    ]
    workload, folder = tmp_path / "w.jsonl", tmp_path / "recording"
    workload.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(["simulate", str(workload), "--record", str(folder)]) == 0
    capsys.readouterr()
    for beside in (workload, folder):  # the application x has ended in the recording, and y waits
        found = warned(capsys, tmp_path, beside, "queue-idle", "queue-missing", config=QUEUES)
        assert found == ["queue-idle root.c: name"], beside
