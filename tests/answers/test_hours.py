"""What was used over a time of a recording, against the sum over all runs of all pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import licorne
from licorne.answers import hours as of_hours
from licorne.answers.hours import hours
from licorne.answers.shares import Hours
from licorne.sim import Observer, PodRecord
from licorne.state.recording import Recorder, Replay, add_checkpoint, choose_run, entries
from licorne.state.recording.checkpoints import Saved
from licorne.workload import Workload, load_workload
from licorne.workload.lines import Ask

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORKLOADS = ("gpu-holiday", "big-gang", "lowered-quota")
Used = dict[tuple[str, str], float]


class Runs(Observer):
    """What became of each pod."""

    def __init__(self) -> None:
        self.pods: list[PodRecord] = []

    def on_pod(self, record: PodRecord) -> None:
        self.pods.append(record)


@pytest.fixture(params=WORKLOADS)
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Used]:
    """A recording of an example, and what its queues and users have used in all: the sum over the runs of all pods."""
    workload = load_workload(EXAMPLES / request.param / "workload.jsonl")
    runs = Runs()
    recorder = Recorder(tmp_path)
    licorne.simulate(workload, observers=[runs], input_log=recorder)
    assert recorder.close()
    return tmp_path, naive(workload, runs.pods)


def naive(workload: Workload, pods: Iterable[PodRecord]) -> Used:
    wanted = {line.key: line.res for line in workload.lines if isinstance(line, Ask)}
    sums: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        for resource, amount in wanted[pod.key.partition("~")[0]].items():
            names = pod.queue.split(".")
            for who in (pod.user, *(".".join(names[:length]) for length in range(1, len(names) + 1))):
                sums[who, resource] += amount * (pod.run_s + pod.lost_s) / 3600  # type: ignore[assignment]
    return {who: used for who, used in sums.items() if used}


def by_name(found: Hours) -> Used:
    return {(row.name, row.resource): row.hours for row in found.used if row.kind != "group"}


def test_they_are_the_sum_over_all_runs(recorded: tuple[Path, Used]) -> None:
    folder, used = recorded
    assert by_name(hours(choose_run(folder))) == pytest.approx(used, rel=1e-9)


def test_those_of_two_parts_add_up_to_those_of_the_whole(recorded: tuple[Path, Used]) -> None:
    folder, used = recorded
    run = choose_run(folder)
    whole = hours(run)
    cut_ns = int((whole.since_s + whole.until_s) / 2 * 10**9) + 1
    parts = [hours(run, None, cut_ns), hours(run, cut_ns)]
    assert parts[0].until_s == parts[1].since_s
    sums: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for who, amount in by_name(part).items():
            sums[who] += amount  # type: ignore[assignment]
    assert dict(sums) == pytest.approx(used, rel=1e-9)


def test_they_are_the_same_from_a_checkpoint_as_from_the_beginning(
    recorded: tuple[Path, Used], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = recorded
    run = choose_run(folder)
    whole = hours(run)

    def moment_ns(part: float) -> int:
        return int((whole.since_s + part * (whole.until_s - whole.since_s)) * 10**9)

    expected = {part: hours(run, moment_ns(part)) for part in (0.1, 0.3, 0.9)}
    for part in (0.2, 0.6):
        assert add_checkpoint(run, moment_ns(part)) is not None
    begun: list[int] = []
    resume = Replay._resume

    def noted(self: Replay, saved: Saved) -> None:
        begun.append(saved.now_ns)
        resume(self, saved)

    monkeypatch.setattr(Replay, "_resume", noted)
    for part, found in expected.items():
        assert hours(run, moment_ns(part)) == found
    assert len(begun) == 2 and all(at_ns <= moment_ns(part) for at_ns, part in zip(begun, (0.2, 0.6), strict=True))


def test_a_planted_fault_is_caught(recorded: tuple[Path, Used], monkeypatch: pytest.MonkeyPatch) -> None:
    """The usage after each call counts for the time before it."""

    def late(self: of_hours._Integrating, entry: list[object]) -> None:
        Replay.repeat(self, entry)
        if entry[0] != entries.TIME:
            self._passes_to(self._now_ns)

    folder, used = recorded
    monkeypatch.setattr(of_hours._Integrating, "repeat", late)
    assert by_name(hours(choose_run(folder))) != pytest.approx(used, rel=1e-9)
