"""Random clusters with gangs, and the laws for the messages about them; used by the tests and by planted faults."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.bench import config, parent
from gangs_atomic.helpers import GangBench, task_groups
from licorne.si.messages import NewAllocation, NodeAction, Output, Released, Termination

Step = tuple[str, int, int, int]
"""What happens, and three numbers that say to what."""
QUOTAS = config(parent("p resources: {max: {vcore: 20m}}", "a", "b resources: {max: {vcore: 12m}}"), "c")
MAXIMA = {"root.p": 20, "root.p.b": 12}
LEAVES = ("root.p.a", "root.p.b", "root.c")
KINDS = ("gang", "gang", "ask", "ask", "end", "end", "change", "drain", "node", "wait", "run", "run", "limited", "drop")


@dataclass
class World:
    """A bench, and what a host would know of it."""

    bench: GangBench
    gangs: dict[str, tuple[int, list[str]]] = field(default_factory=dict)  # members needed; asks, all of one group
    apps: list[str] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)  # ask -> application
    started: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def do(self, step: Step) -> None:
        """One step; the laws are checked after each."""
        kind, x, y, z = step
        b = self.bench
        self.count += 1
        name = f"k{self.count}"
        waiting = [gang for gang in self.gangs if gang not in self.started]
        match kind:
            case "gang":
                sizes = [1 + (x * (i + 3) + z) % 7 for i in range(1 + y % 4)] if x % 3 else [1 + z % 7] * (1 + y % 5)
                self.gangs[name] = (len(sizes), [f"{name}-{i}" for i in range(len(sizes))])
                b.add(name, task_groups(w=len(sizes)), queue=LEAVES[x % 3])
                self.apps.append(name)
                if x % 4 == 1:  # its last member comes later
                    self.gangs[name][1].pop()
                for key, size in zip(self.gangs[name][1], sizes, strict=False):
                    b.member(name, key, size, timeout_ms=[0, 4000, 9000][z % 3])
            case "ask" if not self.apps or y % 3 == 0:
                b.app(name, LEAVES[x % 3])
                self.apps.append(name)
                b.ask(name, f"{name}-0", vcore=1 + y % 5, timeout_ms=[0, 3000, 8000][z % 3])
            case "ask":
                app = self.apps[x % len(self.apps)]
                if app in self.gangs and app not in self.started:
                    self.gangs[app][1].append(name)
                b.member(app, name, 1 + y % 5, timeout_ms=[0, 3000, 8000][z % 3], priority=z % 2)
            case "end" if self.running:
                key = list(self.running)[x % len(self.running)]
                b.release(self.running.pop(key), key)
            case "change" if waiting := [gang for gang in waiting if self.gangs[gang][1]]:
                app = waiting[x % len(waiting)]
                asks = self.gangs[app][1]
                b.member(app, asks[y % len(asks)], 1 + z % 6)
            case "drain":
                action = NodeAction.DRAIN_NODE if y % 2 else NodeAction.DRAIN_TO_SCHEDULABLE
                b.node(f"n{1 + x % 3}", action)
            case "node" if y % 4 == 0:
                b.node(f"m{self.count}", vcore=4 + x % 7)
            case "drop" if waiting and y % 3 == 0:
                app = waiting[x % len(waiting)]
                b.remove(app)
                self.apps.remove(app)
                del self.gangs[app]
            case "wait":
                self.run(after=float(1 + x % 4))
            case "run":
                self.run()
            case "limited":
                self.run(limit=1 + x % 3)

    def run(self, *, after: float = 0, limit: int | None = None) -> None:
        """Decide, check, and confirm what the scheduler wants to end."""
        b = self.bench
        start = len(b.outputs)
        b.run(after=after, limit=limit)
        self.check(b.outputs[start:])
        for output in b.outputs[start:]:
            if isinstance(output, Released) and output.termination is Termination.TIMEOUT:
                b.end(output.application_id, output.key)
                self.running.pop(output.key, None)

    def check(self, outputs: list[Output]) -> None:
        """All or nothing, one after the other; and within every quota."""
        new = [output for output in outputs if isinstance(output, NewAllocation)]
        at = 0
        while at < len(new):
            app = new[at].application_id
            if app in self.gangs and app not in self.started:
                need, asks = self.gangs[app]
                step = new[at : at + need]
                assert len(step) == need, f"gang {app} was split: {[o.key for o in step]}"
                assert all(o.application_id == app and o.key in asks for o in step), f"{app}: {[o.key for o in step]}"
                self.started[app] = self.bench.seconds
                at += need
            else:
                at += 1
        for output in new:
            self.running[output.key] = output.application_id
        for path, limit in MAXIMA.items():
            assert self.bench.allocated(path).get("vcore", 0) <= limit, f"{path} is above its quota"


def lived(steps: list[Step], *, parking: bool = True, settings: dict[str, str] | None = None) -> list[str]:
    """Run the steps and return the messages."""
    texts = {"scheduler.parking": "true" if parking else "false", "gang.hold.max.age": "6s", **(settings or {})}
    world = World(GangBench(10, 8, 10, text=QUOTAS, settings=texts))
    for step in steps:
        world.do(step)
    world.run()
    return world.bench.said


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


def check(
    steps: list[Step],
    nodes: list[int],
    work: list[tuple[int, int]],
    gang: list[int],
    jobs: list[tuple[int, int, int]],
) -> None:
    """Compare the steps with and without parking, and the start of a gang with the moment that was planned for it."""
    assert lived(steps) == lived(steps, parking=False), "parking matters"
    planned, started = start_of_gang(nodes, work, gang, jobs)
    assert planned is None or started == planned, f"planned for {planned}, started at {started}"
