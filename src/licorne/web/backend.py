"""What the watching side of the service (REST, metrics, history, health) needs of the scheduler: one small object.

Whoever runs a scheduler on an asyncio loop, `licorne serve` for one, makes a `Backend`, a `Monitor` of it, and mounts
the application that `licorne.web.rest.make_app` gives:

    backend = Backend(api, clock)
    monitor = Monitor(backend)            # before the first resource manager registers: it sets the recorder of events
    app = make_app(monitor)               # an ASGI application, for uvicorn in the same loop
    task = asyncio.create_task(monitor.run())

and tells the monitor two things: `monitor.told(rm_id, outputs)` in `SchedulerAPI(on_output=...)`, and
`monitor.cycle(seconds, made)` after each call of `schedule`. All runs on the loop that owns the scheduler: nothing here
takes a lock, and what takes long gives the loop back every few milliseconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from licorne.config import Report, check
from licorne.core.api import SchedulerAPI
from licorne.core.cluster import Cluster
from licorne.core.inputs.node_changes import full_name
from licorne.core.manager import RegisteredManager
from licorne.core.partition import Partition
from licorne.daemon.lookups import COMMON

Clock = Callable[[], int]
BuildInfo = Callable[[str], Mapping[str, str]]
Figures = Callable[[], Mapping[str, tuple[int, int]]]


def no_build_info(_rm_id: str) -> Mapping[str, str]:
    """Nothing is known of the build of a resource manager."""
    return {}


def no_figures() -> Mapping[str, tuple[int, int]]:
    """No messages are counted."""
    return {}


async def check_in_thread(text: str, _to_apply: bool) -> Report:
    """A configuration is checked in a thread, which cannot be ended."""
    return await COMMON.run(partial(check, text, file="<body>"))


async def no_preparation(_text: str) -> None:
    """A configuration is read when it is applied."""


class Backend:
    """The scheduler as its watchers see it.

    Parameters:
        api: the scheduler.
        clock: the time in nanoseconds since 1970; never goes back.
        build_info: what a resource manager said of its build at registration (`buildInfo`), by its id.
        messages: messages (in, out) by resource manager since its registration, for metrics.
        prepare: reads a long configuration elsewhere, before it is applied.
        check: finds all that is wrong with a configuration, or surely not meant; told whether it is to be applied.
        changed: called after a configuration was changed from here, so that the engine looks for work.
    """

    def __init__(
        self,
        api: SchedulerAPI,
        clock: Clock,
        *,
        build_info: BuildInfo = no_build_info,
        messages: Figures = no_figures,
        changed: Callable[[], None] = lambda: None,
        prepare: Callable[[str], Awaitable[None]] = no_preparation,
        check: Callable[[str, bool], Awaitable[Report]] = check_in_thread,
    ) -> None:
        self.api = api
        self.clock = clock
        self.build_info = build_info
        self.messages = messages
        self.prepare = prepare
        self.check = check
        self.started_ns = clock()
        self._changed = changed

    @property
    def cluster(self) -> Cluster:
        """The state, to be read between two steps of the scheduler."""
        return self.api.cluster

    def managers(self) -> list[RegisteredManager]:
        """The registered resource managers by id."""
        known = self.cluster.managers
        return [known[rm_id] for rm_id in sorted(known)]

    def partitions(self) -> Iterator[Partition]:
        """All partitions, in the order of (resource manager, name), each with root's max as it is now."""
        for partition in self.cluster.partitions():
            partition.settle_size()
            yield partition

    def shown_name(self, partition: Partition) -> str:
        """The name under which a partition is listed: the short one where it is unique, else `[rm]name`."""
        twins = sum(other.name == partition.name for other in self.partitions())
        return partition.name if twins == 1 else full_name(partition)

    def find_partition(self, name: str) -> Partition | list[str]:
        """The partition of this name, short or `[rm]name`; else the full names that it may mean, empty for none."""
        found = [p for p in self.partitions() if name in (p.name, full_name(p))]
        exact = [p for p in found if full_name(p) == name]
        found = exact or found
        return found[0] if len(found) == 1 else [full_name(p) for p in found]

    def change_configuration(self, rm_id: str, text: str) -> None:
        """Apply another queue configuration, checked whole, or change nothing.

        Raises:
            ConfigurationError: it is refused; the text says where and why.
        """
        self.api.change_configuration(rm_id, text, now_ns=self.clock())
        self._changed()

    def diagnostics(self) -> dict[str, Any]:
        """What resource managers say about themselves, by id."""
        return self.api.diagnostics()


__all__ = ["Backend", "BuildInfo", "Clock", "full_name"]
