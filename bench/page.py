"""Measures the page of a large cluster: how long each view takes when nobody has looked before, and how many bytes it sends.

The scheduler and the page run in this process, without a network. Times are processor times, so that they mean something on a
machine that does other work too, and include making the lists of objects, which viewers share. Each is the least of `RUNS`.
Garbage is collected as in a service (`licorne.host.memory`), and before each look, as that of building the cluster is not the page's. Bytes are those of the compressed HTML, and of the
style sheet and scripts that the view needs, which browsers keep.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import re
import time
from collections.abc import Callable
from typing import Final

import msgspec

from licorne import SchedulerAPI
from licorne.host.memory import THRESHOLDS
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.page.past import answer_of, live_pages
from licorne.host.web.rest import make_app
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, Input, NodeAction, NodeUpdate

SECOND_NS: Final = 10**9
APPLICATIONS: Final = 1_000
RUNS: Final = 3
VIEWS: Final = (
    *(
        "/",
        "/queues",
        "/queues?queue=root.q0",
        "/applications",
        "/application?name=app-0",
        "/nodes",
        "/node?name=node-0",
    ),
    *("/people", "/fairness", "/decisions", "/configuration"),
)
"""All that answer by themselves; a question is answered by another process."""


class Looked(msgspec.Struct, frozen=True):
    """What a view took.

    `first_s`: processor seconds when nobody had looked before; `wall_s`: by the clock; `again_s`: with what others had asked for.
    `bytes`: as sent, `kept_bytes`: of these those that browsers keep.
    """

    view: str
    first_s: float
    wall_s: float
    again_s: float
    bytes: int
    kept_bytes: int


def measure_pages(
    nodes: int, running: int, waiting: int, queues: int, say: Callable[[str], object] = lambda _: None
) -> list[Looked]:
    """Return what each view of a cluster of this size takes."""
    say(f"placing {running:,} pods on {nodes:,} nodes ...")
    api = cluster(nodes, running, waiting, queues)
    found = []
    for view in VIEWS:
        looks = [
            asyncio.run(_look(Monitor(Backend(api, time.time_ns), "bench"), view)) for _ in range(RUNS)
        ]  # nothing kept
        least = {name: min(getattr(each, name) for each in looks) for name in ("first_s", "wall_s", "again_s")}
        found.append(msgspec.structs.replace(looks[0], **least))
        say(f"{view}: {found[-1].first_s * 1000:.0f} ms of a processor, {found[-1].bytes / 1000:.0f} kB")
    return found


async def _look(monitor: Monitor, view: str) -> Looked:
    app = make_app(monitor, pages=live_pages)
    await monitor.sample()
    path, _, query = view.partition("?")
    times, body = [], b""
    for _ in range(2):
        gc.collect()
        began, clock = time.process_time(), time.perf_counter()
        status, _headers, body = await answer_of(app, path, query)
        times.append((time.process_time() - began, time.perf_counter() - clock))
        assert status == 200, view
    files = re.findall(r'(?:href|src)="(/static/[^"?]+)', body.decode())
    sent = [await answer_of(app, file, "") for file in files]
    kept = sum(len(gzip.compress(text, 1)) for _, _, text in sent)
    return Looked(view, *times[0], times[1][0], len(gzip.compress(body, 1)) + kept, kept)


def cluster(nodes: int, running: int, waiting: int, queues: int) -> SchedulerAPI:
    """Return a scheduler that has placed and queued so many pods, in a process whose garbage is collected as in a service."""
    now_ns = 1_800_000_000 * SECOND_NS
    api = SchedulerAPI(clock=lambda: now_ns, on_output=lambda *_: None)
    each = -(-running // nodes)
    leaves = "".join(
        f"\n          - {{name: q{at}, resources: {{guaranteed: {{vcore: {running // queues}}}}}}}"
        for at in range(queues)
    )
    config = f"partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:{leaves}\n"
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="bench", config=config))
    inputs: list[Input] = [
        NodeUpdate(
            node_id=f"node-{at}",
            action=NodeAction.CREATE,
            capacity={"vcore": each * 1_000, "memory": 2**36, "pods": 110},
        )
        for at in range(nodes)
    ]
    inputs += [
        AddApplication(application_id=f"app-{at}", queue=f"root.q{at % queues}", user=f"user-{at % 200}")
        for at in range(APPLICATIONS)
    ]
    inputs += [
        Allocation(
            key=f"pod-{at}",
            application_id=f"app-{at % APPLICATIONS}",
            resource={"vcore": 1_000, "memory": 2**28, "pods": 1},
        )
        for at in range(running + waiting)
    ]
    api.submit("bench", inputs)
    while api.schedule():
        pass
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    return api


__all__ = ["VIEWS", "Looked", "cluster", "measure_pages"]
