"""A recording is repeated with the same decisions, whatever has happened to it or to the process that made it."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from common.waiting import wait_for
from determinism.history import History
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.grpc.service.intake import portions
from licorne.si import adapt_v19, v19, wire
from licorne.si.adapt import Part
from licorne.si.messages import Allocation, RejectedAllocation
from licorne.state.recording import (
    Bounds,
    DivergedError,
    Outcome,
    Recorder,
    RecordingError,
    Replay,
    choose_run,
    list_runs,
)
from licorne.state.recording.blocks import HEADER, MAGIC, BlockWriter, read_blocks
from licorne.state.recording.entries import REQUEST
from licorne.state.recording.folder import MANIFEST, segments_in
from recording.recorded import assert_replays, record_history

SECOND_NS = 10**9
CONFIGURATION = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
NODES = v19.NodeRequest(
    rm_id="rm",
    nodes=[
        v19.NodeInfo(
            node_id=f"n{number}",
            action=v19.ActionFromRM.CREATE,
            schedulable_resource={"vcore": 8_000},
        )
        for number in range(4)
    ],
)


def replayed(folder: Path, number: int | None = None) -> Outcome:
    return Replay(choose_run(folder, number)).run()


def asks(count: int, *, first: int = 0) -> bytes:
    request = v19.AllocationRequest(
        rm_id="rm",
        allocations=[
            v19.Allocation(
                allocation_key=f"k{number}",
                application_id="a" if number % 7 else "nobody",
                resource_per_alloc={"vcore": 100},
                partition_name="default",
            )
            for number in range(first, first + count)
        ],
    )
    return wire.encode(request)


def registered(recorder: Recorder | None, callback: ResourceManagerCallback | None = None) -> SchedulerAPI:
    """Return a scheduler with a resource manager, nodes and an application."""
    api = SchedulerAPI(on_output=lambda *_: None, on_incident=lambda _: None)
    api.input_log = recorder
    request = v19.RegisterResourceManagerRequest(rm_id="rm", config=CONFIGURATION)
    api.register_resource_manager(request, callback, now_ns=SECOND_NS)
    api.update_node(NODES, now_ns=SECOND_NS)
    application = v19.AddApplicationRequest(
        application_id="a",
        queue_name="root.default",
        partition_name="default",
        ugi=v19.UserGroupInformation(user="u", groups=["g"]),
    )
    api.update_application(v19.ApplicationRequest(rm_id="rm", new=[application]), now_ns=SECOND_NS)
    return api


@pytest.fixture(scope="module", params=[False, True], ids=["1.9", "first interface"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    folder = tmp_path_factory.mktemp("recording")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("licorne.state.recording.writer.BLOCK_BYTES", 2_000)
        return folder, record_history(folder, 250, first_interface=request.param)


def test_a_history_with_predicates_reloads_and_moving_time_ends_in_the_same_state(
    history: tuple[Path, History],
) -> None:
    folder, life = history
    assert_replays(folder, life.api)
    assert replayed(folder).allocations == life.allocations > 50


def test_files_and_folders_are_for_their_owner_alone(history: tuple[Path, History]) -> None:
    folder, _ = history
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@examples(40)
@given(part=st.floats(0, 1), damage=st.sampled_from(["cut", "flip", "zeros"]))
def test_a_recording_that_is_damaged_at_any_byte_replays_up_to_there(
    part: float, damage: str, history: tuple[Path, History], tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "recording"
    shutil.copytree(history[0], copy)
    (segment,) = segments_in(list_runs(copy)[0].folder)
    content = segment.read_bytes()
    at = int(part * (len(content) - 1))
    rest = {"cut": b"", "flip": bytes([content[at] ^ 0x10]) + content[at + 1 :], "zeros": bytes(5_000)}[damage]
    segment.write_bytes(content[:at] + rest)
    if at < len(MAGIC) + HEADER.size + HEADER.unpack_from(content, len(MAGIC))[0]:
        with pytest.raises(RecordingError, match=r"is damaged at byte|no run yet"):
            choose_run(copy)
        return
    outcome = replayed(copy)
    assert 0 < outcome.messages <= history[1].said
    # What ends with a whole block looks as if nothing were missing.
    assert ("do not count" in outcome.remark) != (damage == "cut" and at in ends_of_blocks(content))
    assert outcome.damaged == ("is damaged at byte" in outcome.remark) == (damage == "flip")


def ends_of_blocks(content: bytes) -> list[int]:
    """Return where blocks of a segment end."""
    ends = [len(MAGIC)]
    while ends[-1] < len(content):
        ends.append(ends[-1] + HEADER.size + HEADER.unpack_from(content, ends[-1])[0])
    return ends


@pytest.mark.parametrize("damage", [b"", bytes(5_000)])
def test_a_segment_that_is_cut_or_filled_with_zeros_between_two_blocks_replays_up_to_there(
    damage: bytes, history: tuple[Path, History], tmp_path: Path
) -> None:
    shutil.copytree(history[0], tmp_path / "recording")
    (segment,) = segments_in(list_runs(tmp_path / "recording")[0].folder)
    content = segment.read_bytes()
    ends = ends_of_blocks(content)
    segment.write_bytes(content[: ends[len(ends) // 2]] + damage)
    outcome = replayed(tmp_path / "recording")
    assert 0 < outcome.messages < history[1].said
    assert bool(outcome.remark) == bool(damage)


def test_requests_are_recorded_as_they_came_and_in_the_parts_in_which_they_were_taken(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        api = registered(recorder)
        for number in range(5):
            data = asks(300, first=300 * number)
            rm_id, translation = adapt_v19.ALLOCATIONS.at_once(data)
            translation.part = Part(data, 0)
            for portion in portions(translation, (64,)):
                api.take(rm_id, portion, now_ns=(2 + number) * SECOND_NS)
                api.schedule(now_ns=(2 + number) * SECOND_NS, limit=10)
    assert_replays(tmp_path, api)
    assert replayed(tmp_path).allocations > 200
    size = sum(segment.stat().st_size for segment in segments_in(list_runs(tmp_path)[0].folder))
    assert size < 1_500 * 40, "the bytes of a request are written once, and compressed"


def test_requests_that_a_program_hands_in_as_bytes_are_recorded_as_they_came(tmp_path: Path) -> None:
    data = asks(300)
    with Recorder(tmp_path) as recorder:
        api = registered(recorder)
        api.update_allocation(data, now_ns=2 * SECOND_NS)
        api.schedule(now_ns=2 * SECOND_NS)
    assert_replays(tmp_path, api)
    assert replayed(tmp_path).allocations > 200
    (segment,) = segments_in(list_runs(tmp_path)[0].folder)
    assert [entry[2] for block in read_blocks(segment) for entry in block if entry[0] == REQUEST] == [data]


def test_the_moment_up_to_which_a_recording_is_repeated_is_chosen(history: tuple[Path, History]) -> None:
    folder, _ = history
    run = choose_run(folder)
    whole = Replay(run).run()
    half_ns = whole.now_ns // 2
    replay = Replay(run)
    half = replay.run(half_ns)
    assert half.now_ns <= half_ns
    assert 0 < half.messages < whole.messages
    assert not replay.ended
    assert replay.run() == whole  # and it goes on from there
    assert replay.ended


class Picky(ResourceManagerCallback):
    """Refuses every third pair of ask and node at first, and preempts nothing from n1."""

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        return "no" if (int(args.allocation_key[1:]) + int(args.node_id[1:])) % 3 == 0 else None


def test_a_version_that_decides_otherwise_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Recorder(tmp_path) as recorder:
        api = registered(recorder, Picky())
        api.update_allocation(asks(50), now_ns=2 * SECOND_NS)
        assert api.schedule(now_ns=3 * SECOND_NS) == 42
    assert replayed(tmp_path).allocations == 42
    monkeypatch.setattr(Replay, "_note_answers", lambda *_: None)  # as if the predicates were not asked as often
    with pytest.raises(DivergedError, match="the decisions differ: there are"):
        replayed(tmp_path)


# -- several runs ------------------------------------------------------------------------------------------


def test_each_start_is_a_run_of_its_own(tmp_path: Path) -> None:
    for start in range(3):
        with Recorder(tmp_path) as recorder:
            api = registered(recorder)
            api.update_allocation(asks(10 + start), now_ns=2 * SECOND_NS)
            api.schedule(now_ns=2 * SECOND_NS)
    assert [run.number for run in list_runs(tmp_path)] == [1, 2, 3]
    assert [replayed(tmp_path, number).allocations for number in (1, 2, 3, None)] == [8, 9, 10, 10]
    with pytest.raises(RecordingError, match="has no run 4; there are: 1, 2, 3"):
        choose_run(tmp_path, 4)
    with pytest.raises(RecordingError, match="no run that had begun at this time"):
        choose_run(tmp_path, at_ns=5)


def test_a_resource_manager_that_comes_back_begins_a_run_and_a_second_one_does_not(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        api = registered(recorder)
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="other"), now_ns=2 * SECOND_NS)
        api.stop("rm", now_ns=2 * SECOND_NS)
        api.stop("other", now_ns=2 * SECOND_NS)
        api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), now_ns=3 * SECOND_NS)
    assert len(list_runs(tmp_path)) == 2
    assert_replays(tmp_path, api)


def test_old_runs_are_removed_when_the_recording_is_large_or_they_are_old(tmp_path: Path) -> None:
    record_history(tmp_path / "size", 40)
    size = sum(path.stat().st_size for path in (tmp_path / "size").rglob("segment-*"))
    for number in range(4):
        record_history(tmp_path / "size", 40, bounds=Bounds(bytes_max=3 * size))
        record_history(tmp_path / "age", 5)
        if number < 3:
            for path in (tmp_path / "age").rglob("segment-*"):
                os.utime(path, (time.time() - 3_600, time.time() - 3_600))
    record_history(tmp_path / "age", 5, bounds=Bounds(age_max_s=600))
    assert [run.number for run in list_runs(tmp_path / "age")] == [4, 5]
    assert [run.number for run in list_runs(tmp_path / "size")] == [4, 5]


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_run_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = BlockWriter._put
    left = 4_000

    def full(writer: BlockWriter, data: bytes) -> None:
        nonlocal left
        if len(data) > left:
            put(writer, data[: max(1, left)])  # where the disk is full at the end of a block, nothing is cut off
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        put(writer, data)
        left -= len(data)

    monkeypatch.setattr("licorne.state.recording.writer.FLUSH_S", 0.0)
    monkeypatch.setattr("licorne.state.recording.writer.POLL_S", 0.001)
    monkeypatch.setattr(BlockWriter, "_put", full)
    troubles: list[str] = []
    with Recorder(tmp_path, trouble=troubles.append) as recorder:
        life = History(False, recorder)
        for _ in range(200):
            life.step()
            time.sleep(0.001)
        wait_for(lambda: troubles)
        assert troubles == ["cannot be written: No space left on device"]
        left = 10**9
        life.api.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id="rm", policy_group="g"), now_ns=life.now
        )
        for _ in range(50):
            life.step()
    first = replayed(tmp_path, 1)
    assert first.messages > 0
    assert "do not count" in first.remark
    assert_last_replays(tmp_path, life.api)


def assert_last_replays(folder: Path, api: SchedulerAPI) -> None:
    replay = Replay(choose_run(folder))
    outcome = replay.run()
    assert (outcome.checked, outcome.remark) == (outcome.messages, "")
    assert replay.api.state_dump() == api.state_dump()


def test_inputs_that_come_faster_than_they_are_written_end_the_run_with_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licorne.state.recording.writer.POLL_S", 0.2)
    troubles: list[str] = []
    with Recorder(tmp_path, Bounds(queue_bytes=20_000), troubles.append) as recorder:
        life = History(False, recorder)
        while not recorder.lost:
            life.step()
    assert troubles == ["the disk is too slow: inputs came faster than they could be written"]
    outcome = replayed(tmp_path)
    assert outcome.messages > 0
    assert (
        outcome.remark == "the recording ends here: the disk is too slow: inputs came faster than they could be written"
    )


def test_a_run_without_checkpoints_that_alone_is_larger_than_the_bound_ends_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("licorne.state.recording.writer.BLOCK_BYTES", 4_000)
    troubles: list[str] = []
    with Recorder(tmp_path, Bounds(bytes_max=12_000), troubles.append) as recorder:
        life = History(False, recorder)
        for _ in range(400):
            life.step()
    assert troubles == ["is full: 12000 bytes are too few for this run, of which no checkpoint replaces the beginning"]
    segments = segments_in(list_runs(tmp_path)[0].folder)
    assert len(segments) > 3
    assert 9_000 < sum(segment.stat().st_size for segment in segments) <= 12_000
    assert replayed(tmp_path).messages > 100


def test_a_clock_that_is_set_back_is_recorded_as_the_scheduler_took_it(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        api = registered(recorder)
        for second, first in ((50, 0), (20, 10), (70, 20), (0, 30)):
            api.update_allocation(asks(10, first=first), now_ns=second * SECOND_NS)
            api.schedule(now_ns=second * SECOND_NS)
    assert_replays(tmp_path, api)
    assert replayed(tmp_path).now_ns == 70 * SECOND_NS


def test_messages_that_no_json_holds_are_recorded_too(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        api = registered(recorder)
        odd = Allocation(key="half a character: \ud800", application_id="a", resource={"vcore": 10**30})
        api.submit("rm", [odd, Allocation(key="k", application_id="a", resource={"vcore": 1})], now_ns=2 * SECOND_NS)
        api.schedule(now_ns=2 * SECOND_NS)
    assert_replays(tmp_path, api)


def test_a_message_that_cannot_be_written_ends_the_run_and_not_the_scheduler(tmp_path: Path) -> None:
    troubles: list[str] = []
    with Recorder(tmp_path, trouble=troubles.append) as recorder:
        api = registered(recorder)
        recorder.delivered("rm", [RejectedAllocation("k", "a", reason=object())])  # type: ignore[arg-type]
        api.update_allocation(asks(3), now_ns=2 * SECOND_NS)
        assert api.schedule(now_ns=2 * SECOND_NS) == 3 - 1, "one of the asks is of an application that is not there"
    assert len(troubles) == 1
    assert troubles[0].startswith("a message could not be recorded: TypeError")


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            '{"kind": "licorne recording", "format": 2, "licorne": "9.1"}',
            "format 2, of licorne 9.1: .*use licorne 9.1 or",
        ),
        ('{"kind": "cake", "format": 1, "licorne": "0"}', "kind: 'cake': must be"),
        ("{", "cannot be read"),
        (None, "no recording, it has no manifest.json"),
    ],
)
def test_folders_that_are_no_recording_are_refused(tmp_path: Path, manifest: str | None, expected: str) -> None:
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
        with pytest.raises(RecordingError, match=expected):
            Recorder(tmp_path)
    with pytest.raises(RecordingError, match=expected):
        list_runs(tmp_path)


def test_a_folder_that_is_in_use_or_holds_other_things_is_refused(tmp_path: Path) -> None:
    with Recorder(tmp_path / "one"), pytest.raises(RecordingError, match="another process records there"):
        Recorder(tmp_path / "one")
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(RecordingError, match="holds other files"):
        Recorder(tmp_path)
    with pytest.raises(RecordingError, match="cannot record there: Not a directory"):
        Recorder(tmp_path / "thesis.txt" / "below")


def test_an_entry_of_a_newer_licorne_is_told(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        registered(recorder)
    writer = BlockWriter(list_runs(tmp_path)[0].folder / "segment-000002")
    writer.write([("teleport", "rm")])
    writer.close()
    with pytest.raises(RecordingError, match="an entry 'teleport' is unknown; use a newer licorne"):
        replayed(tmp_path)


RECORDS_UNTIL_KILLED = """
import sys
from pathlib import Path
from determinism.history import History
from licorne.state.recording import Recorder, writer
writer.FLUSH_S = writer.POLL_S = 0.002
life = History(False, Recorder(Path(sys.argv[1])))
print("ready", flush=True)
while True:
    life.step()
"""


def written_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("segment-*"))


def test_a_process_that_is_killed_leaves_what_it_had_written(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    sys.stdout.write(f"seed {seed}\n")
    dice = random.Random(seed)
    here = Path(__file__).parent.parent
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent / 'src'}"}
    for number in range(1, 4):
        before = written_bytes(tmp_path)
        with subprocess.Popen(
            [sys.executable, "-c", RECORDS_UNTIL_KILLED, str(tmp_path)], stdout=subprocess.PIPE, env=environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            wait_for(lambda: written_bytes(tmp_path) > before + len(MAGIC))  # noqa: B023
            time.sleep(dice.uniform(0.05, 0.3))
            process.send_signal(signal.SIGKILL)
        outcome = replayed(tmp_path, number)
        assert outcome.messages > 0
        assert re.fullmatch(
            r"|segment-\d+ is cut off in its last block; its last [\d,]+ bytes do not count", outcome.remark
        )


# -- what others have written ------------------------------------------------------------------------------


def block(raw: bytes, raw_length: int | None = None) -> bytes:
    """Return a block with the right checksum."""
    data = zlib.compress(raw)
    return HEADER.pack(len(data), zlib.crc32(data), len(raw) if raw_length is None else raw_length) + data


HOSTILE = {
    "unpacks to more than it says": block(bytes(1 << 20), 100),
    "says that it is larger than any": block(b"", (1 << 32) - 1),
    "nested too deep": block(b"\x91" * 5_000),
    "an empty entry": block(msgspec.msgpack.encode([[]])),
    "no list": block(msgspec.msgpack.encode("x")),
    "a time that is none": block(msgspec.msgpack.encode([["time", "x"]])),
    "a time beyond all": block(msgspec.msgpack.encode([["time", 1 << 63]])),
    "a list beyond all": block(b"\xdd\xff\xff\xff\xff"),
    "an entry without a word": block(msgspec.msgpack.encode([[5]])),
    "types": block(msgspec.msgpack.encode([["inputs", 3, {"a": 4}, None]])),
    "no JSON": block(msgspec.msgpack.encode([["inputs", "rm", b"[" * 5_000, b"[]"]])),
    "ages": block(msgspec.msgpack.encode([["time", 1], ["ages", "rm", 7]])),
    "no request": block(msgspec.msgpack.encode([["request", "rm", b"\xff\xff"]])),
}


@pytest.mark.parametrize("place", ["first", "later"])
@pytest.mark.parametrize("what", HOSTILE)
def test_blocks_that_no_recorder_writes_are_damage(what: str, place: str, tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        registered(recorder)
    (segment,) = segments_in(list_runs(tmp_path)[0].folder)
    segment.write_bytes(segment.read_bytes() + HOSTILE[what] if place == "later" else MAGIC + HOSTILE[what])
    try:
        outcome = replayed(tmp_path)
    except RecordingError as error:
        assert "is damaged" in str(error)  # noqa: PT017  either way it is told
    else:
        assert outcome.damaged
        assert "segment-000001 is damaged at byte" in outcome.remark


def test_many_small_lists_are_not_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("licorne._bounded.PACKED_CONTAINERS_MAX", 1_000)
    path = tmp_path / "segment-000001"
    path.write_bytes(MAGIC + block(msgspec.msgpack.encode([["ages", "rm", [[]] * 1_000]])))
    blocks = read_blocks(path)
    with pytest.raises(StopIteration) as end:
        next(blocks)
    assert end.value.value.damage == "has more than 1,000 lists and maps"


def test_a_damaged_run_is_not_passed_over_for_an_older_one_and_a_torn_one_is(tmp_path: Path) -> None:
    for _ in range(2):
        with Recorder(tmp_path) as recorder:
            registered(recorder)
    (segment,) = segments_in(list_runs(tmp_path)[1].folder)
    content = segment.read_bytes()
    segment.write_bytes(content[:-1])
    assert choose_run(tmp_path).number == 1, "it may be one that is being written"
    segment.write_bytes(content[:-9] + b"?" + content[-8:])
    wrong = "run-00000002/segment-000001 is damaged at byte 28: the checksum of a block is wrong; nothing of this run"
    for number in (None, 2):
        with pytest.raises(RecordingError, match=wrong):
            choose_run(tmp_path, number)
    assert choose_run(tmp_path, 1).number == 1


def test_a_segment_that_is_cut_off_before_others_is_damaged(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        registered(recorder)
    (segment,) = segments_in(list_runs(tmp_path)[0].folder)
    segment.with_name("segment-000002").write_bytes(segment.read_bytes())
    segment.write_bytes(segment.read_bytes() + b"\1\2\3")
    outcome = replayed(tmp_path)
    assert outcome.damaged
    assert outcome.remark.endswith("it is cut off; its last 3 bytes, and 1 file after it, do not count")


def test_names_that_no_recorder_gives_are_passed_over_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Recorder(tmp_path) as recorder:
        registered(recorder)
    run = list_runs(tmp_path)[0].folder
    shutil.copytree(run, tmp_path / "run-00000001.bak")
    (tmp_path / "run-old").mkdir()
    for name in ("segment-abc", "segment-000001.gz", "checkpoint-x", "checkpoint-1-2-3-4-5"):
        (run / name).write_bytes(b"x")
    caplog.clear()
    assert replayed(tmp_path).messages > 0
    with Recorder(tmp_path, Bounds(age_max_s=0)) as recorder:
        registered(recorder)
    assert recorder.counts.gaps == 0
    assert [each.number for each in list_runs(tmp_path)] == [2]
    assert (tmp_path / "run-00000001.bak").is_dir(), "what others keep there is not removed"
    told = [record.message for record in caplog.records if record.name == "licorne.state.recording"]
    assert len(told) == len(set(told)) == 3
    assert told[0].endswith("passed over, as a recorder gives no such names: 'run-00000001.bak', 'run-old'")


def test_pipes_in_place_of_files_are_told(tmp_path: Path) -> None:
    with Recorder(tmp_path) as recorder:
        registered(recorder)
    (segment,) = segments_in(list_runs(tmp_path)[0].folder)
    segment.unlink()
    os.mkfifo(segment)
    with pytest.raises(RecordingError, match="segment-000001: cannot be read: is no regular file"):
        choose_run(tmp_path)
