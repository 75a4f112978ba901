"""The settings of `licorne kube`: those of YuniKorn's ConfigMaps, with what they mean here, and some of licorne's own.

What the scheduler itself reads (`reservation.delay`, `event.*`, ...) is in `licorne.core.base.setting_table`. It is
registered once, so those of its settings that take effect at a registration do so at a restart. The limits that
`licorne serve` has, too, are rows of its table (`licorne.host.setting_table`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from licorne.config.manifest import NAMESPACE, SCHEDULER_NAMES
from licorne.core.base import setting_kinds as kinds
from licorne.core.base import setting_table
from licorne.core.base.setting_table import OWN, Applies, Setting, SettingTable
from licorne.host.setting_table import TABLE as SERVE
from licorne.host.shown_settings import Shown

RESTART: Final = "at restart"


def _row(key: str, what: str, applies: Applies = RESTART) -> Setting:
    """Return the row of the scheduler's table for a setting that has another effect here; its type and default stay."""
    known = setting_table.TABLE.find(key)
    assert known is not None
    return msgspec.structs.replace(known, what=what, applies=applies, lenient=False)


_ROWS: Final = (
    _row("service.clusterId", "The id of the cluster in REST."),
    _row("service.policyGroup", "Which key has the queue configuration: the one that ends in .yaml."),
    _row("service.enableConfigHotRefresh", "Whether changes count before a restart.", "at once"),
    _row("service.volumeBindTimeout", "How long a pod that has a node waits for its claims to be bound.", "at once"),
    _row("service.disableGangScheduling", "Whether task groups of new pods do not count.", "at once"),
    _row("service.placeholderImage", "The image of new placeholders.", "at once"),
    _row("service.placeholderRunAsUser", "The user of new placeholders; 0: as the image has it.", "at once"),
    _row("service.placeholderRunAsGroup", "Their group; 0: as the image has it.", "at once"),
    _row("service.placeholderFsGroup", "The group of their volumes; 0: none.", "at once"),
    _row(
        "admissionController.filtering.generateUniqueAppId",
        "Whether a new pod without an application id is an application of its own.",
        "at once",
    ),
    Setting(
        key=OWN + "scheduled-events",
        kind=kinds.FLAG,
        what="Post an event when a pod is bound, as kube-scheduler does.",
        default="false",
        applies="at once",
    ),
)
_SHARED: Final = ("max-body", "request-time", "max-queues", "max-name", "max-tags", "old-queue-metrics", "page")
"""Settings of `licorne serve` that mean the same here. Its others are options of `licorne kube`, or about gRPC."""
_SERVE_ALONE: Final = frozenset(("<policyGroup>.yaml",))


def _settings() -> Iterator[Setting]:
    yield from _ROWS
    for name in _SHARED:
        shared = SERVE.find(OWN + name)
        assert shared is not None
        yield msgspec.structs.replace(shared, option="")
    here = {setting.key for setting in _ROWS} | _SERVE_ALONE
    for setting in setting_table.SETTINGS:
        if setting.key not in here:
            applies = RESTART if setting.applies == "at registration" else setting.applies
            yield msgspec.structs.replace(setting, applies=applies, option="")


SETTINGS: Final = tuple(_settings())
TABLE: Final = SettingTable(SETTINGS, "docs/reference/kubernetes.md lists all")


class RunSettings(msgspec.Struct, frozen=True):
    """How licorne runs in a cluster.

    - `namespace`: where the ConfigMaps are, and the Lease.
    - `scheduler_names`: pods that name one of these are scheduled.
    - `queues`: a queue configuration in place of that of the ConfigMaps; "": theirs.
    - `dry_run`: nothing is written; decisions are compared with those of the scheduler that these pods have
      (`licorne.kube.shadow`).
    - `spread`: the topology spread constraints of pods that have none of their own, as a text (`licorne.kube.pods.spreading`);
      "": there are none.
    """

    namespace: str = NAMESPACE
    scheduler_names: tuple[str, ...] = SCHEDULER_NAMES
    queues: str = ""
    dry_run: bool = False
    spread: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the settings that the Kubernetes side reads."""

    cluster_id: str = TABLE.field("service.clusterId")
    policy_group: str = TABLE.field("service.policyGroup")
    hot_refresh: bool = TABLE.field("service.enableConfigHotRefresh")
    no_gangs: bool = TABLE.field("service.disableGangScheduling")
    volume_bind_timeout_ns: int = TABLE.field("service.volumeBindTimeout")
    placeholder_image: str = TABLE.field("service.placeholderImage")
    run_as_user: int = TABLE.field("service.placeholderRunAsUser")
    run_as_group: int = TABLE.field("service.placeholderRunAsGroup")
    fs_group: int = TABLE.field("service.placeholderFsGroup")
    generate_unique_app_id: bool = TABLE.field("admissionController.filtering.generateUniqueAppId")
    scheduled_events: bool = TABLE.field("licorne.scheduled-events")
    queues_max: int = TABLE.field("licorne.max-queues")
    name_chars_max: int = TABLE.field("licorne.max-name")
    entries_max: int = TABLE.field("licorne.max-tags")
    level: int = TABLE.field("log.level")
    levels: dict[str, int] = TABLE.field("log.<logger>.level")


def read_settings(texts: Mapping[str, str]) -> Settings:
    """Return the values; an empty text means the default.

    Raises:
        SettingsError: a text does not parse; the error names key, value and rule.
    """
    return TABLE.fill(Settings(), {key: text for key, text in texts.items() if text})


def unread(texts: Mapping[str, str], *, lenient: bool) -> Iterator[tuple[str, str]]:
    """Yield the key of each value that does not parse, with a sentence, whether or not it has an effect here.

    `lenient`: of the settings that then mean the default, as they do to YuniKorn. Of others YuniKorn refuses the ConfigMap, also
    for those that mean nothing here (docs/spec/k8shim.md, section 11).
    """
    for key, text in sorted(texts.items()):
        setting = TABLE.find(key)
        if setting is not None and setting.lenient is lenient and text and setting.kind.read(text) is None:
            yield key, f"{key}: {text[:80]!r}: {setting.kind.rule}{'; the default is used' if lenient else ''}"


def wait_for_restart(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the keys whose values have changed, and take effect at a restart alone."""
    found = []
    for key in sorted(old.keys() | new.keys()):
        setting = TABLE.find(key)
        if setting is None or setting.applies != RESTART:
            continue
        if (old.get(key) or setting.default) != (new.get(key) or setting.default):
            found.append(key)
    return found


def shown(texts: Mapping[str, str], origins: Mapping[str, str]) -> Iterator[Shown]:
    """Yield all settings as they are printed; those with a pattern for a key only where given."""
    for setting in SETTINGS:
        keys = [key for key in sorted(texts) if TABLE.find(key) is setting] if "<" in setting.key else [setting.key]
        for key in keys:
            given = bool(texts.get(key))
            value = texts[key] if given else setting.default
            yield Shown(key, value, origins[key] if given else "default", setting.applies)
