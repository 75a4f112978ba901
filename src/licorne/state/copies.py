"""Runs something on a copy of this process, so that nothing it changes is seen here.

A copy is a fork: it takes milliseconds and shares its memory until either side writes, whatever the size of the cluster.
It exists while the work runs, and answers by a pipe.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")


class CopyError(RuntimeError):
    """The work on a copy failed; the text says how."""


class _Answer(msgspec.Struct):
    value: msgspec.Raw
    error: str = ""


def end_with_parent() -> None:
    """Have this process killed when the thread that started it ends, however it does, even where this process is stopped.

    That is known to Linux alone; elsewhere a process has to notice by itself.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_PR_SET_PDEATHSIG: Final = 1


def on_a_copy(work: Callable[[], T], kind: type[T]) -> T:
    """Return what `work` returns, an object of `kind` that msgspec can encode; its changes are lost.

    Raises:
        CopyError: the work raised an exception, or the copy was ended from outside; or this system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise CopyError("this system cannot fork a process, so nothing can be tried on a copy")
    gc.freeze()  # the copy must not touch, and thereby copy, all objects to look for garbage
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, reading, writing)
    gc.unfreeze()
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            answer = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)  # nobody waits for its answer any more
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if not answer:
        code = os.waitstatus_to_exitcode(status)
        raise CopyError(f"the copy was ended ({signal.Signals(-code).name if code < 0 else code})")
    found = msgspec.msgpack.decode(answer, type=_Answer)
    if found.error:
        raise CopyError(found.error)
    return msgspec.msgpack.decode(found.value, type=kind)


def _work(work: Callable[[], object], reading: int, writing: int) -> None:
    """Do the work in the copy, write the answer, and end the process without any of its exit handlers."""
    try:
        gc.disable()
        end_with_parent()
        os.close(reading)
        try:
            answer = _Answer(msgspec.Raw(msgspec.msgpack.encode(work())))
        except BaseException as error:  # noqa: BLE001  all of them belong to the other process, which tells them
            answer = _Answer(msgspec.Raw(msgspec.msgpack.encode(None)), f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(answer))
    finally:
        os._exit(0)
