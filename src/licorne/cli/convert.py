"""`licorne convert`: makes a workload of what others have recorded, of a cluster, or of a scheduler that runs.

Each kind of source has a function that reads it, whose keyword arguments are the options that the kind has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter, validators

from licorne._files import opened
from licorne._wording import counted
from licorne.cli.capturing import capture_workload
from licorne.cli.common import CommandError, UsageError, say
from licorne.cli.objects import objects_workload
from licorne.cli.parameters import DURATION, Flag, Load, MaxAsks, Output, RunNumber, Seed, Texts
from licorne.cli.progress import progress_bar
from licorne.cli.refusals import refusals
from licorne.cli.statuses import Status
from licorne.config.simulation import JobOrder
from licorne.core.base import setting_kinds as kinds
from licorne.state.recording import Names
from licorne.state.recording.anonymous import AnonymityError
from licorne.state.recording.folder import is_recording
from licorne.state.source import WORKLOADS, is_url
from licorne.workload.finished import written
from licorne.workload.reading import TABLES, is_scenario, load_workload
from licorne.workload.scenarios.scenario import is_scenario_text
from licorne.workload.traces.batch import JobsAs, batch_workload
from licorne.workload.traces.columns import read_mapping
from licorne.workload.traces.gpu_csv import gpu_workload, read_gpu_csv
from licorne.workload.traces.openb import LOAD, read_openb
from licorne.workload.traces.swf import is_swf, read_swf
from licorne.workload.workload import ASKS_MAX, OptionError, Workload, write_workload

Arrivals = Literal["load", "recorded", "fill"]
"""How the openb trace is read (`licorne.workload.traces.openb`)."""
HEAD_BYTES: Final = 1 << 20
"""How much of a file in YAML is looked at to tell a scenario from objects of a cluster."""


def convert(
    *source: str,
    output: Output = None,
    as_: Annotated[Arrivals | None, Parameter(name="--as")] = None,
    load: Load = None,
    seed: Seed = None,
    run: RunNumber = None,
    columns: str | None = None,
    jobs: JobsAs | None = None,
    order: JobOrder | None = None,
    backfill: Flag = False,
    scheduler_name: Texts = (),
    for_: Annotated[
        float | None, DURATION, Parameter(name="--for", validator=validators.Number(gt=0, lte=kinds.MOST))
    ] = None,
    every: Annotated[float | None, DURATION, Parameter(validator=validators.Number(gte=0.1, lte=3600))] = None,
    token_file: Path | None = None,
    tls_ca: Path | None = None,
    max_asks: MaxAsks | None = None,
    anonymous: Flag = False,
) -> int:
    """Make a workload for `licorne simulate`, `licorne compare` and `licorne sweep`; equal sources give equal bytes.

    A running scheduler is only read, its state every few seconds and its stream of events, until --for is over, or until
    Ctrl-C; then the file is written. Of a cluster, namespaces (quotas), priority classes, claims and YuniKorn's ConfigMaps (queues)
    count too, and pods ask for what they would ask for with `licorne kube`. What is not known stands in the workload.

    Parameters
    ----------
    source
        A batch log in the Standard Workload Format (.swf, .swf.gz); a table of jobs in CSV (--columns); the folder of
        the openb trace, or one of its pod lists (CSV) with the node list beside it; what `kubectl get pods,nodes -A -o json`
        prints, JSON or YAML, in one file or several (-: standard input); the address of a running YuniKorn or licorne,
        http://HOST:PORT; a scenario (.yaml); the folder of a recording; a workload.
    output
        The workload file that is written (JSON lines; a name that ends in .gz: compressed); without it: standard output.
    as_
        openb: load: arrivals squeezed (--load), which is what happens without this option; recorded: arrivals at the
        recorded times; fill: the same, and pods stay.
    load
        Scenario: the factor of all rates and bursts, in place of what it says. openb: squeeze the arrivals until the peak
        demand of the scarcest resource is this share of the cluster; without it, 0.9. A load that the trace cannot reach
        once is reached with the trace several times in a row.
    seed
        Scenario: seed of the random numbers, in place of what it says.
    run
        Recording: number of the run, as `licorne replay --runs` lists them; without it, the last one.
    columns
        Table: which of its columns means what: philly, helios, or a YAML file with such a mapping.
    jobs
        Batch log or table: what a job of several processors, GPUs or pods becomes: gang, pods that start together, which is what
        happens without this option; asks, one for each; one, a single ask, on a machine that is one node.
    order
        Batch log or table: start jobs in a strict order, in which the first one blocks; without it, as the scheduler does.
    backfill
        Batch log or table: with --order: start a later job if by its requested time it ends before the first can start.
    scheduler_name
        Cluster: pods that name this scheduler are the workload, other ones hold their room; may be given several times.
        Without it: yunikorn.
    for_
        Running scheduler: end after this time, in seconds or like 1h, 90m or 168h.
    every
        Running scheduler: time between two looks at the whole state, in seconds or like 1m; without it, 10.
    token_file
        Running scheduler: file with the token of its REST interface.
    tls_ca
        Running scheduler: certificate to know its REST interface by, PEM; without it: the authorities of this system.
    max_asks
        A source with more asks is refused, and a running scheduler is left when there are so many; without it, 2000000.
    anonymous
        Write digests in place of names of users and groups.
    """
    given: dict[str, Any] = {
        "as_": as_, "load": load, "seed": seed, "run": run, "columns": columns, "jobs": jobs, "order": order,
        "backfill": backfill, "scheduler_name": scheduler_name, "for_": for_, "every": every, "token_file": token_file,
        "tls_ca": tls_ca, "max_asks": max_asks,
    }  # fmt: skip
    if not source:
        raise UsageError(
            "give a source, or - for standard input: kubectl get pods,nodes -A -o json | licorne convert -"
        )
    options = {name: value for name, value in given.items() if value is not None and value is not False and value != ()}
    what, read = _kind(source[0], columns=columns is not None)
    if other := next((name for name in options if name not in signature(read).parameters), ""):
        raise UsageError(f"{source[0]} is read as {what}: --{other.strip('_').replace('_', '-')} is not for that")
    if len(source) > 1 and read is not objects_workload:
        raise UsageError(
            f"{source[1]}: only objects of a cluster may be in several files; {source[0]} is read as {what}"
        )
    names = Names() if anonymous else None
    try:
        if read is capture_workload:
            told = capture_workload(source[0], output, names, **options)
        else:
            with refusals():
                told = _write(read(list(map(Path, source)), **options), output, names)
    except AnonymityError as error:
        raise CommandError(f"--anonymous: {error}") from None
    if output is not None:
        say(*told, to=sys.stderr)
    return Status.DONE


def _kind(source: str, *, columns: bool) -> tuple[str, Callable[..., Any]]:
    """Return what a source is, in words, and the function that reads it."""
    path = Path(source)
    if is_url(source):
        return "the address of a scheduler", capture_workload
    if path.is_dir():
        return ("a recording", _workload) if is_recording(path) else ("a folder of the openb trace", _openb)
    if is_swf(path):
        return "a batch log", _batch_log
    if path.name.lower().endswith(TABLES):
        return ("a table", _table) if columns else ("a table of the openb trace, without --columns", _openb)
    if path.name.endswith(WORKLOADS):
        return "a workload", _workload
    if is_scenario(path) and _says_scenario(path):
        return "a scenario", _workload
    return "objects of a cluster", objects_workload


def _says_scenario(path: Path) -> bool:
    with opened(path, from_shell=True) as stream:
        return is_scenario_text(stream.read(HEAD_BYTES).decode("utf-8", "replace"))


def _workload(
    paths: list[Path],
    *,
    load: float | None = None,
    seed: int | None = None,
    run: int | None = None,
    max_asks: int = ASKS_MAX,
) -> Workload:
    with progress_bar("reading") as progress:
        return load_workload(paths[0], load=load, seed=seed, run=run, asks_max=max_asks, progress=progress)


def _openb(paths: list[Path], *, as_: Arrivals = "load", load: float | None = None) -> Workload:
    if as_ != "load" and load is not None:
        raise OptionError("--as and --load exclude each other: recorded times and fill have no load to aim at")
    return read_openb(paths[0], how=as_, load=LOAD if load is None else load)


def _batch_log(
    paths: list[Path], *, jobs: JobsAs = "gang", order: str = "", backfill: bool = False, max_asks: int = ASKS_MAX
) -> Workload:
    log = read_swf(paths[0], jobs_max=max_asks)
    return batch_workload(log, jobs_as=jobs, order=order, backfill=backfill, asks_max=max_asks)


def _table(
    paths: list[Path],
    *,
    columns: str,
    jobs: JobsAs = "gang",
    order: str = "",
    backfill: bool = False,
    max_asks: int = ASKS_MAX,
) -> Workload:
    mapping = read_mapping(columns)
    table = read_gpu_csv(paths[0], mapping, jobs_max=max_asks)
    return gpu_workload(table, mapping, jobs_as=jobs, order=order, backfill=backfill, asks_max=max_asks)


def _write(workload: Workload, output: Path | None, names: Names | None) -> list[str]:
    """Write a workload; return what to say of it."""
    if output is None:
        write_workload(workload, sys.stdout.buffer, names)
        sys.stdout.buffer.flush()
        return []
    with written(output) as stream:
        asks = write_workload(workload, stream, names)
    return [f"{output}: {counted(asks, 'ask')}", *(f"note: {note}" for note in workload.notes)]
