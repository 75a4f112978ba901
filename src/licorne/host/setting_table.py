"""The table of all settings of `licorne serve`: those of the service, and those of the scheduler.

The keys of the service's own settings begin with `licorne.`. The scheduler's settings, which any program may give it,
are in `licorne.core.base.setting_table`, where the library finds them too. Options, checks, `--print-config` and the
page of settings are all made from these two tables. A key with `<name>` in it stands for any number of keys.

The environment variable of a key is `LICORNE_` and the key in capitals, with `_` between its words: `event.maxStreams`
is `LICORNE_EVENT_MAX_STREAMS`, `licorne.rm-timeout` is `LICORNE_RM_TIMEOUT`. On the command line a setting has an
option of its own, or is given by `--setting KEY=VALUE`.
"""

from __future__ import annotations

from licorne.core.base import setting_kinds as kinds
from licorne.core.base import setting_table
from licorne.core.base.setting_kinds import ValueType
from licorne.core.base.setting_table import OWN, Applies, Setting, SettingTable
from licorne.si.rpc import DEFAULT_ADDRESS
from licorne.state.recording.bounds import Bounds

MIB = 1 << 20

REST_ADDRESS = "127.0.0.1:9080"
"""Where the REST interface of a scheduler is looked for, or offered, if nothing else is said: the original's port."""

DISABLE_RESERVATION = "DISABLE_RESERVATION"
"""The one environment variable of yunikorn-core that is read; true means `reservation.enabled: false`."""

_FOLDER = ValueType("folder", kinds.PATH.rule, str)


def _own(name: str, kind: ValueType, what: str, default: object = "", applies: Applies = "at restart") -> Setting:
    return Setting(key=OWN + name, kind=kind, what=what, default=str(default), applies=applies, option=name)


SETTINGS: tuple[Setting, ...] = (
    _own("grpc", kinds.LIST, "Where to listen: HOST:PORT (port 0: a free one) or unix:PATH.", DEFAULT_ADDRESS),
    _own("rest", kinds.LIST, "Where to listen for REST, YuniKorn's port is 9080; not given: no REST."),
    _own(
        "config", kinds.PATH, "Queue configuration (queues.yaml) of resource managers that bring none; it is watched."
    ),
    _own("policy-group", kinds.NAMED_FILES, "NAME=FILE: the queue configuration of this policy group; it is watched."),
    _own(
        "group-resolver",
        kinds.choice("config", "none", "os"),
        "Where a user's groups come from if no message says: config (as the queue configuration has it), none, os.",
        "config",
    ),
    _own(
        "rm-timeout", kinds.SECONDS, "How long to wait for a resource manager whose connection is lost.", 60, "at once"
    ),
    _own("request-time", kinds.SECONDS, "How long an answer may take.", 30, "at once"),
    _own("max-message", kinds.COUNT, "Bytes of the longest message that is taken.", 4 * MIB),
    _own(
        "max-buffer",
        kinds.COUNT,
        "Bytes that may wait for a resource manager to read them, before it is slowed down.",
        16 * MIB,
        "at registration",
    ),
    _own("max-streams", kinds.COUNT, "Streams at once, of all resource managers together.", 3000),
    _own("max-managers", kinds.COUNT, "Resource managers at once.", 1000, "at once"),
    _own("max-body", kinds.COUNT, "Bytes of the body of a REST request.", MIB, "at once"),
    _own("max-queues", kinds.COUNT, "Queues of a configuration.", 10_000, "at once"),
    _own("max-name", kinds.COUNT, "Characters of the name of anything.", 1024, "at once"),
    _own("max-tags", kinds.COUNT, "Tags of an item; as many attributes, groups, types of resources.", 1000, "at once"),
    _own("tls-cert", kinds.PATH, "Certificate of the service, PEM."),
    _own("tls-key", kinds.PATH, "Its private key, PEM."),
    _own("tls-client-ca", kinds.PATH, "Take only clients with a certificate of this authority, PEM."),
    _own("token-file", kinds.PATH, "File with a token; take only gRPC clients that send it."),
    _own(
        "rest-token-file",
        kinds.PATH,
        "File with tokens, one a line; only clients that send one may change anything by REST.",
    ),
    _own("rest-read-token-file", kinds.PATH, "File with tokens, one a line, that permit reading everything by REST."),
    _own(
        "insecure",
        kinds.FLAG,
        "Listen beyond loopback without protection; REST then permits reading alone, unless tokens are given.",
        "false",
    ),
    _own("old-queue-metrics", kinds.FLAG, "Metrics of queues also by their names before release 1.4.", "false"),
    _own("page", kinds.choice("on", "off"), "Pages for people, at the address of REST.", "on"),
    _own("record", _FOLDER, "Folder to record all inputs of the scheduler in, for `licorne replay` and --at of `why`."),
    _own(
        "record-mib",
        kinds.COUNT,
        "MiB that the recording may take on the disk; the oldest part goes.",
        Bounds().bytes_max // MIB,
    ),
    _own("anonymous", kinds.FLAG, "In the recording, names of users and groups are digests.", "false"),
    _own("record-age", kinds.SECONDS, "How long what was recorded is kept.", f"{Bounds().age_max_s / 3600:.0f}h"),
    _own(
        "follow",
        kinds.FLAG,
        "Answer questions by REST in a process that follows the scheduler; it takes as much memory once more.",
        "false",
    ),
    _own("log-format", kinds.choice("text", "json"), "One line of text, or one JSON object, for each event.", "text"),
    *setting_table.SETTINGS,
)
BY_ENVIRONMENT = {setting.environment: setting for setting in SETTINGS if setting.environment}
TABLE = SettingTable(SETTINGS, "`licorne serve --print-config` lists all")
