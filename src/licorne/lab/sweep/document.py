"""Sweep files: a small YAML file that says what is combined.

    workloads: [week.jsonl]
    configurations: [own, limited.yaml]
    loads: [0.8, 1, 1.2]

Paths are relative to the file. docs/use/sweeps.md describes all keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from licorne._files import file_text
from licorne.lab.sweep.plan import OWN, POINTS_MAX, Sweep
from licorne.sim.policies.watch import LIMIT_MAX_S
from licorne.workload.lines import DevicePolicy
from licorne.workload.workload import WorkloadError
from licorne.workload.yaml_files.reading import compose_text
from licorne.workload.yaml_files.repair import Text, convert

NUMBER_MAX: Final = 1e12
_SOME: Final = msgspec.Meta(min_length=1)
_Texts = Annotated[list[Text], _SOME]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=NUMBER_MAX)]


class _Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A sweep file; None: it does not say it. The names are those of `Sweep`; as `seeds` a number N stands for 1 to N."""

    workloads: _Texts
    name: Text | None = None
    configurations: _Texts | None = None
    loads: Annotated[list[Annotated[float, msgspec.Meta(gt=0, le=NUMBER_MAX)]], _SOME] | None = None
    seeds: (
        Annotated[int, msgspec.Meta(ge=1, le=10_000)]
        | Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]], _SOME]
        | None
    ) = None
    policies: _Texts | None = None
    device_policies: Annotated[list[DevicePolicy], _SOME] | None = None
    settings: dict[Text, str] | None = None
    since_s: _Seconds | None = None
    until_s: _Seconds | None = None
    max_asks: Annotated[int, msgspec.Meta(ge=1, le=10**9)] | None = None
    policy_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=LIMIT_MAX_S)] | None = None


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Raises:
        WorkloadError: it is not usable; the text names file, line and column.
        OSError: the file cannot be read.
    """
    try:
        text = file_text(path)
    except UnicodeDecodeError:
        raise WorkloadError(f"{path}: not a text in UTF-8") from None
    return parse_sweep(text, str(path), path.parent)


def parse_sweep(text: str, name: str, folder: Path) -> Sweep:
    """Return the sweep that a text says; `name` is that of its file in messages, paths are relative to `folder`."""
    made, problems = compose_text(text, name)
    found = msgspec.structs.asdict(convert(made, _Document, problems))
    values: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
    if isinstance(values.get("seeds"), int):
        values["seeds"] = list(range(1, values["seeds"] + 1))
    for key, given in values.items():
        known: set[object] = set()
        for index, value in enumerate(given if isinstance(given, list) else ()):
            if value in known:
                problems.note((key, index), f"{value} stands twice")
            known.add(value)
            is_file = key == "workloads" or (key == "configurations" and value != OWN)
            if is_file and not (folder / value).exists():
                problems.note((key, index), f"{value}: no such file")
    since_s, until_s = values.get("since_s", 0.0), values.get("until_s")
    if until_s is not None and since_s >= until_s:
        problems.note(("until_s",), f"{until_s:g} is not after since_s, {since_s:g}")
    values["workloads"] = [str(folder / each) for each in values["workloads"]]
    for key, placed in (("configurations", _configuration), ("policies", _policy)):
        if key in values:
            values[key] = [placed(each, folder) for each in values[key]]
    sweep = Sweep(**values)
    if len(sweep) > POINTS_MAX:
        problems.note((), f"{len(sweep):,} combinations are too many; {POINTS_MAX:,} are allowed")
    problems.refuse()
    return sweep


def _configuration(given: str, folder: Path) -> str:
    return given if given == OWN else str(folder / given)


def _policy(given: str, folder: Path) -> str:
    file, separator, rest = given.rpartition(":")
    return f"{folder / file}:{rest}" if separator and file.endswith(".py") else given
