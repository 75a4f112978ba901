"""Calls a function for many arguments, each call in a process of its own on this machine.

A process for each costs a tenth of a second, and one that takes all memory or crashes ends alone: the others go on. A process ends
when the one that started it has: it watches for that, because a process that is killed cannot end its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, TypeVar

ENDING_S = 5.0
"""How long a process that is to end has for it."""
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


class CrashedError(Exception):
    """Raised where a process that was to compute something has ended without a result; the text says how it ended."""


def _raise(why: str) -> NoReturn:
    raise CrashedError(why)


def results(
    given: Sequence[_Given],
    run: Callable[[_Given], _Result],
    at_once: int,
    *,
    crashed: Callable[[str], _Result] = _raise,
) -> Generator[tuple[int, _Result]]:
    """Call a function of a module for each argument, and yield the position of each with the result, in any order.

    `at_once` processes run at a time; with 1 the calls are made in this process, in order. What a call raises is raised here.
    `crashed` returns what is yielded for a process that has ended without a result, by the reason, or raises. Closing the
    generator ends what runs.
    """
    if at_once == 1:
        for number, one in enumerate(given):
            yield number, run(one)
        return
    start = _starter(run)
    waiting = list(reversed(list(enumerate(given))))
    running: dict[int, tuple[BaseProcess, Connection]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, one = waiting.pop()
                ours, theirs = multiprocessing.Pipe(duplex=False)
                process = start(target=_work, args=(one, run, theirs), daemon=True)
                process.start()
                theirs.close()
                running[number] = process, ours
            ready = wait([one for process, ours in running.values() for one in (process.sentinel, ours)])
            for number, (process, ours) in list(running.items()):
                if ours in ready or process.sentinel in ready:
                    received = _received(ours)
                    process.join()
                    del running[number]
                    if received is None:
                        yield number, crashed(_ended(process.exitcode))
                    elif received[1] is not None:
                        raise received[1]
                    else:
                        yield number, received[0]
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join(ENDING_S)
            if process.is_alive():
                process.kill()


def _starter(run: Callable[..., object]) -> Callable[..., BaseProcess]:
    """Return what makes processes: from one that has loaded the function's module, where there is such a thing, else each anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn").Process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([(run.func if isinstance(run, partial) else run).__module__])
    return context.Process


def _received(connection: Connection) -> tuple[Any, Exception | None] | None:
    """Return the result that a process has sent, or what its call raised; None if it has ended and sent nothing."""
    with connection:
        try:
            received: tuple[Any, Exception | None] | None = connection.recv() if connection.poll() else None
        except EOFError:
            return None
        return received


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there too little memory?"
    return f"its process ended with status {code}"


def _work(given: _Given, run: Callable[[_Given], object], result: Connection) -> None:
    """Make one call, in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        found: tuple[object, Exception | None] = run(given), None
    except Exception as error:  # noqa: BLE001  # it is raised in the process that has started this one
        found = None, error
    result.send(found)
    sys.stdout.flush()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
