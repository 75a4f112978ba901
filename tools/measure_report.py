"""Measures a simulation with its report: a month of 1,000 nodes and a million pods, or what the arguments say.

    python tools/measure_report.py [PODS] [NODES] [DAYS]

The pods come at random times, ten for each application, to twelve queues with guarantees, and want about 80 % of the cores. It
prints the processor seconds of each part, the peak of memory, and the size of the page.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from licorne import simulate
from licorne.lab.report import Collector, write_report
from licorne.workload import load_workload

GIB = 1 << 30
QUEUES, USERS, TOGETHER = 12, 40, 10
CORES = 32


def month(pods: int, nodes: int, days: float) -> Iterator[dict[str, Any]]:
    """Yield the lines of the workload."""
    drawn = random.Random(1)  # noqa: S311  a workload is no secret
    span_s = days * 86_400
    guaranteed = f"{{vcore: {nodes * CORES // (QUEUES + 2)}}}"
    queues = ", ".join(f"{{name: q{number}, resources: {{guaranteed: {guaranteed}}}}}" for number in range(QUEUES))
    root = f"{{name: root, submitacl: '*', queues: [{queues}]}}"
    yield {"t": "meta", "version": 2, "name": f"{pods:,} pods in {days:g} days"}
    yield {"t": "config", "yaml": f"partitions: [{{name: default, queues: [{root}]}}]"}
    for number in range(nodes):
        yield {"t": "node", "at": 0, "id": f"n{number}", "res": {"vcore": 1000 * CORES, "memory": 128 * GIB}}
    mean_s = 0.8 * nodes * CORES * span_s / pods / 3
    times = sorted(round(drawn.random() * span_s, 3) for _ in range(pods))
    for first in range(0, pods, TOGETHER):
        at, app = times[first], f"a{first // TOGETHER}"
        queue, user = f"root.q{drawn.randrange(QUEUES)}", f"u{drawn.randrange(USERS)}"
        yield {"t": "app", "at": at, "id": app, "queue": queue, "user": user}
        for number in range(first, min(first + TOGETHER, pods)):
            amounts = {"vcore": 1000 * drawn.choice((1, 2, 4, 5)), "memory": GIB * drawn.choice((2, 4, 8, 16))}
            length_s = round(drawn.expovariate(1 / mean_s), 3)
            yield {"t": "ask", "at": at, "key": f"p{number}", "app": app, "res": amounts, "duration_s": length_s}


def main(pods: float = 1_000_000, nodes: float = 1_000, days: float = 30) -> None:
    """Measure, and print what was measured."""
    workload = load_workload(month(int(pods), int(nodes), days), asks_max=int(pods))
    start = time.process_time()
    plain = simulate(workload, pods=False)
    alone_s = time.process_time() - start
    collector = Collector()
    start = time.process_time()
    result = simulate(workload, observers=[collector], pods=False)
    collected_s = time.process_time() - start
    assert result.digest == plain.digest, "collecting figures changes no decision"
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(Path(folder), [collector.figures(result)])
        written_s = time.process_time() - start
        size = page.stat().st_size
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{result.placed:,} pods placed in {result.simulated_s / 86_400:.1f} days of virtual time")
    print(f"simulation {alone_s:.1f} s, with figures {collected_s:.1f} s, report {written_s:.1f} s of processor time")
    print(f"peak of memory {peak_mb:,.0f} MB, page {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:4]))
