"""Count the instructions that an ask and its decision take, by callgrind (valgrind), for each boundary.

The case is b with 200 nodes, ten applications and queues, and 10,000 asks of unique shapes, all of which fit. A process
does everything up to a stage, and is counted as a whole; the difference between two stages, divided by the number of asks,
is what the later stage takes for an ask. This does not depend on other load of the machine, but on the compiler, on Python
and on the C library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from bench.measure.boundary import FEEDS, BoundaryName, feed_of
from bench.run import BenchError
from bench.worker import prepared
from bench.workloads.generate import Options, Size
from licorne.core import compiled
from licorne.sim.collector import quiet_collector

SIZE: Final = Size(nodes=200, pods=10_000, applications=10, queues=10)
STAGES: Final = ("connected", "handed in", "decided")
"""What a process has done when it ends: all that is prepared, then the asks submitted, then each of them decided."""
LIMIT_S: Final = 600


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """Instructions for an ask at one boundary: to submit it, and to decide it and tell the resource manager."""

    boundary: BoundaryName
    submit: int
    decide: int


def instructions() -> Iterator[Instructions]:
    """Yield the counts of each boundary; each takes some twenty seconds.

    Raises BenchError if valgrind is missing, or licorne is not compiled.
    """
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is not installed; it counts the instructions")
    if not compiled:
        raise BenchError("licorne is not compiled here, so the count would be the interpreter's: make compile")
    for boundary in FEEDS:
        connected, handed_in, decided = (_collected(boundary, stage) for stage in STAGES)
        yield Instructions(
            boundary=boundary,
            submit=round((handed_in - connected) / SIZE.pods),
            decide=round((decided - handed_in) / SIZE.pods),
        )


def _collected(boundary: BoundaryName, stage: str) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    command += ["-m", "bench.instructions", boundary, stage]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # strings collide in dicts by their hashes
    done = subprocess.run(  # noqa: S603
        command, check=False, capture_output=True, text=True, timeout=LIMIT_S, env=environment
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        raise BenchError(f"valgrind failed:\n{done.stderr}")
    return int(found[1])


def reach(boundary: BoundaryName, stage: str, size: Size = SIZE) -> int:
    """Do everything up to a stage, and return the number of allocations made."""
    feed = feed_of(prepared("b", Options(shape="unique"), size), boundary)
    session = feed.connect(keep=True, reservations=False)
    if stage != "connected":
        for batch in feed.batches:
            session.hand_in(batch)
    if stage == "decided":
        session.decide()
    session.check("b", "")
    return session.made


if __name__ == "__main__":
    with quiet_collector():
        reach(*sys.argv[1:])  # type: ignore[arg-type]  # the arguments of `_collected`
        os._exit(0)  # here, since a collection and the freeing of all objects would count as well
