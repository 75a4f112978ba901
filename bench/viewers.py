"""Measures what viewers of the page take of the thread that decides: processor time beside none, with all of the page's live views open.

A scheduler and its page run in a process of their own (this module as a program), whose cluster changes all the time. Each viewer holds a
stream and asks for its view when it is told of a change, as a browser does. The thread's processor time in so many seconds, less that
without viewers, is the share that they would have of a thread that always decides: they are told by the clock, so what they take does not
grow with the number of decisions. Threads that write the pages are counted with the whole process. The least of `RUNS` is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx
import msgspec
import uvicorn

from bench.page import VIEWS, cluster
from bench.run import BenchError
from licorne import SchedulerAPI
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.page.live import LOOKS_PER_S
from licorne.host.web.page.past import live_pages
from licorne.host.web.rest import make_app
from licorne.si.messages import Allocation, Release

RUNS: Final = 3
SECONDS: Final = 20.0
CHANGE_S: Final = 0.25
START_S: Final = 600.0


class Viewed(msgspec.Struct, frozen=True):
    """What viewers took, in percent of a processor: of the thread that decides, and of the process; and how many pages they were sent a second."""

    viewers: int
    thread_percent: float
    process_percent: float
    pages_per_s: float


def measure_viewers(
    viewers: int, size: tuple[int, int, int, int], say: Callable[[str], object] = lambda _: None
) -> Viewed:
    """Return what viewers of a cluster of `size` (nodes, pods that run, pods that wait, queues) take."""
    command = [sys.executable, "-m", __name__, *map(str, size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:  # noqa: S603  this file
        try:
            assert served.stdout is not None
            say("building the cluster ...")
            address = served.stdout.readline().strip()
            if not address:
                raise BenchError("the page is not served")
            return min((asyncio.run(_viewed(address, served.pid, viewers, say)) for _ in range(RUNS)), key=_thread)
        finally:
            served.terminate()


def _thread(found: Viewed) -> float:
    return found.thread_percent


async def _viewed(address: str, pid: int, viewers: int, say: Callable[[str], object]) -> Viewed:
    alone, pages = await _taken(pid), [0]
    async with httpx.AsyncClient(base_url=address, timeout=START_S, limits=httpx.Limits()) as client:
        watching = [asyncio.create_task(_watch(client, VIEWS[number % len(VIEWS)], pages)) for number in range(viewers)]
        await asyncio.sleep(viewers / LOOKS_PER_S)  # until each has its place in the order
        before = pages[0]
        together = await _taken(pid)
        sent = pages[0] - before
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    thread, process = (round(100 * (one - other), 2) for one, other in zip(together, alone, strict=True))
    say(f"{thread} % of the thread, {process} % of a processor, {sent / SECONDS:.1f} pages a second")
    return Viewed(viewers, thread, process, round(sent / SECONDS, 1))


async def _watch(client: httpx.AsyncClient, view: str, pages: list[int]) -> None:
    async with client.stream("GET", "/live") as stream:
        async for line in stream.aiter_lines():
            if line == "event: changed":
                answer = await client.get(view)
                answer.raise_for_status()
                pages[0] += 1


async def _taken(pid: int) -> tuple[float, float]:
    """Return how much of a processor the first thread of a process takes, and the whole process."""
    before, began = _used(pid), time.perf_counter()
    await asyncio.sleep(SECONDS)
    length = time.perf_counter() - began
    after = _used(pid)
    return (after[0] - before[0]) / length, (after[1] - before[1]) / length


def _used(pid: int) -> tuple[float, float]:
    threads = {path.name: _seconds(path) for path in Path(f"/proc/{pid}/task").iterdir()}
    return threads[str(pid)], sum(threads.values())


def _seconds(thread: Path) -> float:
    with contextlib.suppress(OSError):  # it has ended
        return int((thread / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


# -- in the process ------------------------------------------------------------------------------------------


async def _serve(api: SchedulerAPI) -> None:
    monitor = Monitor(Backend(api, time.time_ns), "bench")
    listening = socket.create_server(("127.0.0.1", 0))
    app = make_app(monitor, pages=live_pages)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, ws="none", access_log=False))
    changing = asyncio.create_task(_change(api))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)  # noqa: T201  the process that started this one reads it
    await server.serve([listening])
    changing.cancel()


async def _change(api: SchedulerAPI) -> None:
    """Let a pod come, and go when the next one comes."""
    number = 0
    while True:
        ended = Release(key=f"new-{number}", application_id="app-0")
        number += 1
        api.submit("bench", [ended, Allocation(key=f"new-{number}", application_id="app-0", resource={"vcore": 1})])
        api.schedule()
        await asyncio.sleep(CHANGE_S)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(cluster(*map(int, sys.argv[1:]))))
    os._exit(0)

__all__ = ["Viewed", "measure_viewers"]
