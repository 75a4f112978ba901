"""`licorne sweep`: many configurations, workloads, loads, seeds and policies, by processes on this machine or on a Ray cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter, validators

from licorne._extras import require
from licorne._wording import counted
from licorne.cli.common import CommandError, UsageError, pairs, print_json, say
from licorne.cli.configurations import read_configuration
from licorne.cli.parameters import OUTPUT, SEVERAL, Flag, Jobs, Pairs, Texts
from licorne.cli.progress import progress_bar
from licorne.cli.refusals import refusals
from licorne.cli.simulate import PolicyTime
from licorne.cli.statuses import Status
from licorne.lab.sweep.document import read_sweep
from licorne.lab.sweep.engines import Engine, EngineError, Processes
from licorne.lab.sweep.plan import OWN, POINTS_MAX, Point, Sweep
from licorne.lab.sweep.running import Job, jobs_of, join_outcomes, run_sweep
from licorne.lab.sweep.table import rows, write_table
from licorne.workload.lines import DevicePolicy


def sweep(
    *source: Path,
    output: Annotated[Path, OUTPUT],
    file: Path | None = None,
    config: Annotated[tuple[Path, ...], SEVERAL] = (),
    load: Annotated[tuple[float, ...], SEVERAL, Parameter(validator=validators.Number(gt=0))] = (),
    seed: Annotated[tuple[int, ...], SEVERAL, Parameter(validator=validators.Number(gte=0))] = (),
    policy: Texts = (),
    policy_timeout: PolicyTime | None = None,
    device_policy: Annotated[tuple[DevicePolicy, ...], SEVERAL] = (),
    setting: Pairs = (),
    engine: str = "processes",
    jobs: Jobs = None,
    shard: str | None = None,
    join: Annotated[tuple[Path, ...], SEVERAL] = (),
    retry: Flag = False,
    report: Annotated[bool, Parameter(show_default=False)] = True,
    dry_run: Flag = False,
    json: Flag = False,
) -> int:
    """Simulate each combination of workloads, configurations, loads, policies and seeds, and compare them in one table.

    The outcome of each point is kept in the folder, so a sweep that was interrupted goes on where it was, and one that is
    extended runs only what is new. A point that fails is part of the table, with its error.

    Parameters
    ----------
    source
        Workloads, scenarios and folders of recordings, as for `licorne simulate`.
    output
        The folder where the table (table.csv, table.parquet), the report (sweep.html) and the outcomes are written.
    file
        A sweep file (YAML) that says what is combined. Arguments and options take the place of what it says.
    config
        A queue configuration; own: that of the workload. May be given several times, as may all that is combined.
    load
        A load: of a scenario the factor of all rates and bursts; times of arrival of other workloads are divided by it.
    seed
        A seed of a workload that is drawn.
    policy
        A policy of your own, as for `licorne simulate`; own: what licorne does.
    policy_timeout
        Time after which a single call of a policy is ended, and its point fails, in seconds or like 1m30s; without it, 5.
    device_policy
        Which device of a node a share is placed on, where the workload has devices.
    setting
        A setting of the scheduler at all points, like reservation.delay=5s.
    engine
        Where points run: processes of this machine, ray, or ray:ADDRESS, a Ray cluster (extra `ray`).
    jobs
        How many points run at a time; without it, as many as there are processors.
    shard
        Run only a part of the points, like 3/10, the third of ten: for an array of jobs.
    join
        Take the outcomes that another folder of the same sweep has, such as that of another part; may be given several times.
    retry
        Run points once more that failed before.
    report
        Write sweep.html and table.parquet too, which need the extra `report`; --no-report leaves them out.
    dry_run
        Print what would run, and run nothing.
    json
        Print the rows of the table as JSON.
    """
    given: dict[str, Any] = {
        "workloads": [str(path) for path in source],
        "configurations": [str(path) for path in config],
        "loads": list(load),
        "seeds": list(seed),
        "policies": list(policy),
        "policy_timeout_s": policy_timeout,
        "device_policies": list(device_policy),
        "settings": pairs("--setting", setting),
    }
    plan = _plan(file, given)
    if report and not dry_run:
        require("report")
    for name in plan.configurations:
        if name != OWN:
            read_configuration(Path(name), simulated=True)
    points = _sharded(plan.points(), shard)
    found = jobs_of(points, output)
    for folder in join:
        join_outcomes(found, folder)
    if dry_run:
        return _say(found, retry=retry)
    try:
        with progress_bar("simulating", remaining=True) as progress:
            outcomes = run_sweep(found, engine=_engine(engine, jobs), again=retry, progress=progress)
    except EngineError as refused:
        raise CommandError(str(refused)) from None
    table = rows(points, outcomes)
    files = write_table(output, table, parquet=report)
    if report:
        from licorne.lab.sweep.page import write_sweep_page  # noqa: PLC0415  # it needs the extra `report`

        files.append(write_sweep_page(output, plan.name, table))
    failed = [(point, outcome.error) for point, outcome in zip(points, outcomes, strict=True) if outcome.error]
    if json:
        print_json(table)
    else:
        say(f"{counted(len(points), 'point')}, {len(failed):,} failed")
        for point, error in failed[:10]:
            say(f"  {point.name}: {error}")
        say(*map(str, files))
    return Status.NO if len(failed) == len(points) else Status.DONE


def _plan(file: Path | None, given: dict[str, Any]) -> Sweep:
    """Return what a file and options say together; `given` are the options by the names of `Sweep`. Raises CommandError."""
    with refusals():
        plan = read_sweep(file) if file is not None else Sweep()
    plan = msgspec.structs.replace(plan, **{name: value for name, value in given.items() if value})
    if not plan.workloads:
        raise UsageError("nothing to simulate: give workloads, or a sweep file with --file")
    if len(plan) > POINTS_MAX:
        raise UsageError(f"{len(plan):,} combinations are too many; {POINTS_MAX:,} are allowed")
    for name, values in given.items():
        if isinstance(values, list) and len(set(values)) < len(values):
            raise UsageError(f"{name}: {max(values, key=values.count)} is given twice")
    return plan


def _sharded(points: list[Point], shard: str | None) -> list[Point]:
    """Return the points of a part like 3/10: the third of each ten. Raises UsageError if there is no such part."""
    if shard is None:
        return points
    number, slash, of = shard.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UsageError(f"--shard {shard}: it is given as a part and the number of parts, like 3/10")
    return points[int(number) - 1 :: int(of)]


def _engine(text: str, jobs: int | None) -> Engine:
    """Return the engine that an option names. Raises UsageError if there is none."""
    name, _, address = text.partition(":")
    if text == "processes":
        return Processes(jobs or os.cpu_count() or 1)
    if name != "ray":
        raise UsageError(f"--engine {text}: it is processes, ray or ray:ADDRESS")
    from licorne.lab.sweep.on_ray import TASKS_MAX, Ray  # noqa: PLC0415  # it needs the extra `ray`

    return Ray(address, jobs or TASKS_MAX)


def _say(found: list[Job], *, retry: bool) -> int:
    """Print what would run."""
    missing = 0
    for job in found:
        outcome = job.outcome()
        runs = outcome is None or (retry and bool(outcome.error))
        missing += runs
        say(f"{'run ' if runs else 'done'}  {job.point.name}")
    say(f"{missing:,} of {counted(len(found), 'point')} would run")
    return Status.DONE
