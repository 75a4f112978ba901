"""Takes the files of a point to another machine, and back in its messages: there they lie in a folder of the worker's.

A workload, a configuration and a policy are each packed once, and sent to each worker that needs them once. What a worker
unpacks it removes when it ends; of many inputs it keeps the last ones.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import NamedTuple

import msgspec

from licorne._bounded import DUMP_BYTES
from licorne._files import file_bytes
from licorne.lab.sweep.engines import EngineError, Run, outcome_of
from licorne.lab.sweep.plan import OWN, Point, files_of
from licorne.lab.sweep.point import Outcome
from licorne.sim.policies.interface import PolicyError
from licorne.sim.policies.loading import digest_of, find_policy

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages, in whatever environment."""
KEPT = 16
"""The most inputs of a sweep that a worker on another machine keeps as files at a time."""


class Bundle(NamedTuple):
    """Files as they are on the machine from which they come.

    `name` is what the point calls them, `inside` where that is among the files, which have paths relative to a common folder.
    `digest` tells bundles apart.
    """

    name: str
    inside: str
    files: tuple[tuple[str, bytes], ...]
    digest: str


def pack(name: str) -> Bundle:
    """Pack a workload or a configuration. Raises OSError if a file cannot be read."""
    return _packed(name, Path(name), files_of(Path(name)))


def pack_policy(name: str) -> Bundle | None:
    """Pack the code of a policy: its file, or its module or package; None if it is of an installed package, or not found."""
    where = name.rpartition(":")[0]
    if where.endswith(".py"):
        return _packed(where, Path(where), [Path(where)]) if Path(where).is_file() else None
    try:
        spec = find_spec(where.partition(".")[0]) if where else None
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or INSTALLED & set(Path(spec.origin).parts):
        return None
    path = Path(spec.origin)
    if path.name == "__init__.py":
        return _packed(name, path.parent.parent, sorted(path.parent.rglob("*.py")))
    return _packed(name, path.parent, [path])


def _packed(name: str, path: Path, files: list[Path]) -> Bundle:
    folders = [os.path.abspath(each.parent) for each in [path, *files]]  # noqa: PTH100  # names are kept, so no link is followed
    root = os.path.commonpath(folders)
    content = tuple((os.path.relpath(each, root), file_bytes(each, DUMP_BYTES)) for each in files)
    sha = hashlib.sha256(name.encode())
    for relative, data in content:
        sha.update(f"\0{relative}\0{len(data)}\0".encode() + data)
    return Bundle(name, os.path.relpath(path, root), content, sha.hexdigest())


class Unpacked:
    """The inputs that a worker has unpacked; `close` removes them."""

    def __init__(self) -> None:
        self._folder = mkdtemp(prefix="licorne-sweep-")
        self._known: dict[str, str] = {}

    def close(self) -> None:
        """Remove everything that was unpacked."""
        rmtree(self._folder, ignore_errors=True)

    def path_of(self, bundle: Bundle) -> Path:
        """Return where the input lies, after unpacking it if that was not done."""
        found = self._known.pop(bundle.digest, None)
        if found is None:
            while len(self._known) >= KEPT:
                rmtree(self._known.pop(next(iter(self._known))), ignore_errors=True)
            found = mkdtemp(dir=self._folder)
            for name, data in bundle.files:
                path = Path(found, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self._known[bundle.digest] = found
        return Path(found, bundle.inside)


def run_unpacked(
    point: Point, run: Run, bundles: dict[str, Bundle], policy_digest: str, unpacked: Callable[[Bundle], Path]
) -> Outcome:
    """Run a point with the inputs that came with it, by the parts `workload`, `configuration` and `policy`.

    Messages name files as the point does. `policy_digest` is what the code of the policy has to be, "" if it could not be loaded
    where it comes from.

    Raises:
        EngineError: the policy is not here, or another one.
    """
    names: dict[str, str] = {}
    local = point
    for part, bundle in bundles.items():
        path = unpacked(bundle)
        if part != "policy":
            local = msgspec.structs.replace(local, **{part: str(path)})
        elif bundle.name.endswith(".py"):
            local = msgspec.structs.replace(local, policy=str(path) + point.policy.removeprefix(bundle.name))
        elif str(path) not in sys.path:
            sys.path.insert(0, str(path))
        beside = Path(bundle.name).parent
        names |= {str(path): bundle.name, f"{path.parent}/": "" if beside == Path() else f"{beside}/"}
    if point.policy != OWN and policy_digest:
        _check_policy(local.policy, policy_digest)
    outcome = outcome_of(local, run)
    error = outcome.error
    for here, there in names.items():
        error = error.replace(here, there)
    return msgspec.structs.replace(outcome, error=error)


def _check_policy(name: str, digest: str) -> None:
    try:
        found = digest_of(find_policy(name))
    except PolicyError as error:
        raise EngineError(f"a worker lacks what this machine has: {error}; install it there") from error
    if found != digest:
        raise EngineError(
            f"policy {name}: a worker has another version of its code (SHA-256 {found[:12]}, here {digest[:12]})"
        )
