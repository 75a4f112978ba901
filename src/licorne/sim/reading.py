"""Read what is to be simulated: a workload file, a trace, or lines that a program has made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from licorne.recording.folder import RecordingError, is_recording
from licorne.sim.scenarios.scenario import Scenario
from licorne.sim.traces.batch import JobsAs, batch_workload
from licorne.sim.traces.columns import read_mapping
from licorne.sim.traces.gpu_csv import gpu_workload, read_gpu_csv
from licorne.sim.traces.openb import LOAD, is_openb, read_openb
from licorne.sim.traces.recorded import recorded_workload
from licorne.sim.traces.swf import is_swf, read_swf
from licorne.sim.workload import ASKS_MAX, OptionError, Progress, Workload, WorkloadError, parse_workload, read_workload

ReadAs = Literal["load", "recorded", "fill"]
"""How the openb trace is read (`licorne.sim.traces.openb`)."""


class BatchAs(msgspec.Struct, frozen=True):
    """How a batch log is read: what a job becomes, and the order of jobs ("": the scheduler's) with or without backfill.

    `columns`: it is a table of GPU jobs in CSV, with this mapping of its columns: a ready one (`philly`, `helios`), or a file.
    """

    jobs_as: JobsAs = "gang"
    order: str = ""
    backfill: bool = False
    columns: str = ""


Source = Workload | Scenario | Path | str | Iterable[Mapping[str, Any]]
"""A workload, a scenario, the path of one or of a trace, or the lines of a workload as objects for JSON."""
ENDINGS = (".yaml", ".yml")
"""How the name of a scenario's file ends."""


def is_scenario(path: Path) -> bool:
    """Whether a path is that of a scenario, a file in YAML."""
    return path.suffix in ENDINGS and not path.is_dir()


def load_workload(
    source: Source,
    *,
    read_as: ReadAs | None = None,
    load: float | None = None,
    seed: int | None = None,
    batch: BatchAs | None = None,
    asks_max: int = ASKS_MAX,
    progress: Progress | None = None,
) -> Workload:
    """Read a workload file (`-`: standard input), a scenario (.yaml), a trace, a batch log, the folder of a recording, or lines.

    Traces are openb, and tables of GPU jobs in CSV. `read_as` and `load` are for openb: by default `load`, with a load of
    0.9. `seed` and `load` are for scenarios: in place of what the scenario says. `batch` is for logs in the Standard Workload Format (.swf, .swf.gz), and for tables of GPU jobs, which need its
    `columns`. A workload with more than `asks_max` asks is refused. A `Workload` is returned as it is.

    Raises:
        WorkloadError: it is not usable; the text names file, line and field. OptionError: an option is not for it.
        OSError: a file cannot be read.
    """
    if load is not None and read_as not in (None, "load"):
        raise OptionError(f"a load is for a trace that is read as load, not as {read_as}: that has no load to aim at")
    if isinstance(source, Path | str) and is_scenario(Path(source)):
        source = Scenario.read(source)
    if isinstance(source, Scenario):
        if read_as is not None or batch is not None:
            raise OptionError(f"{source.name} is a scenario, which has only a seed and a load to choose")
        return _of_scenario(source, seed, load, asks_max)
    if seed is not None:
        raise OptionError("a seed is for a scenario, and this is none: nothing of it is drawn")
    if isinstance(source, Path | str):
        path = Path(source)
        if batch is not None and batch.columns:
            return _gpu_jobs(path, batch, asks_max, recorded=read_as is None and load is None)
        if is_swf(path):
            if read_as is not None or load is not None:
                raise OptionError(f"{path} is a batch log, which is read as recorded; that can be chosen for openb")
            how = batch or BatchAs()
            log = read_swf(path, jobs_max=asks_max)
            return batch_workload(log, jobs_as=how.jobs_as, order=how.order, backfill=how.backfill, asks_max=asks_max)
        if batch is not None:
            raise OptionError(f"{path} is no batch log (.swf or .swf.gz): forms and orders of jobs are for those")
        if is_openb(path) and not is_recording(path):
            return read_openb(path, how=read_as or "load", load=LOAD if load is None else load)
    if read_as is not None or load is not None:
        name = source if isinstance(source, Path | str) else "this"
        raise OptionError(f"{name} is a workload, which says itself when pods arrive; that can be chosen for traces")
    if isinstance(source, Workload):
        return source
    if isinstance(source, Path | str):
        if is_recording(path):
            return _recorded(path, asks_max, progress)
        return read_workload(path, progress=progress, asks_max=asks_max)
    return parse_workload(map(msgspec.json.encode, source), progress=progress, asks_max=asks_max)


def _of_scenario(scenario: Scenario, seed: int | None, load: float | None, asks_max: int) -> Workload:
    try:
        return scenario.workload(seed=seed, load=load, asks_max=asks_max)
    except WorkloadError:
        raise
    except ValueError as error:
        raise WorkloadError(str(error)) from None


def _gpu_jobs(path: Path, how: BatchAs, asks_max: int, *, recorded: bool) -> Workload:
    if not recorded:
        raise OptionError(f"{path} is a table of jobs, which is read as recorded; that can be chosen for openb")
    if is_swf(path) or path.is_dir():
        raise OptionError(f"{path} is no table in CSV: a mapping of columns is for those")
    mapping = read_mapping(how.columns)
    table = read_gpu_csv(path, mapping, jobs_max=asks_max)
    return gpu_workload(table, mapping, jobs_as=how.jobs_as, order=how.order, backfill=how.backfill, asks_max=asks_max)


def _recorded(folder: Path, asks_max: int, progress: Progress | None) -> Workload:
    try:
        return recorded_workload(folder, asks_max=asks_max, progress=progress)
    except RecordingError as error:
        raise WorkloadError(str(error)) from None
