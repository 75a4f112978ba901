"""Measures the codec of `licorne.si` beside the package `protobuf`: why `licorne.si.wire` is written by hand.

Both read the same bytes, requests of case b, and make the same objects of them, which is checked: of asks the inputs of the
core, of nodes the messages of the dialect. Nodes take the codec's slow path. The checks of messages that a Python program
hands in as objects (`licorne.si._check`) are measured too. Each figure is the processor time of a message, in microseconds,
the median of some turns in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import msgspec
from google.protobuf import message_factory

from bench.run import BenchError
from bench.service.work import Work
from bench.workloads.generate import Size
from licorne.grpc.service.proto import V19
from licorne.si import messages, v19
from licorne.si._check import plain
from licorne.si.adapt_v19 import ALLOCATIONS
from licorne.si.constants import DEFAULT_PARTITION
from licorne.si.wire import decode

Reading = Callable[[], Sequence[Any]]


class AskFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Microseconds of processor time an ask. `parsed_us` is protobuf's parser alone, in C, whose objects are not used."""

    tags: int
    bytes: float
    parsed_us: float
    protobuf_us: float
    licorne_us: float


class CodecFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Microseconds of processor time a message; asks without tags, and with two of their own, as pods on Kubernetes have."""

    asks: list[AskFigures]
    node_protobuf_us: float
    node_licorne_us: float
    node_checked_us: float
    application_checked_us: float


def measure_codec(count: int, turns: int, tell: Callable[[str], None]) -> CodecFigures:
    """Read requests of `count` asks and of `count` nodes in turn with protobuf and with licorne.

    Raises:
        BenchError: the two do not make the same objects, or so many asks do not go into one request.
    """
    works = {tags: Work(Size(count, count, 10, 10), "rm", tagged=tags > 0) for tags in (0, 2)}
    work = works[0]
    if len(work.asks) != 1:
        raise BenchError(f"a request has at most {len(work.requests[0].allocations)} asks, not {count}")
    readings: dict[tuple[str, str], Reading] = {}
    for tags, one in works.items():
        readings |= {(f"ask {tags}", how): read for how, read in _asks(one.asks[0]).items()}
    readings |= {("node", how): read for how, read in _nodes(work.nodes).items()}
    nodes, applications = work.node_request.nodes, work.application_request.new
    readings["node", "checked"] = lambda: [plain(one, v19.NodeInfo) for one in nodes]
    readings["application", "checked"] = lambda: [plain(one, v19.AddApplicationRequest) for one in applications]
    for what in ("ask 0", "ask 2", "node"):
        if readings[what, "protobuf"]() != readings[what, "licorne"]():
            raise BenchError(f"{what}: protobuf and licorne read something different")

    times: dict[tuple[str, str], list[float]] = {key: [] for key in readings}
    for turn in range(turns):
        tell(f"turn {turn + 1} of {turns}")
        for key, read in readings.items():
            times[key].append(_us(read))
    us = {key: round(median(found), 3) for key, found in times.items()}
    return CodecFigures(
        asks=[
            AskFigures(
                tags=tags,
                bytes=round(len(one.asks[0]) / count, 1),
                parsed_us=us[f"ask {tags}", "parsed"],
                protobuf_us=us[f"ask {tags}", "protobuf"],
                licorne_us=us[f"ask {tags}", "licorne"],
            )
            for tags, one in works.items()
        ],
        node_protobuf_us=us["node", "protobuf"],
        node_licorne_us=us["node", "licorne"],
        node_checked_us=us["node", "checked"],
        application_checked_us=us["application", "checked"],
    )


def _asks(data: bytes) -> dict[str, Reading]:
    official: Any = message_factory.GetMessageClass(V19.message_types_by_name["AllocationRequest"])
    return {
        "parsed": lambda: official.FromString(data).allocations,
        "protobuf": lambda: [_ask(one) for one in official.FromString(data).allocations],
        "licorne": lambda: ALLOCATIONS.at_once(data)[1].inputs,
    }


def _nodes(data: bytes) -> dict[str, Reading]:
    official: Any = message_factory.GetMessageClass(V19.message_types_by_name["NodeRequest"])
    return {
        "protobuf": lambda: [_node(one) for one in official.FromString(data).nodes],
        "licorne": lambda: decode(v19.NodeRequest, data).nodes,
    }


def _us(read: Reading) -> float:
    """Return the microseconds of processor time a message, the mean of as many readings as take a twentieth of a second."""
    count, began = 0, time.process_time()
    while (passed := time.process_time() - began) < 0.05:
        count += len(read())
    return passed / count * 1e6


def _amounts(resource: Any) -> dict[str, int]:
    return {name: quantity.value for name, quantity in resource.resources.items()}


def _ask(ask: Any) -> messages.Allocation:
    """Make an input of the core of protobuf's object."""
    policy = ask.preemptionPolicy
    return messages.Allocation(
        key=ask.allocationKey,
        application_id=ask.applicationID,
        partition=ask.partitionName or DEFAULT_PARTITION,
        resource=_amounts(ask.resourcePerAlloc),
        priority=ask.priority,
        tags=dict(ask.allocationTags) or None,
        node_id=ask.nodeID,
        task_group=ask.taskGroupName,
        placeholder=ask.placeholder,
        originator=ask.originator,
        allow_preempt_self=policy.allowPreemptSelf,
        allow_preempt_other=policy.allowPreemptOther,
    )


def _node(node: Any) -> v19.NodeInfo:
    """Make a message of the dialect of protobuf's object."""
    return v19.NodeInfo(
        node_id=node.nodeID,
        action=v19.ActionFromRM(node.action),
        attributes=dict(node.attributes),
        schedulable_resource=_amounts(node.schedulableResource),
    )
