"""Compares queue configurations on a table of jobs, at several loads; copy it and change it for a table of your own.

`python examples/own-trace/compare.py JOBS.csv CONFIGURATION... [--faster FACTOR...] [--workload FILE]` prints waiting
times by queue and user as CSV; with `--workload` it writes the workload for `licorne simulate`, one pod a job, in place
of that. The columns of JOBS.csv are job, user, queue, submitted (Unix seconds), run_s, cores and memory_gib. With
`--faster 1.2` the jobs arrive 1.2 times as fast and run as long as before, so the load is 1.2 times as high.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import licorne

NODES = 4
NODE = {"vcore": 16_000, "memory": 64 * 2**30}  # thousandths of a core, bytes
COLUMNS = ("configuration", "faster", "queue", "user", "jobs", "never_started", "mean_wait_s", "longest_wait_s")


def workload(jobs: Path, faster: float) -> Iterator[dict[str, Any]]:
    """Yield the lines of the workload: what it is, the nodes, and an application and an ask for each job."""
    yield {"t": "meta", "version": 2, "name": jobs.stem}
    for number in range(NODES):
        yield {"t": "node", "id": f"node-{number}", "res": NODE}
    with jobs.open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: float(row["submitted"]))
    first = float(rows[0]["submitted"])  # times count from 0
    for row in rows:
        at = (float(row["submitted"]) - first) / faster
        amounts = {"vcore": round(1000 * float(row["cores"])), "memory": round(2**30 * float(row["memory_gib"]))}
        yield {"t": "app", "at": at, "id": row["job"], "queue": f"root.{row['queue']}", "user": row["user"]}
        yield {"t": "ask", "key": row["job"], "app": row["job"], "res": amounts, "duration_s": float(row["run_s"])}


def waits(jobs: Path, configuration: Path, faster: float) -> Iterator[tuple[object, ...]]:
    """Yield a row of `COLUMNS` for each queue and user."""
    result = licorne.simulate(workload(jobs, faster), config=configuration.read_text(encoding="utf-8"))
    pods = defaultdict(list)
    for pod in result.pods:
        pods[pod.queue, pod.user].append(pod)
    for (queue, user), theirs in sorted(pods.items()):
        started = [pod.waiting_s for pod in theirs if pod.start_s is not None]
        mean, longest = (round(statistics.mean(started)), round(max(started))) if started else ("", "")
        yield configuration.stem, faster, queue, user, len(theirs), len(theirs) - len(started), mean, longest


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Compare queue configurations on a table of jobs.")
    parser.add_argument("jobs", type=Path)
    parser.add_argument("configurations", type=Path, nargs="*")
    parser.add_argument("--faster", type=float, nargs="+", default=[1.0])
    parser.add_argument("--workload", type=Path, help="write the workload at the first load, and end")
    given = parser.parse_args()
    if given.workload is not None:
        lines = workload(given.jobs, given.faster[0])
        given.workload.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for factor in given.faster:
        for configuration in given.configurations:
            writer.writerows(waits(given.jobs, configuration, factor))


if __name__ == "__main__":
    main()
