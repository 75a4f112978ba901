"""Results as tables: for polars, for pandas, as Arrow, and in a notebook."""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest

import licorne
from licorne import _extras
from licorne._extras import MissingExtraError
from licorne.sim.report import Result, row_kinds
from licorne.workload import Table

WORKLOAD = Path(__file__).parents[2] / "examples" / "gpu-holiday" / "workload.jsonl"


class Row(msgspec.Struct, frozen=True):
    name: str
    number: int
    share: float | None
    known: bool
    lost: dict[str, float]
    later: int | None


ROWS = [Row("a", 1, 0.5, True, {"vcore": 2.0}, None), Row("<b>", 2000, None, False, {}, 3)]


@pytest.fixture(scope="module")
def result() -> Result:
    return licorne.simulate(WORKLOAD, every_s=3600)


def test_polars_reads_a_table_as_arrow() -> None:
    frame = pl.DataFrame(Table(Row, ROWS))
    assert frame.schema == {
        "name": pl.String, "number": pl.Int64, "share": pl.Float64, "known": pl.Boolean, "lost": pl.String, "later": pl.Int64
    }  # fmt: skip
    assert frame.rows() == [("a", 1, 0.5, True, '{"vcore":2.0}', None), ("<b>", 2000, None, False, "{}", 3)]


def test_a_table_without_rows_has_its_columns() -> None:
    assert pl.DataFrame(Table(Row, [])).columns == list(Row.__struct_fields__)


def test_pandas_reads_a_table() -> None:
    pytest.importorskip("pandas")
    frame = Table(Row, ROWS).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["object", "Int64", "float64", "boolean", "object", "Int64"]
    assert frame["later"].to_list()[1] == 3
    assert frame["later"].isna().to_list() == [True, False]
    assert Table(Row, []).to_pandas().shape == (0, 6)


def test_pyarrow_reads_a_table() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(Table(Row, ROWS)).column("number").to_pylist() == [1, 2000]


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extras, "find_spec", lambda _name: None)
    table = Table(Row, ROWS)
    assert len(table) == 2
    assert "&lt;b&gt;" in table._repr_html_()
    with pytest.raises(MissingExtraError, match=r"pip install .*\[data\]' \(missing: polars\)"):
        table.to_polars()


def test_a_notebook_shows_the_first_rows() -> None:
    text = Table(Row, ROWS * 10)._repr_html_()
    assert text.count("<tr>") == 11
    assert "<p>10 more rows</p>" in text
    assert '<td style="text-align: right">2,000</td>' in text
    assert "–" in text
    assert repr(Table(Row, ROWS)) == "<2 rows of Row: name, number, share, known, lost, later>"


def test_every_list_of_rows_of_a_result_is_a_table(result: Result) -> None:
    assert {"pods", "series", "queues", "waiting_times", "completions", "evictions", "reasons"} < row_kinds().keys()
    for name in row_kinds():
        frame = pl.DataFrame(result.table(name))
        assert len(frame) == len(getattr(result, name))
        again = [msgspec.structs.astuple(row) for row in result.table(name)]
        for theirs, ours in zip(frame.rows(), again, strict=True):
            assert [t for t, o in zip(theirs, ours, strict=True) if not isinstance(o, dict | tuple | list)] == [
                o for o in ours if not isinstance(o, dict | tuple | list)
            ]
    with pytest.raises(KeyError, match="no table of a result; there are reasons"):
        result.table("digest")


def test_the_series_of_a_result_has_a_row_for_each_queue_and_hour(result: Result) -> None:
    times = {row.time_s for row in result.series}
    assert times == {3600.0 * hour for hour in range(int(result.simulated_s // 3600) + 1)}
    assert licorne.simulate(WORKLOAD).series == []
    with pytest.raises(ValueError, match="interval of a series"):
        licorne.simulate(WORKLOAD, every_s=0)


def test_a_notebook_shows_a_result(result: Result) -> None:
    text = result._repr_html_()
    assert "<h3>gpu-holiday</h3>" in text
    assert result.digest in text
    assert "root.vision" in text
