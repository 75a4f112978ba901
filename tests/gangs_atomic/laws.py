"""When a gang starts, and the law for it; used by the tests and by planted faults."""

from __future__ import annotations

from gangs_atomic.helpers import GangBench
from licorne.si.messages import NewAllocation, Released


def start_of_gang(
    nodes: list[int], work: list[tuple[int, int]], gang: list[int], jobs: list[tuple[int, int, int]]
) -> tuple[int | None, int | None]:
    """When the gang was planned to start, and when it did (seconds).

    `work` runs already: (vcore, seconds it may run), placed where it fits. Then the gang comes, and then
    `jobs`: (second, vcore, seconds it may run; 0: for ever). Everything runs as long as it may.
    """
    b = GangBench(*nodes)
    b.app("x", "root.b")
    for number, (vcore, seconds) in enumerate(work):
        b.ask("x", f"x{number}", vcore=vcore, timeout_ms=1000 * seconds)
    b.run()
    for number in range(len(work)):
        if f"x{number}" in b.application("x").asks:
            b.release("x", f"x{number}")
    b.gang("g", *gang)
    if b.run():
        return 0, 0
    hold = b.hold
    start = hold.plan.start_ns if hold is not None else None
    planned = None if start is None else round(start / 10**9 - b.seconds)
    for second in range(80):
        for number, (at, vcore, seconds) in enumerate(jobs):
            if at == second:
                b.app(f"y{number}", "root.b")
                b.ask(f"y{number}", f"job{number}", vcore=vcore, timeout_ms=1000 * seconds)
        if second:
            b.seconds += 1
        b.api.schedule()
        seen = 0
        while seen < len(b.outputs):  # allocations that have to end do so at once
            for output in b.outputs[seen:]:
                seen += 1
                if isinstance(output, Released) and output.application_id in b.partition.applications:
                    b.end(output.application_id, output.key)
                if isinstance(output, NewAllocation) and output.application_id == "g":
                    return planned, second
            b.run()
            if len(b.outputs) == seen:
                break
    return planned, None


def check(nodes: list[int], work: list[tuple[int, int]], gang: list[int], jobs: list[tuple[int, int, int]]) -> None:
    """Compare the start of a gang with the moment that was planned for it."""
    planned, started = start_of_gang(nodes, work, gang, jobs)
    assert planned is None or started == planned, f"planned for {planned}, started at {started}"
