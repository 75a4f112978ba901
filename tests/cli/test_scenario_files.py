"""`licorne scenario workload`: the same bytes in every kind of file; standard output is tested in `test_front_door.py`."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest

from licorne import cli
from licorne.sim.workload import read_workload

Command = Callable[..., Any]
SCENARIO = Path(__file__).resolve().parents[2] / "examples" / "scenarios" / "halved-queue.yaml"


def test_a_packed_file_holds_the_same(licorne: Command, tmp_path: Path) -> None:
    path, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    for out in (path, packed):
        assert licorne("scenario", "workload", SCENARIO, out, "--seed", "4").status == 0
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    assert read_workload(packed) == msgspec.structs.replace(
        read_workload(path), file=str(packed), config_place=f"{packed}:2"
    )


def test_an_interrupted_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object, stream: BinaryIO) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    (tmp_path / "there.jsonl").write_text("as it was")
    monkeypatch.setattr("licorne.cli.scenario.write_workload", interrupted)
    for name in ("new.jsonl", "new.jsonl.gz", "there.jsonl"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["scenario", "workload", str(SCENARIO), str(tmp_path / name)])
        assert ended.value.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "as it was"
