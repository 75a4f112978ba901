"""`licorne simulate` and `licorne bench`: their output and their exit status."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
HEAD = '{"t":"meta","name":"small","version":2}\n'
WORKLOAD = HEAD + (
    '{"t":"config","yaml":"partitions:\\n  - name: default\\n    queues:\\n      - name: root\\n        submitacl: \'*\'\\n'
    '        queues:\\n          - name: a\\n"}\n'
    '{"t":"node","id":"n1","res":{"vcore":2000}}\n'
    '{"t":"app","id":"app","queue":"root.a","user":"u"}\n'
    '{"t":"ask","key":"k1","app":"app","res":{"vcore":1500},"at":0,"duration_s":60}\n'
    '{"t":"ask","key":"k2","app":"app","res":{"vcore":1500},"at":30,"duration_s":60}\n'
)
NEVER = WORKLOAD + '{"t":"ask","key":"k3","app":"app","res":{"vcore":5000}}\n'


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_text(WORKLOAD)
    return path


@pytest.fixture
def never(tmp_path: Path) -> Path:
    path = tmp_path / "never.jsonl"
    path.write_text(NEVER)
    return path


def test_the_tables_hold_the_result(licorne: Command, never: Path) -> None:
    outcome = licorne("simulate", never)
    assert outcome.status == 0
    assert outcome.err == ""
    for words in (
        "small",
        "never placed",
        "max of queue root",
        "root.a",
        "30 s",
        "vcore",
        "2 cores",
        "simulated 2 min 0 s",
        "digest ",
    ):
        assert words in outcome.out


def test_json_and_decisions_agree(licorne: Command, small: Path, tmp_path: Path) -> None:
    decisions = tmp_path / "decisions"
    outcome = licorne("simulate", small, "--json", "--decisions", decisions)
    result = json.loads(outcome.out)
    assert decisions.read_text() == "k1\tn1\nk2\tn1\n"
    assert result["digest"] == hashlib.sha256(decisions.read_bytes()).hexdigest()
    assert (result["placed"], result["never_placed"], result["simulated_s"]) == (2, 0, 120.0)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_strict_leaves_with_2_if_an_ask_was_never_placed(
    licorne: Command, small: Path, never: Path, options: tuple[str, ...]
) -> None:
    assert licorne("simulate", small, "--strict", *options).status == 0
    assert licorne("simulate", never, "--strict", *options).status == 2


def test_a_configuration_replaces_the_workloads(licorne: Command, small: Path, tmp_path: Path) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text(
        "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
        "        queues:\n          - name: a\n            resources: {max: {vcore: 1}}\n"
    )
    result = json.loads(licorne("simulate", small, "--config", queues, "--json").out)
    assert result["placed"] == 0
    queues.write_text("partitions:\n  - name: default\n    quues: []\n")
    outcome = licorne("simulate", small, "--config", queues)
    assert outcome.status == 1
    assert f"{queues}:3:" in outcome.err


def test_a_workload_with_a_wrong_configuration_is_refused(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(HEAD + '{"t":"config","yaml":"partitions: 5"}\n')
    outcome = licorne("simulate", path)
    assert outcome.status == 1
    assert outcome.err.startswith(f"licorne: {path}:2: yaml:1:13: partitions: a list is expected here, not '5'")


def test_a_setting_that_does_not_parse_is_refused(licorne: Command, small: Path) -> None:
    outcome = licorne("simulate", small, "--setting", "reservation.delay=soon")
    assert outcome.status == 1
    assert "reservation.delay" in outcome.err


def test_a_misspelt_setting_is_refused(licorne: Command, small: Path) -> None:
    """The default would be measured without notice. A setting that YuniKorn knows is accepted, as in `serve`."""
    outcome = licorne("simulate", small, "--setting", "reservation.dealy=5s")
    text = "licorne: --setting 'reservation.dealy': no such setting; did you mean reservation.delay?\n"
    assert (outcome.status, outcome.err) == (1, text)
    for known in (
        "service.clusterId=x",
        "log.core.scheduler.level=debug",
        "admissionController.accessControl.externalUsers=",
    ):
        assert licorne("simulate", small, "--setting", known).status == 0


def test_refused_items_stand_in_the_tables_with_their_lines(
    licorne: Command, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)  # a long path would be folded
    small.write_text(
        WORKLOAD + '{"t":"node","id":"n1","res":{"vcore":1}}\n{"t":"ask","key":"k3","app":"app","res":{"vcore":0}}\n'
    )
    outcome = licorne("simulate", small.name)
    assert outcome.status == 0
    for words in ("refused by the scheduler", "node name must be unique", "n1 (small.jsonl:7)", "k3 (small.jsonl:8)"):
        assert words in outcome.out


def test_more_asks_than_the_limit_are_refused_unless_allowed(licorne: Command, small: Path) -> None:
    small.write_text(WORKLOAD + '{"t":"ask","key":"k3","app":"app","res":{"vcore":1},"max":1000000000}\n')
    outcome = licorne("simulate", small)
    text = "max: with it there are 1,000,000,002 asks, and no more than 2,000,000 are simulated; --max-asks allows more"
    assert (outcome.status, outcome.err) == (1, f"licorne: {small}:7: {text}\n")
    assert licorne("simulate", small, "--max-asks", 1_000_000_002).status == 0  # the node holds 500 of them
    assert licorne("simulate", small, "--max-asks", 0).status != 0


def test_a_long_simulation_can_be_interrupted(tmp_path: Path) -> None:
    """One ask that repeats without end is decided a thousand times in one call, and a signal comes through between them."""
    path = tmp_path / "w.jsonl"
    big = {"vcore": 1_000_000_000}
    path.write_text(
        HEAD + json.dumps({"t": "node", "id": "n1", "res": big}) + "\n"
        '{"t":"app","id":"app","user":"u","tags":{"namespace":"dev"}}\n'
        '{"t":"ask","key":"k","app":"app","res":{"vcore":1},"at":0,"max":1000000000}\n'
    )
    command = [sys.executable, "-m", "licorne.cli", "simulate", str(path), "--max-asks", "1000000000",
               "--decisions", str(tmp_path / "decisions")]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "decisions").exists():  # it is opened when all has been read
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_bench_prints_a_rate(licorne: Command) -> None:
    outcome = licorne("bench", "t", "--repeat", "2")
    assert outcome.status == 0
    assert "allocations per second (" in outcome.out
    result = json.loads(licorne("bench", "t", "--json", "--shape", "unique").out)
    assert result["allocations"] == 200
    assert result["allocations_per_s"] > 0
    assert result["workload"] == "t-unique-fifo-fair-rr-s1"


def test_bench_takes_a_file(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    licorne("generate", "t", path)
    assert json.loads(licorne("bench", path, "--json").out)["allocations"] == 200


def test_evictions_have_a_table_and_options(licorne: Command, tmp_path: Path) -> None:
    """A daemon comes at 40 and wants the node on which a pod runs; the second node is there for root's quota."""
    lines = WORKLOAD.splitlines(keepends=True)[:-1]
    lines.insert(3, '{"t":"node","id":"n2","res":{"vcore":2000},"drain":true}\n')
    lines.append(
        '{"t":"ask","key":"d","app":"app","res":{"vcore":1500},"at":40,"duration_s":60,'
        '"tags":{"yunikorn.apache.org/requiredNode":"n1"}}\n'
    )
    path = tmp_path / "evicting.jsonl"
    path.write_text("".join(lines))
    shown = licorne("simulate", path).out
    for words in ("evictions, and the work lost to them", "required-node", "41 s", "created again after that"):
        assert words in shown
    (row,) = json.loads(licorne("simulate", path, "--json", "--grace", "10", "--no-resubmit").out)["evictions"]
    assert (row["pods"], row["lost_pod_s"], row["lost"]) == (1, 50.0, {"vcore": 75_000.0})


def test_tables_without_content_are_left_out(licorne: Command, small: Path) -> None:
    shown = licorne("simulate", small).out
    assert "evictions" not in shown
    assert "gangs" not in shown
