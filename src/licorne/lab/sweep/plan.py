"""Which points a sweep has: each combination of what it varies, in a fixed order, and the key under which each is kept.

The key of a point is a digest of all that its result depends on: its parameters, the contents of the files that it names, and
licorne's version. So a result is taken again only for the very same input, and a file that was changed makes new points. The
limit of a policy's calls is not part of it: whatever ends within one limit is the same under another.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from itertools import product
from math import prod
from pathlib import Path

import msgspec

from licorne._files import file_text, opened
from licorne._version import __version__
from licorne.config.nodes import compose
from licorne.config.problems import Notes
from licorne.sim.policies.interface import PolicyError
from licorne.sim.policies.loading import digest_of, find_policy
from licorne.sim.policies.watch import POLICY_TIMEOUT_S, watch_calls
from licorne.workload.workload import ASKS_MAX

OWN = "own"
"""In place of a configuration: that of the workload. As a policy: those of licorne."""
POINTS_MAX = 100_000
NAME_MAX = 4096
"""Most characters of a text in a scenario that may be the name of a file."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation: plain values, so that it can be sent to another process or machine that has the same files.

    `workload` is a path, `configuration` a path or `own`. `load`: for scenarios what they mean by it; times of arrival of
    other workloads are divided by it; None: as they are. `seed` is for scenarios. `policy` is as for `licorne simulate
    --policy`, or `own`; `device_policy` "" is that of the workload. `until_s` None: to the end. `policy_timeout_s` is the limit of a
    call of the policy; None: there is none.
    """

    workload: str
    configuration: str = OWN
    load: float | None = None
    seed: int | None = None
    policy: str = OWN
    device_policy: str = ""
    settings: dict[str, str] = {}
    since_s: float = 0.0
    until_s: float | None = None
    max_asks: int = ASKS_MAX
    policy_timeout_s: float | None = POLICY_TIMEOUT_S

    @property
    def name(self) -> str:
        """The point in words."""
        parts = [Path(self.workload).name, Path(self.configuration).name]
        parts += [f"load {self.load:g}"] if self.load is not None else []
        parts += [f"seed {self.seed}"] if self.seed is not None else []
        parts += [self.policy] if self.policy != OWN else []
        parts += [self.device_policy] if self.device_policy else []
        return ", ".join(parts)


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep: each of its workloads is simulated with each configuration, load, policy, choice of device and seed.

    The other fields hold for all points, as in `Point`.
    """

    name: str = "sweep"
    workloads: Sequence[str] = ()
    configurations: Sequence[str] = (OWN,)
    loads: Sequence[float | None] = (None,)
    policies: Sequence[str] = (OWN,)
    device_policies: Sequence[str] = ("",)
    seeds: Sequence[int | None] = (None,)
    settings: dict[str, str] = {}
    since_s: float = 0.0
    until_s: float | None = None
    max_asks: int = ASKS_MAX
    policy_timeout_s: float | None = POLICY_TIMEOUT_S

    def __len__(self) -> int:
        varied = (self.workloads, self.configurations, self.loads, self.policies, self.device_policies, self.seeds)
        return prod(map(len, varied))

    def points(self) -> list[Point]:
        """Return all points; the seeds of one setting follow each other."""
        return [
            Point(
                workload=workload,
                configuration=configuration,
                load=load,
                seed=seed,
                policy=policy,
                device_policy=device_policy,
                settings=self.settings,
                since_s=self.since_s,
                until_s=self.until_s,
                max_asks=self.max_asks,
                policy_timeout_s=self.policy_timeout_s,
            )
            for workload, configuration, load, policy, device_policy, seed in product(
                self.workloads, self.configurations, self.loads, self.policies, self.device_policies, self.seeds
            )
        ]


class Keys:
    """Computes the keys of points; each file is read once, each policy loaded once."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._policies: dict[str, str] = {}

    def of(self, point: Point) -> str:
        """Return the key by which the result of a point is found again: a digest of all that the result depends on.

        Raises:
            OSError: a file cannot be read.
            PolicyError: the time for loading its policy is limited, and that cannot be watched here.
        """
        given = msgspec.structs.replace(point, policy_timeout_s=None)
        sha = hashlib.sha256(msgspec.json.encode((__version__, given)))
        for name in (point.workload, point.configuration if point.configuration != OWN else ""):
            if name:
                sha.update(self._digest(name).encode())
        if point.policy != OWN:
            sha.update(self.digest_of_policy(point).encode())
        return sha.hexdigest()[:32]

    def digest_of_policy(self, point: Point) -> str:
        """Return the digest of the file that defines a point's policy; "" for one that cannot be loaded: the point fails.

        Raises:
            PolicyError: the time for loading it is limited, and that cannot be watched here.
        """
        name = point.policy
        found = self._policies.get(name)
        if found is None:
            watch = watch_calls(point.policy_timeout_s)
            try:
                with watch:
                    found = digest_of(watch.run(f"policy {name}: loading its code", find_policy, name))
            except PolicyError:
                found = ""
            self._policies[name] = found
        return found

    def _digest(self, name: str) -> str:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = _contents(Path(name))
        return found


def _contents(path: Path) -> str:
    """Return a digest of the files that a workload or a configuration consists of, and their names."""
    sha = hashlib.sha256()
    for each in files_of(path):
        sha.update(each.name.encode() + b"\0")
        with opened(each) as stream:
            sha.update(hashlib.file_digest(stream, "sha256").digest())
    return sha.hexdigest()


def files_of(path: Path) -> list[Path]:
    """Return the files of a workload or a configuration: all of a folder; with a YAML file those beside it, and those it names."""
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if each.is_file())
    if path.suffix in (".yaml", ".yml"):
        beside = sorted(each for each in path.parent.glob("*.y*ml") if each != path)
        return [path, *beside, *(each for each in named_files(path) if each not in beside)]
    return [path]


def named_files(path: Path) -> list[Path]:
    """Return the files that texts of a YAML file name, from its folder, in their order: a scenario may have its queues there."""
    try:
        root = compose(file_text(path), Notes(str(path)))
    except UnicodeDecodeError:
        root = None
    # What is no YAML cannot be simulated, and its content alone is the key of that.
    nodes = [root] if root is not None else []
    names: dict[Path, None] = {}
    while nodes:
        node = nodes.pop()
        nodes += reversed(node.items)
        if node.kind == "scalar" and 0 < len(node.text) <= NAME_MAX and "\0" not in node.text:
            names[path.parent / node.text] = None
    return [name for name in names if os.path.isfile(name)]  # noqa: PTH113  # `Path.is_file` raises where a name is too long
