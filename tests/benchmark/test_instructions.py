"""The count of instructions: what its processes do up to each stage; valgrind itself is run on demand."""

from __future__ import annotations

import shutil

import pytest
from bench.instructions import STAGES, instructions, reach
from bench.measure.boundary import FEEDS, BoundaryName
from bench.run import BenchError
from bench.workloads.generate import Size


@pytest.mark.parametrize("boundary", FEEDS)
@pytest.mark.parametrize(("stage", "made"), [*zip(STAGES, (0, 0, 100), strict=True)])
def test_a_process_goes_as_far_as_its_stage(boundary: BoundaryName, stage: str, made: int) -> None:
    assert reach(boundary, stage, Size(nodes=10, pods=100, applications=2, queues=2)) == made


def test_without_valgrind_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    monkeypatch.setattr(shutil, "which", nothing)
    with pytest.raises(BenchError, match="valgrind is not installed"):
        next(instructions())
