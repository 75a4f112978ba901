"""`licorne generate`: makes a workload file from a seed."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, cast

from cyclopts import Parameter, validators

from licorne.cli.common import STDIN, UsageError, say
from licorne.cli.refusals import refusals
from licorne.config.model import NodePolicy
from licorne.sim.contended import CONTENDED, contended
from licorne.sim.finished import finished_file, opened
from licorne.sim.generate import Options, benchmark, write
from licorne.sim.week import week
from licorne.sim.workload import Workload

NO_OPTIONS = "the case week has no options but --seed"


def generate(
    case: Literal[
        "a",
        "b",
        "c",
        "d",
        "e1",
        "e2",
        "e3",
        "t",
        "x",
        "churn",
        "constraints",
        "tree",
        "week",
        "gangs",
        "gangs-atomic",
        "preempt",
    ],
    out: Path | None = None,
    /,
    *,
    shape: Literal["app", "same", "unique"] | None = None,
    appsort: Literal["fifo", "fair"] | None = None,
    nodesort: NodePolicy | None = None,
    order: Literal["rr", "app"] | None = None,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 1,
    demand: float | None = None,
) -> int:
    """Make a workload file (JSON lines) from a seed. The same case, options and seed give the same bytes.

    Parameters
    ----------
    case
        What to make; numbers are of nodes and pods. t: 10, 200; a: 100, 10,000; b: 1,000, 50,000; c: 5,000, 100,000;
        d: 10,000, 100,000; x: 100,000, 1,000,000; e1: 60,000 asks of which quotas let 10,000 through; e2, e3: 10,000 that
        fit behind many of higher priority that do not; churn: 10,000 full nodes, and about 50,000 smaller asks left over;
        constraints: 5,000, 100,000, each ask for one of 50 classes of nodes, one in ten for several; tree: 5,000, 100,000
        that fit, and 20,000 applications in 2,000 queues, five levels deep. With times: gangs: 5,000, 50,000 in 1,000 gangs
        with placeholders; gangs-atomic: the same without; preempt: 5,000 full nodes, and 5,000 asks of a queue below its
        guarantee; week: the sample of the demonstration, 60 nodes and a busy week.
    out
        Where to write it (a name that ends in .gz: compressed); without it, or for -: standard output.
    shape
        app: one size of pods for each application, which is the default; same: one for all; unique: each pod its own.
    appsort
        How queues sort their applications; without it, fifo.
    nodesort
        How the partition sorts its nodes; without it, fair.
    order
        rr: asks of all applications in turn, which is the default; app: application after application.
    seed
        Seed of the random numbers.
    demand
        What the asks want together, as a multiple of what the cluster has (1.5: a third has to wait).
    """
    choices = {"shape": shape, "appsort": appsort, "nodesort": nodesort, "order": order, "demand": demand}
    given: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if case == "week" and given:
        raise UsageError(NO_OPTIONS)
    with refusals():
        workload = make(case, Options(seed=seed, **given))
    if out in (None, STDIN):
        write(workload, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return 0
    with target(out) as stream:
        write(workload, stream)
    say(f"{out}: {workload.name}, {len(list(workload.lines))} lines", to=sys.stderr)
    return 0


def make(case: str, options: Options) -> Workload:
    """Make the workload of a case.

    Raises:
        UsageError: an option other than the seed for the case `week`.
        OptionError: an option that another case does not have, or not with this value.
    """
    if case in CONTENDED:
        return contended(case, options)
    if case != "week":
        return benchmark(case, options)
    if options != Options(seed=options.seed):
        raise UsageError(NO_OPTIONS)
    return week(options.seed)


@contextmanager
def target(out: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; it has its name only when it is complete."""
    with finished_file(out) as part, opened(part, out) as stream:
        if out.suffix != ".gz":
            yield cast("BinaryIO", stream)
        else:
            # Gzip would store time and file name; without them, equal workloads give equal bytes.
            with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
                yield cast("BinaryIO", packed)
