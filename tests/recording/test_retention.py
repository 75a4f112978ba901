"""A recording obeys its bounds, and what is left of a run is repeated as before."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from common.waiting import wait_for
from determinism.history import History
from licorne import simulate
from licorne.answers.following import caught_up
from licorne.cli import run as licorne
from licorne.state.recording import (
    Bounds,
    Recorder,
    RecordingError,
    Replay,
    Run,
    add_checkpoint,
    choose_run,
    replay_from,
    retention,
)
from licorne.state.recording.checkpoints import place_of
from licorne.state.recording.folder import checkpoints_in, segment_number, segments_in
from licorne.state.recording.retention import files_in, make_room
from licorne.state.recording.runs import read_run
from licorne.state.restored import Outputs
from recording.recorded import record_history, state_of

SECOND_NS = 10**9
MOMENTS_S = (40, 90, 160, 230, 300)
"""At which there are checkpoints."""


@pytest.fixture(scope="module", params=[False, True], ids=["1.9", "first interface"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of many segments with some checkpoints."""
    folder = tmp_path_factory.mktemp("recording")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("licorne.state.recording.writer.BLOCK_BYTES", 1_000)
        patch.setattr("licorne.state.recording.writer.SEGMENT_BYTES", 2_000)
        record_history(folder, 350, first_interface=request.param)
    run = choose_run(folder)
    for seconds in MOMENTS_S:
        assert add_checkpoint(run, seconds * SECOND_NS) is not None
    assert len(segments_in(run.folder)) > 10
    return run


def copied(run: Run, to: Path) -> Run:
    shutil.copytree(run.folder.parent, to)
    return read_run(to / run.folder.name)


def size_of(run: Run) -> int:
    return sum(file.stat().st_size for file in files_in(run.folder))


def state_at(run: Run, at_ns: int | None) -> bytes:
    replay = replay_from(run, at_ns)
    replay.run(at_ns)
    return replay.api.checkpoint()


def assert_same_from_its_beginning(left: Run, whole: Run) -> None:
    """Check that all that is left is repeated to the states that the whole run has."""
    assert left.begins_ns is not None
    for at_ns in (left.begins_ns, *(seconds * SECOND_NS + 1 for seconds in MOMENTS_S), None):
        if at_ns is None or at_ns >= left.begins_ns:
            assert state_at(left, at_ns) == state_at(whole, at_ns), at_ns
    ours, others = Replay(left).run(), Replay(whole).run()
    assert (ours.now_ns, ours.calls, ours.allocations, ours.messages) == (
        others.now_ns,
        others.calls,
        others.allocations,
        others.messages,
    )
    assert (ours.checked, ours.whole) == (others.checked, not left.trimmed)


class Killed(BaseException):
    """The process ends here."""


def killed_after(count: int) -> Callable[[Path], None]:
    """Return an `unlink` that removes so many files, and then is killed."""
    unlink = Path.unlink
    left = iter(range(count))

    def removed(path: Path, *, missing_ok: bool = False) -> None:
        if next(left, None) is None:
            raise Killed
        unlink(path, missing_ok=missing_ok)

    return removed


def check_killed(whole: Run, folder: Path, bytes_max: int, count: int) -> None:
    """Make room in a copy, killed after so many removals, and check what is left; once more, and all of it is done."""
    run = copied(whole, folder / "recording")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", killed_after(count))
        with contextlib.suppress(Killed):
            make_room(run.folder.parent, run.folder, Bounds(bytes_max=bytes_max), 0)
    assert_same_from_its_beginning(choose_run(run.folder.parent), whole)
    left = make_room(run.folder.parent, run.folder, Bounds(bytes_max=bytes_max), 0)
    run = choose_run(run.folder.parent)
    assert left == size_of(run)
    first, newest = segments_in(run.folder)[0], place_of(checkpoints_in(run.folder)[-1])
    assert left <= bytes_max or first.name == f"segment-{newest.segment:06d}"
    assert_same_from_its_beginning(run, whole)


@pytest.mark.gate
@examples(15)
@given(part=st.floats(0, 1.1), count=st.integers(0, 30))
def test_a_run_that_lost_its_beginning_is_repeated_as_before_wherever_the_removal_was_killed(
    part: float, count: int, whole: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_killed(whole, tmp_path_factory.mktemp("copy"), int(part * size_of(whole)), count)


def test_the_bound_is_obeyed_and_no_more_than_that_is_removed(whole: Run, tmp_path: Path) -> None:
    run = copied(whole, tmp_path / "recording")
    bound = size_of(run) * 3 // 4
    before = [file.name for file in segments_in(run.folder)]
    largest = sum(max(file.stat().st_size for file in of(run.folder)) for of in (segments_in, checkpoints_in))
    left = make_room(run.folder.parent, run.folder, Bounds(bytes_max=bound), 500)
    after = [file.name for file in segments_in(run.folder)]
    assert left + 500 <= bound
    assert after == before[-len(after) :]
    assert left + 500 + largest > bound, "the last segment and its checkpoints have been removed without need"
    assert make_room(run.folder.parent, run.folder, Bounds(bytes_max=bound), 500) == left


def test_what_is_too_old_is_removed_up_to_a_checkpoint(whole: Run, tmp_path: Path) -> None:
    run = copied(whole, tmp_path / "recording")
    segments = segments_in(run.folder)
    for segment in segments[:4]:
        os.utime(segment, (time.time() - 7_200, time.time() - 7_200))
    make_room(run.folder.parent, run.folder, Bounds(age_max_s=3_600), 0)
    assert segments_in(run.folder) == segments[4:]
    assert_same_from_its_beginning(choose_run(run.folder.parent), whole)


def test_a_damaged_checkpoint_replaces_nothing(whole: Run, tmp_path: Path) -> None:
    run = copied(whole, tmp_path / "recording")
    *rest, last = checkpoints_in(run.folder)
    last.write_bytes(last.read_bytes()[:-1])
    make_room(run.folder.parent, run.folder, Bounds(bytes_max=0), 0)
    assert segments_in(run.folder)[0].name == f"segment-{place_of(rest[-1]).segment:06d}"
    assert_same_from_its_beginning(choose_run(run.folder.parent), whole)


def test_without_a_checkpoint_nothing_of_the_run_is_removed(whole: Run, tmp_path: Path) -> None:
    run = copied(whole, tmp_path / "recording")
    for path in checkpoints_in(run.folder):
        path.unlink()
    size = size_of(run)
    assert make_room(run.folder.parent, run.folder, Bounds(bytes_max=0), 0) == size
    assert not read_run(run.folder).trimmed


def before_the_newest(run: Path) -> list[Path]:
    """What may be removed if each checkpoint were whole."""
    newest = place_of(checkpoints_in(run)[-1]).segment
    return [segment for segment in segments_in(run) if segment_number(segment) < newest]


@pytest.mark.parametrize("fault", ["the segment of the checkpoint goes too", "damage is not seen", "segments go first"])
def test_a_planted_fault_is_caught(fault: str, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expendable = retention._expendable
    if fault == "the segment of the checkpoint goes too":
        monkeypatch.setattr(
            retention,
            "_expendable",
            lambda run: segments_in(run)[: len(found) + 1] if (found := expendable(run)) else [],
        )
        with pytest.raises((AssertionError, RecordingError)):
            check_killed(whole, tmp_path, 0, 1_000)
    elif fault == "damage is not seen":
        monkeypatch.setattr(retention, "_expendable", before_the_newest)
        with pytest.raises((AssertionError, RecordingError)):
            test_a_damaged_checkpoint_replaces_nothing(whole, tmp_path)
    else:
        monkeypatch.setattr(retention, "_remove", lambda segment: segment.unlink() or 0)
        with pytest.raises((AssertionError, RecordingError)):
            check_killed(whole, tmp_path, 0, 1_000)


# -- readers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def trimmed(whole: Run, tmp_path: Path) -> Run:
    run = copied(whole, tmp_path / "recording")
    make_room(run.folder.parent, run.folder, Bounds(bytes_max=size_of(run) // 2), 0)
    found = choose_run(run.folder.parent)
    assert found.trimmed
    return found


def test_a_moment_before_the_beginning_is_refused_with_the_reason(trimmed: Run) -> None:
    with pytest.raises(RecordingError, match="holds nothing of this time any more: its bounds"):
        choose_run(trimmed.folder.parent, at_ns=SECOND_NS)


def test_without_a_checkpoint_that_can_be_used_nothing_is_repeated(trimmed: Run) -> None:
    for path in checkpoints_in(trimmed.folder):
        path.write_bytes(b"")
    with pytest.raises(RecordingError, match="no checkpoint of it can be used"):
        choose_run(trimmed.folder.parent)
    with pytest.raises(RecordingError, match="no checkpoint of it can be used"):
        Replay(trimmed)


def test_a_segment_that_is_missing_in_between_is_noticed(trimmed: Run) -> None:
    segments_in(trimmed.folder)[-2].unlink()
    with pytest.raises(RecordingError, match="is missing"):
        Replay(trimmed).run()


def test_a_checkpoint_is_added_to_a_run_that_lost_its_beginning(trimmed: Run, whole: Run) -> None:
    added = add_checkpoint(trimmed)
    assert added == checkpoints_in(trimmed.folder)[-1]
    assert_same_from_its_beginning(trimmed, whole)


def test_who_follows_catches_up_from_what_is_left(trimmed: Run, whole: Run) -> None:
    end = replay_from(whole, None)
    end.run()
    for count in (end.position, end.position - 50):
        ours, others = (caught_up(run, count, Outputs()) for run in (trimmed, whole))
        assert ours.position == others.position == count
        assert ours.api.checkpoint() == others.api.checkpoint()
    with pytest.raises(RecordingError, match="its beginning was removed up to a later entry than 3"):
        caught_up(trimmed, 3, Outputs())


def test_a_program_reads_where_what_is_left_begins(trimmed: Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(trimmed.folder.parent)
    for arguments, expected in (
        (["replay", folder, "--runs"], ", what came before was removed"),
        (["replay", folder], "what came before was removed: the digest is of the messages since then"),
        (["replay", folder, "--runs", "--json"], '"trimmed": true'),
    ):
        assert licorne(arguments) == 0
        assert expected in capsys.readouterr().out


# -- the process that records -------------------------------------------------------------------------------------------


def sizes(run: Path) -> Iterator[int]:
    """The sizes of the files of a run, some of which may be removed meanwhile."""
    for path in run.glob("[sc]*"):
        with contextlib.suppress(FileNotFoundError):
            yield path.stat().st_size


def segments_without_checkpoint(run: Path) -> int:
    newest = max((place_of(path).segment for path in checkpoints_in(run)), default=0)
    return sum(segment_number(segment) > newest for segment in segments_in(run))


@pytest.mark.nightly
def test_a_run_that_goes_on_for_ever_stays_within_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licorne.state.recording.writer.BLOCK_BYTES", 2_000)
    bound, troubles, most = 150_000, list[str](), 0
    with Recorder(tmp_path, Bounds(bytes_max=bound, checkpoint_bytes=1), troubles.append) as recorder:
        history = History(False, recorder)
        while recorder.counts.bytes < 2 * bound and not troubles:
            for run in tmp_path.glob("run-*"):
                most = max(most, sum(sizes(run)))
                # The process that writes checkpoints may have to wait for a processor.
                wait_for(lambda: segments_without_checkpoint(run) <= 5)  # noqa: B023
            for _ in range(10):
                history.step()
            time.sleep(0.01)
    assert (troubles, recorder.lost) == ([], 0)
    assert recorder.counts.bytes >= 2 * bound
    assert most <= bound
    left = choose_run(tmp_path)
    assert left.trimmed
    replay = Replay(left)
    outcome = replay.run()
    assert (outcome.checked, outcome.remark) == (outcome.messages, "")
    history.api.validate()
    replay.api.validate()
    assert state_of(replay.api) == state_of(history.api)


def test_a_recording_without_its_beginning_is_simulated_from_what_was_there(tmp_path: Path) -> None:
    workload = Path(__file__).resolve().parents[2] / "examples" / "gpu-holiday" / "workload.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("licorne.state.recording.writer.BLOCK_BYTES", 1_000)
        patch.setattr("licorne.state.recording.writer.SEGMENT_BYTES", 1_500)
        with Recorder(tmp_path) as recorder:
            whole = simulate(workload, input_log=recorder)
    run = choose_run(tmp_path)
    assert add_checkpoint(run, 30_000 * SECOND_NS) is not None
    make_room(tmp_path, run.folder, Bounds(bytes_max=0), 0)
    assert choose_run(tmp_path).trimmed
    left = simulate(tmp_path)
    assert any("the beginning of the run was removed" in note for note in left.notes)
    assert 0 < left.placed <= whole.placed
