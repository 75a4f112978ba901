"""Compressed inputs that are cut off or damaged: an error with the file, and the line up to which it could be read."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from licorne.workload import WorkloadError, load_workload
from licorne.workload.traces.columns import read_mapping
from licorne.workload.traces.gpu_csv import read_gpu_csv
from licorne.workload.traces.swf import read_swf

NUMBERS = [Random(7).randrange(10**6) for _ in range(20_000)]
TEXTS = {
    "log.swf.gz": "".join(f"{i} {n} 5 {n} 4 -1 -1 8 120 -1 1 3 7 -1 -1 -1 -1 -1\n" for i, n in enumerate(NUMBERS, 1)),
    "jobs.csv.gz": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    + "".join(f"{i},u{n},vc,1,1,1,COMPLETED,{n},{n},{n},{n},0\n" for i, n in enumerate(NUMBERS)),
    "work.jsonl.gz": '{"t":"meta","name":"w","expect":0,"version":2}\n'
    + "".join(f'{{"t":"node","id":"n{i}","res":{{"vcore":{n}}}}}\n' for i, n in enumerate(NUMBERS)),
}
READ: dict[str, Callable[[Path], object]] = {
    "log.swf.gz": read_swf,
    "jobs.csv.gz": lambda path: read_gpu_csv(path, read_mapping("helios")),
    "work.jsonl.gz": load_workload,
}


def refused(path: Path) -> str:
    with pytest.raises(WorkloadError) as caught:
        READ[path.name](path)
    return str(caught.value)


def complete_lines(packed: bytes) -> int:
    return zlib.decompressobj(31).decompress(packed).count(b"\n")


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_cut_off_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    packed = gzip.compress(TEXTS[name].encode())
    for kept in (30, len(packed) // 2, len(packed) - 9, len(packed) - 1):
        path.write_bytes(packed[:kept])
        found = re.match(rf"{re.escape(str(path))}:(\d+): not a readable gzip file", refused(path))
        assert found is not None
        # What is unpacked but does not fill the reader's buffer is lost.
        assert complete_lines(packed[:kept]) - 2_000 <= int(found[1]) <= complete_lines(packed[:kept]) + 1


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_is_damaged_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    packed = bytearray(gzip.compress(TEXTS[name].encode()))
    packed[-6] ^= 255  # of the checksum
    path.write_bytes(packed)
    assert re.match(rf"{re.escape(str(path))}:\d+: not a readable gzip file behind the ", refused(path))
    path.write_bytes(b"no gzip")
    assert refused(path).startswith(f"{path}:1: not a readable gzip file: ")
    packed[len(packed) // 2 : len(packed) // 2 + 500] = bytes(500)
    path.write_bytes(packed)
    assert refused(path).startswith(f"{path}:")
