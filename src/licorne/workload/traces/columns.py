"""Mappings: which column of a table of GPU jobs means what, and the cluster that the jobs ran on; a small YAML file.

    columns: {job: job_id, user: user, queue: vc, gpus: gpu_num, submitted: submit_time, duration: duration}
    cluster: {nodes: 133, gpus: 8}

`columns` names a column of the table for each field; `user` and `queue` (the virtual cluster) may be missing. `cluster` says
how many nodes there are, of how many GPUs each; both may be missing. Mappings for published traces are part of the package.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from licorne._files import file_text
from licorne.workload.traces.batch import NODES_MAX
from licorne.workload.workload import WorkloadError
from licorne.workload.yaml_files import composed, entries, place, text_of, whole_of

FOLDER = Path(__file__).with_name("mappings")
READY = ("helios", "philly")
"""The mappings that are part of the package."""
NEEDED = ("job", "gpus", "submitted", "duration")
FIELDS = (*NEEDED, "user", "queue")
GPUS_MAX = 1_000
"""GPUs of a node, at most."""


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """The column of each field, and the cluster: `nodes` of `gpus_each` GPUs; 0 nodes: as many as the jobs need."""

    name: str
    columns: dict[str, str]
    nodes: int = 0
    gpus_each: int = 8


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
    """Return the mapping that a text says; `name` is that of its file in messages. Raises WorkloadError as `read_mapping`."""
    root = composed(text, name)
    if root is None:
        raise WorkloadError(f"{name}:1:1: the file is empty, and names no column")
    parts = entries(root, name, "a mapping", ("columns", "cluster"))
    if "columns" not in parts:
        raise WorkloadError(f"{place(name, root)}: a mapping needs `columns`, which names the columns of the table")
    found = entries(parts["columns"], name, "columns", FIELDS)
    for field in NEEDED:
        if field not in found:
            raise WorkloadError(f"{place(name, parts['columns'])}: columns: names no column for `{field}`")
    columns = {field: text_of(node, name, f"columns: {field}") for field, node in found.items()}
    cluster = entries(parts["cluster"], name, "cluster", ("nodes", "gpus")) if "cluster" in parts else {}
    return Mapping(
        name=name,
        columns=columns,
        nodes=whole_of(cluster["nodes"], name, "cluster: nodes", NODES_MAX, least=1) if "nodes" in cluster else 0,
        gpus_each=whole_of(cluster["gpus"], name, "cluster: gpus", GPUS_MAX, least=1) if "gpus" in cluster else 8,
    )
