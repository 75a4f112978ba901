"""`licorne bench`: measures allocations per second, on a generated workload or one in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from licorne._wording import counted
from licorne.cli.common import CommandError, UsageError, print_json, say
from licorne.cli.progress import progress_bar
from licorne.cli.refusals import refusals
from licorne.cli.statuses import Status
from licorne.config.model import NodePolicy
from licorne.measure.bench import BenchResult, measure
from licorne.measure.boundary import BoundaryName
from licorne.sim.contended import CONTENDED
from licorne.sim.generate import CASES, Options, benchmark
from licorne.sim.workload import Workload, read_workload

BUSY_CORES = 0.1
Flag = Annotated[bool, Parameter(negative="")]


def bench(
    case_or_file: str,
    /,
    *,
    shape: Literal["app", "same", "unique"] = "app",
    appsort: Literal["fifo", "fair"] = "fifo",
    nodesort: NodePolicy = "fair",
    order: Literal["rr", "app"] = "rr",
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 1,
    demand: float | None = None,
    repeat: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    reservations: Flag = False,
    boundary: BoundaryName = "objects",
    json: Flag = False,
) -> int:
    """Measure allocations per second: from the first ask handed in to the last allocation handed out.

    Parameters
    ----------
    case_or_file
        A case of `licorne generate` (a, b, c, d, e1, e2, e3, t, x, churn, constraints, tree), or a workload file of version 1.
    shape
        Cases only, as for `licorne generate`; so are appsort, nodesort, order, seed and demand.
    appsort
        How queues sort their applications.
    nodesort
        How the partition sorts its nodes.
    order
        The order of the asks.
    seed
        Seed of the random numbers.
    demand
        What the asks want together, as a multiple of what the cluster has.
    repeat
        Measure so many times, each time in a new scheduler, and report medians.
    reservations
        Let asks that wait reserve nodes; real time then counts.
    boundary
        What goes in and out: objects of the 1.9 interface (objects), its protobuf bytes (bytes), or bytes of the first
        interface (first-bytes).
    json
        Print the result as a JSON object.
    """
    options = Options(shape=shape, appsort=appsort, nodesort=nodesort, order=order, seed=seed, demand=demand)
    with refusals(), progress_bar("measuring") as progress:
        workload = _workload(case_or_file, options)
        done = 0

        def told(_: object) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, repeat)

        result = measure(workload, repeat=repeat, reservations=reservations, boundary=boundary, told=told)
    if json:
        print_json(result)
    else:
        _show(result)
    return 0


def _workload(case_or_file: str, options: Options) -> Workload:
    if case_or_file in CONTENDED:
        raise UsageError(f"the case {case_or_file} is measured by `python -m bench run {case_or_file}`")
    if case_or_file in CASES:
        return benchmark(case_or_file, options)
    if options != Options():
        raise UsageError(f"{case_or_file} is no case of `licorne generate`, and only those have options")
    try:
        return read_workload(Path(case_or_file))
    except FileNotFoundError:
        cases = ", ".join(CASES)
        raise CommandError(f"{case_or_file}: no such file, and none of the cases {cases}", Status.FILE) from None


def _show(result: BenchResult) -> None:
    kind = "compiled" if result.compiled else "interpreted"
    rates = [run.allocations_per_s for run in result.runs]
    say(f"{result.workload}: {kind}, {result.boundary}, Python {result.python}, {result.processors} processors")
    spread = f" ({min(rates):,.0f} to {max(rates):,.0f} in {len(rates)} runs)" if len(rates) > 1 else ""
    say(f"  {result.allocations_per_s:,.0f} allocations per second{spread}")
    say(
        f"  {counted(result.allocations, 'allocation')} for {counted(result.asks, 'ask')} in {result.seconds:.3f} s"
        f" (handing in {result.submit_s:.3f} s, deciding {result.decide_s:.3f} s)"
    )
    if result.expected and result.expected != result.allocations:
        say(f"  the workload expects {counted(result.expected, 'allocation')}")
    say(
        f"  a cycle with nothing to do takes {result.idle_cycle_us:,.1f} µs, with {counted(result.pending, 'ask')} pending"
    )
    above = f"{result.peak_bytes / (1 << 20):,.0f} MiB of it for the scheduler and what it handed out"
    say(f"  peak memory {result.peak_rss_bytes / (1 << 20):,.0f} MiB, {above}")
    if result.other_cores is not None and result.other_cores >= BUSY_CORES:
        say(f"  other processes kept {result.other_cores:.1f} processors busy: the figures are too low")
    say(f"  digest {result.digest}")
