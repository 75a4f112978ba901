"""All partitions of all resource managers, with the same few calls as the product's `Cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from licorne.config import Configuration
from licorne.config.model import PartitionConfig
from licorne.si.messages import AddApplication, Allocation, Input, Output, RejectedAllocation, RejectedApplication
from reference import atomic, claims, intake, life, queues, quotas, scheduler
from reference.model import SECOND_NS, Partition, Predicate, Queue

UNLIMITED = (1 << 63) - 1
Load = Callable[[str], Configuration]


class ReferenceCluster:
    """See the module's text. `load` reads a configuration."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._checksums: dict[str, str] = {}
        self._refused: dict[str, list[Output]] = {}
        self._settings: dict[str, tuple[Mapping[str, str], Predicate | None, bool]] = {}
        self.managers: dict[str, dict[str, Partition]] = {}
        self.now_ns = 0

    def partitions(self) -> list[Partition]:
        """By (resource manager, name): difference 9."""
        return [self.managers[rm][name] for rm in sorted(self.managers) for name in sorted(self.managers[rm])]

    def register(
        self, rm_id: str, text: str, settings: Mapping[str, str], predicate: Predicate | None, *, first_interface: bool
    ) -> None:
        """A resource manager comes, or comes again and forgets all that it had (difference 38)."""
        configuration = self._load(text)
        self._settings[rm_id] = (settings, predicate, first_interface)
        self._checksums[rm_id] = configuration.checksum
        self._refused[rm_id] = []
        self.managers[rm_id] = {config.name: self._new(rm_id, config) for config in configuration.partitions}

    def _new(self, rm_id: str, config: PartitionConfig) -> Partition:
        settings, predicate, first_interface = self._settings[rm_id]
        delay: int | None = int(settings.get("reservation.delay", "2s").removesuffix("s")) * SECOND_NS
        if settings.get("reservation.enabled") == "false":
            delay = None
        default = "true" if first_interface else "false"
        partition = Partition(
            config.name,
            config,
            Queue("root", None, leaf=False, managed=True),
            self.now_ns,
            self.now_ns,
            first_interface,
            settings.get("application.state.starting", default) == "true",
            delay,
            {k.removeprefix("priority.class."): int(v) for k, v in settings.items() if k.startswith("priority.class.")},
            predicate,
            inspected_ns=self.now_ns,
            last_moment_ns=self.now_ns - 1,
        )
        partition.atomic = atomic.Gangs()
        partition.owner = rm_id
        queues.apply(partition, config)
        return partition

    def reload(self, rm_id: str, text: str) -> None:
        """Another configuration; the same one changes nothing. A partition that is gone ends (difference 18)."""
        configuration = self._load(text)
        if configuration.checksum == self._checksums[rm_id]:
            return
        self._checksums[rm_id] = configuration.checksum
        mine = self.managers[rm_id]
        for config in configuration.partitions:
            if config.name in mine:
                known = quotas.known(mine[config.name])
                queues.apply(mine[config.name], config)
                quotas.reloaded(mine[config.name], known)
                claims.review(mine[config.name])
            else:
                mine[config.name] = self._new(rm_id, config)
        for name in sorted(set(mine) - {config.name for config in configuration.partitions}):
            partition = mine.pop(name)
            for app in list(partition.apps.values()):
                if app.state != "Failing":
                    life.fire(partition, app, life.FAIL, "PartitionRemoved")
                life.end(partition, app)
            self._refused[rm_id] += partition.out

    def advance(self, now_ns: int) -> None:
        """The time is now."""
        self.now_ns = now_ns
        for partition in self.partitions():
            life.advance(partition, now_ns)

    def submit(self, rm_id: str, messages: Iterable[Input]) -> None:
        """Messages, in order."""
        for message in messages:
            partition = self.managers[rm_id].get(message.partition)
            if partition is not None:
                intake.take(partition, message)
                quotas.settle(partition)
            elif isinstance(message, AddApplication):
                self._refuse(rm_id, RejectedApplication(message.application_id, ""))
            elif isinstance(message, Allocation):
                self._refuse(rm_id, RejectedAllocation(message.key, message.application_id, ""))

    def _refuse(self, rm_id: str, refusal: Output) -> None:
        """Refuse a message with an unknown partition, after the outputs of the messages before it."""
        for name in sorted(self.managers[rm_id]):
            partition = self.managers[rm_id][name]
            self._refused[rm_id] += partition.out
            partition.out = []
        self._refused[rm_id].append(refusal)

    def schedule(self, limit: int | None = None) -> int:
        """Partition by partition, each until nothing more is possible."""
        left = UNLIMITED if limit is None else limit
        for partition in self.partitions():
            left -= scheduler.schedule(partition, left)
            if not left:
                break
        return (UNLIMITED if limit is None else limit) - left

    def outputs(self) -> list[tuple[str, list[Output]]]:
        """Take the pending outputs, by resource manager."""
        found: list[tuple[str, list[Output]]] = []
        for rm_id in sorted(self.managers):
            said, self._refused[rm_id] = self._refused[rm_id], []
            for name in sorted(self.managers[rm_id]):
                partition = self.managers[rm_id][name]
                said += partition.out
                partition.out = []
            if said:
                found.append((rm_id, said))
        return found
