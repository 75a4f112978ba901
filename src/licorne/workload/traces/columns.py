"""Mappings: which column of a table of jobs means what, and the cluster that the jobs ran on; a small YAML file.

    columns: {job: job_id, user: user, queue: vc, gpus: gpu_num, submitted: submit_time, duration: duration}
    cluster: {nodes: 133, gpus: 8}

    columns: {job: id, cores: cpus, memory: mem_gib, submitted: submit, duration: runtime}
    units: {memory: Gi}
    cluster: {nodes: 4, cores: 16, memory: 64Gi}

`columns` names a column of the table for each field; `user`, `queue` (the virtual cluster) and `pods` may be missing, and of
`gpus`, `cores` and `memory` all but one. `units` is that of the numbers in the column of memory, else bytes. `cluster` says how
many nodes there are and what each has; it may be missing where GPUs are all that is said of a job. Mappings for published
traces are part of the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from licorne._files import file_text
from licorne.config.quantity import FACTORS, QueueQuantityError, parse_queue_quantity
from licorne.workload.traces.batch import NODES_MAX
from licorne.workload.workload import WorkloadError
from licorne.workload.yaml_files.reading import compose_text
from licorne.workload.yaml_files.repair import Text, convert

FOLDER = Path(__file__).with_name("mappings")
READY = ("helios", "philly")
"""The mappings that are part of the package."""
GPU = "nvidia.com/gpu"
"""The resource type of GPUs, as Kubernetes knows them."""
TYPES = {"gpus": GPU, "cores": "vcore", "memory": "memory"}
"""The resource type of each amount of a job."""
FIELDS = ("job", "submitted", "duration", *TYPES, "pods", "user", "queue")
GPUS_MAX = 1_000
"""GPUs of a node, at most."""
GPUS_EACH = 8
"""GPUs of a node of which a mapping does not say them."""


class _Columns(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    job: Text
    submitted: Text
    duration: Text
    gpus: Text | None = None
    cores: Text | None = None
    memory: Text | None = None
    pods: Text | None = None
    user: Text | None = None
    queue: Text | None = None


class _Units(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    memory: str = ""


class _Cluster(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    nodes: Annotated[int, msgspec.Meta(ge=1, le=NODES_MAX)] | None = None
    gpus: Annotated[int, msgspec.Meta(ge=1, le=GPUS_MAX)] = GPUS_EACH
    cores: str | int | float | None = None
    memory: str | int | float | None = None


class _Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    columns: _Columns
    units: _Units | None = None
    cluster: _Cluster | None = None


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """The column of each field, what 1 in the column of memory is in bytes, and the cluster.

    It has `nodes` with these amounts `each`, by resource type; 0 nodes: as many as jobs that have GPUs alone need.
    """

    name: str
    columns: dict[str, str]
    memory_bytes: int = 1
    nodes: int = 0
    each: dict[str, int]

    @property
    def amounts(self) -> list[str]:
        """What of `TYPES` the table says of a job."""
        return [field for field in TYPES if field in self.columns]


def read_mapping(name: str) -> Mapping:
    """Return a mapping of the package, or that of a file.

    Raises:
        WorkloadError: it is not usable; the text names file and line.
        OSError: the file cannot be read.
    """
    path = FOLDER / f"{name}.yaml" if name in READY else Path(name)
    try:
        text = file_text(path)
    except FileNotFoundError:
        raise WorkloadError(
            f"{name}: no such file; a mapping is a YAML file, or one of those that come with licorne: {', '.join(READY)}"
        ) from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{name}: not a text in UTF-8") from None
    return parse_mapping(text, name)


def parse_mapping(text: str, name: str) -> Mapping:
    """Parse a mapping of the columns of a table of jobs.

    Raises:
        WorkloadError: it is not usable; the text names line and column, and `name` as its file.
    """
    made, problems = compose_text(text, name)
    given = convert(made, _Document, problems)
    columns = {field: column for field in FIELDS if (column := getattr(given.columns, field)) is not None}
    cluster, unit = given.cluster or _Cluster(), given.units.memory if given.units is not None else ""
    if not columns.keys() & TYPES.keys():
        problems.note(("columns",), "names no column for `gpus`, nor for `cores` or `memory`")
    said = [field for field in ("cores", "memory") if field in columns]
    for field in ("nodes", *said) if said or "pods" in columns else ():
        if getattr(cluster, field) is None:
            problems.note(("cluster",), f"says no `{field}`, which jobs with cores, memory or pods need")
    if unit not in FACTORS:
        problems.note(("units", "memory"), f"must be one of {', '.join(filter(None, FACTORS))}")
    each = {GPU: cluster.gpus} if "gpus" in columns else {}
    for field in said:
        amount = getattr(cluster, field)
        try:
            each[TYPES[field]] = 0 if amount is None else parse_queue_quantity(str(amount), TYPES[field])
        except QueueQuantityError as error:
            problems.note(("cluster", field), str(error))
    problems.refuse()
    return Mapping(name=name, columns=columns, memory_bytes=FACTORS[unit], nodes=cluster.nodes or 0, each=each)
