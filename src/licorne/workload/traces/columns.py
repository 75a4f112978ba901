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

import msgspec

from licorne._files import file_text
from licorne.config.nodes import YamlNode
from licorne.config.quantity import FACTORS, QueueQuantityError, parse_queue_quantity
from licorne.workload.traces.batch import NODES_MAX
from licorne.workload.workload import WorkloadError
from licorne.workload.yaml_files import composed, entries, place, text_of, whole_of

FOLDER = Path(__file__).with_name("mappings")
READY = ("helios", "philly")
"""The mappings that are part of the package."""
GPU = "nvidia.com/gpu"
"""The resource type of GPUs, as Kubernetes knows them."""
TYPES = {"gpus": GPU, "cores": "vcore", "memory": "memory"}
"""The resource type of each amount of a job."""
NEEDED = ("job", "submitted", "duration")
FIELDS = (*NEEDED, *TYPES, "pods", "user", "queue")
GPUS_MAX = 1_000
"""GPUs of a node, at most."""
GPUS_EACH = 8
"""GPUs of a node of which a mapping does not say them."""


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
    root = composed(text, name)
    if root is None:
        raise WorkloadError(f"{name}:1:1: the file is empty, and names no column")
    parts = entries(root, name, "a mapping", ("columns", "units", "cluster"))
    if "columns" not in parts:
        raise WorkloadError(f"{place(name, root)}: a mapping needs `columns`, which names the columns of the table")
    found = entries(parts["columns"], name, "columns", FIELDS)
    for field in (*NEEDED, *(() if found.keys() & TYPES.keys() else ("gpus",))):
        if field not in found:
            other = ", nor for `cores` or `memory`" if field == "gpus" else ""
            raise WorkloadError(f"{place(name, parts['columns'])}: columns: names no column for `{field}`{other}")
    columns = {field: text_of(node, name, f"columns: {field}") for field, node in found.items()}
    units = entries(parts["units"], name, "units", ("memory",)) if "units" in parts else {}
    cluster = entries(parts["cluster"], name, "cluster", ("nodes", *TYPES)) if "cluster" in parts else {}
    said = [field for field in ("cores", "memory") if field in columns]
    for field in ("nodes", *said) if said or "pods" in columns else ():
        if field not in cluster:
            where = place(name, parts.get("cluster", root))
            raise WorkloadError(f"{where}: cluster: says no `{field}`, which jobs with cores, memory or pods need")
    return Mapping(
        name=name,
        columns=columns,
        memory_bytes=_factor(units["memory"], name) if "memory" in units else 1,
        nodes=whole_of(cluster["nodes"], name, "cluster: nodes", NODES_MAX, least=1) if "nodes" in cluster else 0,
        each={TYPES[field]: _each(field, cluster.get(field), name) for field in TYPES if field in columns},
    )


def _factor(given: YamlNode, name: str) -> int:
    text = text_of(given, name, "units: memory")
    if text not in FACTORS:
        raise WorkloadError(f"{place(name, given)}: units: memory: must be one of {', '.join(filter(None, FACTORS))}")
    return FACTORS[text]


def _each(field: str, given: YamlNode | None, name: str) -> int:
    """Return how many cores, how much memory or how many GPUs a node of the simulated cluster has."""
    if given is None:
        return GPUS_EACH
    if field == "gpus":
        return whole_of(given, name, "cluster: gpus", GPUS_MAX, least=1)
    try:
        return parse_queue_quantity(text_of(given, name, f"cluster: {field}"), TYPES[field])
    except QueueQuantityError as error:
        raise WorkloadError(f"{place(name, given)}: cluster: {field}: {error}") from None
