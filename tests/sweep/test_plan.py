"""What a sweep combines, how it is written down, and under which key each point is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from licorne.lab.sweep import Point, Sweep, read_sweep
from licorne.lab.sweep.document import parse_sweep
from licorne.lab.sweep.plan import Keys
from licorne.workload import WorkloadError

TEXT = """\
name: loads
workloads: [w.jsonl]
configurations:
- own
- limited.yaml
loads: [0.5, 1]
seeds: 2
device_policies: [first]
settings: {reservation.delay: 5s}
since_s: 10
until_s: 1000
policy_timeout_s: 2.5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "w.jsonl").write_text("{}")
    (tmp_path / "limited.yaml").write_text("partitions: []")
    return tmp_path


def test_a_sweep_file_says_what_is_combined(folder: Path) -> None:
    (folder / "sweep.yaml").write_text(TEXT)
    sweep = read_sweep(folder / "sweep.yaml")
    assert len(sweep) == len(sweep.points()) == 8
    assert sweep.points()[5] == Point(
        workload=str(folder / "w.jsonl"),
        configuration=str(folder / "limited.yaml"),
        load=0.5,
        seed=2,
        device_policy="first",
        settings={"reservation.delay": "5s"},
        since_s=10,
        until_s=1000,
        policy_timeout_s=2.5,
    )
    assert sweep.points()[5].name == "w.jsonl, limited.yaml, load 0.5, seed 2, first"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "needs the key workloads"),
        ("name: x", "1:1", "needs the key workloads"),
        ("[1]", "1:1", "expected keys with values, got a list"),
        ("workloads: [w.jsonl]\nload: [1]", "2:1", "load: unknown key, did you mean `loads`?"),
        ("workloads: [w.jsonl]\nworkloads: [w.jsonl]", "2:1", "workloads: this key is there twice"),
        ("workloads: w.jsonl", "1:12", "expected a list, got a text"),
        ("workloads: []", "1:12", "expected a list of length >= 1"),
        ("workloads:\n- w.jsonl\n- other.jsonl", "3:3", "no such file"),
        ("workloads: [w.jsonl, w.jsonl]", "1:22", "stands twice"),
        ("workloads: [w.jsonl]\nconfigurations: [no.yaml]", "2:18", "no such file"),
        ("workloads: [w.jsonl]\nloads: [1, 0]", "2:12", "loads[1]: expected a number > 0.0"),
        ("workloads: [w.jsonl]\nloads: [.nan]", "2:9", "loads[0]: expected a number > 0.0"),
        ("workloads: [w.jsonl]\nseeds: -1", "2:8", "whole number"),
        ("workloads: [w.jsonl]\nseeds: 100000", "2:8", "whole number"),
        ("workloads: [w.jsonl]\nseeds: [1.5]", "2:9", "whole number"),
        ("workloads: [w.jsonl]\ndevice_policies: [best]", "2:19", "known are least-left"),
        ("workloads: [w.jsonl]\nsettings: [a]", "2:11", "settings: expected keys with values, got a list"),
        ("workloads: [w.jsonl]\nsince_s: 5\nuntil_s: 5", "3:10", "is not after"),
        ("workloads: [w.jsonl]\npolicy_timeout_s: 0", "2:19", "expected a number > 0.0"),
        ("workloads: [w.jsonl]\npolicy_timeout_s: 86401", "2:19", "expected a number <= 86400.0"),
        ("workloads: [w.jsonl", "2:1", "not YAML"),
    ],
)
def test_an_error_of_a_sweep_file_names_line_and_column(folder: Path, text: str, place: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_sweep(text, "sweep.yaml", folder)
    assert str(caught.value).startswith(f"sweep.yaml:{place}: ")
    assert message in str(caught.value)


def test_too_many_combinations_are_refused(folder: Path) -> None:
    loads = ", ".join(map(str, range(1, 102)))
    with pytest.raises(WorkloadError, match="1,010,000 combinations are too many"):
        parse_sweep(f"workloads: [w.jsonl]\nseeds: 10000\nloads: [{loads}]", "sweep.yaml", folder)


def test_a_key_is_of_all_that_the_result_depends_on(folder: Path) -> None:
    point = Point(workload=str(folder / "w.jsonl"), configuration=str(folder / "limited.yaml"))
    key = Keys().of(point)
    assert Keys().of(point) == key
    others = [
        msgspec.structs.replace(point, **{name: value})
        for name, value in (
            ("load", 1.0), ("seed", 0), ("policy", "m:C"), ("device_policy", "first"), ("settings", {"a": "b"}),
            ("since_s", 1.0), ("until_s", 9.0), ("max_asks", 5), ("configuration", "own"),
        )
    ]  # fmt: skip
    assert len({key, *map(Keys().of, others)}) == 10
    for name in ("w.jsonl", "limited.yaml"):
        before = Keys().of(point)
        (folder / name).write_text("changed")
        assert Keys().of(point) != before


def test_a_key_is_also_of_the_files_that_a_scenario_names(folder: Path) -> None:
    for name in ("queues.conf", "beside.txt"):
        (folder / name).write_text("partitions: []")
    (folder / "scenarios").mkdir()
    scenario = folder / "scenarios" / "s.yaml"
    scenario.write_text("queues: ../queues.conf\nothers: [no-file, '', &same ., *same, " + "x" * 300 + "]\n")
    point = Point(workload=str(scenario))
    key = Keys().of(point)
    (folder / "beside.txt").write_text("changed")
    assert Keys().of(point) == key
    (folder / "queues.conf").write_text("changed")
    assert Keys().of(point) != key
    scenario.write_text("no: [yaml")
    assert Keys().of(point) != key


def test_points_are_plain_values() -> None:
    point = Point(workload="w", load=2.0, settings={"a": "b"})
    assert msgspec.json.decode(msgspec.json.encode(point), type=Point) == point
    assert Sweep(workloads=("w",)).points() == [Point(workload="w")]
