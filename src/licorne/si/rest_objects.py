"""The JSON objects of the REST interface, as types (docs/spec/rest-api.md, section 3): names, units, what is left out.

A field with a default is left out where it has that value; a field without one is always present. Resources are maps from
type to an integer: memory in bytes, vcore in thousandths, other types as counted. Times are Unix nanoseconds unless said
otherwise. The OpenAPI document is made from these types, and shows their docstrings as descriptions.
"""

from __future__ import annotations

from typing import Any

import msgspec

Resources = dict[str, int]


class View(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    """Base of all objects: names in camel case, fields with default values left out."""


class Failure(View, rename=None, kw_only=True):
    """An error; `status_code` is that of the answer, `message` and `description` are equal."""

    status_code: int
    message: str
    description: str


class Cluster(View, kw_only=True):
    """A partition, as an entry of the list of clusters. `clusterName` is always `kubernetes`."""

    start_time: int = 0
    rm_build_information: list[dict[str, str]] = []
    partition: str
    cluster_name: str


class Capacity(View, kw_only=True):
    """Capacity of a partition and its use; `utilization` is in percent."""

    capacity: Resources = {}
    used_capacity: Resources = {}
    utilization: Resources = {}


class NodeSortingPolicy(View, kw_only=True):
    """How nodes are ordered: `type` is `fair` or `binpacking`."""

    type: str = ""
    resource_weights: dict[str, int | float] = {}


class Partition(View, kw_only=True):
    """A partition. `clusterId` is its resource manager; `applications` has counts by state, and in `total`."""

    cluster_id: str
    name: str
    capacity: Capacity
    node_sorting_policy: NodeSortingPolicy
    preemption_enabled: bool
    quota_preemption_enabled: bool
    total_nodes: int = 0
    applications: dict[str, int] = {}
    total_containers: int = 0
    state: str = ""
    last_state_transition_time: int = 0


class Template(View, kw_only=True):
    """Settings that dynamic leaf queues below the queue get."""

    max_applications: int = 0
    max_resource: Resources = {}
    guaranteed_resource: Resources = {}
    properties: dict[str, str] = {}


class Queue(View, kw_only=True):
    """A queue. `absUsedCapacity` is in percent of max; delays are texts such as `30s`."""

    queuename: str
    status: str = ""
    partition: str
    pending_resource: Resources = {}
    max_resource: Resources = {}
    guaranteed_resource: Resources = {}
    allocated_resource: Resources = {}
    preempting_resource: Resources = {}
    headroom: Resources = {}
    is_leaf: bool
    is_managed: bool
    properties: dict[str, str] = {}
    parent: str = ""
    template: Template | None = None
    children: list[Queue] = []
    child_names: list[str] = []
    abs_used_capacity: Resources = {}
    max_running_apps: int = 0
    running_apps: int = 0
    current_priority: int
    allocating_accepted_apps: list[str] = []
    sorting_policy: str = ""
    priority_sorting: bool
    preemption_enabled: bool
    is_preemption_fence: bool
    preemption_delay: str = ""
    quota_preemption_delay: str = ""
    is_priority_fence: bool
    priority_offset: int = 0


class LogEntry(View, kw_only=True):
    """A reason why an ask is not placed, and when it was last seen."""

    message: str = ""
    last_occurrence: int = 0
    count: int = 0


class WaitingReason(View, kw_only=True):
    """Why an ask waits, as licorne says it; YuniKorn's own sentence is in the log of the ask.

    `kind` is that of docs/reference/reasons.md, `details` are its data, `text` is a sentence. `never`: whatever else
    ends, the ask cannot run unless the configuration or the nodes change.
    """

    kind: str
    text: str
    never: bool = False
    details: dict[str, Any] = {}


class Ask(View, kw_only=True):
    """An ask that is not placed yet. `priority` is a text."""

    allocation_key: str
    allocation_tags: dict[str, str] = {}
    request_time: int = 0
    resource: Resources = {}
    priority: str = ""
    required_node_id: str = ""
    application_id: str = ""
    placeholder: bool = False
    task_group_name: str = ""
    allocation_log: list[LogEntry] = []
    triggered_preemption: bool = False
    originator: bool = False
    scheduling_attempted: bool = False
    triggered_scale_up: bool = False
    waiting_reasons: list[WaitingReason] = []


class Allocation(View, kw_only=True):
    """An allocation. `allocationDelay` is the time from request to allocation, in nanoseconds."""

    allocation_key: str
    allocation_tags: dict[str, str] = {}
    request_time: int = 0
    allocation_time: int = 0
    allocation_delay: int = 0
    resource: Resources = {}
    priority: str = ""
    node_id: str = ""
    application_id: str = ""
    placeholder: bool = False
    placeholder_used: bool = False
    task_group_name: str = ""
    preempted: bool = False
    originator: bool = False


class ForeignAllocation(View, kw_only=True):
    """An allocation of another scheduler on a node."""

    allocation_key: str
    allocation_tags: dict[str, str] = {}
    allocation_time: int = 0
    resource: Resources = {}
    priority: str = ""
    node_id: str = ""
    preemptable: bool = False


class StateChange(View, kw_only=True):
    """The time at which an application entered a state."""

    time: int = 0
    application_state: str = ""


class Placeholders(View, kw_only=True):
    """The placeholders of a task group: `count` were asked for, some of which were replaced or timed out."""

    task_group_name: str = ""
    count: int = 0
    min_resource: Resources = {}
    replaced: int = 0
    timedout: int = 0


class ResourceHistory(View, kw_only=True):
    """Amount times seconds, by instance type and resource type, of allocations that have ended."""

    resource_usage: dict[str, Resources] = {}
    preempted_resource: dict[str, Resources] = {}
    placeholder_resource: dict[str, Resources] = {}


class Application(View, kw_only=True):
    """An application. `startTime` is in milliseconds, -62135596800000 if it never started."""

    application_id: str = msgspec.field(name="applicationID")
    used_resource: Resources = {}
    max_used_resource: Resources = {}
    pending_resource: Resources = {}
    partition: str
    queue_name: str
    submission_time: int = 0
    finished_time: int = 0
    requests: list[Ask] = []
    allocations: list[Allocation] = []
    application_state: str = ""
    user: str = ""
    groups: list[str] = []
    rejected_message: str = ""
    state_log: list[StateChange] = []
    placeholder_data: list[Placeholders] = []
    has_reserved: bool = False
    reservations: list[str] = []
    max_request_priority: int = 0
    start_time: int
    resource_history: ResourceHistory
    backoff_deadline: str = ""


class Node(View, kw_only=True):
    """A node. `occupied` is the use by other schedulers; `utilized` is in percent, of this scheduler's allocations only."""

    node_id: str = msgspec.field(name="nodeID")
    host_name: str = ""
    rack_name: str = ""
    attributes: dict[str, str] = {}
    capacity: Resources = {}
    allocated: Resources = {}
    occupied: Resources = {}
    available: Resources = {}
    utilized: Resources = {}
    allocations: list[Allocation] = []
    foreign_allocations: list[ForeignAllocation] = []
    schedulable: bool
    is_reserved: bool
    reservations: list[str] = []


class Usage(View, kw_only=True):
    """Usage of a user or group at a queue, with its limits there."""

    queue_path: str
    resource_usage: Resources = {}
    running_applications: list[str] = []
    max_resources: Resources = {}
    max_applications: int = 0
    children: list[Usage] = []


class UserUsage(View, kw_only=True):
    """Usage of a user. `groups` maps applications to the group that each is counted for."""

    user_name: str
    groups: dict[str, str] = {}
    queues: Usage | None = None


class GroupUsage(View, kw_only=True):
    """Usage of a group."""

    group_name: str
    applications: list[str] = []
    queues: Usage | None = None


class RuleFilter(View, kw_only=True):
    """The users and groups that a placement rule applies to."""

    type: str
    user_list: list[str] = []
    group_list: list[str] = []
    user_exp: str = ""
    group_exp: str = ""


class Rule(View, kw_only=True):
    """A placement rule, with the rule that decides on the parent queue."""

    name: str
    parameters: dict[str, str] = {}
    filter: RuleFilter | None = None
    parent_rule: Rule | None = None


class AppHistory(View, kw_only=True):
    """Number of running applications at a moment, as a text."""

    timestamp: int
    total_applications: str


class ContainerHistory(View, kw_only=True):
    """Number of containers at a moment, as a text."""

    timestamp: int
    total_containers: str


class Bucket(View, kw_only=True):
    """Nodes whose use of a resource type lies in one range of percentages."""

    bucket_name: str = ""
    num_of_nodes: int = 0
    node_names: list[str] = []


class NodesUtilization(View, kw_only=True):
    """Nodes by their use of a resource type, in ten buckets."""

    type: str = ""
    utilization: list[Bucket] = []


class PartitionNodesUtilization(View, kw_only=True):
    """Nodes by their use of each resource type of a partition, in ten buckets."""

    cluster_id: str
    partition: str
    utilizations: list[NodesUtilization] = []


class Problem(View, kw_only=True):
    """A fault or warning of a configuration, with its place. Lines and columns count from 1."""

    line: int
    column: int
    path: str
    value: str
    rule: str
    message: str


class ConfigVerdict(View, kw_only=True):
    """Whether a configuration would be accepted; `reason` is the first fault, `problems` and `warnings` are all findings."""

    allowed: bool
    reason: str = ""
    problems: list[Problem] = []
    warnings: list[Problem] = []


class AmountView(msgspec.Struct, frozen=True):
    """An amount of one resource type."""

    value: int


class ResourceView(msgspec.Struct, omit_defaults=True, frozen=True):
    """Resources of an event, as the protocol writes them."""

    resources: dict[str, AmountView] = {}


class EventRecord(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel", frozen=True):
    """An event. Enumerations are numbers; the time is in nanoseconds.

    Source: docs/spec/events.md, section 1.
    """

    type: int = 0
    object_id: str = msgspec.field(default="", name="objectID")
    message: str = ""
    timestamp_nano: int = 0
    event_change_type: int = 0
    event_change_detail: int = 0
    reference_id: str = msgspec.field(default="", name="referenceID")
    resource: ResourceView = msgspec.field()


class EventBatch(View, rename="pascal", kw_only=True):
    """Events from an ID on. `EventRecords` is null if the ID lies outside of the range that is given."""

    instance_uuid: str = msgspec.field(name="InstanceUUID")
    lowest_id: int = msgspec.field(name="LowestID")
    highest_id: int = msgspec.field(name="HighestID")
    event_records: list[EventRecord] | None = msgspec.field(name="EventRecords")


class EventStream(View, rename="pascal", kw_only=True):
    """The first line of a stream of events; a line for each event follows."""

    instance_uuid: str = msgspec.field(name="InstanceUUID")


class PartitionRules(View, kw_only=True):
    """The placement rules of a partition."""

    partition: str
    rules: list[Rule]


class PartitionNodes(View, kw_only=True):
    """The nodes of a partition."""

    partition_name: str
    nodes_info: list[Node] = []


class OpenStream(View, kw_only=True):
    """An open stream of events."""

    name: str = ""
    host: str = ""


class Version(View, kw_only=True):
    """The version of licorne and of its Python, and whether the hot modules are compiled."""

    version: str
    compiled: bool
    python: str


class PartitionHolds(View, kw_only=True):
    """The nodes that gangs hold while they wait for others: an addition of licorne (`licorne.core.inspection.dump.holds`)."""

    partition: str
    holds: list[dict[str, Any]]


class ExactState(View, kw_only=True):
    """What a state dump does not show, for programs: an addition of licorne (docs/reference/checkpoint.md).

    `version` is that of this object, `licorne` that of the scheduler. `checkpoint` is its whole state at the moment when the
    dump was begun, compressed by zlib, in Base64.
    """

    version: int
    licorne: str
    checkpoint: str


class FullState(View, kw_only=True):
    """The whole state. Each object is consistent in itself; the scheduler works while one after the other is read."""

    timestamp: int
    partitions: list[Partition] = []
    applications: list[Application] = []
    app_history: list[AppHistory] = []
    nodes: list[PartitionNodes] = []
    cluster_info: list[Cluster] = []
    container_history: list[ContainerHistory] = []
    queues: list[Queue] = []
    rm_diagnostics: dict[str, Any] = {}
    log_level: str = ""
    config: dict[str, Any] = {}
    placement_rules: list[PartitionRules] = []
    event_streams: list[OpenStream] = []
    gang_holds: list[PartitionHolds] = []
    licorne: ExactState | None = None
