"""Files of rows: their forms, and that a file has its name only when it is complete."""

from __future__ import annotations

import csv
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from licorne._extras import MissingExtraError
from licorne.sim.pods import PodRecord
from licorne.workload.row_files import RowFileError, row_file

RECORDS = [
    PodRecord(
        key=key, application='a "b",\tc', queue="root.ä", user="", outcome="ended", arrival_s=0.1 * number, start_s=None,
        end_s=2.5, node=None, waiting_s=0.0, run_s=1.0, evictions=number, lost_s=0.0, pods=1,
    )
    for number, key in enumerate(["k\n0", "k1"])
]  # fmt: skip
FAKE = """
import pathlib
String, Int64, Float64, Boolean = "text", "integer", "number", "truth"
class scan_ndjson:
    def __init__(self, source, *, schema):
        self.source, self.schema = source, schema
    def sink_parquet(self, path):
        pathlib.Path(path).write_text(f"{self.schema}\\n" + pathlib.Path(self.source).read_text())
"""


def write(path: Path, error: type[BaseException] | None = None) -> None:
    with row_file(path, PodRecord) as rows:
        for record in RECORDS:
            rows.write(record)
        if error is not None:
            raise error


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "pods.jsonl"
    write(path)
    decode = msgspec.json.Decoder(PodRecord).decode
    assert [decode(line) for line in path.read_bytes().splitlines()] == RECORDS


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    write(path)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["key"], row["application"], row["queue"], row["start_s"], row["evictions"]) for row in rows] == [
        (record.key, record.application, "root.ä", "", str(record.evictions)) for record in RECORDS
    ]
    assert list(rows[0]) == list(PodRecord.__struct_fields__)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_has_its_name_only_when_it_is_complete(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"pods.{ending}"
    path.write_text("of the last time")
    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            write(path, error)
        assert [one.name for one in tmp_path.iterdir()] == [path.name]
        assert path.read_text() == "of the last time"
    write(path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert "k1" in path.read_text()


def test_the_ending_must_be_known(tmp_path: Path) -> None:
    with (
        pytest.raises(RowFileError, match=r"one of \.csv, \.jsonl, \.parquet"),
        row_file(tmp_path / "x.txt", PodRecord),
    ):
        pass


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error, row_file(tmp_path / "none" / "x.csv", PodRecord):
        pass
    assert error.value.filename == str(tmp_path / "none" / "x.csv")


def test_parquet_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licorne._extras.find_spec", {}.get)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[data\]' \(missing: polars\)"):
        write(tmp_path / "pods.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_columns_of_parquet_have_the_types_of_the_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With something in place of polars, which shows what it is told."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "polars.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    monkeypatch.delitem(sys.modules, "polars", raising=False)
    path = tmp_path / "pods.parquet"
    try:
        write(path)
    finally:
        sys.modules.pop("polars", None)
    assert path.read_text().startswith(
        "{'key': 'text', 'application': 'text', 'queue': 'text', 'user': 'text', 'outcome': 'text', 'arrival_s': 'number', "
        "'start_s': 'number', 'end_s': 'number', 'node': 'text', 'waiting_s': 'number', 'run_s': 'number', "
        "'evictions': 'integer', 'lost_s': 'number', 'pods': 'integer'}\n" + '{"key":"k\\n0",'
    )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["pods.parquet", "there"]


@pytest.mark.skipif(find_spec("polars") is None, reason="polars is not installed: pip install 'licorne[data]'")
def test_parquet(tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415  # it may be missing

    path = tmp_path / "pods.parquet"
    write(path)
    assert pl.read_parquet(path).to_dicts() == [msgspec.to_builtins(record) for record in RECORDS]
    with row_file(path, PodRecord):
        pass
    assert pl.read_parquet(path).columns == list(PodRecord.__struct_fields__)
