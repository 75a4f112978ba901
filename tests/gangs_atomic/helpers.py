"""A bench with gangs that start as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.bench import Bench, config
from licorne.core.gangs.backfill import Hold
from licorne.core.inspection.explain import Gang
from licorne.si.messages import AddApplication, Allocation, Termination

TAG = "yunikorn.apache.org/task-groups"


def task_groups(**members: int) -> str:
    """Task groups by name with their number of members."""
    return json.dumps([{"name": n, "minMember": m, "minResource": {"cpu": "1m"}} for n, m in members.items()])


def tags(text: str, how: str = "atomic") -> dict[str, str]:
    """The tags of an application."""
    return {TAG: text} | ({"gang.scheduling": how} if how else {})


class GangBench(Bench):
    """A bench with nodes n1, n2 ... of the given amounts of vcore."""

    def __init__(self, *nodes: int, text: str = "", settings: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(
            text or config("a", "b"), settings={"reservation.enabled": "false", **(settings or {})}, **more
        )
        for number, size in enumerate(nodes, 1):
            self.node(f"n{number}", vcore=size)

    def add(self, id: str, text: str, how: str = "atomic", **more: Any) -> list[str]:
        """An application with these task groups."""
        more = {"queue": "root.a", "user": "u", **more}
        return self.send(AddApplication(application_id=id, tags=tags(text, how), **more))

    def member(
        self, app: str, key: str, vcore: int, group: str = "w", *, more: Mapping[str, int] | None = None, **fields: Any
    ) -> list[str]:
        """An ask of a task group, for vcore and perhaps `more`."""
        resource = {"vcore": vcore, **(more or {})}
        return self.send(Allocation(key=key, application_id=app, resource=resource, task_group=group, **fields))

    def gang(self, id: str, *sizes: int, **more: Any) -> None:
        """A gang of one task group with members `id0`, `id1` ... of these sizes."""
        self.add(id, task_groups(w=len(sizes)), **more)
        for number, size in enumerate(sizes):
            self.member(id, f"{id}{number}", size)

    def end(self, app: str, key: str) -> None:
        """Confirm all ends that the scheduler has asked for."""
        self.release(app, key, termination=Termination.TIMEOUT)

    @property
    def hold(self) -> Hold | None:
        return self.partition.atomic.backfill.hold

    def held(self) -> str:
        """The gang that holds nodes, those nodes, and when it may start (seconds from now; `?`: unknown)."""
        hold = self.hold
        if hold is None:
            return ""
        start = hold.plan.start_ns
        seconds = "?" if start is None else f"{max(0, start / 10**9 - self.seconds):g}"
        return f"{hold.app.id} {','.join(sorted(n.id for n in hold.nodes))} {seconds}"

    def gang_reason(self, key: str) -> Gang:
        """The reason of the gang for which a member waits."""
        return next(reason for reason in self.why(key) if isinstance(reason, Gang))
