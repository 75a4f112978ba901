"""The contract of a checkpoint: the classes whose objects are part of the state, and which attributes are saved.

An attribute of such a class is saved, as a value of the kind that its annotation says (`licorne.core.checkpoint.kinds`),
unless the class names it in `TRANSIENT`, with the reason why nothing depends on it. `tests/checkpoint/test_contract.py`
states how many are saved, so a new attribute, or a new class, fails it until somebody has decided whether it is state.

Attributes are saved by their names, which a checkpoint has too. So a checkpoint of a licorne whose classes have other
attributes is refused, and never read wrongly.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from licorne._annotations import annotations_of
from licorne.config.acl import ACL
from licorne.config.model import TemplateConfig
from licorne.config.properties import QueueProperties
from licorne.core.amounts.types import Types
from licorne.core.base.order import Order
from licorne.core.base.rejections import Rejection
from licorne.core.base.settings import Settings
from licorne.core.base.states import ApplicationState, ObjectState
from licorne.core.base.timers import Timers
from licorne.core.base.uuids import Uuids
from licorne.core.cluster import Cluster
from licorne.core.gangs.atomic import AtomicGang, AtomicGangs
from licorne.core.gangs.backfill import Backfill, Hold
from licorne.core.gangs.placeholders import Gangs, PlaceholderGang, TaskGroup
from licorne.core.gangs.plans import StartPlan
from licorne.core.gangs.replacement import Replacement
from licorne.core.gangs.task_groups import TaskGroupSpec
from licorne.core.inputs.intake import Intake
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.inputs.numbering import Numbering
from licorne.core.inputs.releases import Releases
from licorne.core.manager import RegisteredManager
from licorne.core.nodes.constraints import HostPort, NodeConstraints, NodeLabels
from licorne.core.nodes.devices import Held, NodeDevices
from licorne.core.nodes.domains import PodClass
from licorne.core.nodes.foreign import Foreign
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.needs import LabelSet, Needs
from licorne.core.nodes.node import Need, Node
from licorne.core.nodes.terms import PodLabels, PodTerms
from licorne.core.partition import Partition
from licorne.core.preemption.claims import Claim, Claims
from licorne.core.preemption.disruption_budgets import DisruptionBudget, DisruptionBudgets
from licorne.core.preemption.eviction_plans import EvictionPlans
from licorne.core.preemption.evictions import Eviction
from licorne.core.preemption.guarantee_preemption import GuaranteePreemption
from licorne.core.preemption.quota_start import QuotaChanges
from licorne.core.preemption.retries import FailedSearch, LeafRetries, LeafRetry
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.cleaner import Cleaner
from licorne.core.queues.freed_nodes import FreedNodes
from licorne.core.queues.limits import Limits, LimitsOfQueue, Maxima
from licorne.core.queues.priorities import PriorityBag
from licorne.core.queues.queue import Queue
from licorne.core.queues.requests import AskBlock, Requests
from licorne.core.queues.tree import Tree
from licorne.core.queues.usage import Tracker
from licorne.core.queues.usage_history import PastUsage
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.reservations import Reservations
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps

OBJECTS: Final[tuple[type, ...]] = (
    Cluster,
    RegisteredManager,
    Partition,
    Types,
    Timers,
    Limits,
    LimitsOfQueue,
    Maxima,
    Tracker,
    Tree,
    Queue,
    Order,
    PriorityBag,
    NodeIndex,
    Needs,
    Need,
    PodClass,
    LabelSet,
    Node,
    NodeDevices,
    Foreign,
    Accounting,
    Parking,
    FreedNodes,
    WakeUps,
    Numbering,
    Intake,
    Releases,
    Lifecycle,
    Descent,
    Uuids,
    Reservations,
    Gangs,
    PlaceholderGang,
    TaskGroup,
    Replacement,
    AtomicGangs,
    AtomicGang,
    Backfill,
    Hold,
    GuaranteePreemption,
    EvictionPlans,
    LeafRetries,
    LeafRetry,
    Claims,
    Claim,
    DisruptionBudgets,
    DisruptionBudget,
    QuotaChanges,
    Cleaner,
    Application,
    PastUsage,
    Requests,
    AskBlock,
    Shape,
    Ask,
)
"""In which order objects are looked at while a checkpoint is taken, those of which there are many last."""

VALUES: Final[tuple[type, ...]] = (
    ACL,
    Eviction,
    FailedSearch,
    Held,
    HostPort,
    NodeConstraints,
    NodeLabels,
    PodLabels,
    PodTerms,
    QueueProperties,
    Rejection,
    Settings,
    TaskGroupSpec,
    TemplateConfig,
)
"""Classes that hold nothing but numbers, texts and collections of such: they are kept as a whole."""

ENUMERATIONS: Final[tuple[type[ApplicationState | ObjectState], ...]] = (ApplicationState, ObjectState)
PLANS: Final = (StartPlan, "tuple[list[tuple[Ask, Node]], tuple[int, int, str]]")
"""A named tuple that refers to objects, and its items."""
SUBJECTS: Final = "Application | Ask | QuotaChanges | LeafRetry | Partition | Hold"
"""What a deadline may be about (`licorne.core.base.timers`)."""

MAPS: Final = frozenset(
    {
        "Application.placeholder_resource",
        "Application.tags",
        "Ask.tags",
        "Foreign.tags",
        "Foreign.unread",
        "Node.attributes",
        "Queue.guaranteed_config",
        "Queue.max_config",
        "Queue.properties",
        "Shape.resource",
        "TaskGroup.resource",
    }
)
"""Dicts that nobody changes, so that equal ones may be one."""
ALIASES: Final = {
    "cython.bint": "bool",
    "cython.double": "float",
    "cython.int": "int",
    "cython.longlong": "int",
    "cython.Py_ssize_t": "int",
    "cython.ulonglong": "int",
    "Amounts": "dict[str, int]",
    "Level": "Queue | Tracker",
    "Ranked": "Application | Queue",
    "Usage": "dict[str, dict[str, int]]",
}
"""What names in annotations stand for."""
_alias: Final = re.compile(rf"\b(?:{'|'.join(map(re.escape, ALIASES))})\b")


@cache
def fields_of(cls: type) -> dict[str, str]:
    """Return the saved attributes of a class of the contract, with the names of their kinds."""
    return {name: kind for name, kind in _attributes(cls).items() if name not in _transient(cls)}


def transient_of(cls: type) -> dict[str, str]:
    """Return the attributes of a class of the contract that are not saved, with the names of their kinds."""
    return {name: kind for name, kind in _attributes(cls).items() if name in _transient(cls)}


def _transient(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in base.__dict__.get("TRANSIENT", ())}


def _attributes(cls: type) -> dict[str, str]:
    found = {name: _alias.sub(lambda m: ALIASES[m[0]], kind) for name, kind in annotations_of(cls).items()}
    found.pop("__weakref__", None)
    return {
        name: kind.replace("dict[str, ", "Map[") if f"{cls.__name__}.{name}" in MAPS else kind
        for name, kind in found.items()
    }
