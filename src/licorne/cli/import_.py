"""`licorne import`: makes a workload from what `kubectl get pods,nodes -o json` prints."""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from licorne._wording import counted
from licorne.cli.common import CommandError, UsageError, print_json, read_input, say
from licorne.cli.statuses import Status
from licorne.config import ConfigError
from licorne.config.manifest import SCHEDULER_NAMES, manifests
from licorne.recording import Names
from licorne.recording.anonymous import AnonymityError
from licorne.sim.finished import finished_file, opened
from licorne.sim.lines import Ask
from licorne.sim.workload import Workload, write_workload

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
BYTES_MAX = 2 << 30
"""Most bytes of a file that is read: a list of 150,000 pods, as `kubectl` prints it, may have 1 GiB."""


class Outcome(msgspec.Struct, frozen=True):
    """What `licorne import --json` prints: how many asks were written, and notes of what is not known."""

    asks: int
    notes: list[str]


def import_command(
    *files: Path,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    scheduler_name: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    anonymous: Flag = False,
    json: Flag = False,
) -> int:
    """Make a workload from pods and nodes of a Kubernetes cluster, for `licorne simulate` and `licorne compare`.

    It reads what `kubectl get pods,nodes -A -o json` prints, and also namespaces (quotas), priority classes and the ConfigMaps of
    YuniKorn (queues), if they are there. A pod asks for what it would ask for with `licorne kube`. Needs the extra `kube`.

    Parameters
    ----------
    files
        Files with objects or lists of objects, JSON or YAML, also several in a file; -: standard input.
    output
        The workload file that is written (JSON lines).
    scheduler_name
        Pods that name this scheduler are the workload, other ones hold their room; may be given several times. Without it:
        yunikorn.
    anonymous
        Write digests in place of names of users and groups.
    json
        Print the outcome as a JSON object.
    """
    from licorne.kube.configmaps import ConfigurationError  # noqa: PLC0415  # of the extra `kube`
    from licorne.kube.importing import Imported, ImportedError  # noqa: PLC0415

    if not files:
        raise UsageError("give a file, or - for standard input: kubectl get pods,nodes -A -o json | licorne import -")
    found = Imported(scheduler_name or SCHEDULER_NAMES, Names() if anonymous else None)
    for path in files:
        for made in _objects(path):
            try:
                found.add(made)
            except ImportedError as error:
                raise CommandError(f"{path}: {error}", Status.FILE) from None
    try:
        workload = found.workload(output.name.removesuffix(".jsonl"))
    except (ImportedError, ConfigurationError) as error:
        raise CommandError(str(error), Status.FILE) from None
    except AnonymityError as error:
        raise CommandError(f"--anonymous: {error}") from None
    _write(workload, output)
    outcome = Outcome(sum(isinstance(line, Ask) for line in workload.lines), workload.notes)
    if json:
        print_json(outcome)
    else:
        say(f"{output}: {counted(outcome.asks, 'ask')}", *(f"note: {note}" for note in outcome.notes))
    return Status.DONE


def _write(workload: Workload, output: Path) -> None:
    try:
        with finished_file(output) as part, opened(part, output) as file:
            write_workload(workload, file)
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}", Status.FILE) from None


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, which is JSON if it begins so, and otherwise YAML."""
    try:
        data = read_input(path, BYTES_MAX)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give what `kubectl get -o json` prints", Status.FILE) from None
    documents = _json(path, data) if data.lstrip()[:1] in (b"{", b"[") else _yaml(path, data)
    for document in documents:
        for made in document if isinstance(document, list) else [document]:
            if not isinstance(made, dict):
                raise CommandError(
                    f"{path}: holds no objects of Kubernetes; give what `kubectl get -o json` prints", Status.FILE
                )
            yield made


def _json(path: Path, data: bytes) -> Iterator[Any]:
    try:
        documents = [msgspec.json.decode(data)]
    except msgspec.DecodeError as error:
        if "trailing characters" not in str(error):
            byte = re.search(r"\(byte (\d+)\)", str(error))
            line = data.count(b"\n", 0, int(byte.group(1)) if byte else len(data)) + 1
            cut = ". It is cut off; fetch it again" if "truncated" in str(error) else ""
            raise CommandError(f"{path}:{line}: not JSON: {error}{cut}", Status.FILE) from None
        documents = list(_one_behind_the_other(path, data.decode("utf-8", "replace")))
    yield from documents


def _one_behind_the_other(path: Path, text: str) -> Iterator[Any]:
    """Yield the documents of a text that has several."""
    decoder, at = json_module.JSONDecoder(), 0
    while (at := _skipped(text, at)) < len(text):
        try:
            found, at = decoder.raw_decode(text, at)
        except json_module.JSONDecodeError as error:
            line = text.count("\n", 0, at) + 1
            cut = f"the document that begins in line {line} is cut off; fetch it again"
            reason = cut if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated") else error
            raise CommandError(f"{path}: not JSON: {reason}", Status.FILE) from None
        yield found


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _yaml(path: Path, data: bytes) -> Iterator[Any]:
    try:
        yield from manifests(data.decode(json_module.detect_encoding(data)), str(path))
    except ConfigError as error:
        raise CommandError(str(error.problems[0]), Status.FILE) from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not YAML: {error}", Status.FILE) from None


__all__ = ["import_command"]
