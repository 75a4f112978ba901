"""The list of all endpoints: method, path, handler, and their entries in the OpenAPI document."""

from __future__ import annotations

from functools import partial
from typing import Any

from licorne.answers.shares import Shares
from licorne.answers.why import ApplicationAnswer, AskAnswer, Overview
from licorne.host.web.health import Health
from licorne.si import rest_objects as objects

from . import debug, questions
from .handlers import Handlers
from .routing import Endpoint, Handler, Parameter

H = Handlers
_P = "/ws/v1/partition/{partition}"
_Q = _P + "/queue/{queue}"
_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "string", "enum": ["true", "false"]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": (1 << 64) - 1}
_STATUS = Parameter(
    "status",
    "Only applications in this state.",
    {"type": "string", "enum": ["", "new", "accepted", "starting", "running", "completing", "failing", "resuming"]},
)
_RM = Parameter("rm", "Id of the resource manager; without it, the first.", _TEXT)
_PARTITION = Parameter("partition", "Look at this partition alone.", _TEXT)
_PROVE = Parameter("prove", "`false`: do not look for changes that would help.", _FLAG)
_SINCE = Parameter(
    "since",
    "Where the inputs are recorded: tell also what was used from this time on, like 2026-11-03T14:00 (UTC) or seconds since 1970.",
    _TEXT,
)
_get = partial(Endpoint, "GET")

_LISTS = (
    _get("/ws/v1/clusters", H.clusters, "Partitions and their resource managers", list[objects.Cluster]),
    _get("/ws/v1/partitions", H.partitions, "Partitions", list[objects.Partition]),
    _get(f"{_P}/placementrules", H.placement_rules, "Placement rules of a partition", list[objects.Rule]),
    _get(f"{_P}/queues", H.queues, "The tree of queues", objects.Queue),
    _get(
        _Q,
        H.one_queue,
        "A queue",
        objects.Queue,
        query=(Parameter("subtree", "If it is there: with all queues below.", _TEXT),),
    ),
    _get(f"{_P}/nodes", H.nodes, "Nodes of a partition", list[objects.Node]),
    _get(f"{_P}/node/{{node}}", H.one_node, "A node", objects.Node),
)
_APPLICATIONS = (
    _get(f"{_Q}/applications", H.queue_applications, "Active applications of a leaf queue", list[objects.Application]),
    _get(
        f"{_Q}/applications/{{state}}",
        H.queue_applications_by_state,
        "Applications of a leaf queue by state: active",
        list[objects.Application],
        query=(_STATUS,),
    ),
    _get(
        f"{_Q}/application/{{application}}",
        H.queue_application,
        "An active application of this queue",
        objects.Application,
    ),
    _get(f"{_P}/application/{{application}}", H.application, "An active application", objects.Application),
    _get(
        f"{_P}/applications/{{state}}",
        H.applications_by_state,
        "Applications by state: active, completed (and failed), rejected",
        list[objects.Application],
        query=(_STATUS,),
    ),
)
_USAGE = (
    _get(f"{_P}/usage/users", H.users, "What users use", list[objects.UserUsage]),
    _get(f"{_P}/usage/user/{{user}}", H.user, "What a user uses", objects.UserUsage),
    _get(f"{_P}/usage/groups", H.groups, "What groups use", list[objects.GroupUsage]),
    _get(f"{_P}/usage/group/{{group}}", H.group, "What a group uses", objects.GroupUsage),
)
_CONFIGURATION = (
    _get(
        "/ws/v1/config",
        H.config,
        "The running configuration, as YAML or JSON",
        dict[str, Any],
        query=(_RM,),
        statuses=(404,),
    ),
    *(
        Endpoint(
            method,
            "/ws/v1/config",
            H.change_config,
            "Apply another queue configuration, checked whole, or change nothing",
            objects.ConfigVerdict,
            query=(_RM,),
            statuses=(404, 413),
            body="application/x-yaml",
            role="admin",
        )
        for method in ("PUT", "POST")
    ),
    Endpoint(
        "POST",
        "/ws/v1/validate-conf",
        H.validate_conf,
        "Would this queue configuration be taken?",
        objects.ConfigVerdict,
        statuses=(413,),
        body="application/x-yaml",
    ),
)
_WATCHING = (
    _get("/ws/v1/history/apps", H.app_history, "Running applications by minute", list[objects.AppHistory]),
    _get("/ws/v1/history/containers", H.container_history, "Containers by minute", list[objects.ContainerHistory]),
    _get("/ws/v1/scheduler/healthcheck", H.health, "The last health check", Health, statuses=(404,)),
    _get(
        "/ws/v1/scheduler/node-utilizations",
        H.node_utilizations,
        "How full the nodes are",
        list[objects.PartitionNodesUtilization],
    ),
    _get("/readyz", H.ready, "Does this process schedule? Else 503, and why not", media="text/plain", statuses=(503,)),
    _get("/ws/v1/metrics", H.metrics, "Metrics in Prometheus' text format", media="text/plain"),
    _get(
        "/ws/v1/events/batch",
        H.event_batch,
        "Past events from an ID on",
        objects.EventBatch,
        query=(
            Parameter("count", "At most so many events.", _COUNT | {"minimum": 1}),
            Parameter("start", "The first ID.", _COUNT),
        ),
        statuses=(400, 500),
    ),
    _get(
        "/ws/v1/events/stream",
        H.event_stream,
        "Events as they come: first an object with the UUID of the process, then a line for each",
        query=(Parameter("count", "So many past events first.", _COUNT),),
        statuses=(400, 500, 503),
        media="application/json-lines",
        limited=False,
    ),
)
_DEBUG = (
    _get(
        "/debug/fullstatedump",
        H.full_state,
        "All of the state",
        objects.FullState,
        query=(
            Parameter(
                "checkpoint", "With `true`, the dump can be restored exactly (docs/reference/checkpoint.md).", _FLAG
            ),
        ),
    ),
    _get("/debug/stack", debug.stack, "Stacks of threads and tasks", media="text/plain"),
    _get("/ws/v1/version", debug.version, "What runs here", objects.Version),
    _get("/ws/v1/stack", H.moved, "Moved to /debug/stack", media=""),
    _get("/ws/v1/fullstatedump", H.moved, "Moved to /debug/fullstatedump", media=""),
    _get("/openapi.json", debug.document, "This document", dict[str, Any]),
)


def _question(
    path: str, handler: Handler, summary: str, result: Any, *more: Parameter, statuses: tuple[int, ...] = (404, 503)
) -> Endpoint:
    """Return an endpoint that computes an answer about a partition, or all of them, in a process of its own."""
    return _get(path, handler, summary, result, query=(_PARTITION, *more), statuses=statuses, limited=False)


_ONE = AskAnswer | ApplicationAnswer
_QUESTIONS = (
    _question("/api/v1/why", questions.why_all, "What waits, by reason", Overview),
    _question(
        "/api/v1/why/{name}",
        questions.why,
        "Why an application, an ask or a pod waits, and the smallest changes with which it would run",
        _ONE,
        _PROVE,
    ),
    _question(
        "/api/v1/why/{namespace}/{pod}", questions.why_pod, "The same of a pod by its namespace and name", _ONE, _PROVE
    ),
    _question(
        "/api/v1/shares",
        questions.shares,
        "Who has what of which guarantee and max, who borrows from whom, and what was used since a time",
        Shares,
        _SINCE,
        statuses=(400, 404, 503),
    ),
)

ENDPOINTS = (*_QUESTIONS, *_LISTS, *_APPLICATIONS, *_USAGE, *_CONFIGURATION, *_WATCHING, *_DEBUG)
"""All endpoints. Of two that match a path with equally many parts, the first is taken."""
