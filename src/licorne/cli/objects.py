"""Objects of a Kubernetes cluster as `licorne convert` reads them: what `kubectl get pods,nodes -o json` prints."""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from licorne.cli.common import CommandError, read_input
from licorne.cli.statuses import Status
from licorne.config import ConfigError
from licorne.config.manifest import SCHEDULER_NAMES, manifests
from licorne.workload.workload import Workload

_BLANKS = re.compile(r"\s*")
BYTES_MAX = 2 << 30
"""Most bytes of a file that is read: a list of 150,000 pods, as `kubectl` prints it, may have 1 GiB."""


def objects_workload(paths: list[Path], *, scheduler_name: tuple[str, ...] = SCHEDULER_NAMES) -> Workload:
    """Return the workload of objects in files. Raises CommandError."""
    from licorne.kube.configmaps import ConfigurationError  # noqa: PLC0415  # of no use to other sources
    from licorne.kube.importing import Imported, ImportedError  # noqa: PLC0415

    found = Imported(scheduler_name)
    try:
        for path in paths:
            for made in _objects(path):
                try:
                    found.add(made)
                except ImportedError as error:
                    raise CommandError(f"{path}: {error}", Status.FILE) from None
        return found.workload(paths[0].name.removesuffix(paths[0].suffix))
    except (ImportedError, ConfigurationError) as error:
        raise CommandError(str(error), Status.FILE) from None


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, which is JSON if it begins so, and otherwise YAML."""
    try:
        data = read_input(path, BYTES_MAX)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give what `kubectl get -o json` prints", Status.FILE) from None
    is_json = data.lstrip()[:1] in (b"{", b"[")
    try:
        for document in _json(path, data) if is_json else _yaml(path, data):
            for made in document if isinstance(document, list) else [document]:
                if not isinstance(made, dict):
                    said = "holds no objects of Kubernetes; give what `kubectl get -o json` prints"
                    raise CommandError(f"{path}: {said}", Status.FILE)
                yield made
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not {'JSON' if is_json else 'YAML'}: {error}", Status.FILE) from None


def _json(path: Path, data: bytes) -> list[Any]:
    try:
        return [msgspec.json.decode(data)]
    except msgspec.DecodeError as error:
        if "trailing characters" not in str(error):
            byte = re.search(r"\(byte (\d+)\)", str(error))
            line = data.count(b"\n", 0, int(byte.group(1)) if byte else len(data)) + 1
            cut = ". It is cut off; fetch it again" if "truncated" in str(error) else ""
            raise CommandError(f"{path}:{line}: not JSON: {error}{cut}", Status.FILE) from None
    return list(_one_behind_the_other(path, data.decode()))


def _one_behind_the_other(path: Path, text: str) -> Iterator[Any]:
    """Yield the documents of a text that has several."""
    decoder, at = json_module.JSONDecoder(), 0
    while (at := _BLANKS.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches nothing too
        try:
            found, at = decoder.raw_decode(text, at)
        except json_module.JSONDecodeError as error:
            line = text.count("\n", 0, at) + 1
            cut = f"the document that begins in line {line} is cut off; fetch it again"
            reason = cut if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated") else error
            raise CommandError(f"{path}: not JSON: {reason}", Status.FILE) from None
        yield found


def _yaml(path: Path, data: bytes) -> Iterator[Any]:
    try:
        yield from manifests(data.decode(json_module.detect_encoding(data)), str(path))
    except ConfigError as error:
        raise CommandError(str(error.problems[0]), Status.FILE) from None
