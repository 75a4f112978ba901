"""What runs at night: `make nightly PART=faults` runs a part, `make nightly-table` shows what came of each.

A part takes at most 45 minutes on two cores. Its result is kept, with commit and seed, in the user's cache folder, so that
a fresh clone knows it too. Exit status: 0; 1 if a command of the part fails, or if the table lacks a part, has one that
failed, or has one of another commit.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "licorne" / "nightly"
PYTHON = ".venv/bin/python"
TESTS = f"{PYTHON} -m pytest -n 2 --dist worksteal"
GATE = "-m 'not nightly'"
ATTACKS = "LICORNE_FUZZ=15000 LICORNE_SCHEMATHESIS=6000 LICORNE_FAULTS=100"
ATTACKING = "tests/service/test_fuzz.py tests/service/test_faults.py tests/rest/test_schemathesis.py"
GROWTH, KUBE, SCHEDULES = "tests/growth", "tests/kube", "tests/kube/test_schedules.py"
SCENARIOS = ("tests/gangs_atomic", "tests/parking", "tests/preemption", "tests/reference", "tests/tenants")
CLUSTERS = "distributed hypothesis pytest pytest-randomly pytest-timeout pytest-xdist"
SPECS, PLAYED = "conformance/cases.tsv", "build/conformance-run"
PYTHONS = "3.11 3.12 3.13 3.14"


class Part(NamedTuple):
    """A part of the night: what it finds that the gate does not, and its commands, which a shell runs in this order."""

    what: str
    commands: tuple[str, ...]


PARTS = {
    "random": Part(
        "the tests of the gate with examples from a new seed",
        (f"LICORNE_HYPOTHESIS=random {TESTS} {GATE}",),
    ),
    "fixed": Part(
        "the tests of the gate with four times as many examples, the same each time, which must meet each situation",
        (f"LICORNE_HYPOTHESIS=fixed {TESTS} {GATE}",),
    ),
    "laws": Part(
        "all tests with twenty times as many examples, from a new seed and in random order, as far as 40 minutes go",
        (f"LICORNE_HYPOTHESIS=long LICORNE_MINUTES=40 {TESTS} -m '' --timeout 7200",),
    ),
    "long": Part(
        "tests that run for minutes, but for those of the next four parts",
        (f"{TESTS} -m nightly -k 'not planted' --ignore {' --ignore '.join((GROWTH, KUBE, *SCENARIOS))}",),
    ),
    "growth": Part(
        "a million objects of each kind come and go, and the memory does not grow",
        (f"{TESTS} -m nightly {GROWTH}",),
    ),
    "scenarios": Part(
        "thousands of random scenarios of the core: without parking, beside the reference scheduler, evictions, gangs",
        (f"{TESTS} -m nightly -k 'not planted' {' '.join(SCENARIOS)}",),
    ),
    "kills": Part(
        "licorne kube killed at each moment at which it waits for something",
        (f"{TESTS} -m nightly -k 'not planted' {KUBE} --ignore {SCHEDULES}",),
    ),
    "schedules": Part(
        "thousands of random schedules of licorne kube", (f"{TESTS} -m nightly -k 'not planted' {SCHEDULES}",)
    ),
    "faults": Part(
        "each planted fault, and what catches it, after how many examples",
        (f"cd tests && PYTHONPATH=.:../src:.. ../{PYTHON} -m planted_faults",),
    ),
    "hostile": Part(
        "random messages, requests and faults against the service, from a new seed",
        (f"LICORNE_HYPOTHESIS=random {ATTACKS} {TESTS} -m '' --timeout 7200 {ATTACKING}",),
    ),
    "versions": Part(
        "`make test` on each Python from 3.11 to 3.14 that is installed",
        tuple(
            f"if python{version} -c ''; then make test PYTHON=python{version}; else echo it is not installed; fi"
            for version in PYTHONS.split()
        ),
    ),
    "plain": Part(
        "the tests of the gate on plain Python, which is what an installation without a C compiler has",
        (f"LICORNE_INTERPRETED=1 {TESTS} {GATE}",),
    ),
    "lowest": Part(
        "tests of all parts, on plain Python, with the oldest versions of the packages that licorne needs",
        ("make lowest",),
    ),
    "extras": Part(
        "each extra alone in an environment of its own: the help of every command, misspelled ones, what is missing",
        (
            f"rm -rf build/extras && LICORNE_PURE=1 {PYTHON} -m build --wheel --outdir build/extras",
            f"{PYTHON} tools/extras.py build/extras/*.whl",
        ),
    ),
    "vulnerable": Part(
        "known vulnerabilities of the versions in constraints.txt, as far as osv.dev can be reached",
        ("tools/audit.sh",),
    ),
    "coverage": Part(
        "which lines and branches of the parts that decide, read configurations and simulate the tests reach; a bound",
        ("make coverage",),
    ),
    "safe": Part("the core compiled with checks of bounds, of None and of integer overflow", ("make safe",)),
    "original": Part("the tests beside a running yunikorn-core", ("make yunikorn", f"{TESTS} -m '' tests/yunikorn")),
    "oracle": Part(
        "verdicts of kube-scheduler's filter plugins on new cases",
        ("make oracle", f"LICORNE_ORACLE_CASES=10000 {TESTS} -m '' tests/kube/test_verdicts.py"),
    ),
    "conformance": Part(
        "Kubernetes' own specs of schedulers with licorne as default-scheduler: those that are to pass, in 15 minutes",
        (
            "make controlplane conformance",
            f"conformance/run.sh licorne {PLAYED} || true",
            f"{PYTHON} conformance/compare.py --expect {SPECS} licorne={PLAYED}",
        ),
    ),
    "perf": Part(
        "workloads of Kubernetes' scheduler_perf: licorne places all, at least half as fast as kube-scheduler beside it",
        ("make controlplane", f"{PYTHON} conformance/perf/side_by_side.py --least 0.5"),
    ),
    "ray": Part(
        "sweeps on a Ray cluster of two nodes, of which one is killed, and on a Dask cluster, both on this machine",
        (
            f"rm -rf .venv-ray && {PYTHON} -m venv .venv-ray",
            f"LICORNE_PURE=1 .venv-ray/bin/python -m pip --quiet install --editable '.[cli,ray,report]' {CLUSTERS}",
            ".venv-ray/bin/python -m pytest -m nightly tests/sweep/test_ray.py tests/sweep/test_dask.py",
        ),
    ),
    "targets": Part("every target of the Makefile on a fresh clone, after `make demo`", ("tools/targets.sh",)),
}


def run(name: str) -> int:
    """Run a part, and keep its result."""
    part = PARTS[name]
    seed = os.environ.get("LICORNE_SEED") or str(random.SystemRandom().randrange(1, 10**9))
    environment = {**os.environ, "LICORNE_SEED": seed}
    print(f"{name}: {part.what}; LICORNE_SEED={seed}", flush=True)
    began = time.monotonic()
    failed = ""
    for command in part.commands:
        print(f"$ {command}", flush=True)
        if subprocess.run(command, shell=True, cwd=ROOT, env=environment, check=False).returncode:  # noqa: S602
            failed = command
            break
    result = {
        "commit": commit(),
        "seed": seed,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "ended": datetime.now(UTC).isoformat(timespec="minutes"),
        "failed": failed,
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
    print(f"{name}: {'failed: ' + failed if failed else 'passed'} after {result['minutes']} minutes", flush=True)
    return 1 if failed else 0


def commit() -> str:
    """Return the commit of this tree, with a mark if the tree differs from it."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def table() -> int:
    """Print what came of each part when it last ran."""
    now = commit()
    good = True
    print("| part | result | minutes | seed | commit | what |\n|---|---|---|---|---|---|")
    for name, part in PARTS.items():
        kept = KEPT / f"{name}.json"
        if not kept.exists():
            good = False
            print(f"| `{name}` | **not run** | | | | {part.what} |")
            continue
        result = json.loads(kept.read_text(encoding="utf-8"))
        of = result["commit"] if result["commit"] == now else f"**{result['commit']}**, not {now}"
        good = good and not result["failed"] and result["commit"] == now
        print(
            f"| `{name}` | {'**failed**' if result['failed'] else 'passed'}, {result['ended']} | {result['minutes']} "
            f"| {result['seed']} | {of} | {part.what} |"
        )
    return 0 if good else 1


def main(arguments: list[str]) -> int:
    """Run a part, or print the table; without a name, list the parts."""
    if arguments == ["--table"]:
        return table()
    if len(arguments) != 1 or arguments[0] not in PARTS:
        print("Which part? make nightly PART=...\n", flush=True)
        for name, part in PARTS.items():
            print(f"  {name:10} {part.what}")
        return 2 if arguments else 0
    return run(arguments[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
