"""Sweep files: a small YAML file that says what is combined.

    workloads: [week.jsonl]
    configurations: [own, limited.yaml]
    loads: [0.8, 1, 1.2]

Paths are relative to the file. docs/use/sweeps.md describes all keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

from licorne._files import file_text
from licorne.config.nodes import YamlNode, behind
from licorne.lab.sweep.plan import OWN, POINTS_MAX, Sweep
from licorne.sim.policies.watch import LIMIT_MAX_S
from licorne.workload.lines import DevicePolicy
from licorne.workload.workload import WorkloadError
from licorne.workload.yaml_files import composed, entries, place, text_of, whole_of

LISTS = ("workloads", "configurations", "loads", "seeds", "policies", "device_policies")
KEYS = ("name", *LISTS, "settings", "since_s", "until_s", "max_asks", "policy_timeout_s")
SEEDS_MAX = 10_000
NUMBER_MAX = 1e12
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")
_Value = TypeVar("_Value")


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
    root = composed(text, name)
    if root is None:
        raise WorkloadError(f"{name}:1:1: the file is empty; a sweep needs at least `workloads`")
    found = entries(root, name, "a sweep", KEYS)
    if "workloads" not in found:
        raise WorkloadError(f"{place(name, root)}: a sweep needs `workloads`, a list of files")

    def path_of(node: YamlNode, what: str) -> str:
        given = text_of(node, name, what)
        if what == "configurations" and given == OWN:
            return OWN
        path = folder / given
        if not path.exists():
            raise WorkloadError(f"{place(name, node)}: {what}: {given}: no such file")
        return str(path)

    def policy_of(node: YamlNode, what: str) -> str:
        given = text_of(node, name, what)
        file, separator, rest = given.rpartition(":")
        return f"{folder / file}:{rest}" if separator and file.endswith(".py") else given

    def device_policy_of(node: YamlNode, what: str) -> str:
        given = text_of(node, name, what)
        if given not in get_args(DevicePolicy):
            raise WorkloadError(
                f"{place(name, node)}: {what}: {given[:40]!r} is unknown; known are {', '.join(get_args(DevicePolicy))}"
            )
        return given

    readers: dict[str, Callable[[YamlNode, str], Any]] = {
        "workloads": path_of,
        "configurations": path_of,
        "loads": lambda node, what: _number(node, name, what, above=0),
        "seeds": lambda node, what: whole_of(node, name, what, 2**63 - 1),
        "policies": policy_of,
        "device_policies": device_policy_of,
    }
    values: dict[str, Any] = {}
    for key, node in found.items():
        if key == "name":
            values[key] = text_of(node, name, key)
        elif key == "seeds" and behind(node).kind == "scalar":
            values[key] = list(range(1, whole_of(node, name, key, SEEDS_MAX, least=1) + 1))
        elif key in readers:
            values[key] = _list(node, name, key, readers[key])
        elif key == "settings":
            values[key] = _settings(node, name)
        elif key == "max_asks":
            values[key] = whole_of(node, name, key, 10**9, least=1)
        elif key == "policy_timeout_s":
            values[key] = _number(node, name, key, above=0, most=LIMIT_MAX_S)
        else:
            values[key] = _number(node, name, key)
    sweep = Sweep(**values)
    if sweep.until_s is not None and sweep.since_s >= sweep.until_s:
        raise WorkloadError(
            f"{place(name, found['until_s'])}: until_s: {sweep.until_s:g} is not after since_s, {sweep.since_s:g}"
        )
    if len(sweep) > POINTS_MAX:
        raise WorkloadError(
            f"{place(name, root)}: {len(sweep):,} combinations are too many; {POINTS_MAX:,} are allowed"
        )
    return sweep


def _number(given: YamlNode, name: str, what: str, *, above: float = -1, most: float = NUMBER_MAX) -> float:
    node = behind(given)
    if node.kind != "scalar" or not _NUMBER.fullmatch(node.text) or not above < float(node.text) <= most:
        bounds = "above 0" if above >= 0 else "of at least 0"
        bounds += f", and at most {most:,.0f}" if most < NUMBER_MAX else ""
        raise WorkloadError(f"{place(name, given)}: {what}: must be a number {bounds}")
    return float(node.text)


def _list(given: YamlNode, name: str, what: str, read: Callable[[YamlNode, str], _Value]) -> list[_Value]:
    """Return a list that holds something, and nothing twice."""
    node = behind(given)
    if node.kind != "sequence" or not node.items:
        raise WorkloadError(f"{place(name, given)}: {what}: must be a list, like [a, b]")
    found: list[_Value] = []
    for item in node.items:
        value = read(item, what)
        if value in found:
            raise WorkloadError(f"{place(name, item)}: {what}: {value} stands twice")
        found.append(value)
    return found


def _settings(given: YamlNode, name: str) -> dict[str, str]:
    node = behind(given)
    if node.kind != "mapping":
        raise WorkloadError(f"{place(name, given)}: settings: must be keys with values, like reservation.delay: 5s")
    return {
        key.text: text_of(value, name, f"settings: {key.text}")
        for key, value in zip(node.items[::2], node.items[1::2], strict=True)
    }
