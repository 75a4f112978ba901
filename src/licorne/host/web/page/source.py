"""What the page shows: the JSON objects of REST, whether of a running scheduler or of a state dump.

A view asks a source for these objects and knows nothing else of where they come from. `LiveSource` (`licorne.host.web.page.live`)
is the scheduler of this process; a dump, `DumpSource`, consists of the same objects already. Both have the same methods. Each
call returns objects of one moment, which nobody changes any more; lists may be shared by all who ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from licorne.answers.process import Question, UnansweredError, ask
from licorne.answers.timeline import Timeline
from licorne.config import Report, check
from licorne.host.threads import COMMON
from licorne.host.web.rest.answers import encode
from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects
from licorne.state.configuration import as_yaml

if TYPE_CHECKING:
    from licorne.host.web.health import Health

ROWS: Final = 200
"""Rows of a table on one page, at most."""


class ApplicationSummary(NamedTuple):
    """An application without its asks and allocations, and how many of them it has."""

    app: objects.Application
    running: int
    waiting: int


class NodeSummary(NamedTuple):
    """A node without its allocations, and how many of them it has."""

    node: objects.Node
    running: int


Applications = Sequence[ApplicationSummary]
Nodes = Sequence[NodeSummary]
Configuration = tuple[dict[str, Any], Report | None, str]
"""The queue configuration in force, as JSON has it, what is odd about it, and its text."""


class People(NamedTuple):
    """What users and groups use. `limited`: their limits are known too, and groups."""

    users: list[objects.UserUsage]
    groups: list[objects.GroupUsage]
    limited: bool


class Figures(NamedTuple):
    """What only a process that schedules knows: decisions per second, how its recording goes, whether one follows it, and its health.

    `minutes`: time (ns), running applications and containers, minute by minute, oldest first.
    """

    minutes: Sequence[tuple[int, int, int]] = ()
    rate: float | None = None
    recording: str = ""
    follows: bool | None = None
    health: Health | None = None


class DumpSource:
    """A state dump. `name`: what it is, for people; empty for the scheduler of this process; `changes`: who looks later may see another state.

    `span`: the first and the last moment (ns) that the parameter `t` of an address may name; None: there is only one.
    """

    span: tuple[int, int] | None = None

    def __init__(self, state: objects.FullState, name: str, *, changes: bool = False) -> None:
        self.name = name
        self.changes = changes
        self._state = state

    def version(self) -> object:
        """Return the time of the dump: a later one is another."""
        return self._state.timestamp

    def now_ns(self) -> int:
        """Return the time of the dump."""
        return self._state.timestamp

    async def partitions(self) -> list[objects.Partition]:
        """Return all partitions."""
        return self._state.partitions

    async def partition(self, name: str) -> objects.Partition:
        """Return a partition."""
        return next(home for home in self._state.partitions if home.name == name)

    async def queues(self, partition: str) -> objects.Queue:
        """Return the root queue of a partition, with all below it."""
        found = next((queue for queue in self._state.queues if queue.partition in (partition, "")), None)
        return found or refuse(404, f"The dump has no queues of partition {partition}")

    async def applications(self, partition: str) -> Applications:
        """Return all applications of the dump."""
        return [
            ApplicationSummary(replace(app, requests=[], allocations=[]), len(app.allocations), len(app.requests))
            for app in self._state.applications
            if app.partition == partition
        ]

    async def application(self, partition: str, name: str, asks: int, allocations: int) -> ApplicationSummary | None:
        """Return an application with `ROWS` of its asks and allocations, from these positions on, and how many it has of each."""
        for app in self._state.applications:
            if (app.partition, app.application_id) == (partition, name):
                some, others = app.allocations[allocations : allocations + ROWS], app.requests[asks : asks + ROWS]
                view = replace(app, allocations=some, requests=others)
                return ApplicationSummary(view, len(app.allocations), len(app.requests))
        return None

    async def nodes(self, partition: str) -> Nodes:
        """Return all nodes of a partition."""
        return [
            NodeSummary(replace(node, allocations=[]), len(node.allocations))
            for home in self._state.nodes
            if home.partition_name == partition
            for node in home.nodes_info
        ]

    async def node(self, partition: str, name: str) -> objects.Node | None:
        """Return a node with its allocations."""
        homes = (home for home in self._state.nodes if home.partition_name == partition)
        return next((node for home in homes for node in home.nodes_info if node.node_id == name), None)

    async def people(self, partition: str) -> People:
        """Return what users use by their applications; a dump does not say what is counted for which group."""
        found: dict[str, objects.Usage] = {}
        for app in self._state.applications:
            if app.partition == partition and (app.allocations or app.requests):
                usage = found.setdefault(app.user, objects.Usage(queue_path="root"))
                usage.resource_usage = dict(Counter(usage.resource_usage) + Counter(app.used_resource))
                usage.running_applications.append(app.application_id)
        return People(
            [objects.UserUsage(user_name=user, queues=found[user]) for user in sorted(found)], [], limited=False
        )

    async def rules(self, partition: str) -> list[objects.Rule]:
        """Return the placement rules of a partition."""
        return next((each.rules for each in self._state.placement_rules if each.partition == partition), [])

    async def configuration(self, _partition: str) -> Configuration:
        """Return the queue configuration of the dump, its report, and its text, which is made from it as a dump has none."""
        partitions = self._state.config.get("Partitions")
        text = as_yaml({"Partitions": partitions}) if partitions else ""
        return self._state.config, await COMMON.run(lambda: check(text)) if text else None, text

    async def figures(self, _partition: str) -> Figures:
        """Return the history, if the dump has it."""
        containers = {each.timestamp: each.total_containers for each in self._state.container_history}
        return Figures(
            tuple(
                (each.timestamp, _number(each.total_applications), _number(containers.get(each.timestamp, "")))
                for each in self._state.app_history
            )
        )

    async def timeline(self, _window_s: float) -> Timeline | None:
        """Return None: a dump is one moment."""
        return None

    async def answer(self, question: Question) -> bytes:
        """Return the answer of a scheduler that is restored from the dump."""
        try:
            return await ask(await COMMON.run(lambda: encode(self._state)), question)
        except UnansweredError as error:
            return refuse(404, str(error))
        except TimeoutError:
            return refuse(503, "There was no answer in time")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
