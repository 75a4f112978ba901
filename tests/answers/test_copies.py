"""Work on a copy of the process: its answer comes back, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

import msgspec
import pytest

from licorne.state.copies import CopyError, on_a_copy


class _Number(msgspec.Struct):
    value: int


def test_changes_stay_in_the_copy() -> None:
    state = _Number(1)

    def work() -> _Number:
        state.value += 1
        return state

    assert on_a_copy(work, _Number).value == 2
    assert state.value == 1


def test_a_copy_can_make_copies() -> None:
    assert on_a_copy(lambda: _Number(on_a_copy(lambda: _Number(3), _Number).value + 1), _Number).value == 4


def test_a_large_answer_comes_back_whole() -> None:
    assert len(on_a_copy(lambda: "x" * 3_000_000, str)) == 3_000_000


def test_an_error_in_the_copy_is_told() -> None:
    def work() -> str:
        raise ValueError("no such thing")

    with pytest.raises(CopyError, match="ValueError: no such thing"):
        on_a_copy(work, str)


def test_a_copy_that_is_ended_is_told() -> None:
    def work() -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    with pytest.raises(CopyError, match="SIGKILL"):
        on_a_copy(work, str)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that are made during the test; others may be there of tests that ran before."""
    found: list[int] = []
    fork = os.fork

    def noted() -> int:
        pid = fork()
        found.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", noted)
    return found


def check_waited_for(copies: list[int], number: int) -> None:
    assert len(copies) == number
    for pid in copies:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_a_copy_ends_with_the_wait_for_its_answer(copies: list[int]) -> None:
    waited_at: list[int] = []

    def stop(_: int, frame: FrameType | None) -> None:
        """Interrupt the call that already waited at the last signal: an exception right behind a fork may go nowhere."""
        assert frame is not None
        if frame.f_code.co_name == "on_a_copy" and waited_at[-1:] == [frame.f_lasti]:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt
        waited_at.append(frame.f_lasti)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            on_a_copy(lambda: time.sleep(3600), type(None))
    finally:
        signal.signal(signal.SIGALRM, before)
    check_waited_for(copies, 1)


def test_no_process_is_left(copies: list[int]) -> None:
    for _ in range(5):
        on_a_copy(lambda: 1, int)
    check_waited_for(copies, 5)
