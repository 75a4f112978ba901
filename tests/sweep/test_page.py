"""The table and the page of a sweep, and the command that makes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from licorne.lab.sweep import Outcome, Point
from licorne.lab.sweep.page import METRICS, differences, settings, values, write_sweep_page
from licorne.lab.sweep.table import Row, rows, write_table
from report.workloads import small

polars = pytest.importorskip("polars")
pytest.importorskip("matplotlib")
WAIT = METRICS[0]


def made() -> list[Row]:
    """Two configurations and three seeds: the second one waits ten seconds longer, whatever the seed."""
    points = [
        Point(workload="w.jsonl", configuration=configuration, load=load, seed=seed)
        for configuration in ("own", "<other>.yaml")
        for load in (0.5, 1.0)
        for seed in (1, 2, 3)
    ]
    outcomes = [
        Outcome(
            wait_mean_s=100.0 * (point.seed or 0) + 10.0 * (point.configuration != "own"),
            slowdown_mean=1.5,
            use=0.5,
            evenness=0.9,
        )
        if point.load == 0.5 or point.seed != 3
        else Outcome(error="a <fault>")
        for point in points
    ]
    return rows(points, outcomes)


def test_settings_are_compared_by_the_points_of_the_same_seed() -> None:
    groups = list(settings(made()).values())
    assert [len(group) for group in groups] == [3, 3, 3, 3]
    assert values(groups[2], WAIT) == [110.0, 210.0, 310.0]
    assert differences(groups[2], groups[0], WAIT) == [10.0, 10.0, 10.0]
    assert differences(groups[3], groups[1], WAIT) == [10.0, 10.0]


@pytest.mark.gate
def test_the_page_has_means_intervals_and_errors(tmp_path: Path) -> None:
    path = write_sweep_page(tmp_path, "mine & yours", made(), made="today")
    text = path.read_text("utf-8")
    assert "mine &amp; yours" in text
    assert "<td>3 min 30 s ± 4 min 8 s</td>" in text  # of 110, 210 and 310: t = 4.3027, s = 100
    assert "<td>10 s ± 0 s</td>" in text
    assert "a &lt;fault&gt;" in text
    assert "2 points failed" in text
    assert "Mean of Jain&#39;s index by setting" in text
    assert "<script" not in text
    again = write_sweep_page(tmp_path, "mine & yours", made(), made="today").read_text("utf-8")
    assert again == text
    drawn = {file.stem for file in tmp_path.glob("*.png")}
    assert drawn == {"wait-mean-s", "slowdown-mean", "use", "evenness"}


def test_the_table_is_the_same_as_csv_and_parquet(tmp_path: Path) -> None:
    write_table(tmp_path, made(), parquet=True)
    table = polars.read_parquet(tmp_path / "table.parquet")
    assert table.height == 12
    assert polars.read_csv(tmp_path / "table.csv", schema=table.schema).equals(
        table.with_columns(polars.col(polars.String).replace("", None))
    )


def command(*arguments: str | Path, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "licorne.cli", "sweep", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.mark.gate
def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    (tmp_path / "sweep.yaml").write_text("workloads: [w.jsonl]\nloads: [1, 2]\n")
    out = tmp_path / "out"
    file = ("-o", out, "--file", tmp_path / "sweep.yaml")
    said = command(*file, "--dry-run")
    assert said == "run   w.jsonl, own, load 1\nrun   w.jsonl, own, load 2\n2 of 2 points would run\n"
    assert not out.exists()
    assert command(*file, "--jobs", "2").startswith("2 points, 0 failed\n")
    assert {path.name for path in out.iterdir()} >= {"points", "table.csv", "table.parquet", "sweep.html"}
    assert command(*file, "--dry-run", "--load", "2", "--load", "4").startswith(
        "done  w.jsonl, own, load 2\nrun   w.jsonl, own, load 4\n"
    )


def test_parts_of_a_sweep_are_joined(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    given = (tmp_path / "w.jsonl", "--load", "1", "--load", "2", "--load", "3", "--jobs", "1", "--no-report")
    command("-o", tmp_path / "all", *given)
    for part in ("1", "2"):
        command("-o", tmp_path / part, *given, "--shard", f"{part}/2")
    both = ("--join", tmp_path / "1", "--join", tmp_path / "2")
    assert command("-o", tmp_path / "joined", *given, *both[:2], "--dry-run").count("done") == 2
    command("-o", tmp_path / "joined", *given, *both)
    tables = [(tmp_path / name / "table.csv").read_bytes() for name in ("all", "joined", "1", "2")]
    assert tables[0] == tables[1]
    assert [len(table.splitlines()) for table in tables] == [4, 4, 3, 2]
    assert "no folder of a sweep" in command("-o", tmp_path / "new", *given, "--join", tmp_path, status=4)


@pytest.mark.gate
def test_the_command_limits_the_calls_of_policies(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    (tmp_path / "mine.py").write_text(
        "import time\nfrom licorne import Policy\n\n\nclass Slow(Policy):\n"
        "    def node_key(self, pod, node):\n        time.sleep(3600)\n        return 0\n"
    )
    out = tmp_path / "out"
    given = (tmp_path / "w.jsonl", "--policy", "own", "--policy", f"{tmp_path / 'mine.py'}:Slow")
    said = command("-o", out, *given, "--policy-timeout", "200ms", "--jobs", "1", "--no-report")
    assert said.startswith("2 points, 1 failed\n")
    assert "took longer than 0.2 s, which is the limit (--policy-timeout)" in said
    assert "policy_digest" in (out / "table.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ((), 2, "nothing to simulate"),
        (("w", "--load", "1", "--load", "1"), 2, "is given twice"),
        (("--file", "no.yaml"), 4, "no.yaml"),
        (("no.jsonl", "--no-report"), 4, "no.jsonl"),
        (("w", "--shard", "4/3"), 2, "like 3/10"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path: Path, arguments: tuple[str, ...], status: int, text: str) -> None:
    assert text in command("-o", tmp_path / "out", *arguments, status=status)
    assert not (tmp_path / "out").exists()
