"""A bench with methods for gangs: applications that announce placeholders, placeholders, real asks, confirmations."""

from __future__ import annotations

from typing import Any

from core.bench import Bench, config
from licorne.core.gangs.placeholders import TaskGroup
from licorne.si.messages import AddApplication, Allocation, Termination

REPLACED = Termination.PLACEHOLDER_REPLACED
TIMEOUT = Termination.TIMEOUT


class Gangs(Bench):
    """See the module's text; `x` is in `root.a`, and nodes have the vcores that are given."""

    def __init__(self, *nodes: int, text: str = "", **more: Any) -> None:
        super().__init__(text or config("a"), **more)
        for number, vcore in enumerate(nodes, 1):
            self.node(f"n{number}", vcore=vcore)

    def gang(
        self,
        id: str = "x",
        *,
        total: int = 0,
        style: str = "",
        timeout_ms: int = 0,
        queue: str = "root.a",
        tags: dict[str, str] | None = None,
        amounts: dict[str, int] | None = None,
    ) -> list[str]:
        """An application that announces placeholders of `total` vcores, or of these amounts."""
        wanted = amounts or ({"vcore": total} if total else {})
        return self.send(
            AddApplication(
                application_id=id,
                queue=queue,
                user="u",
                tags=tags or {},
                execution_timeout_ms=timeout_ms,
                timeout_is_running_time=self.first_interface,
                placeholder_ask=wanted,
                gang_style=style,
            )
        )

    def member(
        self,
        key: str,
        vcore: int = 1,
        *,
        app: str = "x",
        group: str = "g",
        placeholder: bool = False,
        node: str = "",
        times: int = 1,
        priority: int = 0,
        tags: dict[str, str] | None = None,
        **amounts: int,
    ) -> list[str]:
        """An ask of a task group, or with a node an allocation that exists already."""
        return self.send(
            Allocation(
                key=key,
                application_id=app,
                resource=amounts or {"vcore": vcore},
                task_group=group,
                placeholder=placeholder,
                node_id=node,
                max_allocations=times,
                priority=priority,
                tags=tags,
            )
        )

    def places(self, keys: str, vcore: int = 1, **more: Any) -> None:
        """Placeholder asks."""
        for key in keys.split():
            self.member(key, vcore, placeholder=True, **more)

    def members(self, keys: str, vcore: int = 1, **more: Any) -> None:
        """Real asks."""
        for key in keys.split():
            self.member(key, vcore, **more)

    def id_of(self, key: str) -> str:
        """Of an allocation, the newest of its key; the key itself if there is none."""
        for app in self.partition.applications.values():
            for alloc in reversed(app.allocations.values()):
                if alloc.key == key:
                    return str(alloc.id)
        return key

    def confirm(self, key: str, termination: Termination = REPLACED, app: str = "x") -> list[str]:
        """Confirm, as the resource manager, that a placeholder has ended."""
        return self.release(app, self.id_of(key), termination=termination)

    def group(self, name: str = "g", app: str = "x") -> TaskGroup:
        gang = self.application(app).gang
        assert gang is not None
        return gang.groups[name]

    def counts(self, name: str = "g", app: str = "x") -> str:
        """created = live + replaced + released + timed out."""
        g = self.group(name, app)
        return f"{g.created}={g.live()}+{g.replaced}+{g.released}+{g.timed_out}"
