"""Gangs in a simulation: what a resource manager does for them, and how long they waited.

For a gang with placeholders it does what YuniKorn's Kubernetes shim does (docs/spec/scheduling.md, section 9.2,
docs/spec/k8shim.md, section 3): when the application is accepted it hands in the placeholders; the real asks it keeps
back until the application runs, or has gone back to being an ordinary one (style Soft) after its placeholders' time was
over. If the gang fails (style Hard), what was kept back is never handed in. An atomic gang has no placeholders: its
asks are handed in as they come.

A gang has started when for each of its groups as many real pods run at once as the group needs at least. How long it
waited is counted from its application's line to that moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from licorne.si.constants import DOMAIN_YUNIKORN
from licorne.sim.lines import App, Ask, TaskGroup
from licorne.sim.measure import percentiles

NANOSECONDS = 1_000_000_000
TAG_TASK_GROUPS = DOMAIN_YUNIKORN + "task-groups"
TAG_GANG_SCHEDULING = "gang.scheduling"
ATOMIC = "atomic"


class Gang(msgspec.Struct):
    """One gang: when it came, how many pods its groups need at least, how many run. Times of -1: not yet.

    `kept` are real asks that are not handed in yet; `closed` says that they have to wait. `groups` is empty where the
    workload itself hands in the placeholders, from which the need is learned then.
    """

    app: str
    submitted_ns: int
    atomic: bool
    groups: tuple[TaskGroup, ...]
    needs: Counter[str]
    closed: bool
    queue: str = ""
    running: Counter[str] = msgspec.field(default_factory=Counter)
    kept: dict[str, Ask] = {}
    started_ns: int = -1
    timed_out: bool = False


class GangWaits(msgspec.Struct, frozen=True):
    """The gangs of a queue: how many there were, started, and were too late; how long those waited that started.

    `kind` is placeholders or atomic. `timed_out`: their placeholders' time was over before all were there; in style
    Soft they may have started later. Nearest-rank percentiles, in seconds of virtual time.
    """

    queue: str
    kind: str
    gangs: int
    started: int
    timed_out: int
    p50_s: float
    p95_s: float
    longest_s: float


class Gangs:
    """All gangs of a workload, by application."""

    def __init__(self) -> None:
        self.known: dict[str, Gang] = {}

    def submitted(self, line: App, now_ns: int) -> None:
        """An application is handed in; it may be a gang."""
        if (line.gang or line.ph_ask) and line.id not in self.known:
            self.known[line.id] = Gang(
                app=line.id,
                submitted_ns=now_ns,
                atomic=line.atomic,
                groups=line.gang,
                needs=Counter({group.name: group.min for group in line.gang}),
                closed=bool(line.gang) and not line.atomic,
            )

    def keeps(self, line: Ask) -> bool:
        """Is this ask kept back for now? It is then taken."""
        gang = self.known.get(line.app)
        if gang is None:
            return False
        if line.ph and not gang.groups:
            gang.needs[line.group] += line.max
        if not gang.closed or line.ph or line.node:
            return False
        known = gang.kept.get(line.key)
        gang.kept[line.key] = line if known is None else msgspec.structs.replace(known, res=line.res)
        return True

    def forget(self, app: str, key: str) -> None:
        """An ask is taken back, or with an empty key all of them: what was kept back is not handed in any more."""
        gang = self.known.get(app)
        if gang is not None:
            if key:
                gang.kept.pop(key, None)
            else:
                gang.kept = {}

    def accepted(self, app: str, queue: str) -> list[Ask]:
        """The application was accepted: its placeholders."""
        gang = self.known.get(app)
        if gang is None:
            return []
        gang.queue = queue
        if gang.atomic:
            return []
        return [
            Ask(key=f"tg-{app}-{group.name}-{number}", app=app, res=group.res, group=group.name, ph=True)
            for group in gang.groups
            for number in range(group.min)
        ]

    def entered(self, app: str, state: str, message: str) -> list[Ask]:
        """The application is in another state: the asks that are to be handed in now."""
        gang = self.known.get(app)
        if gang is None:
            return []
        if state == "Resuming" or (state == "Failing" and gang.started_ns < 0 and message != "ExecutionTimeout"):
            gang.timed_out = True
        if state in ("Starting", "Running") or (state == "Accepted" and gang.timed_out):
            gang.closed = False
            kept, gang.kept = gang.kept, {}
            return list(kept.values())
        return []

    def given_up(self, app: str) -> list[Ask]:
        """The application was rejected or has failed: the asks that will never be handed in."""
        gang = self.known.get(app)
        if gang is None:
            return []
        gang.closed = False
        kept, gang.kept = gang.kept, {}
        return list(kept.values())

    def placed(self, ask: Ask, now_ns: int) -> None:
        """A pod of the ask runs."""
        gang = self.known.get(ask.app)
        if gang is not None and not ask.ph and ask.group in gang.needs:
            gang.running[ask.group] += 1
            if gang.started_ns < 0 and all(gang.running[name] >= need for name, need in gang.needs.items()):
                gang.started_ns = now_ns

    def ended(self, ask: Ask) -> None:
        """It does not run any more."""
        gang = self.known.get(ask.app)
        if gang is not None and not ask.ph and ask.group in gang.needs:
            gang.running[ask.group] -= 1

    def kept_back(self) -> Iterable[tuple[str, Ask]]:
        """The asks that were never handed in, with their application."""
        return ((gang.app, ask) for gang in self.known.values() for ask in gang.kept.values())

    def rows(self) -> list[GangWaits]:
        """How long gangs waited, by queue and kind."""
        groups: defaultdict[tuple[str, str], list[Gang]] = defaultdict(list)
        for gang in self.known.values():
            if gang.queue:
                groups[gang.queue, ATOMIC if gang.atomic else "placeholders"].append(gang)
        rows: list[GangWaits] = []
        for (queue, kind), gangs in sorted(groups.items()):
            waits = [gang.started_ns - gang.submitted_ns for gang in gangs if gang.started_ns >= 0]
            times = (value / NANOSECONDS for value in percentiles(waits, (50, 95, 100)))
            rows.append(GangWaits(queue, kind, len(gangs), len(waits), sum(gang.timed_out for gang in gangs), *times))
        return rows


def task_groups(groups: tuple[TaskGroup, ...]) -> str:
    """The groups as the tag that an application carries (docs/spec/scheduling.md, section 9.2)."""
    return msgspec.json.encode(
        [
            {
                "name": group.name,
                "minMember": group.min,
                "minResource": {name: _quantity(name, amount) for name, amount in group.res.items()},
            }
            for group in groups
        ]
    ).decode()


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == "vcore" else str(amount)


def placeholder_ask(groups: tuple[TaskGroup, ...]) -> dict[str, int]:
    """What the placeholders of all groups ask for together."""
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.res.items():
            total[name] = total.get(name, 0) + amount * group.min
    return total
