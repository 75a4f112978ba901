"""`licorne simulate`: its output and its exit status."""

from __future__ import annotations

import csv
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

from common.waiting import WAIT_S, wait_for
from licorne import __version__

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
        "larger than the whole cluster",
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
def test_strict_leaves_with_6_if_an_ask_was_never_placed(
    licorne: Command, small: Path, never: Path, options: tuple[str, ...]
) -> None:
    assert licorne("simulate", small, "--strict", *options).status == 0
    assert licorne("simulate", never, "--strict", *options).status == 6


def test_a_configuration_replaces_the_workloads(licorne: Command, small: Path, tmp_path: Path) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text(
        "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
        "        queues:\n          - name: a\n            resources: {max: {vcore: 1}}\n"
    )
    result = json.loads(licorne("simulate", small, "--config", queues, "--json").out)
    assert result["placed"] == 0
    assert result["licorne"] == __version__
    assert result["inputs"] == {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in (small, queues)}
    queues.write_text("partitions:\n  - name: default\n    quues: []\n")
    outcome = licorne("simulate", small, "--config", queues)
    assert outcome.status == 5
    assert f"{queues}:3:" in outcome.err


def test_a_workload_with_a_wrong_configuration_is_refused(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(HEAD + '{"t":"config","yaml":"partitions: 5"}\n')
    outcome = licorne("simulate", path)
    assert outcome.status == 1
    assert outcome.err.startswith(f"licorne: {path}:2: yaml:1:13: partitions: a list is expected here, not '5'")


def test_a_setting_that_does_not_parse_is_refused(licorne: Command, small: Path) -> None:
    outcome = licorne("simulate", small, "--setting", "reservation.delay=soon")
    assert outcome.status == 2
    assert "reservation.delay" in outcome.err


def test_a_misspelt_setting_is_refused(licorne: Command, small: Path) -> None:
    """The default would be measured without notice. A setting that YuniKorn knows is accepted, as in `serve`."""
    outcome = licorne("simulate", small, "--setting", "reservation.dealy=5s")
    text = "licorne: --setting 'reservation.dealy': no such setting; did you mean reservation.delay?\n"
    assert (outcome.status, outcome.err) == (2, text)
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
    for words in (
        "refused by the scheduler",
        "[simulator]default has an existing node",
        "n1 (small.jsonl:7)",
        "k3 (small.jsonl:8)",
    ):
        assert words in outcome.out


def test_more_asks_than_the_limit_are_refused_unless_allowed(licorne: Command, small: Path) -> None:
    small.write_text(WORKLOAD + '{"t":"ask","key":"k3","app":"app","res":{"vcore":1},"max":1000000000}\n')
    outcome = licorne("simulate", small)
    text = "max: with it there are 1,000,000,002 asks, and no more than 2,000,000 are simulated; --max-asks allows more"
    assert (outcome.status, outcome.err) == (1, f"licorne: {small}:7: {text}\n")
    assert licorne("simulate", small, "--max-asks", 1_000_000_002).status == 0  # the node holds 500 of them
    assert licorne("simulate", small, "--max-asks", 0).status != 0


def test_pods_and_series_are_files_by_the_ending_of_their_names(licorne: Command, small: Path, tmp_path: Path) -> None:
    pods, series = tmp_path / "pods.csv", tmp_path / "series.jsonl"
    outcome = licorne("simulate", small, "--json", "--pods", pods, "--series", series, "--every", 30)
    assert outcome.status == 0
    assert json.loads(outcome.out)["digest"] == json.loads(licorne("simulate", small, "--json").out)["digest"]
    with pods.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["key"], row["start_s"], row["end_s"], row["waiting_s"]) for row in rows] == [
        ("k1", "0.0", "60.0", "0.0"), ("k2", "60.0", "120.0", "30.0"),
    ]  # fmt: skip
    cluster = [row for row in map(json.loads, series.read_text().splitlines()) if row["queue"] == "cluster"]
    assert [(row["time_s"], row["used"], row["pending"]) for row in cluster] == [
        (0.0, 1500, 0), (30.0, 1500, 1500), (60.0, 1500, 0), (90.0, 1500, 0), (120.0, 0, 0),
    ]  # fmt: skip
    for path, first in ((pods, "key,application,"), (series, '{"time_s":0.0,')):
        assert path.read_text().startswith(first)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--pods", "x.txt"), "licorne: x.txt: the ending of the name says the form"),
        (("--series", "x"), "licorne: x: the ending of the name says the form"),
        (("--pods", "x.csv", "--series", "x.csv"), "licorne: x.csv: --pods and --series need a file each"),
        (("--pods", "none/x.csv"), "licorne: none/x.csv: No such file or directory"),
        (("--every", "5"), "licorne: --every is the interval of --series, which is not given"),
        (("--since", "5", "--until", "5"), "licorne: --since 5 is not before --until 5"),
        (("--swf", "out.txt"), "out.txt: the name of a log ends in .swf or .swf.gz"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    licorne: Command, small: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(small.parent)
    outcome = licorne("simulate", small.name, *options)
    assert (outcome.status, outcome.out) == (4 if "No such file" in complaint else 2, "")
    assert complaint in outcome.err
    assert [path.name for path in small.parent.iterdir()] == [small.name]


def test_the_device_policy_is_that_of_the_command_if_it_names_one(
    licorne: Command, tmp_path: Path, small: Path
) -> None:
    """Two shares of 400 on two devices: by the workload's policy they share one, by the other each has its own."""
    path = tmp_path / "devices.jsonl"
    node = '{"t":"node","id":"n","res":{"vcore":9,"gpu":2000},"at":0}\n'
    asks = "".join(
        f'{{"t":"ask","key":"{key}","app":"app","res":{{"gpu":{amount}}},"at":0}}\n'
        for key, amount in (("a", 400), ("b", 400), ("c", 1000))
    )
    app = '{"t":"app","id":"app","queue":"root.a","user":"u"}\n'
    path.write_text('{"t":"meta","version":2,"devices":"gpu"}\n' + WORKLOAD.splitlines()[1] + "\n" + node + app + asks)
    assert json.loads(licorne("simulate", path, "--json").out)["placed"] == 3
    assert json.loads(licorne("simulate", path, "--json", "--device-policy", "most-left").out)["placed"] == 2
    refused = licorne("simulate", small, "--device-policy", "first")
    assert refused.status != 0
    assert "small.jsonl: this workload has no devices, so --device-policy is not for it" in refused.err


def test_parquet_without_its_extra_says_what_to_install(
    licorne: Command, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licorne._extras.find_spec", lambda name: None if name == "polars" else object())
    outcome = licorne("simulate", small, "--pods", small.with_name("x.parquet"))
    assert (outcome.status, outcome.out) == (3, "")
    assert "[data]' (missing: polars)" in outcome.err


def test_figures_of_a_window(licorne: Command, small: Path) -> None:
    result = json.loads(licorne("simulate", small, "--json", "--since", 30, "--until", 90.5).out)
    assert result["window_s"] == [30.0, 90.5]
    assert (result["waiting_times"][-1]["placed"], result["placed"]) == (1, 2)
    assert (
        "waiting time until placed, from 30 s to 1 min 30 s"
        in licorne("simulate", small, "--since", 30, "--until", 90).out
    )


def test_json_names_its_units_and_all_queues(licorne: Command, small: Path) -> None:
    result = json.loads(licorne("simulate", small, "--json").out)
    assert result["units"]["vcore"] == "thousandths of a core"
    assert [row["queue"] for row in result["waiting_times"]] == ["root.a", "all queues"]
    assert [row["queue"] for row in result["completions"]] == ["root.a", "all queues"]
    assert "pods" not in result


def test_times_that_are_dates_are_noticed(licorne: Command, small: Path, tmp_path: Path) -> None:
    """A series from 1970 on would have a point for each minute since then."""
    dates = tmp_path / "dates.jsonl"
    dates.write_text(small.read_text().replace('"at":0', '"at":1700000000').replace('"at":30', '"at":1700000030'))
    refused = licorne("simulate", dates, "--series", tmp_path / "series.csv")
    assert (refused.status, refused.out) == (2, "")
    assert (
        "the first pod arrives at 1700000000 s: times count from 0, so subtract the first one from all" in refused.err
    )
    assert not (tmp_path / "series.csv").exists()
    assert licorne("simulate", dates, "--series", tmp_path / "series.csv", "--every", 86_400).status == 0
    note = "times count from 0, and the first pod arrives at 1700000000 s"
    for path, options, noted in ((dates, (), 1), (dates, ("--since", 1_700_000_000), 0), (small, (), 0)):
        notes = json.loads(licorne("simulate", path, "--json", *options).out)["notes"]
        assert sum(one.startswith(note) for one in notes) == noted


def test_seconds_in_json_have_no_digits_without_a_meaning(licorne: Command, small: Path) -> None:
    """Sums of times such as 0.1 have them; a nanosecond more or less says nothing."""
    small.write_text(WORKLOAD.replace('"duration_s":60', '"duration_s":60.000000002').replace('"at":30', '"at":30.1'))
    result = json.loads(licorne("simulate", small, "--json").out)
    assert (result["simulated_s"], result["waiting_times"][-1]["longest_s"]) == (120.0, 29.9)


def test_the_report_says_which_configuration_counted(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(
        HEAD
        + '{"t":"node","id":"n1","res":{"vcore":4000}}\n{"t":"app","id":"a1","queue":"root.batch","user":"alice"}\n'
        '{"t":"ask","key":"p1","app":"a1","res":{"vcore":3000},"at":0}\n'
    )
    shown = licorne("simulate", path).out
    assert "queue configuration: built-in; application a1 asked for root.batch, which no rule uses\n" in shown
    assert "--config FILE gives one with these queues" in shown
    assert "applications rejected, by the queue that they asked for" in shown


def interrupted(path: Path, *options: object, when: Path, by: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Simulate until a file is there, then half a second more, then send a signal; Ctrl-C sends SIGINT."""
    command = [sys.executable, "-m", "licorne.cli", "simulate", str(path), *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(lambda: when.exists() or process.poll() is not None)  # it is opened when all has been read
            assert process.poll() is None
            time.sleep(0.5)
            process.send_signal(by)
            _, err = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()  # a simulation that is not interrupted would go on until the memory is full
    return subprocess.CompletedProcess(command, process.returncode, "", err)


@pytest.mark.gate
@pytest.mark.parametrize(
    ("option", "by", "status"),
    [
        ("--decisions", signal.SIGINT, 130),
        ("--pods", signal.SIGINT, 130),
        ("--pods", signal.SIGTERM, 143),
        ("--series", signal.SIGTERM, 143),
    ],
)
def test_a_long_simulation_can_be_interrupted(tmp_path: Path, option: str, by: signal.Signals, status: int) -> None:
    """One ask that repeats without end is decided a thousand times in one call, and a signal comes through between them."""
    path = tmp_path / "w.jsonl"
    big = {"vcore": 1_000_000_000}
    path.write_text(
        HEAD + json.dumps({"t": "node", "id": "n1", "res": big}) + "\n"
        '{"t":"app","id":"app","user":"u","tags":{"namespace":"dev"}}\n'
        '{"t":"ask","key":"k","app":"app","res":{"vcore":1},"at":0,"max":1000000000}\n'
    )
    out = tmp_path / "out.csv"
    out.write_text("as it was")
    done = interrupted(path, "--max-asks", 1_000_000_000, option, out, when=tmp_path / "out.csv.part", by=by)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == [out.name, path.name]
    assert out.read_text() == "as it was"


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


def test_a_strict_order_may_stand_in_a_configuration_for_a_simulation(
    licorne: Command, small: Path, tmp_path: Path
) -> None:
    config = tmp_path / "q.yaml"
    text = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n"
    config.write_text(f"{text}          - name: a\n            properties: {{simulation.order: fcfs}}\n")
    outcome = licorne("simulate", small, "--config", config)
    assert outcome.status == 0
    assert "note: jobs in a strict order are held back before the scheduler" in outcome.out
    config.write_text(config.read_text().replace("fcfs", "fifo"))
    outcome = licorne("simulate", small, "--config", config)
    assert outcome.status == 5
    assert "q.yaml:8:44: root.a: properties" in outcome.err
    assert "'fifo' is no order of jobs: fcfs, sjf, f1, wfp3, uni, in lower case" in outcome.err


def test_pods_that_start_at_the_last_moment_alone_have_tables(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_text(
        "".join(WORKLOAD.splitlines(keepends=True)[:4])
        + '{"t":"ask","key":"k1","app":"app","res":{"vcore":100},"at":5}\n'
    )
    done = licorne("simulate", path)
    assert done.status == 0, done.err
    assert "use of queues" in done.out
