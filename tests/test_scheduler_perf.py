from __future__ import annotations

import csv

import pytest
from gotemplate import render
from side_by_side import HERE, Row, limit, median, rate

VALUES: dict[str, object] = {"Index": 7, "perGroup": 3, "mode": "single", "none": None}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("pod-{{.Index}}", "pod-7"),
        ("{{ DivideInt .Index .perGroup }}", "2"),
        ("{{AddInt 8000 (Mod .Index (DivideInt 6 .perGroup))}}", "8001"),
        ('{{if eq .mode "single"}}one{{else}}all{{end}}', "one"),
        ("{{if .absent}}a{{else}}b{{end}}", "b"),
        ("{{$n := or .none 2}}{{range $i := ($n | Int)}}<{{$i}}>{{end}}", "<0><1>"),
        ("{{range .perGroup}}{{if ge . 1}}{{.}}{{end}}{{end}}", "12"),
        ("{{$x := (or .none nil) | JSON}}{{$x}}", "null"),
        ("{{.absent}}", "<no value>"),
    ],
)
def test_a_template_is_read_as_go_does(template: str, text: str) -> None:
    assert render(template, VALUES) == text


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot read"):
        render("{{.Index + 1}}", VALUES)


def test_each_workload_is_listed_once() -> None:
    with (HERE / "workloads.tsv").open(encoding="utf-8") as table:
        rows = [Row(*fields) for fields in csv.reader(table, delimiter="\t") if fields[0][0] != "#"]
    assert len({row.name for row in rows}) == len(rows) > 50
    assert all("=" in param for row in rows for param in row.params.split())


@pytest.mark.parametrize(
    ("scheduler_s", "server_s", "machine_s", "what"),
    [
        (9.0, 5.0, 15.0, "scheduler 0.9"),
        (1.0, 4.0, 8.0, "neither, API server 0.4"),
        (1.0, 9.0, 1e9, "processors 100000000.0, API server 0.9"),
    ],
)
def test_what_limits(
    scheduler_s: float, server_s: float, machine_s: float, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    spent = {"scheduler": scheduler_s, "API server": server_s, "machine": machine_s}
    assert limit({"seconds": 10.0, "processor_s": spent}) == what


def test_of_several_runs_the_median_counts() -> None:
    runs = [{"pods_per_s": 30.0, "pods": 1}, {"pods_per_s": 10.0, "pods": 2}, {"pods_per_s": 20.0, "pods": 3}]
    assert median(runs) == {"pods_per_s": 20.0, "pods": 3, "rates": [10.0, 20.0, 30.0]}
    assert rate(median(runs)) == "20.0 (10.0 to 30.0)"
    assert rate(median(runs[:1])) == "30.0"
    assert median([*runs, {"failed": "late"}]) == {"failed": "late"}
