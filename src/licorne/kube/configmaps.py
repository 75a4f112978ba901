"""The configuration as a cluster of YuniKorn has it: two ConfigMaps, `yunikorn-defaults` overlaid by `yunikorn-configs`.

The queue configuration is the key `<policy group>.yaml`, `queues.yaml` unless `service.policyGroup` says otherwise; every
other key that does not end in `.yaml` is a setting (docs/spec/k8shim.md, section 11).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import msgspec

from licorne.config.counting import load_counted
from licorne.config.manifest import OVERLAID, read_entries
from licorne.config.problems import ConfigError
from licorne.core.base.setting_table import OWN
from licorne.kube.objects import ConfigMap
from licorne.kube.pods.work import WorkSettings
from licorne.kube.settings import TABLE, Settings, read_settings, unread
from licorne.si.constants import DEFAULT_PARTITION
from licorne.si.partitions import short_partition


class ConfigurationError(Exception):
    """A ConfigMap, or a value in it, cannot be used; the text names the key."""


class Configuration(msgspec.Struct, frozen=True):
    """What both ConfigMaps say together.

    `queues` is the queue configuration, "" if there is none, and `queues_key` where it is, for messages. `texts` are all
    other entries by key, but settings whose text is empty, which have their defaults. `origins` is the ConfigMap that each
    entry comes from, and `settings` the values of those that are read here. Every text of a setting can be used.
    """

    queues: str = ""
    queues_key: str = ""
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    settings: Settings = Settings()

    def of_scheduler(self) -> dict[str, str]:
        """Return the entries that the scheduler is given: all but the settings of licorne's own, which it does not know."""
        return {key: text for key, text in self.texts.items() if not (key.startswith(OWN) and TABLE.find(key))}

    def work_settings(self, scheduler_names: Iterable[str]) -> WorkSettings:
        """Return what changes the meaning of pods."""
        return WorkSettings(
            scheduler_names=frozenset(scheduler_names),
            gangs=not self.settings.no_gangs,
            generate_unique_app_id=self.settings.generate_unique_app_id,
            name_chars_max=self.settings.name_chars_max,
            entries_max=self.settings.entries_max,
        )


def read_configuration(maps: Mapping[str, ConfigMap], policy_group: str = "") -> Configuration:
    """Return what the ConfigMaps say, by their names; without any, everything has its default.

    `policy_group` is the policy group that counts; "": the one that they name.

    Raises:
        ConfigurationError: a value under `binaryData` cannot be read, or a setting cannot be used; the text names the
            ConfigMap and the key.
    """
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    for name in OVERLAID:
        found = maps.get(name)
        if found is None:
            continue
        item = {"kind": "ConfigMap", "data": found.data or {}, "binaryData": found.binary_data or {}}
        try:
            entries = read_entries(msgspec.json.encode(item).decode(), name)
        except ConfigError as error:
            raise ConfigurationError(str(error)) from None
        texts |= {entry.key: entry.text for entry in entries}
        origins |= {entry.key: f"ConfigMap {name}" for entry in entries}
    given = {
        key: text for key, text in texts.items() if not key.endswith(".yaml") and (text or TABLE.find(key) is None)
    }
    if wrong := [f"{origins[key]}: {why}" for key, why in unread(given, lenient=False)]:
        raise ConfigurationError("; ".join(wrong))
    settings = read_settings(given)
    key = f"{policy_group or settings.policy_group}.yaml"
    queues = texts.get(key, "")
    return Configuration(queues, f"{origins[key]}[{key}]" if queues else "", given, origins, settings)


def check_queues(queues: str, rm_id: str, queues_max: int = sys.maxsize, *, where: str = "<config>") -> None:
    """Refuse a queue configuration of too many queues, or without the partition that all nodes and pods of a cluster belong to.

    The scheduler accepts one without it, and would give up all of them. An empty text stands for the built-in configuration.

    Raises:
        ConfigurationError: the configuration cannot be read, has more queues than `licorne.max-queues` allows, or lacks
            the partition.
    """
    if not queues:
        return
    try:
        found = load_counted(queues, queues_max, file=where)
    except ConfigError as error:
        raise ConfigurationError(str(error)) from None
    if all(short_partition(each.name, rm_id) != DEFAULT_PARTITION for each in found.partitions):
        raise ConfigurationError(f"{where}: the queue configuration has no partition {DEFAULT_PARTITION!r}")
