"""Read what is to be simulated: a workload file, a scenario, a recording, or lines that a program has made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from licorne.state.recording.folder import RecordingError, is_recording
from licorne.workload.scenarios.scenario import Scenario
from licorne.workload.traces.recorded import recorded_workload
from licorne.workload.traces.swf import is_swf
from licorne.workload.workload import (
    ASKS_MAX,
    OptionError,
    Progress,
    Workload,
    WorkloadError,
    parse_workload,
    read_workload,
)

Source = Workload | Scenario | Path | str | Iterable[Mapping[str, Any]]
"""A workload, a scenario, the path of one or of a recording, or the lines of a workload as objects for JSON."""
SCENARIOS = (".yaml", ".yml")
"""How the name of a scenario's file ends."""
TABLES = (".csv", ".csv.gz")
"""How the name of a table in CSV ends."""


def is_scenario(path: Path) -> bool:
    """Whether a path is that of a scenario, a file in YAML."""
    return path.suffix in SCENARIOS and not path.is_dir()


def load_workload(
    source: Source,
    *,
    load: float | None = None,
    seed: int | None = None,
    run: int | None = None,
    asks_max: int = ASKS_MAX,
    progress: Progress | None = None,
) -> Workload:
    """Read a workload file (`-`: standard input), a scenario (.yaml), the folder of a recording, or lines.

    `seed` and `load` are for scenarios: in place of what the scenario says. `run` is the number of the run of a recording;
    without it, the last one is read, and a note names the others. A workload with more than `asks_max` asks is
    refused. A `Workload` is returned as it is.

    Raises:
        WorkloadError: it is not usable; the text names file, line and field. OptionError: a seed, load or run is not for it.
        OSError: a file cannot be read.
    """
    if run is not None and not (isinstance(source, Path | str) and is_recording(Path(source))):
        raise OptionError("a run is for a recording, and this is none")
    if isinstance(source, Path | str) and is_scenario(Path(source)):
        source = Scenario.read(source)
    if isinstance(source, Scenario):
        return source.workload(seed=seed, load=load, asks_max=asks_max)
    if seed is not None or load is not None:
        raise OptionError("a seed and a load are for a scenario, and this is none: nothing of it is drawn")
    if isinstance(source, Workload):
        return source
    if not isinstance(source, Path | str):
        return parse_workload(map(msgspec.json.encode, source), progress=progress, asks_max=asks_max)
    path = Path(source)
    if is_recording(path):
        return _recorded(path, run, asks_max, progress)
    what = "a batch log" if is_swf(path) else "a table" if path.name.lower().endswith(TABLES) else ""
    if path.is_dir() and not any(path.glob("*.csv*")):  # those of a trace are what `convert` reads of a folder
        raise WorkloadError(f"{path}: is a folder without a recording, and no workload")
    if what := "a folder without a recording" if path.is_dir() else what:
        out = f"{path.resolve().name.partition('.')[0]}.jsonl"
        raise WorkloadError(f"{path}: is {what}, and no workload; to make one of it: licorne convert {path} -o {out}")
    return read_workload(path, progress=progress, asks_max=asks_max)


def _recorded(folder: Path, run: int | None, asks_max: int, progress: Progress | None) -> Workload:
    try:
        return recorded_workload(folder, run=run, asks_max=asks_max, progress=progress)
    except RecordingError as error:
        raise WorkloadError(str(error)) from None
