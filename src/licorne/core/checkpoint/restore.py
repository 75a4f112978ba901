"""Restoring a checkpoint: a cluster in the same state as the one of which it was taken.

Nothing that a checkpoint holds is executed: it names tables, attributes and texts, and gets objects of the classes of the
contract for them, or an error. What was not saved is set at the end, from the configuration and from the rest.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from licorne._bounded import UNDECODABLE
from licorne._version import __version__
from licorne.config import ConfigError
from licorne.core.base.states import application_table
from licorne.core.cluster import Cluster
from licorne.core.manager import RegisteredManager
from licorne.core.nodes.domains import begin_awaiting
from licorne.core.nodes.node import Need
from licorne.core.nodes.topology import Topology
from licorne.core.partition import Partition
from licorne.core.placement.placer import Placer
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage_history import UsageHistory
from licorne.si.partitions import short_partition

from .check import check_indices
from .columns import EQUAL_MAX, CheckpointError, of_types
from .tables import Table, all_tables, table_of
from .take import FORMAT, MAGIC, Content, Peer

MEMBERS_FOR_A_BYTE: Final = 64
"""How many members of tables a checkpoint may have for each of its bytes: a column of equal values says how many they are."""

_decoder = msgspec.msgpack.Decoder(Content)
_Whole = TypeVar("_Whole")


class _Source:
    """The members of the tables that were made, and the texts."""

    def __init__(self, texts: list[str]) -> None:
        self.tables: dict[str, list[Any]] = {"str": [None, *texts]}

    def members(self, table: str, numbers: list[int], *, optional: bool) -> list[Any]:
        known = self.tables.get(table, [None])
        if numbers and not (0 if optional else 1) <= min(numbers) <= max(numbers) < len(known):
            raise CheckpointError(f"damaged: a reference to a {table} that is not there")
        return [*map(known.__getitem__, numbers)]


class _Head(msgspec.Struct, array_like=True):
    """What stands first in a checkpoint, whatever follows."""

    magic: Any = None
    format: Any = None
    licorne: Any = ""


class _Registered(msgspec.Struct, array_like=True):
    """The beginning of a `Content`."""

    magic: str
    format: int
    licorne: str
    peers: list[Peer]


def read(data: bytes) -> Content:
    """Decode a checkpoint, without restoring a scheduler from it.

    Raises:
        CheckpointError: the bytes are no checkpoint, or one of a newer format.
    """
    return _read(data, _decoder)


def read_peers(data: bytes) -> list[Peer]:
    """Return the resource managers of a checkpoint, and decode nothing else of it; raises as `read` does."""
    return _read(data, _registered).peers


def _read(data: bytes, decoder: msgspec.msgpack.Decoder[_Whole]) -> _Whole:
    try:
        head = _head.decode(data)
        if head.magic != MAGIC:
            raise CheckpointError("no checkpoint of licorne")
        if type(head.format) is not int or head.format > FORMAT:
            raise CheckpointError(
                f"format {head.format}, of licorne {head.licorne}: this is licorne {__version__}, which knows formats up to "
                f"{FORMAT}; use licorne {head.licorne} or newer"
            )
        return decoder.decode(data)
    except UNDECODABLE as error:
        raise CheckpointError(f"damaged: {error}") from None


_head, _registered = msgspec.msgpack.Decoder(_Head), msgspec.msgpack.Decoder(_Registered)


def restore(data: bytes, *, check: bool = True) -> tuple[list[Peer], Cluster]:
    """Return the resource managers of a checkpoint, and a cluster in its state.

    `check`: the state is compared with every invariant, as a file may hold anything; this takes longer than all the rest.

    Raises:
        CheckpointError: the checkpoint is damaged, or of a licorne whose state consists of something else.
    """
    content = read(data)
    cluster = _restored(content, len(data))
    if check:
        # The check may bring up to date what would else be so later, so the state that it has seen is not the one to return.
        _validate(cluster)
        cluster = _restored(content, len(data))
    return content.peers, cluster


def _validate(cluster: Cluster) -> None:
    try:
        cluster.validate()
    except Exception as error:
        raise CheckpointError(f"its state contradicts itself: {error}") from error


def _restored(content: Content, size: int) -> Cluster:
    try:
        return _restore(content, size)
    except CheckpointError:
        raise
    except ConfigError as error:
        raise CheckpointError(f"its queue configuration is refused by licorne {__version__}: {error}") from None
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError, AssertionError) as error:
        raise CheckpointError(f"damaged: {error!r}") from error


def _restore(content: Content, size: int) -> Cluster:
    unknown = content.tables.keys() - all_tables()
    if unknown:
        raise CheckpointError(f"this licorne has no {', '.join(sorted(unknown))}: use licorne {content.licorne}")
    counts = [count for count, _ in content.tables.values()]
    if min(counts, default=0) < 0 or sum(counts) > min(MEMBERS_FOR_A_BYTE * size, EQUAL_MAX):
        raise CheckpointError("damaged: more members than it can hold")
    texts = content.texts if {*map(type, content.texts)} <= {str} else [*map(_text, content.texts)]
    source = _Source(of_types(texts, (str,)))
    tables: dict[str, Table] = {name: table_of(name) for name in content.tables}
    for name in sorted(tables, key=lambda name: (not tables[name].early, name == "Need")):
        count, columns = content.tables[name]
        source.tables[name] = [None, *tables[name].make(columns, count, source)]
    for name, table in tables.items():
        table.fill(source.tables[name][1:], content.tables[name][1], source)
    clusters = source.tables.get("Cluster", [None])[1:]
    if len(clusters) != 1:
        raise CheckpointError("damaged: it holds no cluster")
    check_indices(source.tables)
    cluster: Cluster = clusters[0]
    _complete(cluster, content.peers, source.tables.get("Application", [None])[1:])
    return cluster


def _text(text: object) -> object:
    return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text


def _complete(cluster: Cluster, peers: list[Peer], applications: list[Any]) -> None:
    cluster.read = Cluster().read
    if [peer.rm_id for peer in peers] != [*cluster.managers]:
        raise CheckpointError("damaged: the resource managers are not those of the state")
    roots: dict[Queue, Partition] = {}
    for peer in peers:
        manager = cluster.managers[peer.rm_id]
        manager.configuration = cluster.read(peer.text)
        manager.ordered = [manager.partitions[name] for name in sorted(manager.partitions)]
        configured = {short_partition(one.name, peer.rm_id): one for one in manager.configuration.partitions}
        for name, partition in manager.partitions.items():
            partition.config = configured[name]
            _complete_partition(cluster, manager, partition)
            roots[partition.tree.root] = partition
    cluster.order_managers()
    for app in applications:
        partition = roots[app.queue.lineage()[-1]]
        app.table = application_table(first_interface=partition.first_interface, starting=partition.starting)


def _complete_partition(cluster: Cluster, manager: RegisteredManager, partition: Partition) -> None:
    partition.paused = manager.is_paused
    partition.placer = Placer.first(partition.config.placement_rules)
    partition.accounting.watchers = [UsageHistory(partition)] if cluster.usage_watched else []
    partition.intake.ahead = [None] * 8
    preemption = partition.guarantee_preemption
    preemption.attempt = preemption.plans.attempt
    partition.needs.find_empty()
    _complete_topology(partition)
    index = partition.index
    known = len(partition.types.names)
    index.policy = partition.score_policy(partition.config)
    if len(partition.types.names) != known:
        raise CheckpointError("damaged: the order of nodes weighs a resource type without a number")
    index.rebuild(index.width)


def _complete_topology(partition: Partition) -> None:
    """Count the pods in domains anew, and check the needs of pending asks by them, as if all had come just now."""
    needs, wakeups = partition.needs, partition.wakeups
    topology = Topology(partition.settings.preferences, needs.get)
    needs.topology = partition.accounting.topology = topology
    topology.eased = wakeups.eased
    eased, waiting = [*wakeups.eased], needs.waiting()
    found: dict[Need, None] = {}
    for app in (*partition.applications.values(), *partition.terminated):
        flying = [] if app.gang is None else app.gang.replacing.values()
        shapes = [ask.shape for ask in (*app.asks.values(), *app.allocations.values(), *flying)]
        shapes += [] if app.last_shape is None else [app.last_shape]
        found |= {shape.need: None for shape in shapes if shape.need.pods is not None}
    for need in found:
        needs.attach(need)
    for node in partition.index.by_id:
        topology.enter(node)
        there = [alloc.shape.need.pods for alloc in node.allocations]
        there += [partition.foreign[key].pods for key in node.foreign]
        for pods in there:
            if pods is not None:
                topology.begin(node.slot, pods)
    needs.set_prefers()
    for need in found:
        if need.waiting:
            topology.open(need)
    needs.set_waiting(waiting)
    wakeups.eased.clear()
    wakeups.eased.update(dict.fromkeys(eased))
    for shape in partition.parking.failed:
        if shape.need.pods is not None:
            shape.need.waiters[shape] = None
    for asks_there in partition.parking.awaiting_node.values():
        for ask in asks_there:
            begin_awaiting(ask.shape.need, ask)
    for app in [*partition.gangs.stuck]:
        partition.gangs.note_stuck(app)
