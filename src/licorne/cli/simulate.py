"""`licorne simulate`: runs a workload, or the trace of a cluster, through the scheduler under a virtual clock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from licorne import RegistrationError, SettingsError
from licorne.cli.common import CommandError, pairs, print_json, read_text
from licorne.cli.progress import progress_bar
from licorne.config import ConfigError, load
from licorne.sim.openb import is_openb, read_openb
from licorne.sim.report import Result
from licorne.sim.runner import simulate as run
from licorne.sim.workload import ASKS_MAX, Progress, Workload, WorkloadError, read_workload

Flag = Annotated[bool, Parameter(negative="")]
NEVER_PLACED = 2


def simulate(
    input: Path,
    /,
    *,
    config: Path | None = None,
    decisions: Path | None = None,
    as_: Annotated[Literal["recorded", "fill"] | None, Parameter(name="--as")] = None,
    load: float | None = None,
    setting: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    grace: Annotated[float | None, Parameter(validator=validators.Number(gte=0, lte=9_000_000_000))] = None,
    resubmit: bool | None = None,
    max_asks: Annotated[int, Parameter(validator=validators.Number(gte=1))] = ASKS_MAX,
    strict: Flag = False,
    json: Flag = False,
) -> int:
    """Run a workload through the scheduler under a virtual clock, and report what became of it.

    Exit status: 0; 1 if the input or the configuration cannot be used; with --strict 2 if an ask was never placed
    (2 is also the status for wrong usage).

    Parameters
    ----------
    input
        A workload in JSON lines (a name that ends in .gz: compressed), the folder of the openb trace, or one of the
        trace's pod lists (CSV) with the node list beside it.
    config
        Queue configuration instead of the workload's own.
    decisions
        Write a line for each allocation, ask<TAB>node, in the order of decision; for a script its trace.
    as_
        Trace only. recorded: arrivals at the recorded times; fill: pods arrive in order and stay.
    load
        Trace only. Squeeze the arrivals until the peak demand of the scarcest resource is this share of the cluster
        [default: 0.9].
    setting
        A setting of the scheduler, as KEY=VALUE; may be given several times.
    grace
        Seconds until an evicted pod is gone, in place of what the workload says [default there: 1].
    resubmit
        Whether an evicted pod is created again, in place of what the workload says [default there: it is].
    max_asks
        A workload with more asks is refused; one that repeats counts as often as it does.
    strict
        Leave with exit status 2 if an ask was never placed.
    json
        Print the result as a JSON object.
    """
    settings = pairs("--setting", setting)
    text = _configuration(config) if config is not None else None
    with progress_bar("reading") as progress:
        workload = _read(input, as_, load, max_asks, progress)
    if grace is not None:
        workload.grace_s = grace
    if resubmit is not None:
        workload.resubmit = resubmit
    try:
        with progress_bar("simulating") as progress:
            result = run(workload, config=text, settings=settings, decisions=decisions, progress=progress)
    except SettingsError as error:
        raise CommandError(f"--setting {error}") from None
    except (RegistrationError, WorkloadError) as error:
        raise CommandError(str(error)) from None
    _show(result, json)
    return NEVER_PLACED if strict and result.never_placed else 0


def _configuration(path: Path) -> str:
    """Read the text of a queue configuration, and check that a scheduler would accept it.

    Raises:
        CommandError: the file cannot be read, or the configuration is refused.
    """
    text = read_text(path, "a queue configuration")
    try:
        load(text, file=str(path))
    except ConfigError as error:
        raise CommandError(f"the queue configuration cannot be used\n{error}") from None
    return text


def _read(path: Path, how: str | None, load: float | None, max_asks: int, progress: Progress | None) -> Workload:
    if how is not None and load is not None:
        raise CommandError("--as and --load exclude each other: recorded times and fill have no load to aim at")
    try:
        if is_openb(path):
            return read_openb(path, how=how or "load", load=0.9 if load is None else load)
        if how is not None or load is not None:
            raise CommandError(
                f"{path} is a workload, which says itself when pods arrive: --as and --load are for traces"
            )
        return read_workload(path, progress=progress, asks_max=max_asks)
    except WorkloadError as error:
        raise CommandError(str(error)) from None
    except FileNotFoundError:
        raise CommandError(
            f"{path}: no such file; give a workload (JSON lines), the openb trace's folder, or one of its pod lists"
        ) from None


def _show(result: Result, json: bool) -> None:
    if json:
        print_json(result)
        return
    from licorne.cli.tables import show  # noqa: PLC0415  # a program that reads JSON need not wait for tables

    show(result)
