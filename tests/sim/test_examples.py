"""The examples: the files are those of their generator, the READMEs show the results, and the results are as intended."""

from __future__ import annotations

import importlib.util
import io
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from licorne.cli import run
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.lines import Ask
from licorne.workload.workload import read_workload, write_workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READMES = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.glob("*/README.md"))
HOUR_S = 3600


def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_examples", EXAMPLES / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(name: str, *, settings: dict[str, str] | None = None, config: str | None = None) -> Result:
    return simulate(read_workload(EXAMPLES / name), settings=settings, config=config)


def waits(found: Result, queue: str) -> tuple[float, float]:
    """Median and longest, in seconds."""
    row = next(row for row in found.waiting_times if row.queue == queue)
    return row.p50_s, row.longest_s


def test_the_files_are_those_of_their_generator() -> None:
    module = made()
    for name, make in module.FILES.items():
        stream = io.BytesIO()
        write_workload(make(), stream)
        assert stream.getvalue() == (EXAMPLES / name).read_bytes(), name
    for name, text in module.TEXTS.items():
        assert text == (EXAMPLES / name).read_text()


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a README, each with the lines that it shows of what comes out."""
    found = re.findall(r"^```\n\$ licorne (.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    return [(command, [line.rstrip() for line in shown.splitlines()]) for command, shown in found]


def test_there_is_a_readme_for_each_example() -> None:
    assert READMES == ["big-gang/README.md", "gpu-holiday/README.md", "lowered-quota/README.md"]
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"]({name})" in listed for name in READMES)
    assert [len(blocks((EXAMPLES / name).read_text())) for name in READMES] == [4, 2, 1]


@pytest.mark.parametrize("name", READMES)
def test_a_readme_shows_the_output_of_its_commands(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every shown line is there, in order; `...` stands for lines that are left out."""
    monkeypatch.chdir(EXAMPLES.parent)
    for command, shown in blocks((EXAMPLES / name).read_text()):
        assert run(shlex.split(command)) == 0
        printed = iter([line.rstrip() for line in capsys.readouterr().out.splitlines()])
        skipping = False
        for line in shown:
            if line == "...":
                skipping = True
                continue
            assert line in printed if skipping else line == next(printed), f"{command}: {line}"
            skipping = False


def test_the_returning_team_evicts_the_pods_of_the_other() -> None:
    found = result("gpu-holiday/workload.jsonl")
    (evictions,) = found.evictions
    assert (evictions.kind, evictions.queue, evictions.wanted_by) == ("guaranteed", "root.vision", "root.language")
    assert (evictions.pods, found.resubmitted, found.never_placed) == (16, 16, 0)
    # Four pods each of the hours 2 to 5: all of them evicted at 6:01, and gone 30 s after that.
    hours = sum(4 * (6 - hour) for hour in (2, 3, 4, 5))
    assert evictions.lost["nvidia.com/gpu"] == hours * HOUR_S + 16 * 90
    assert waits(found, "root.language") == (90.0, 90.0)
    usage = {(row.queue, row.resource): row for row in found.queues}
    assert usage["root.language", "nvidia.com/gpu"].peak == 16
    assert usage["root.vision", "nvidia.com/gpu"].peak == 32


def test_vision_keeps_its_guarantee_and_pods_that_refuse_preemption(tmp_path: Path) -> None:
    """The refusing pods are placed once only: they were never evicted and created again."""
    decisions = tmp_path / "decisions"
    simulate(read_workload(EXAMPLES / "gpu-holiday/workload.jsonl"), decisions=decisions)
    placed = [line.split("\t")[0] for line in decisions.read_text().splitlines()]
    again = {key for key in placed if placed.count(key) > 1}
    assert again == {f"sweep-{hour}-{i}" for hour in (2, 3, 4, 5) for i in range(4)}


def test_without_preemption_language_waits_for_the_first_to_end() -> None:
    config = (EXAMPLES / "gpu-holiday/no-preemption.yaml").read_text()
    found = result("gpu-holiday/workload.jsonl", config=config)
    assert found.evictions == []
    # The first sixteen of vision began at 0, 1, 2 and 3 h and run for 20.
    assert waits(found, "root.language") == (15 * HOUR_S, 17 * HOUR_S)


def test_a_gang_starts_as_a_whole_and_backfill_keeps_small_jobs_running() -> None:
    held = result("big-gang/workload.jsonl")
    never = result("big-gang/workload.jsonl", settings={"gang.hold.max.age": "0"})
    limitless = result("big-gang/no-limits.jsonl")
    pieces = result("big-gang/in-pieces.jsonl")
    for found in (held, never, limitless):
        (gang,) = found.gangs
        assert (gang.kind, gang.gangs, gang.started, gang.longest_s) == (
            "atomic", 1, 1, waits(found, "root.simulation")[1],
        )  # fmt: skip
        median, longest = waits(found, "root.simulation")
        assert median == longest, "all ranks start at once"
    assert all(found.never_placed == 0 for found in (held, never, limitless, pieces))
    assert waits(held, "root.simulation")[1] < HOUR_S < 3 * HOUR_S < waits(never, "root.simulation")[1]
    assert waits(held, "root.stream")[0] < waits(limitless, "root.stream")[0] / 2
    first, last = waits(pieces, "root.simulation")
    assert last - first > 300, "in pieces the ranks wait for each other on nodes that are theirs already"


def test_a_gang_with_work_in_front_starts_as_planned() -> None:
    """Work that runs when the gang comes ends within 54 minutes: nothing in front of the gang may take longer."""
    lines = read_workload(EXAMPLES / "big-gang/workload.jsonl").lines
    longest_s = max(line.timeout_ms for line in lines if isinstance(line, Ask)) / 1000
    assert longest_s == 54 * 60
    assert waits(result("big-gang/workload.jsonl"), "root.simulation")[1] <= longest_s


def test_a_quota_is_lowered() -> None:
    found = result("lowered-quota/workload.jsonl")
    rows = {row.queue: row for row in found.evictions}
    assert set(rows) == {"root.batch.reports", "root.batch.research"}
    for row in rows.values():
        assert (row.kind, row.wanted_by, row.pods) == ("quota-change", "root.batch", 10)
        # From 6:00 to 8:10, and 30 s of grace, with 4 cores each.
        assert row.lost_pod_s == 10 * (2 * HOUR_S + 630)
        assert row.lost["vcore"] == 4000 * row.lost_pod_s
    assert waits(found, "root.shop") == (630.0, 630.0)
    assert waits(found, "root.batch.reports")[1] == 4 * HOUR_S - (2 * HOUR_S + 630)
    assert (found.preempted, found.resubmitted, found.never_placed) == (20, 20, 0)


def test_pods_that_refuse_preemption_stay_when_the_quota_is_lowered(tmp_path: Path) -> None:
    decisions = tmp_path / "decisions"
    simulate(read_workload(EXAMPLES / "lowered-quota/workload.jsonl"), decisions=decisions)
    placed = [line.split("\t")[0] for line in decisions.read_text().splitlines()]
    again = {key for key in placed if placed.count(key) > 1}
    assert again == {f"ledger-{i}" for i in range(10, 20)} | {f"folding-{i:02d}" for i in range(4, 14)}
