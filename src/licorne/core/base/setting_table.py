"""The table of all settings that a program may give the scheduler: its own, and those of the original's ConfigMap.

Keys are flat, and keep the names of the original's ConfigMap (docs/spec/config.md, section 12) where they are part of
it. Some are read by the scheduler (`licorne.core.base.settings`), some by a service around it
(`licorne.host.setting_table`, which adds settings of its own), and some by nothing here: they are accepted because a
platform passes its whole ConfigMap to the scheduler. A key that is in no row is a mistake, and is refused: an
experiment with a misspelt setting would measure the default. A key with `<name>` in it stands for any number of keys.

Type, default and effect of a setting are in its row and nowhere else. An attribute that holds the value of a setting
names its key (`parking: bool = TABLE.field("scheduler.parking")`), which gives it the default of the row, and
`SettingTable.fill` sets such attributes from texts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec

from . import setting_kinds as kinds
from .setting_kinds import ValueType

Structure = TypeVar("Structure", bound=msgspec.Struct)
Applies = Literal["at once", "at registration", "at restart", "no effect here"]
NO_EFFECT: Final = "no effect here"
"""When a change takes effect: at once, at the next registration of each resource manager, when the service is started
again; or never, because the setting has no meaning here.
"""
OWN = "licorne."
"""The prefix of the keys of `licorne serve`, which the scheduler does not read."""
ENVIRONMENT = "LICORNE_"


class SettingsError(ValueError):
    """A setting that does not parse; the text names key, value and rule."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting, one row of the table.

    `default` is a text; empty for none. `lenient`: a text that does not parse means the default, and a warning;
    otherwise it refuses all settings that come with it. `option` is the command-line option without `--`, empty if
    there is none. `scheduler`: it is one of the flat keys that the scheduler reads itself. `secret`: the value is never
    shown.
    """

    key: str
    kind: ValueType
    what: str
    default: str = ""
    applies: Applies = "at restart"
    option: str = ""
    lenient: bool = False
    scheduler: bool = False
    secret: bool = False

    @property
    def environment(self) -> str:
        """The environment variable; empty where the key stands for many."""
        if "<" in self.key:
            return ""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.key.removeprefix(OWN))
        return ENVIRONMENT + re.sub(r"[.-]", "_", words).upper()

    @property
    def initial(self) -> Any:
        """The value if nothing is given, None if there is none; where the key stands for many, a map of no values."""
        return {} if "<" in self.key else self.kind.read(self.default)

    def part(self, key: str) -> str | None:
        """Return what `<name>` stands for in a key; None for a key of another setting."""
        before, _, rest = self.key.partition("<")
        after = rest.rpartition(">")[2]
        return key[len(before) : len(key) - len(after)] if key.startswith(before) and key.endswith(after) else None

    def value(self, texts: Mapping[str, str]) -> Any:
        """Return the value in texts by key, which must have the key; where it stands for many, a map of values by name.

        Raises:
            SettingsError: a text does not parse, and the setting is not lenient.
        """
        if "<" in self.key:
            return {name: self._read(key, text) for key, text in texts.items() if (name := self.part(key)) is not None}
        return self._read(self.key, texts[self.key])

    def _read(self, key: str, text: str) -> Any:
        value = self.kind.read(text)
        if value is None and not self.lenient:
            raise SettingsError(f"{key}: {text!r}: {self.kind.rule}")
        return self.initial if value is None or value == self.kind.unset else value


_MODES = kinds.choice("weighed", "first", "off")
_RING = kinds.capacity(10_000_000)
_NOWHERE = "of the Kubernetes resource manager or its admission controller"


def _core(key: str, kind: ValueType, what: str, default: str = "", applies: Applies = "at registration") -> Setting:
    return Setting(key=key, kind=kind, what=what, default=default, applies=applies, scheduler=True)


def _lenient(key: str, kind: ValueType, what: str, default: object) -> Setting:
    return Setting(key=key, kind=kind, what=what, default=str(default), applies="at once", scheduler=True, lenient=True)


def _nowhere(key: str, default: str, kind: ValueType = kinds.TEXT) -> Setting:
    lenient = key.startswith("admissionController.")
    return Setting(key=key, kind=kind, what=_NOWHERE, default=default, applies=NO_EFFECT, lenient=lenient)


SETTINGS: tuple[Setting, ...] = (
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
    _core("reservation.delay", kinds.DELAY, "How old an ask must be to reserve a node.", "2s"),
    _core("gang.hold.max.age", kinds.AGE, "How long a gang as a whole may hold nodes; 0: never.", "120m"),
    _core("application.state.starting", kinds.FLAG, "The state Starting; not given: as the dialect has it."),
    _core("outstanding.inspection", kinds.FLAG, "Report asks that wait for nodes alone.", "true", "at once"),
    _core("scheduler.parking", kinds.FLAG, "For tests: false tries everything again in every pass.", "true"),
    _core("scheduler.preferences", _MODES, "How preferences of pods and node order go together.", "weighed"),
    _core("priority.class.<name>", kinds.INT32, "The number of a priority class.", "", "at once"),
    _lenient("event.trackingEnabled", kinds.FLAG, "Make events.", "true"),
    _lenient("event.requestCapacity", kinds.capacity(1_000_000), "Events that may wait for a resource manager.", 1_000),
    _lenient("event.ringBufferCapacity", _RING, "Events that REST keeps.", 100_000),
    _lenient("event.maxStreams", _RING, "Streams of events at once.", 100),
    _lenient("event.maxStreamsPerHost", _RING, "The same of one Host header.", 15),
    _lenient("event.RESTResponseSize", _RING, "Events of a batch at most.", 10_000),
    _lenient("health.checkInterval", kinds.INTERVAL, "Time between two health checks; 0: none.", "30s"),
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
    _nowhere("service.eventChannelCapacity", "1048576", kinds.INT32),
    _nowhere("service.dispatchTimeout", "5m", kinds.DURATION),
    _nowhere("service.disableGangScheduling", "false", kinds.FLAG),
    _nowhere("service.placeholderImage", "registry.k8s.io/pause:3.7"),
    _nowhere("service.placeholderRunAsUser", "0", kinds.NATURAL),
    _nowhere("service.placeholderRunAsGroup", "0", kinds.NATURAL),
    _nowhere("service.placeholderFsGroup", "0", kinds.NATURAL),
    _nowhere("service.nodeInstanceTypeNodeLabelKey", "node.kubernetes.io/instance-type"),
    _nowhere("kubernetes.qps", "1000", kinds.INT32),
    _nowhere("kubernetes.burst", "1000", kinds.INT32),
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
_NEVER_READ = {
    "event.ringbufferCapacity": "event.ringBufferCapacity",
    "service.instanceTypeNodeLabelKey": "service.nodeInstanceTypeNodeLabelKey",
}
"""Spellings of the original's documentation that the original itself does not read, and what to write instead."""


class SettingTable:
    """Settings by key: finds the setting of a key, explains a key that is unknown, and fills structures."""

    def __init__(self, settings: Iterable[Setting], hint: str) -> None:
        """Take the settings; `hint` tells users where all names are listed."""
        every = tuple(settings)
        self._hint = hint
        self._by_key = {setting.key: setting for setting in every if "<" not in setting.key}
        self._many = [setting for setting in every if "<" in setting.key]

    def find(self, key: str) -> Setting | None:
        """Return the setting of a key, None for an unknown key."""
        return self._by_key.get(key) or next((setting for setting in self._many if setting.part(key)), None)

    def unknown(self, key: str) -> str:
        """Return the message for an unknown key, with the nearest known one if there is one."""
        shown = f"{key[:100]!r}: no such setting"
        if key in _NEVER_READ:
            return f"{shown}: YuniKorn's documentation spells it so, but YuniKorn does not read it; write {_NEVER_READ[key]}"
        near = difflib.get_close_matches(key[:100], self._by_key, 1, 0.75)
        same = [one for one in self._by_key if one.lower() in (key.lower(), OWN + key.lower())]
        best = same or near
        return f"{shown}; did you mean {best[0]}?" if best else f"{shown}; {self._hint}"

    # -- structures ------------------------------------------------------------------------------------

    def field(self, key: str) -> Any:
        """Return the field of a structure for the value of a setting: a field with its default, encoded by its key.

        Raises:
            KeyError: the table has no such setting.
        """
        setting = self.find(key)
        if setting is None:
            raise KeyError(key)
        return msgspec.field(default=setting.initial, name=key)

    def attributes(self, structure: msgspec.Struct | type[msgspec.Struct]) -> Iterator[tuple[str, Setting]]:
        """Yield the attributes of a structure that hold the values of settings, with these settings."""
        for name, key in zip(structure.__struct_fields__, structure.__struct_encode_fields__, strict=True):
            setting = self.find(key)
            if setting is not None:
                yield name, setting

    def fill(self, structure: Structure, texts: Mapping[str, str]) -> Structure:
        """Return a copy of a structure with the values of settings from texts by key; others stay.

        Raises:
            SettingsError: a text does not parse, and its setting is not lenient.
        """
        values = {
            name: one.value(texts) for name, one in self.attributes(structure) if one.key in texts or "<" in one.key
        }
        # Made as a new one, since `msgspec.structs.replace` does not call `__post_init__`, which checks, in older versions.
        return type(structure)(**{name: getattr(structure, name) for name in structure.__struct_fields__} | values)


TABLE = SettingTable(SETTINGS, "docs/reference/settings.md lists all")


def unknown_settings(texts: Mapping[str, str]) -> list[str]:
    """Return a message for each key that is neither the scheduler's nor the original's."""
    return [
        f"{key[:100]!r}: is a setting of `licorne serve`, not of the scheduler"
        if key.startswith(OWN)
        else TABLE.unknown(key)
        for key in texts
        if TABLE.find(key) is None
    ]


def check_settings(texts: Mapping[Any, Any], *, known: bool = True) -> None:
    """Check that keys and values are texts and, with `known`, that every key is known.

    Raises:
        SettingsError: a key or value is no text, or a key is unknown.
    """
    if not isinstance(texts, Mapping):
        raise SettingsError(f"settings: {texts!r}: must be a map from names to texts")
    for key, text in texts.items():
        if not isinstance(key, str) or not isinstance(text, str):
            setting = TABLE.find(str(key))
            example = f", such as {setting.default!r}" if setting is not None and setting.default else ""
            raise SettingsError(f"{key}: {text!r}: must be a text{example}")
    if known and (wrong := unknown_settings(texts)):
        raise SettingsError("\n".join(wrong))


__all__ = [
    "ENVIRONMENT", "NO_EFFECT", "OWN", "SETTINGS", "TABLE", "Applies", "Setting", "SettingTable", "SettingsError",
    "check_settings", "unknown_settings",
]  # fmt: skip
