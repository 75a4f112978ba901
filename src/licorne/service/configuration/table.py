"""Every setting of `licorne serve`, once. All that is said of a setting anywhere comes from here.

Keys are flat. Those of the original's ConfigMap keep their names (spec config.md, section 12); those of this service
begin with `licorne.`; the others are settings of the scheduler (`licorne.core.settings`). A key with `<name>` in it
stands for any number of keys.

In the environment a key is in capitals, with `_` between its words, behind `LICORNE_`: `event.maxStreams` is
`LICORNE_EVENT_MAX_STREAMS`, `licorne.rm-timeout` is `LICORNE_RM_TIMEOUT`. On the command line a setting has an option of
its own, or is given by `--setting KEY=VALUE`.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal

import msgspec

from licorne.core.settings import EVENT_CAPACITY
from licorne.service.settings import ServiceSettings
from licorne.si.rpc import DEFAULT_ADDRESS

from . import kinds
from .kinds import Kind

Applies = Literal["at once", "at registration", "at restart", "no effect here"]
"""When a change takes effect: at once, with the next registration of each resource manager, when the service starts
anew; or the setting has no meaning here."""
OWN = "licorne."
ENVIRONMENT = "LICORNE_"
DISABLE_RESERVATION = "DISABLE_RESERVATION"
"""The one variable of the original; true means `reservation.enabled: false`."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting.

    `default`: as a text; empty for none. `lenient`: a text that does not parse means the default, and a warning; else it
    refuses all settings that come with it. `option`: without `--`, empty if it has none. `scheduler`: it is one of the
    flat keys that the scheduler reads itself. `secret`: the value is never shown.
    """

    key: str
    kind: Kind
    what: str
    default: str = ""
    applies: Applies = "at restart"
    option: str = ""
    lenient: bool = False
    scheduler: bool = False
    secret: bool = False

    @property
    def environment(self) -> str:
        """The variable of the environment; empty where the key stands for many."""
        if "<" in self.key:
            return ""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.key.removeprefix(OWN))
        return ENVIRONMENT + re.sub(r"[.-]", "_", words).upper()


_D = ServiceSettings()
_NOWHERE = "of the Kubernetes resource manager or its admission controller"


def _own(name: str, kind: Kind, what: str, default: object = "", applies: Applies = "at restart") -> Setting:
    text = f"{default:g}" if isinstance(default, float) else str(default)
    return Setting(key=OWN + name, kind=kind, what=what, default=text, applies=applies, option=name)


def _core(key: str, kind: Kind, what: str, default: str = "", applies: Applies = "at registration") -> Setting:
    return Setting(key=key, kind=kind, what=what, default=default, applies=applies, scheduler=True)


def _lenient(key: str, kind: Kind, what: str, default: object) -> Setting:
    return Setting(key=key, kind=kind, what=what, default=str(default), applies="at once", scheduler=True, lenient=True)


def _nowhere(key: str, default: str, kind: Kind = kinds.TEXT) -> Setting:
    lenient = key.startswith("admissionController.")
    return Setting(key=key, kind=kind, what=_NOWHERE, default=default, applies="no effect here", lenient=lenient)


SETTINGS: tuple[Setting, ...] = (
    _own(
        "grpc",
        kinds.LIST,
        "Where to listen: HOST:PORT (port 0: a free one) or unix:PATH.",
        DEFAULT_ADDRESS,
    ),
    _own("rest", kinds.LIST, "Where to listen for REST, the original's port is 9080; not given: no REST."),
    _own(
        "config", kinds.PATH, "Queue configuration (queues.yaml) of resource managers that bring none; it is watched."
    ),
    _own("policy-group", kinds.NAMED_FILES, "NAME=FILE: the queue configuration of this policy group; it is watched."),
    _own(
        "group-resolver",
        kinds.choice("config", "none", "os", "table"),
        "Where a user's groups come from if no message says: config (as the queue configuration has it), none, os, table.",
        "config",
    ),
    _own("group-table", kinds.PATH, "File with a line `user: [group, ...]` for each user; it is watched."),
    _own("rm-timeout", kinds.SECONDS, "How long a lost resource manager is waited for.", _D.rm_timeout_s, "at once"),
    _own("request-time", kinds.SECONDS, "How long an answer may take.", _D.request_s, "at once"),
    _own("max-message", kinds.COUNT, "Bytes of the longest message that is taken.", _D.message_bytes),
    _own(
        "max-buffer",
        kinds.COUNT,
        "Bytes that may wait for a resource manager to read them, before it is slowed down.",
        _D.buffer_bytes,
        "at registration",
    ),
    _own("max-streams", kinds.COUNT, "Streams at once, of all resource managers together.", _D.streams),
    _own("max-managers", kinds.COUNT, "Resource managers at once.", _D.managers, "at once"),
    _own("max-body", kinds.COUNT, "Bytes of the body of a REST request.", _D.body_bytes, "at once"),
    _own("max-queues", kinds.COUNT, "Queues of a configuration.", _D.queues, "at once"),
    _own("max-name", kinds.COUNT, "Characters of the name of anything.", _D.names, "at once"),
    _own(
        "max-tags",
        kinds.COUNT,
        "Tags of an item; as many attributes, groups, types of resources.",
        _D.tags,
        "at once",
    ),
    _own("tls-cert", kinds.PATH, "Certificate of the service, PEM."),
    _own("tls-key", kinds.PATH, "Its private key, PEM."),
    _own("tls-client-ca", kinds.PATH, "Take only clients with a certificate of this authority, PEM."),
    _own("token-file", kinds.PATH, "File with a token; take only gRPC clients that send it."),
    _own("rest-token-file", kinds.PATH, "File with tokens, one a line; only who sends one changes anything by REST."),
    _own("rest-read-token-file", kinds.PATH, "File with tokens, one a line, with which all may be read by REST."),
    _own("insecure", kinds.FLAG, "Listen beyond loopback without protection.", "false"),
    _own("old-queue-metrics", kinds.FLAG, "Metrics of queues also by their names before release 1.4.", "false"),
    _own("log-format", kinds.choice("text", "json"), "One line of text, or one JSON object, for each event.", "text"),
    Setting(
        key="log.level",
        kind=kinds.LEVEL,
        what="What is logged at least: debug, info, warn, error, ..., or -1 to 5.",
        default="info",
        applies="at once",
        option="log-level",
        lenient=True,
    ),
    Setting(
        key="log.<logger>.level",
        kind=kinds.LEVEL,
        what="The same for a logger and those below it, like core.rest; else that of the next above.",
        applies="at once",
        lenient=True,
    ),
    Setting(
        key="<policyGroup>.yaml",
        kind=kinds.TEXT,
        what="The queue configuration of this policy group, as text.",
        applies="at once",
        secret=True,
    ),
    _core("reservation.enabled", kinds.FLAG, "Asks that wait may reserve nodes.", "true"),
    _core("reservation.delay", kinds.DURATION, "How old an ask must be to reserve a node.", "2s"),
    _core("gang.hold.max.age", kinds.DURATION, "How long a gang as a whole may hold nodes; 0: never.", "120m"),
    _core("application.state.starting", kinds.FLAG, "The state Starting; not given: as the dialect has it."),
    _core("outstanding.inspection", kinds.FLAG, "Report asks that wait for nodes alone.", "true", "at once"),
    _core("scheduler.parking", kinds.FLAG, "For tests: false tries everything again in every pass.", "true"),
    _core("priority.class.<name>", kinds.INT32, "The number of a priority class.", "", "at once"),
    _lenient("event.trackingEnabled", kinds.FLAG, "Make events.", "true"),
    _lenient("event.requestCapacity", kinds.NATURAL, "Events that may wait for a resource manager.", EVENT_CAPACITY),
    _lenient("event.ringBufferCapacity", kinds.NATURAL, "Events that REST keeps.", 100_000),
    _lenient("event.maxStreams", kinds.NATURAL, "Streams of events at once.", 100),
    _lenient("event.maxStreamsPerHost", kinds.NATURAL, "The same of one Host header.", 15),
    _lenient("event.RESTResponseSize", kinds.NATURAL, "Events of a batch at most.", 10_000),
    _lenient("health.checkInterval", kinds.DURATION, "Time between two health checks; 0: none.", "30s"),
    Setting(
        key="service.policyGroup",
        kind=kinds.TEXT,
        what="The policy group whose configuration is everybody's; --config goes before it.",
        default="queues",
    ),
    Setting(
        key="service.enableConfigHotRefresh",
        kind=kinds.FLAG,
        what="Watch the files; once false, only SIGHUP and a restart read them again.",
        default="true",
        applies="at once",
    ),
    _nowhere("service.clusterId", "mycluster"),
    _nowhere("service.schedulingInterval", "1s", kinds.DURATION),
    _nowhere("service.volumeBindTimeout", "10m", kinds.DURATION),
    _nowhere("service.eventChannelCapacity", "1048576", kinds.NATURAL),
    _nowhere("service.dispatchTimeout", "5m", kinds.DURATION),
    _nowhere("service.disableGangScheduling", "false", kinds.FLAG),
    _nowhere("service.placeholderImage", "registry.k8s.io/pause:3.7"),
    _nowhere("service.placeholderRunAsUser", "0", kinds.NATURAL),
    _nowhere("service.placeholderRunAsGroup", "0", kinds.NATURAL),
    _nowhere("service.placeholderFsGroup", "0", kinds.NATURAL),
    _nowhere("service.nodeInstanceTypeNodeLabelKey", "node.kubernetes.io/instance-type"),
    _nowhere("kubernetes.qps", "1000", kinds.NATURAL),
    _nowhere("kubernetes.burst", "1000", kinds.NATURAL),
    _nowhere("admissionController.webHook.amServiceName", "yunikorn-admission-controller-service"),
    _nowhere("admissionController.webHook.schedulerServiceAddress", "yunikorn-service:9080"),
    _nowhere("admissionController.filtering.processNamespaces", ""),
    _nowhere("admissionController.filtering.bypassNamespaces", "^kube-system$"),
    _nowhere("admissionController.filtering.labelNamespaces", ""),
    _nowhere("admissionController.filtering.noLabelNamespaces", ""),
    _nowhere("admissionController.filtering.generateUniqueAppId", "false", kinds.FLAG),
    _nowhere("admissionController.accessControl.bypassAuth", "false", kinds.FLAG),
    _nowhere("admissionController.accessControl.trustControllers", "true", kinds.FLAG),
    _nowhere("admissionController.accessControl.systemUsers", "^system:serviceaccount:kube-system:"),
    _nowhere("admissionController.accessControl.externalUsers", ""),
    _nowhere("admissionController.accessControl.externalGroups", ""),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS if "<" not in setting.key}
_MANY = [(setting, *setting.key.partition("<")) for setting in SETTINGS if "<" in setting.key]
BY_ENVIRONMENT = {setting.environment: setting for setting in SETTINGS if setting.environment}
_NEVER_READ = {
    "event.ringbufferCapacity": "event.ringBufferCapacity",
    "service.instanceTypeNodeLabelKey": "service.nodeInstanceTypeNodeLabelKey",
}
"""Spellings of the original's documentation that the original itself does not read."""


def find(key: str) -> Setting | None:
    """The setting of a key."""
    known = _BY_KEY.get(key)
    if known is None:
        for setting, before, _, rest in _MANY:
            after = rest.rpartition(">")[2]
            if key.startswith(before) and key.endswith(after) and len(key) > len(before) + len(after):
                return setting
    return known


def unknown(key: str) -> str:
    """What to say of a key that is none."""
    shown = f"{key[:100]!r}: no such setting"
    if key in _NEVER_READ:
        return (
            f"{shown}: YuniKorn's documentation spells it so, but YuniKorn does not read it; write {_NEVER_READ[key]}"
        )
    near = difflib.get_close_matches(key[:100], _BY_KEY, 1, 0.75)
    same = [one for one in _BY_KEY if one.lower() in (key.lower(), OWN + key.lower())]
    best = same or near
    return f"{shown}; did you mean {best[0]}?" if best else f"{shown}; `licorne serve --print-config` lists all"


__all__ = [
    "BY_ENVIRONMENT",
    "DISABLE_RESERVATION",
    "ENVIRONMENT",
    "OWN",
    "SETTINGS",
    "Applies",
    "Setting",
    "find",
    "unknown",
]
