"""The process that follows a scheduler: it repeats its inputs, and answers questions on copies of itself.

A service starts it (`licorne.host.follower`), as `python -m licorne.answers.following`, and writes blocks of entries to
its standard input: those of a recording (`licorne.state.recording.entries`), with questions between them. So a question is about
the state that it was asked in, and is answered when all that came before it has been repeated. The answers go to standard
output; meanwhile the process goes on following. Where it could not follow from the beginning, it first repeats as many
entries of a recording as it has missed: `python -m licorne.answers.following FOLDER BEGAN_NS NUMBER`.

It ends with its standard input, and with the process that started it. Exit status: 0; 1 if it cannot follow, which standard
error says.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from licorne.answers.process import Question, answer_to
from licorne.answers.recorded import NothingRecordedError, as_restored
from licorne.sim.collector import quiet_collector
from licorne.state.copies import CopyError, end_with_parent
from licorne.state.recording import RecordingError, Replay, Run, choose_run
from licorne.state.recording.blocks import read_blocks
from licorne.state.recording.checkpoints import Place
from licorne.state.recording.entries import CHECK, GAP
from licorne.state.recording.folder import read_manifest, segment_number, segments_in
from licorne.state.recording.replay import replay_from_newest
from licorne.state.restored import Outputs, UnknownNameError

BLOCK: Final = struct.Struct("<I")
"""The head of a block on standard input: its length in bytes."""
FRAME: Final = struct.Struct("<IBI")
"""The head of a frame on standard output: the number of the question, what follows, and its length in bytes."""
QUESTION: Final = "question"
"""An entry that is a question: its number, the question as JSON, the time of the scheduler, and the monotonic time (ns)."""
BEGUN, ANSWER, UNANSWERED = range(3)
"""What a frame has: nothing yet, as the question is being answered; the answer as JSON; or why there is none."""
LOOK_S: Final = 0.2
"""How often the process looks whether an answer that it waits for has failed."""
MISSING_S: Final = 60.0
"""After so many seconds without a further entry, those that are missing are given up."""


class _Following:
    def __init__(self, replay: Replay, outputs: Outputs) -> None:
        self._replay = replay
        self._outputs = outputs
        self._answering = 0
        self._number = 0

    def run(self) -> None:
        """Follow until standard input ends."""
        try:
            for block in _blocks(self._look):
                for entry in block:
                    if entry[0] == QUESTION:
                        self._ask(*entry[1:])
                    else:
                        self._replay.repeat(entry)
        finally:
            self._end_answer()

    def _ask(self, number: int, question: bytes, now_ns: int, asked_ns: int) -> None:
        """Answer a question on a copy; one that is still being answered has been given up by who asked it."""
        self._end_answer()
        _send(number, BEGUN)
        found = msgspec.json.decode(question, type=Question)
        self._number, self._answering = number, os.fork()
        if not self._answering:
            _answer(self._replay, self._outputs, number, found, now_ns, asked_ns)

    def _look(self) -> bool:
        """Return whether a question is being answered; where that has failed, say so."""
        if not self._answering:
            return False
        ended, status = os.waitpid(self._answering, os.WNOHANG)
        if ended:
            self._answering = 0
            if status:
                _send(self._number, UNANSWERED, f"the process that answers ended with {status}".encode())
        return not ended

    def _end_answer(self) -> None:
        if self._look():
            os.kill(self._answering, signal.SIGKILL)
            os.waitpid(self._answering, 0)
            self._answering = 0


def _answer(replay: Replay, outputs: Outputs, number: int, question: Question, now_ns: int, asked_ns: int) -> None:
    """Answer a question, in a fork of the process that follows, and end the fork without running exit handlers."""
    status = 1
    try:
        end_with_parent()
        os.close(sys.stdin.fileno())
        age_s = (time.monotonic_ns() - asked_ns) / 1e9
        kind, said = _said(replay, outputs, question, now_ns, age_s)
        _send(number, kind, said)
        status = 0
    finally:
        os._exit(status)


def _said(replay: Replay, outputs: Outputs, question: Question, now_ns: int, age_s: float) -> tuple[int, bytes]:
    try:
        restored = as_restored(replay, outputs, max(now_ns, replay.now_ns))
        until = time.monotonic() + question.limit_s
        answer = answer_to(question, restored, lambda: time.monotonic() < until)
    except (UnknownNameError, NothingRecordedError, CopyError, RecordingError) as error:
        return UNANSWERED, str(error).encode()
    return ANSWER, msgspec.json.encode(msgspec.structs.replace(answer, age_s=age_s))


def _send(number: int, kind: int, payload: bytes = b"") -> None:
    rest = memoryview(FRAME.pack(number, kind, len(payload)) + payload)
    while rest:
        rest = rest[os.write(sys.stdout.fileno(), rest) :]


def _blocks(look: Callable[[], bool]) -> Iterator[list[Any]]:
    """Yield the blocks of standard input. `look` is called now and then, and says whether it wants to be called again."""
    read = sys.stdin.fileno()
    decode = msgspec.msgpack.Decoder(list[Any]).decode
    held = bytearray()
    while True:
        while len(held) >= BLOCK.size and len(held) >= (end := BLOCK.size + BLOCK.unpack_from(held)[0]):
            block = bytes(memoryview(held)[BLOCK.size : end])
            del held[:end]
            yield decode(block)
        while look() and not select.select([read], [], [], LOOK_S)[0]:
            pass
        data = os.read(read, 1 << 20)
        if not data:
            return
        held += data


def run_since(recording: Path, began_ns: int) -> Run:
    """Return the run of a recording that began at a time, when its first entry is written; it may have lost its beginning since.

    Raises:
        RecordingError: the folder is no recording, or the run is not there after `MISSING_S`.
    """
    read_manifest(recording)
    since = time.monotonic()
    while True:
        with contextlib.suppress(RecordingError):  # nothing of any run is written yet
            run = choose_run(recording)
            if (run.begins_ns or 0) >= began_ns:
                return run
        if time.monotonic() - since > MISSING_S:
            raise RecordingError(f"{recording}: the run that began last is not there")
        time.sleep(LOOK_S)


def caught_up(run: Run, count: int, outputs: Outputs) -> Replay:
    """Return a repetition of the first `count` entries of a recorded run, which is still being written.

    Raises:
        RecordingError: the recording does not have them, or they cannot be repeated.
    """
    replay = replay_from_newest(
        run, None, lambda saved: Replay(run, outputs, saved=saved), lambda saved: saved.position <= count
    )
    start, first, since = replay.place, replay.position, time.monotonic()
    while replay.position < count:
        for entry in islice(_entries(run.folder, start), replay.position - first, count - first):
            replay.repeat(entry)
            since = time.monotonic()
        if replay.position < count:
            if time.monotonic() - since > MISSING_S:
                raise RecordingError(f"{run.folder}: {count - replay.position} entries are missing")
            time.sleep(LOOK_S)
    if replay.position > count:
        raise RecordingError(f"{run.folder}: its beginning was removed up to a later entry than {count}")
    return replay


def _entries(run: Path, start: Place) -> Iterator[list[Any]]:
    """Yield the entries of the scheduler from a place of a run on."""
    for segment in segments_in(run):
        number = segment_number(segment)
        if number < start.segment:
            continue
        at = start if number == start.segment else Place(number)
        for position, block in enumerate(read_blocks(segment, at.blocks)):
            for entry in block if position else block[at.entries :]:
                if entry[0] == GAP:
                    raise RecordingError(f"{run}: ends early: {entry[1]}")
                if entry[0] != CHECK:
                    yield entry


def main(recording: Path | None = None, began_ns: int = 0, count: int = 0) -> None:
    """Follow until standard input ends, from the beginning, or from behind `count` entries of a recorded run that began then."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent to all processes of a terminal; the service ends this one
    outputs = Outputs()
    with quiet_collector():
        if recording is None:
            replay = Replay(Run(0, Path(), None), outputs)
        else:
            replay = caught_up(run_since(recording, began_ns), count, outputs)
        _Following(replay, outputs).run()


if __name__ == "__main__":
    try:
        if sys.argv[1:]:
            main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
        else:
            main()
    except (RecordingError, OSError) as error:
        sys.exit(str(error))
