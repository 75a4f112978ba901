"""The narrow view of the scheduler that REST, metrics, history and health checks use.

A program that runs a scheduler on an asyncio loop, such as `licorne serve`, makes a `Backend` and a `Monitor` of it, and
mounts the application that `licorne.host.web.rest.make_app` returns:

    backend = Backend(api, clock)
    monitor = Monitor(backend, str(uuid4()))  # before the first resource manager registers: it sets the recorder of events
    app = make_app(monitor)               # an ASGI application, for uvicorn in the same loop
    task = asyncio.create_task(monitor.run())

The program reports two things to the monitor: it calls `monitor.on_outputs(rm_id, outputs)` from the `on_output` callback
of `SchedulerAPI`, and `monitor.cycle(seconds, made)` after each call of `schedule`. Everything runs on the loop that owns
the scheduler, so no locks are needed; long work yields to the loop every few milliseconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple

from licorne.config import Report, check
from licorne.core.api import SchedulerAPI
from licorne.core.cluster import Cluster
from licorne.core.inputs.node_changes import full_name
from licorne.core.manager import RegisteredManager
from licorne.core.partition import Partition
from licorne.host.follower import Follower
from licorne.host.threads import COMMON
from licorne.state.recording.recorder import Figures as Recording
from licorne.state.recording.recorder import Recorder

Clock = Callable[[], int]
BuildInfo = Callable[[str], Mapping[str, str]]
Figures = Callable[[], Mapping[str, tuple[int, int]]]
HostFigures = Mapping[str, Mapping[Any, float]]
"""Figures of a host by the name of the metric (`metric_texts.OF_HOST`) and the values of its labels."""


class HostCheck(NamedTuple):
    """A check of the host itself, by the fields of a health check; `readiness`: it is not ready while this fails."""

    name: str
    succeeded: bool
    description: str
    message: str
    readiness: bool = True


async def check_in_thread(text: str, _to_apply: bool) -> Report:
    """Check a configuration in a thread. The default of `check`; a running check cannot be interrupted."""
    return await COMMON.run(partial(check, text, file="<body>"))


async def no_preparation(_text: str) -> None:
    """Do nothing: the default of `prepare`. The configuration is then read when it is applied."""


@dataclass(eq=False, repr=False)
class Backend:
    """The scheduler as REST, metrics, history and health checks see it.

    Parameters:
        api: the scheduler.
        clock: returns the time in nanoseconds since 1970; never goes back.
        build_info: returns, by the id of a resource manager, what it said of its build at registration (`buildInfo`).
        messages: returns the numbers of messages (in, out) by resource manager since its registration, for metrics.
        figures: returns what the host counts itself, for metrics.
        checks: returns the checks of the host itself, for its health and readiness.
        prepare: reads a long configuration outside the loop, before it is applied.
        check: finds all faults of a configuration and everything that is surely not meant; its second argument says
            whether the configuration is to be applied.
        admit: called with the id of the resource manager before a configuration is changed through this object; raises a
            ValueError that says why, for one that this host cannot use.
        changed: called after a configuration was changed through this object, so that the engine looks for work.
        follower: a process that follows the scheduler and answers questions; None: they are answered from checkpoints.
    """

    api: SchedulerAPI
    clock: Clock
    _: KW_ONLY
    build_info: BuildInfo = lambda _: {}
    messages: Figures = dict
    figures: Callable[[], HostFigures] = dict
    checks: Callable[[], list[HostCheck]] = list
    admit: Callable[[str, str], None] = lambda _, __: None
    changed: Callable[[], None] = lambda: None
    prepare: Callable[[str], Awaitable[None]] = no_preparation
    check: Callable[[str, bool], Awaitable[Report]] = check_in_thread
    follower: Follower | None = None

    def __post_init__(self) -> None:
        self.started_ns = self.clock()

    @property
    def cluster(self) -> Cluster:
        """The scheduler's state, to be read only between two steps of the scheduler."""
        return self.api.cluster

    def recorder(self) -> Recorder | None:
        """Return what records the scheduler's inputs; None if they are not recorded."""
        log = self.api.input_log
        logs: tuple[object, ...] = getattr(log, "logs", (log,))  # of `Both`
        return next((each for each in logs if isinstance(each, Recorder)), None)

    def recording(self) -> Recording | None:
        """Return how the recording of the scheduler's inputs is going; None if they are not recorded."""
        recorder = self.recorder()
        return None if recorder is None else recorder.figures()

    def managers(self) -> list[RegisteredManager]:
        """Return the registered resource managers, sorted by id."""
        known = self.cluster.managers
        return [known[rm_id] for rm_id in sorted(known)]

    def partitions(self) -> Iterator[Partition]:
        """Yield all partitions in the order of (resource manager, name), each with the max of its root queue up to date."""
        for partition in self.cluster.partitions():
            partition.settle_size()
            yield partition

    def shown_name(self, partition: Partition) -> str:
        """Return the name under which a partition is listed: the short name if it is unique, else `[rm]name`."""
        twins = sum(other.name == partition.name for other in self.partitions())
        return partition.name if twins == 1 else full_name(partition)

    def find_partition(self, name: str) -> Partition | list[str]:
        """Return the partition of a name, short or `[rm]name`; else the full names that match, empty if there are none."""
        found = [p for p in self.partitions() if name in (p.name, full_name(p))]
        exact = [p for p in found if full_name(p) == name]
        found = exact or found
        return found[0] if len(found) == 1 else [full_name(p) for p in found]

    def change_configuration(self, rm_id: str, text: str) -> None:
        """Apply another queue configuration if all of it is valid; otherwise change nothing.

        Raises:
            ValueError: the configuration is refused; the text says where and why.
        """
        self.admit(rm_id, text)
        self.api.change_configuration(rm_id, text, now_ns=self.clock())
        self.changed()

    def diagnostics(self) -> dict[str, Any]:
        """Return what the resource manager reports about itself; where several do, by their ids."""
        found = self.api.diagnostics()
        return next(iter(found.values())) if len(found) == 1 else found
