"""Gangs in a simulation: what a resource manager does for them, and how long they waited.

For a gang with placeholders the simulator does what YuniKorn's Kubernetes shim does (docs/spec/scheduling.md, section 9.2,
docs/spec/k8shim.md, section 3). When the application is accepted it submits the placeholders. It keeps the real asks back
until the application runs, or has become an ordinary one (style Soft) after its placeholders timed out. If the gang fails
(style Hard), the asks kept back are never submitted. An atomic gang has no placeholders: its asks are submitted as they
come.

A gang has started when each of its groups has at least its minimum of real pods running at the same time. Its waiting time
is counted from the line of its application to that moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from licorne.si.constants import DOMAIN_YUNIKORN
from licorne.workload.lines import App, Ask, TaskGroup
from licorne.workload.measure import percentiles, seconds

TAG_TASK_GROUPS = DOMAIN_YUNIKORN + "task-groups"
TAG_GANG_SCHEDULING = "gang.scheduling"
ATOMIC = "atomic"


class Gang(msgspec.Struct):
    """One gang: when it was submitted, the minimum of pods of each group, the numbers running. A time of -1: not yet.

    `kept` are real asks that are not submitted yet; `closed`: real asks are to be kept back. `groups` is empty if the
    workload itself submits the placeholders, which then tell the needs.
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
    """The gangs of a queue: numbers of all, started and timed out, and waiting times of those that started.

    `kind` is placeholders or atomic. `timed_out`: the placeholders timed out before all of them were allocated; in style
    Soft such a gang may have started later. Times are nearest-rank percentiles, in seconds of virtual time.
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
        self._past: list[Gang] = []
        self._keeping: list[Gang] = []  # those that may keep asks back

    def submitted(self, line: App, now_ns: int) -> None:
        """Note a submitted application, which may be a gang. An earlier gang of its name has ended, and is kept for the report."""
        if line.id in self.known:
            self._past.append(self.known.pop(line.id))
        if line.gang or line.ph_ask:
            gang = self.known[line.id] = Gang(
                app=line.id,
                submitted_ns=now_ns,
                atomic=line.atomic,
                groups=line.gang,
                needs=Counter({group.name: group.min for group in line.gang}),
                closed=bool(line.gang) and not line.atomic,
            )
            if gang.closed:
                self._keeping.append(gang)

    def keeps(self, line: Ask, *, new: bool = True) -> bool:
        """Keep an ask back, or the change of one that is kept, if its gang is not ready for it; return whether it was kept."""
        gang = self.known.get(line.app)
        if gang is None:
            return False
        if new and line.ph and not gang.groups:
            gang.needs[line.group] += line.max
        if not gang.closed or line.ph or line.node:
            return False
        if new:
            gang.kept[line.key] = line
        elif line.key in gang.kept:
            gang.kept[line.key] = msgspec.structs.replace(gang.kept[line.key], res=line.res)
        return line.key in gang.kept

    def forget(self, app: str, key: str) -> bool:
        """Drop an ask, or with an empty key all of the application: it is not submitted any more; return whether one was kept."""
        gang = self.known.get(app)
        if gang is None:
            return False
        if key:
            return gang.kept.pop(key, None) is not None
        kept, gang.kept = gang.kept, {}
        return bool(kept)

    def accepted(self, app: str, queue: str, tags: Mapping[str, dict[str, str] | None] | None = None) -> list[Ask]:
        """Note that an application was accepted, in `queue`; return the placeholders to submit, with the `tags` of their group."""
        gang = self.known.get(app)
        if gang is None:
            return []
        gang.queue = queue
        if gang.atomic:
            return []
        return [
            Ask(
                key=f"tg-{app}-{group.name}-{number}",
                app=app,
                res=group.res,
                tags=tags.get(group.name) if tags else None,
                group=group.name,
                ph=True,
            )
            for group in gang.groups
            for number in range(group.min)
        ]

    def entered(self, app: str, state: str, message: str) -> list[Ask]:
        """Note a change of an application's state; return the asks kept back that are to be submitted now."""
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
        """Note that an application was rejected or has failed; return the asks that will never be submitted."""
        gang = self.known.get(app)
        if gang is None:
            return []
        gang.closed = False
        kept, gang.kept = gang.kept, {}
        return list(kept.values())

    def placed(self, ask: Ask, now_ns: int) -> None:
        """Note that a pod of the ask runs."""
        gang = self.known.get(ask.app)
        if gang is not None and not ask.ph and ask.group in gang.needs:
            gang.running[ask.group] += 1
            if gang.started_ns < 0 and all(gang.running[name] >= need for name, need in gang.needs.items()):
                gang.started_ns = now_ns

    def ended(self, ask: Ask) -> None:
        """Note that a pod of the ask no longer runs."""
        gang = self.known.get(ask.app)
        if gang is not None and not ask.ph and ask.group in gang.needs:
            gang.running[ask.group] -= 1

    def kept_back(self) -> Iterable[tuple[str, Ask]]:
        """Return the asks that are kept back now, with their applications, in the order of these."""
        return ((gang.app, ask) for gang in self._keeping for ask in gang.kept.values())

    def rows(self) -> list[GangWaits]:
        """Return how long gangs waited, by queue and kind."""
        groups: defaultdict[tuple[str, str], list[Gang]] = defaultdict(list)
        for gang in (*self._past, *self.known.values()):
            if gang.queue:
                groups[gang.queue, ATOMIC if gang.atomic else "placeholders"].append(gang)
        rows: list[GangWaits] = []
        for (queue, kind), gangs in sorted(groups.items()):
            waits = [gang.started_ns - gang.submitted_ns for gang in gangs if gang.started_ns >= 0]
            times = map(seconds, percentiles(waits, (50, 95, 100)))
            rows.append(GangWaits(queue, kind, len(gangs), len(waits), sum(gang.timed_out for gang in gangs), *times))
        return rows


def task_groups(groups: tuple[TaskGroup, ...]) -> str:
    """Encode the groups as the tag that an application carries (docs/spec/scheduling.md, section 9.2)."""
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
    """Return the total resources of the placeholders of all groups."""
    total: Counter[str] = Counter()
    for group in groups:
        total.update({name: amount * group.min for name, amount in group.res.items()})
    return dict(total)
