"""Amounts and durations in the form in which tables show them, and tables in the room that there is."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from licorne import simulate
from licorne.cli.tables import show
from licorne.sim import Result
from licorne.workload.quantities import amount, duration


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("vcore", 1500, "1.5 cores"),
        ("vcore", 1000, "1 core"),
        ("vcore", 2_000_000, "2,000 cores"),
        ("memory", 512, "512 B"),
        ("memory", 3 * 2**30, "3 GiB"),
        ("memory", 1.5 * 2**40, "1.5 TiB"),
        ("memory", 2**63, "8 EiB"),
        ("nvidia.com/gpu", 7.64, "7.6"),
        ("pods", 6600, "6,600"),
        ("vcore", 0, "0 cores"),
    ],
)
def test_an_amount_has_its_unit(resource: str, value: float, text: str) -> None:
    assert amount(resource, value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86_399, "23 h 59 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# -- what fits, and what is left out ---------------------------------------------------------------------------

LONG = "root.department.team-of-builders.nightly"
QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: department
            queues: [{name: team-of-builders, queues: [{name: nightly}]}]
          - name: unused
            resources: {guaranteed: {vcore: 1}}
          - name: unused-too
            resources: {max: {nvidia.com/gpu: 1}}
"""


def result(number: int = 3, queues: str = QUEUES, queue: str = LONG) -> Result:
    lines: list[dict[str, Any]] = [
        {"t": "meta", "name": "[bold]w[/bold]", "version": 2},
        {"t": "config", "yaml": queues},
        {"t": "node", "id": "n", "res": {"vcore": 1000, "memory": 2**31, "nvidia.com/gpu": 8}},
        {"t": "app", "id": "app", "queue": queue, "user": "u"},
        {"t": "app", "id": "renamed", "queue": "root.old", "user": "u"},
    ]
    res = {"vcore": 1000, "memory": 2**30, "nvidia.com/gpu": 8}
    lines += [
        {"t": "ask", "key": f"k{at}", "app": "app", "res": res, "at": at, "duration_s": 7000.5} for at in range(number)
    ]
    lines.append({"t": "ask", "key": "k", "app": "renamed", "res": res})
    return simulate(lines)


def shown(of: Result, width: int, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    show(of, Console(width=width, force_terminal=terminal, color_system=None, highlight=False, file=stream))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_nothing_is_broken_on_a_narrow_terminal(width: int) -> None:
    lines = shown(result(), width)
    assert max(len(line.rstrip()) for line in lines if not line.startswith("digest")) <= width
    whole = "\n".join(lines)
    for cell in (".nightly", "/gpu", "1 h 56 min", "2.00", "100.0%"):
        assert cell in whole, cell
    assert any(line.startswith("use of queues (left out: at end") for line in lines) == (width == 60)


def test_a_pipe_has_no_blanks_at_the_ends_of_lines_and_whole_names() -> None:
    lines = shown(result(), 60, terminal=False)
    assert [line for line in lines if line != line.rstrip()] == []
    assert any(LONG in line for line in lines)


def test_counts_and_tables_are_apart() -> None:
    lines = shown(result(), 100)
    assert lines[0] == "[bold]w[/bold]"
    title = lines.index("never placed")
    assert lines[title - 1] == ""


def test_rows_without_any_use_are_counted_and_not_shown() -> None:
    lines = shown(result(), 140)
    use = lines[lines.index("use of queues") :]
    assert not any("root.unused" in line for line in use)
    assert " … 2 more rows without any use: see --json" in use


def test_the_most_used_of_many_queues_are_shown() -> None:
    names = [f"q{number:03}" for number in range(99)]
    queues = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
    queues += ", ".join(f"{{name: {name}, resources: {{guaranteed: {{vcore: 1}}}}}}" for name in names) + "]}]}]"
    lines = shown(result(queues=queues, queue="root.q098"), 140)
    use = lines[lines.index("use of queues") :]
    assert any("root.q098" in line for line in use)
    assert not any("root.q000" in line for line in use)
    assert " … 98 more rows without any use: see --json" in use


def test_a_renamed_queue_is_named() -> None:
    lines = shown(result(), 140)
    table = lines[lines.index("applications rejected, by the queue that they asked for") :][:5]
    assert table[2].split() == ["queue", "exists", "for", "example", "applications"]
    assert table[4].split() == ["root.old", "no", "renamed", "(<workload>:5)", "1"]


def test_nothing_was_placed() -> None:
    lines = shown(result(number=0), 100)
    assert "waiting time until placed" not in lines
    assert "bounded slowdown" not in lines
