"""Plays workloads of Kubernetes' scheduler_perf against licorne and kube-scheduler in turns, and prints a table.

    python conformance/perf/side_by_side.py                       the workloads of workloads.tsv
    python conformance/perf/side_by_side.py Preemption Gang       those whose topic, case or workload has one of these texts
    python conformance/perf/side_by_side.py Gated --runs 7        seven times in turns: of each scheduler the run with the median rate

Each is played on a control plane of its own, which has seen nothing else: what is left of the workload before, such as
versions that etcd has not compacted and namespaces that still end, would cost the one after it. Both schedulers decide with
their usual configurations; licorne's is that of `deploy/default-scheduler`.

Exit status: 1 if a workload could not be played with licorne, or is slower than `--least` times kube-scheduler's rate.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from cluster import Cluster, FailedError
from play import Measure, Play, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCHEDULERS = ("kube-scheduler", "licorne")
BUSY = 0.8
"""A process that uses this much of a processor, or a machine that uses this much of all, has no more to give."""
GATES = {"GenericWorkload": True}
ADMISSION = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority"  # as in scheduler_perf
HEAD = (
    "| workload | pods | kube-scheduler, pods/s | licorne, pods/s | ratio | p99 wait, s | scheduler, processor s "
    "| API server, processor s | limits kube-scheduler | limits licorne |\n|---|---|---|---|---|---|---|---|---|---|"
)


Result = dict[str, Any]
"""What `Measure` has measured, or `failed`."""


class Row(NamedTuple):
    """A line of workloads.tsv; a workload with a `note` is not played."""

    topic: str
    case: str
    workload: str
    params: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """What the table calls it."""
        return " ".join(filter(None, self[:4]))


def processor_s(run: Path, scheduler: str) -> dict[str, float]:
    """Return how many processor seconds the scheduler, the API server and the whole machine have used."""
    ticks = {}
    for name, process in {"scheduler": scheduler, "API server": "kube-apiserver"}.items():
        pid = (run / f"{process}.pid").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks[name] = int(fields[11]) + int(fields[12])  # as a program, and as the kernel for it
    user, nice, system, _idle, _waiting, *interrupts = map(
        int, Path("/proc/stat").read_text(encoding="ascii").split()[1:8]
    )
    ticks["machine"] = user + nice + system + sum(interrupts)
    return {name: used / os.sysconf("SC_CLK_TCK") for name, used in ticks.items()}


async def played(workload: Workload, scheduler: str, run: Path, port: int, timeout_s: float) -> Result:
    """Play a workload on the control plane in `run`."""
    async with Cluster(port, run) as cluster:
        measure = Measure(cluster.pods, lambda: processor_s(run, scheduler))
        await Play(cluster, workload, measure, timeout_s).run()
    if measure.result is None:
        raise FailedError("the workload measures nothing")
    return measure.result


def play(row: Row, scheduler: str, options: argparse.Namespace) -> Result:
    """Start a control plane and a scheduler, and play a workload. A failure is told by `failed`."""
    run = options.out / "run"
    try:
        folder = options.workloads / row.topic
        workload = Workload(folder / "performance-config.yaml", row.case, row.workload, row.params.split())
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in {**GATES, **workload.gates}.items())
        environment = {
            **os.environ,
            "PORT": str(options.port),
            "RUN": str(run),
            "OUT": str(options.out),
            "KWOK": "0",
            "GATES": gates,
            "APISERVER_ARGS": f"{ADMISSION} --feature-gates={gates} --runtime-config=api/all=true",
            # scheduler_perf has no controller that binds volumes; the real one would call its claims lost.
            "KCM_ARGS": f"--feature-gates={gates} --controllers=-persistentvolume-binder-controller",
        }
        for command in ("controlplane/up.sh", f"conformance/scheduler.sh {scheduler}"):
            subprocess.run(command.split(), cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        return asyncio.run(played(workload, scheduler, run, options.port, options.timeout))
    except (FailedError, aiohttp.ClientError, OSError, subprocess.CalledProcessError) as error:
        return {"failed": str(error)}
    finally:
        subprocess.run(["controlplane/down.sh"], cwd=ROOT, env={**os.environ, "RUN": str(run)}, check=True)  # noqa: S607
        shutil.rmtree(run / "etcd", ignore_errors=True)  # but the keys, which take a second to make


def median(runs: Sequence[Result]) -> Result:
    """Return the run with the median rate (of an even number the higher one), and all `rates`; or the first run that failed."""
    for result in runs:
        if "failed" in result:
            return result
    ordered = sorted(runs, key=lambda result: result["pods_per_s"])
    return {**ordered[len(ordered) // 2], "rates": [result["pods_per_s"] for result in ordered]}


def rate(result: Result) -> str:
    """Return what the table says of pods/s: of several runs also the lowest and the highest rate."""
    if "failed" in result:
        return "failed"
    rates = result["rates"]
    return f"{result['pods_per_s']}" + (f" ({rates[0]} to {rates[-1]})" if len(rates) > 1 else "")


def limit(result: Result) -> str:
    """Say what limits, with shares of a processor: a process, the processors of the machine together, or neither of them."""
    if "failed" in result:
        return str(result["failed"])[:200].replace("|", "/")
    shares = {name: spent / max(result["seconds"], 0.01) for name, spent in result["processor_s"].items()}
    machine = shares.pop("machine")
    share, name = max((share, name) for name, share in shares.items())
    if machine >= BUSY * (os.cpu_count() or 1):
        return f"processors {machine:.1f}, {name} {share:.1f}"
    return f"{name} {share:.1f}" if share >= BUSY else f"neither, {name} {share:.1f}"


def line(name: str, results: dict[str, Result]) -> str:
    """Return the row of a workload in the table."""
    theirs, ours = both = [results[scheduler] for scheduler in SCHEDULERS]
    rates = [result.get("pods_per_s", 0.0) for result in both]
    ratio = f"{rates[1] / rates[0]:.2f}" if all(rates) else ""
    waits = " / ".join(str(result.get("wait_p99_s", "")) for result in both)
    spent = [
        " / ".join(f"{result['processor_s'][of]:.1f}" if "failed" not in result else "" for result in both)
        for of in ("scheduler", "API server")
    ]
    pods = max(result.get("pods", 0) for result in both)
    cells = [name, pods, *map(rate, both), ratio, waits, *spent, limit(theirs), limit(ours)]
    return f"| {' | '.join(map(str, cells))} |"


def good(results: dict[str, Result], least: float) -> bool:
    """Has licorne played the workload, and at `least` so many times as fast as kube-scheduler?"""
    theirs, ours = (results[scheduler] for scheduler in SCHEDULERS)
    return "failed" not in ours and ("failed" in theirs or ours["pods_per_s"] >= least * theirs["pods_per_s"])


def main() -> int:
    """Read the command line, play, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="play only workloads whose topic, case or name has one of these texts")
    parser.add_argument("--table", type=Path, default=HERE / "workloads.tsv", help="the list of workloads")
    parser.add_argument("--scheduler", choices=SCHEDULERS, help="only this one; with --json")
    parser.add_argument("--out", type=Path, default=Path("build/perf"), help="for logs, and for the control plane")
    parser.add_argument("--port", type=int, default=24243, help="of the API server; five more follow it")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds that one wait may take")
    parser.add_argument("--runs", type=int, default=1, help="how often each is played, in turns; the median counts")
    parser.add_argument("--least", type=float, default=0.0, help="the ratio below which the exit status is 1")
    parser.add_argument("--json", action="store_true", help="print an object a line, with all that was measured")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is stopped
    command = ["go", "mod", "download", "-json", "k8s.io/kubernetes"]
    module = json.loads(subprocess.run(command, cwd=HERE.parent, check=True, capture_output=True).stdout)  # noqa: S603
    options.workloads = Path(module["Dir"]) / "test" / "integration" / "scheduler_perf"
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    with options.table.open(encoding="utf-8") as table:
        rows = [Row(*fields) for fields in csv.reader(table, delimiter="\t") if fields and fields[0][0] != "#"]
    if not options.json:
        print(HEAD, flush=True)
    passed = True
    for row in rows:
        if row.note or not any(text in row.name for text in options.texts or [""]):
            continue
        schedulers = [options.scheduler] if options.scheduler else SCHEDULERS
        turns = [[play(row, scheduler, options) for scheduler in schedulers] for _ in range(options.runs)]
        results = {scheduler: median(runs) for scheduler, *runs in zip(schedulers, *turns, strict=True)}
        passed = passed and (bool(options.scheduler) or good(results, options.least))
        print(json.dumps({"workload": row.name, **results}) if options.json else line(row.name, results), flush=True)
    for row in rows if not (options.json or options.texts) else ():
        if row.note:
            print(f"| {row.name} | {row.note} | | | | | | | | |")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
