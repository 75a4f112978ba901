"""Warnings from a comparison of a configuration with a cluster: with its nodes, its pods and its applications.

They hold for the cluster as it is now. Where nodes come and go, a max above all of them may be meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from licorne.config.limits import WILDCARD
from licorne.config.model import Configuration, PartitionConfig
from licorne.config.placement import FIXED, fixed_path
from licorne.config.problems import Notes
from licorne.config.quantity import spoken
from licorne.config.raw import RawConfig, RawLimit, RawPartition, RawQueue, RawResources, RawRule, ResourceMap
from licorne.config.resources import Amounts, Quantities, stored, tighter
from licorne.config.structure import ROOT, ancestors, is_parent, partition_name

_RECOVERY: Final = "root.@recovery@"


class Pod(msgspec.Struct, frozen=True):
    """A pod that runs or waits, with its queue, its user, and its resources in base units."""

    name: str
    queue: str
    user: str
    resources: dict[str, int]


class RunningPartition(msgspec.Struct, frozen=True):
    """A partition of a cluster, as far as a configuration is compared with it.

    `capacity` is the sum over all nodes, in base units; `applications` counts those that run or wait, by queue. `placed`
    returns how many applications each placement rule of a configuration would place, by its position from 1; None: it is
    not known for which queues they asked. `above_max` says by queue what it uses above its max under a configuration.
    """

    capacity: dict[str, int]
    pods: tuple[Pod, ...]
    applications: dict[str, int]
    placed: Callable[[PartitionConfig], Mapping[int, int]] | None = None
    above_max: Callable[[str], Mapping[str, str]] | None = None


def lint_cluster(
    config: RawConfig,
    roots: Mapping[int, RawQueue],
    running: Mapping[str, RunningPartition],
    quantities: Quantities,
    notes: Notes,
    built: Configuration,
) -> None:
    """Note the warnings for a configuration without faults. `running`: the partitions of the cluster by name."""
    by_name = {partition.name: partition for partition in built.partitions}
    for index, partition in enumerate(config.partitions or ()):
        name = partition_name(partition.name)
        found = running.get(name)
        if found is not None and index in roots:
            comparison = _Comparison(partition, roots[index], found, quantities, notes)
            comparison.lint()
            if found.above_max is not None:
                comparison.lint_usage(found.above_max(built.text))
            if found.placed is not None and name in by_name:
                _lint_idle_rules(partition.placementrules or [], found.placed(by_name[name]), notes)


def _lint_idle_rules(rules: Sequence[RawRule], placed: Mapping[int, int], notes: Notes) -> None:
    """Warn of the rules that place no application. `placed`: how many each does, by its position from 1."""
    total = sum(placed.values())
    for number, rule in enumerate(rules, start=1):
        if total and not placed.get(number):
            message = (
                f"no application of the input is placed by this rule, of {total:,} that are placed; look whether it is "
                "needed, or leave it out"
            )
            notes.warn("rule-idle", rule.spot("name"), message)


class _Comparison:
    """Compares one partition of a configuration with the partition of that name in a cluster."""

    def __init__(
        self,
        partition: RawPartition,
        root: RawQueue,
        running: RunningPartition,
        quantities: Quantities,
        notes: Notes,
    ) -> None:
        self.rules = partition.placementrules or []
        self.root = root
        self.capacity = running.capacity
        self.applications = running.applications
        self.quantities = quantities
        self.notes = notes
        self.queues = dict(_walk(root, ROOT))
        self.largest: dict[tuple[str, str], dict[str, tuple[int, str]]] = {}
        """By queue and resource type, and then by user, the largest amount of a pod in or below the queue, and its name."""
        for pod in running.pods:
            for name, amount in pod.resources.items():
                self._note_largest(pod.queue, name, pod.user, (amount, pod.name))
        for (path, name), by_user in list(self.largest.items()):
            for above in ancestors(path):
                for user, found in by_user.items():
                    self._note_largest(above, name, user, found)

    def _note_largest(self, path: str, name: str, user: str, found: tuple[int, str]) -> None:
        by_user = self.largest.setdefault((path, name), {})
        by_user[user] = max(by_user.get(user, found), found)

    def lint(self) -> None:
        self._lint_guarantees()
        self._lint_queue(self.root, ROOT, self.capacity)
        self._lint_missing()
        unreached = self._lint_unreached()
        self._lint_idle(self.root, ROOT, unreached)

    def lint_usage(self, above_max: Mapping[str, str]) -> None:
        """Warn of queues that use more than their max, of one that is not configured at the nearest one above it."""
        for path, text in above_max.items():
            at = next(each for each in (path, *ancestors(path)) if each in self.queues)
            self.notes.warn("usage-above-max", self.queues[at].spot("name"), f"{path} {text}")

    # -- guarantees ----------------------------------------------------------------------------------------------

    def _lint_guarantees(self) -> None:
        alone: set[str] = set()
        for queue in self.queues.values():
            for name, amount in self.quantities.guaranteed(queue).items():
                if amount > self.capacity.get(name, 0):
                    alone.add(name)
                    message = (
                        f"{spoken(name, amount)} {name} are guaranteed, and all nodes together have {self._has(name)}, "
                        "so the guarantee cannot be met; promise no more than there is, or add nodes"
                    )
                    self._warn_amount("cluster-guarantees", queue.resources, "guaranteed", name, message)
        for name, amount in self._promised(self.root).items():
            over = amount - self.capacity.get(name, 0)
            if over > 0 and name not in alone:
                message = (
                    f"{spoken(name, amount)} {name} are guaranteed in all, and all nodes together have "
                    f"{self._has(name)}, so not all guarantees can be met at once; promise {spoken(name, over)} less, or "
                    "add nodes"
                )
                self.notes.warn("cluster-guarantees", self.root.spot("queues"), message)

    def _promised(self, queue: RawQueue) -> Counter[str]:
        """Return what a queue and those below it are guaranteed: of each type its own amount or their sum, the larger."""
        below: Counter[str] = Counter()
        for child in queue.queues or ():
            below += self._promised(child)
        return below | Counter(self.quantities.guaranteed(queue))

    def _has(self, name: str) -> str:
        return spoken(name, self.capacity[name]) if name in self.capacity else "none"

    # -- maximums and limits ---------------------------------------------------------------------------------------

    def _lint_queue(self, queue: RawQueue, path: str, bound: Amounts) -> None:
        """Look at a queue and those below. `bound`: what the queues above and the nodes leave it at most."""
        most = stored(self.quantities.maximum(queue)) or {}
        if most and all(amount >= self.capacity.get(name, amount + 1) for name, amount in most.items()):
            assert queue.resources is not None
            message = f"all nodes together have no more ({self._listed(most)}), so this binds nothing; lower it, or leave it out"
            self.notes.warn("cluster-unbound", queue.resources.spot("max"), message)
        for name, amount in most.items():
            largest, pod = max(self.largest.get((path, name), {}).values(), default=(0, ""))
            if largest > amount:
                message = (
                    f"{pod} takes {spoken(name, largest)} {name}, more than the max of {spoken(name, amount)}, so it "
                    "cannot be placed here; raise the max, or make the pod smaller"
                )
                self._warn_amount("pod-above-max", queue.resources, "max", name, message)
        bound = tighter(bound, most)
        named = {user.text for limit in queue.limits or () for user in limit.users or ()}
        for limit in queue.limits or ():
            self._lint_limit(limit, path, named, bound)
        for child in queue.queues or ():
            self._lint_queue(child, f"{path}.{child.name.lower()}", bound)

    def _lint_limit(self, limit: RawLimit, path: str, named: set[str], bound: Amounts) -> None:
        most = self.quantities.of(limit.maxresources)
        if most and all(amount >= bound.get(name, amount + 1) for name, amount in most.items()):
            message = "the max of the queues or all nodes together give no more, so this binds nobody; lower it, or leave it out"
            self.notes.warn("cluster-unbound", limit.spot("maxresources"), message)
        users = {user.text for user in limit.users or ()}
        for name, amount in most.items():
            by_user = self.largest.get((path, name), {})
            bound_users = (user for user in by_user if user in users or (WILDCARD in users and user not in named))
            user = max(bound_users, key=by_user.__getitem__, default=None)
            if user is not None and by_user[user][0] > amount:
                largest, pod = by_user[user]
                message = (
                    f"{pod} of user {user} takes {spoken(name, largest)} {name}, more than the limit of "
                    f"{spoken(name, amount)}, so it cannot be placed here; raise the limit, or make the pod smaller"
                )
                assert limit.maxresources is not None
                self.notes.warn("pod-above-limit", limit.maxresources[name].spot, message)

    def _listed(self, names: Iterable[str]) -> str:
        return ", ".join(f"{spoken(name, self.capacity[name])} {name}" for name in names)

    def _warn_amount(self, rule: str, resources: RawResources | None, key: str, name: str, message: str) -> None:
        amounts: ResourceMap = getattr(resources, key)
        self.notes.warn(rule, amounts[name].spot, message)

    # -- queues ----------------------------------------------------------------------------------------------------

    def _lint_missing(self) -> None:
        creates = any(rule.create for rule in self.rules)
        for path, count in sorted(self.applications.items()):
            if path in self.queues or path == _RECOVERY:
                continue
            nearest = next(above for above in ancestors(path) if above in self.queues)
            if creates and is_parent(self.queues[nearest]):
                continue
            message = (
                f"{count} application{'s' * (count > 1)} of the cluster {'are' if count > 1 else 'is'} in {path}, which "
                "is not configured and no rule creates, so no other comes there; add the queue, or a rule with create"
            )
            self.notes.warn("queue-missing", self.queues[nearest].spot("queues"), message)

    def _lint_unreached(self) -> set[str]:
        """Warn of leaves to which no rule leads, and return their paths."""
        found: set[str] = set()
        if not self.rules or not all(_is_fixed(rule) for rule in self.rules):
            return found
        reached = {fixed_path(rule) for rule in self.rules}
        for path, queue in self.queues.items():
            if not is_parent(queue) and path not in reached and path not in self.applications:
                message = "no placement rule leads to this queue, and nothing is in it; add a rule, or leave it out"
                self.notes.warn("queue-unreached", queue.spot("name"), message)
                found.add(path)
        return found

    def _lint_idle(self, queue: RawQueue, path: str, unreached: set[str]) -> None:
        """Warn of the topmost queues without an application in or below them, and to which no fixed rule leads."""
        led_to = {fixed_path(rule) for rule in self.rules if _is_fixed(rule)}  # by it those come that name no queue
        used = {above for each in (*self.applications, *led_to) for above in (each, *ancestors(each))}
        total = sum(self.applications.values())
        for child in queue.queues or ():
            below = f"{path}.{child.name.lower()}"
            if below in used:
                self._lint_idle(child, below, unreached)
            elif total and not any(each == below or each.startswith(f"{below}.") for each in unreached):
                message = (
                    f"no application of the input is in this queue or below it, of {total} in all that are in a queue or name one; "
                    "look whether a placement rule leads here, or leave it out"
                )
                self.notes.warn("queue-idle", child.spot("name"), message)


def _walk(queue: RawQueue, path: str) -> Iterator[tuple[str, RawQueue]]:
    yield path, queue
    for child in queue.queues or ():
        yield from _walk(child, f"{path}.{child.name.lower()}")


def _is_fixed(rule: RawRule) -> bool:
    return rule.name.lower() == FIXED and (rule.parent is None or _is_fixed(rule.parent))
