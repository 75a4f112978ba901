"""A moment of a recording is the same, whether it is repeated from a checkpoint or from the beginning."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from common.waiting import wait_for
from determinism.history import History
from licorne.answers.recorded import restore_moment
from licorne.state.recording import (
    Bounds,
    DivergedError,
    Recorder,
    RecordingError,
    Replay,
    Run,
    add_checkpoint,
    choose_run,
    replay_from,
)
from licorne.state.recording.blocks import MAGIC, read_blocks
from licorne.state.recording.checkpointer import ENTRIES_BETWEEN, is_due
from licorne.state.recording.checkpoints import place_of, read, time_of, write
from licorne.state.recording.entries import TIME
from licorne.state.recording.folder import checkpoints_in, segments_in
from licorne.state.recording.replay import last_ns
from recording.recorded import record_history

SECOND_NS = 10**9


@pytest.fixture(params=[False, True])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """A recorded run with checkpoints at three moments."""
    record_history(tmp_path, 300, first_interface=request.param)
    found = choose_run(tmp_path)
    for seconds in (60, 150, 240):
        assert add_checkpoint(found, seconds * SECOND_NS) is not None
    return found


def from_the_beginning(run: Run, at_ns: int | None) -> bytes:
    replay = Replay(run)
    replay.run(at_ns)
    return replay.api.checkpoint()


@pytest.mark.parametrize("seconds", [0, 59, 60, 61, 100, 150, 200, 280, None])
def test_a_moment_is_the_same_from_a_checkpoint(run: Run, seconds: int | None) -> None:
    at_ns = None if seconds is None else seconds * SECOND_NS
    replay = replay_from(run, at_ns)
    replay.run(at_ns)
    assert replay.api.checkpoint() == from_the_beginning(run, at_ns)
    whole = Replay(run)
    whole.run(at_ns)
    ours, others = replay.outcome, whole.outcome
    assert (ours.calls, ours.allocations, ours.messages) == (others.calls, others.allocations, others.messages)
    assert ours.checked == others.checked or ours.checked <= ours.messages


def test_the_newest_before_the_moment_serves(run: Run) -> None:
    replay = replay_from(run, 200 * SECOND_NS)
    assert 100 * SECOND_NS < replay.now_ns <= 150 * SECOND_NS
    assert replay.outcome.calls > 0


@pytest.mark.parametrize(
    ("bytes_since", "entries_since", "last_bytes", "due"),
    [
        (99, 0, 0, False),
        (100, 0, 0, True),
        (1, ENTRIES_BETWEEN - 1, 0, False),
        (1, ENTRIES_BETWEEN, 0, True),
        (1, ENTRIES_BETWEEN, 4, False),
        (100, 0, 300, True),
        (100, 0, 301, False),
    ],
)
def test_one_is_due_after_bytes_or_entries_but_not_if_the_last_one_is_much_larger_than_the_log(
    bytes_since: int, entries_since: int, last_bytes: int, due: bool
) -> None:
    assert is_due(bytes_since, entries_since, 100, last_bytes) == due


def test_the_time_of_the_last_call_is_found_from_the_end(run: Run, tmp_path: Path) -> None:
    data = segments_in(run.folder)[-1].read_bytes()
    torn = tmp_path / "torn"
    for cut in {len(MAGIC), len(MAGIC) + 5, *range(len(data) // 10, len(data), len(data) // 10), len(data)}:
        torn.write_bytes(data[:cut])
        times = [entry[1] for block in read_blocks(torn) for entry in block if entry[0] == TIME]
        assert last_ns(torn) == (times[-1] if times else 0)


@pytest.mark.parametrize("damage", ["cut off", "changed", "empty", "something else"])
def test_a_damaged_one_is_passed_over(run: Run, damage: str) -> None:
    path = checkpoints_in(run.folder)[1]
    data = path.read_bytes()
    path.write_bytes(
        {
            "cut off": data[:-1],
            "changed": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "empty": b"",
            "something else": b"x" * 100,
        }[damage]
    )
    replay = replay_from(run, 200 * SECOND_NS)
    assert replay.now_ns <= 60 * SECOND_NS
    replay.run(200 * SECOND_NS)
    assert replay.api.checkpoint() == from_the_beginning(run, 200 * SECOND_NS)


def test_many_small_maps_are_not_made(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licorne._bounded.PACKED_CONTAINERS_MAX", 100)
    with pytest.raises(RecordingError, match="is damaged: has more than 100 lists and maps"):
        read(checkpoints_in(run.folder)[0])


def test_one_that_this_licorne_cannot_use_is_passed_over(run: Run) -> None:
    for path in checkpoints_in(run.folder):
        saved = read(path)
        state = saved.state.replace(b"backoff_until", b"backoff_later")
        path.unlink()
        write(run.folder, msgspec.structs.replace(saved, state=state))
    assert replay_from(run, None).outcome.calls == 0


def test_a_repetition_compares_the_states_on_its_way(run: Run) -> None:
    Replay(run).run()
    first, second, _ = checkpoints_in(run.folder)
    saved, other = read(first), read(second)
    first.unlink()
    write(run.folder, msgspec.structs.replace(saved, state=other.state))
    with pytest.raises(DivergedError, match="the state is not that of checkpoint-"):
        Replay(run).run()


def test_places_are_in_the_names(run: Run) -> None:
    assert [place_of(path) for path in checkpoints_in(run.folder)] == [
        read(path).place for path in checkpoints_in(run.folder)
    ]


def test_its_time_is_read_from_its_beginning(run: Run, tmp_path: Path) -> None:
    for path in checkpoints_in(run.folder):
        assert time_of(path) == read(path).now_ns > 0
        (cut := tmp_path / "cut").write_bytes(path.read_bytes()[:60])
        assert time_of(cut) == 0


def test_answers_begin_at_a_checkpoint(run: Run) -> None:
    restored = restore_moment(run, 200 * SECOND_NS)
    assert restored.now_ns == 200 * SECOND_NS
    assert restored.api.checkpoint() == from_the_beginning(run, 200 * SECOND_NS)


def test_a_recorder_has_them_written_by_another_process(tmp_path: Path) -> None:
    with Recorder(tmp_path, Bounds(checkpoint_bytes=1)) as recorder:
        history = History(False, recorder)

        def stepped() -> list[Path]:
            history.step()
            return list(tmp_path.glob("run-*/checkpoint-*"))

        wait_for(stepped)
    assert recorder.lost == 0
    run = choose_run(tmp_path)
    assert checkpoints_in(run.folder)
    assert replay_from(run, None).outcome.calls > 0
    replay = replay_from(run, None)
    replay.run()
    assert replay.api.checkpoint() == from_the_beginning(run, None)
