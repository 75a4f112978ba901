"""`licorne convert`: what each kind of source becomes, in every kind of file; and foreign sources given to other commands."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest

from licorne import cli, simulate
from licorne.workload.traces.batch import batch_workload
from licorne.workload.traces.gpu_csv import gpu_workload
from licorne.workload.traces.swf import read_swf
from licorne.workload.workload import read_workload, write_workload

Command = Callable[..., Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCENARIO = EXAMPLES / "scenarios" / "halved-queue.yaml"
TABLE = EXAMPLES / "own-trace" / "gpu-jobs.csv"
COLUMNS = TABLE.with_name("gpu-columns.yaml")
NOISY = SCENARIO.with_name("noisy-tenant.yaml")
LOG = "; MaxProcs: 4\n1 0 -1 100 3 -1 -1 3 100 -1 1 -1 -1 -1 -1 -1 -1 -1\n2 1 -1 50 4 -1 -1 4 50 -1 1 -1 -1 -1 -1 -1 -1 -1\n3 2 -1 20 1 -1 -1 1 20 -1 1 -1 -1 -1 -1 -1 -1 -1\n4 3 -1 -1 1 -1 -1 1 20 -1 5 -1 -1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.swf"
    path.write_text(LOG)
    return path


def test_a_packed_file_holds_the_same(licorne: Command, tmp_path: Path) -> None:
    path, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    for out in (path, packed):
        assert licorne("convert", SCENARIO, "-o", out, "--seed", "4").status == 0
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    assert read_workload(packed) == msgspec.structs.replace(
        read_workload(path), file=str(packed), config_place=f"{packed}:2"
    )


def test_the_seed_0_is_one(licorne: Command) -> None:
    assert "scenario of seed 0" in licorne("convert", NOISY, "--seed", "0").out.splitlines()[0]


def test_an_interrupted_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object, stream: BinaryIO, __: object) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    (tmp_path / "there.jsonl").write_text("as it was")
    monkeypatch.setattr("licorne.cli.convert.write_workload", interrupted)
    for name in ("new.jsonl", "new.jsonl.gz", "there.jsonl"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["convert", str(SCENARIO), "-o", str(tmp_path / name)])
        assert ended.value.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "as it was"


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        (("--jobs", "one"), [0, 99, 0]),
        (("--jobs", "one", "--order", "fcfs"), [0, 99, 148]),
        (("--jobs", "one", "--order", "fcfs", "--backfill"), [0, 99, 0]),
        (("--order", "fcfs", "--backfill"), [0, 99, 0]),
    ],
)
def test_a_batch_log_becomes_a_workload_whose_outcome_is_written_as_one(
    licorne: Command, tmp_path: Path, log: Path, options: tuple[str, ...], waits: list[int]
) -> None:
    made, out = tmp_path / "a.jsonl", tmp_path / "out.swf"
    converted = licorne("convert", log, *options, "-o", made)
    assert (converted.status, converted.out) == (0, "")
    note = f"note: 1 job left out: the run time is not known ({log}:5)"
    assert note in converted.err
    outcome = licorne("simulate", made, "--swf", out)
    assert (outcome.status, note in " ".join(outcome.out.split())) == (0, True)
    rows = [line.split() for line in out.read_text().splitlines() if line[0] != ";"]
    assert [(int(row[0]), int(row[2])) for row in rows] == list(enumerate(waits, 1))


def test_the_file_decides_what_the_source_decides(licorne: Command, tmp_path: Path, log: Path) -> None:
    """Nothing of a source is lost in the file: its numbers, queues, notes and settings."""
    from licorne.workload.traces.columns import read_mapping  # noqa: PLC0415  # used once
    from licorne.workload.traces.gpu_csv import read_gpu_csv  # noqa: PLC0415

    mapping = read_mapping(str(COLUMNS))
    for source, options, direct in (
        (log, (), batch_workload(read_swf(log))),
        (TABLE, ("--columns", COLUMNS), gpu_workload(read_gpu_csv(TABLE, mapping), mapping)),
    ):
        made = tmp_path / "made.jsonl"
        assert licorne("convert", source, *options, "-o", made).status == 0
        found, expected = simulate(made), simulate(direct)
        assert (found.digest, found.workload, found.notes) == (expected.digest, expected.workload, expected.notes)


def test_lines_are_written_while_they_are_made(log: Path) -> None:
    lines = batch_workload(read_swf(log)).lines
    assert not isinstance(lines, list)
    assert list(lines) == list(lines)


def test_names_of_users_are_replaced_in_any_source(licorne: Command, tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    source = EXAMPLES / "gpu-holiday" / "workload.jsonl"
    users = {json.loads(line).get("user", "") for line in source.read_text().splitlines()} - {""}
    assert licorne("convert", source, "--anonymous", "-o", made).status == 0
    assert not any(f'"{user}"' in made.read_text() for user in users)
    assert simulate(made).placed == simulate(source).placed
    whole = BytesIO()
    assert write_workload(read_workload(source), whole) == len(
        [1 for line in read_workload(source).lines if type(line).__name__ == "Ask"]
    )
    assert licorne("convert", source, "-o", made).status == 0
    assert made.read_bytes() == whole.getvalue()


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("a.swf", ("--backfill",), "--backfill is for jobs in a strict order: give --order too"),
        ("a.swf", ("--load", "0.5"), "a.swf is read as a batch log: --load is not for that"),
        ("a.swf", ("--columns", "helios"), "--columns is not for that"),
        ("a.csv", ("--jobs", "one"), "a.csv is read as a table of the openb trace, without --columns: --jobs is not"),
        ("a.csv", ("--as", "fill", "--load", "0.5"), "--as and --load exclude each other"),
        ("a.jsonl", ("--order", "sjf"), "a.jsonl is read as a workload: --order is not for that"),
        ("a.jsonl", ("--seed", "1"), "a seed and a load are for a scenario"),
        ("a.json", ("--scheduler-name", "x", "--seed", "1"), "a.json is read as objects of a cluster: --seed is not"),
        ("http://127.0.0.1:1", ("--jobs", "one"), "is read as the address of a scheduler: --jobs is not for that"),
        ("http://127.0.0.1:1", (), "a running scheduler is captured into a file: give one with --output"),
        ("a.swf", ("b.swf",), "b.swf: only objects of a cluster may be in several files; a.swf is read as a batch log"),
        (SCENARIO, ("--as", "fill"), "is read as a scenario: --as is not for that"),
    ],
)
def test_options_of_another_kind_of_source_are_refused(
    licorne: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: object,
    options: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.swf").write_text(LOG)
    (tmp_path / "a.jsonl").write_text('{"t":"meta","version":2}\n')
    outcome = licorne("convert", source, *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("cut.swf", (), "cut.swf:2: has 9 numbers, where a job has 18; is the line cut off?"),
        ("jobs.csv", ("--columns", "heilos"), "heilos: no such file; a mapping is a YAML file, or one of those"),
        ("jobs.csv", ("--columns", "helios"), "jobs.csv:1: no column 'job_id'"),
        (
            "jobs.csv",
            (),
            "there are a, b; give the trace's folder or one of its pod lists; --columns reads another table",
        ),
        (".", (), "a folder, but not that of the openb trace"),
    ],
)
def test_sources_that_cannot_be_used(
    licorne: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.swf").write_text(LOG[: LOG.index(" -1 1 -1")])
    (tmp_path / "jobs.csv").write_text("a,b\n1,2\n")
    outcome = licorne("convert", source, *options, "-o", "made.jsonl")
    assert (outcome.status, outcome.out) == (1, "")
    assert words in outcome.err
    assert not list(tmp_path.glob("made*"))


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml"])
def test_objects_of_a_cluster_elsewhere_name_the_command(licorne: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"kind": "List", "items": []}\n')
    outcome = licorne("simulate", tmp_path / name)
    assert (outcome.status, "licorne convert" in outcome.err) == (1, True)


@pytest.mark.parametrize(
    "command", [("simulate",), ("compare", "own", EXAMPLES / "gpu-holiday" / "no-preemption.yaml")]
)
@pytest.mark.parametrize(
    ("source", "what"),
    [("a.swf.gz", "a batch log"), ("jobs.csv", "a table"), ("openb", "a folder without a recording")],
)
def test_a_foreign_source_elsewhere_names_the_command(
    licorne: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[object, ...],
    source: str,
    what: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openb").mkdir()
    (tmp_path / "openb" / "openb_pod_list_default.csv").touch()
    outcome = licorne(*command, source)
    remedy = f"to make one of it: licorne convert {source} -o {source.partition('.')[0]}.jsonl"
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == f"licorne: {source}: is {what}, and no workload; {remedy}\n"
    (tmp_path / "empty").mkdir()
    assert licorne(*command, "empty").err == "licorne: empty: is a folder without a recording, and no workload\n"
