"""Where the points of a sweep run. An engine is given points, and yields their outcomes as they come.

`Processes` runs them on this machine; `licorne.lab.sweep.on_ray` on a Ray cluster. Another engine is a class with the one method of
`Engine`; docs/use/sweeps.md shows one for Dask.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple, Protocol

import msgspec

from licorne.lab.sweep.plan import Point
from licorne.lab.sweep.point import Outcome

ENDING_S = 5.0
"""How long a process that is to end has for it."""
Run = Callable[[Point], Outcome]


class EngineError(Exception):
    """An engine cannot run points; the text says why, and what to do."""


class Engine(Protocol):
    """Runs points, on whatever machines."""

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points by a function of a module, and yield the position of each with its outcome, in any order.

        A point whose process crashes has an outcome with an error, and the others go on. Closing the generator ends what runs.

        Raises:
            EngineError: no point can be run.
        """
        ...  # pragma: no cover


class Processes(NamedTuple):
    """Runs points on this machine, `at_once` at a time, each in a process of its own; with 1 in this process.

    A process for each point costs a tenth of a second, and a point that takes all memory or crashes ends alone: the others go on,
    and it is recorded as failed. A process ends when the one that started it has: it watches for that, because a process that is
    killed cannot end its own.
    """

    at_once: int = 1

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points; see `Engine.outcomes`."""
        if self.at_once == 1:
            for number, point in enumerate(points):
                yield number, run(point)
            return
        start = _starter()
        waiting = list(reversed(list(enumerate(points))))
        running: dict[int, tuple[BaseProcess, Connection]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.at_once:
                    number, point = waiting.pop()
                    ours, theirs = multiprocessing.Pipe(duplex=False)
                    process = start(target=_work, args=(point, run, theirs), daemon=True)
                    process.start()
                    theirs.close()
                    running[number] = process, ours
                ready = wait([one for process, ours in running.values() for one in (process.sentinel, ours)])
                for number, (process, ours) in list(running.items()):
                    if ours in ready or process.sentinel in ready:
                        outcome = _received(ours)
                        process.join()
                        del running[number]
                        yield number, outcome or Outcome(error=_ended(process.exitcode))
        finally:
            for process, _ in running.values():
                process.terminate()
            for process, _ in running.values():
                process.join(ENDING_S)
                if process.is_alive():
                    process.kill()


def _starter() -> Callable[..., BaseProcess]:
    """Return what makes processes: from one that has loaded the simulator, where there is such a thing, else each anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn").Process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context.Process


def _received(connection: Connection) -> Outcome | None:
    """Return what a process has sent, None if it has ended and sent nothing."""
    with connection:
        try:
            return msgspec.json.decode(connection.recv_bytes(), type=Outcome) if connection.poll() else None
        except EOFError:
            return None


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there too little memory?"
    return f"its process ended with status {code}"


def outcome_of(point: Point, run: Run) -> Outcome:
    """Run one point; a fault of the simulator is that of this point, not of the others."""
    try:
        return run(point)
    except Exception as error:  # noqa: BLE001  # as the docstring says
        return Outcome(error=f"{type(error).__name__}: {error}")


def _work(point: Point, run: Run, result: Connection) -> None:
    """Run one point, in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    result.send_bytes(msgspec.json.encode(outcome_of(point, run)))
    sys.stdout.flush()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
