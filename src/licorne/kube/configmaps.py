"""The configuration as a cluster of YuniKorn has it: two ConfigMaps, `yunikorn-defaults` overlaid by `yunikorn-configs`.

The queue configuration is the key `<policy group>.yaml`, `queues.yaml` unless `service.policyGroup` says otherwise; every
other key that does not end in `.yaml` is a setting (docs/spec/k8shim.md, section 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from licorne.config.manifest import DEFAULT_POLICY_GROUP, OVERLAID, POLICY_GROUP, read_entries
from licorne.config.problems import ConfigError
from licorne.core.base.setting_kinds import parse_flag
from licorne.kube.manager.gangs import DEFAULT_IMAGE, PlaceholderSettings
from licorne.kube.objects import ConfigMap
from licorne.kube.pods import WorkSettings

DISABLE_GANGS: Final = "service.disableGangScheduling"
GENERATE_IDS: Final = "admissionController.filtering.generateUniqueAppId"
IMAGE: Final = "service.placeholderImage"
RUN_AS: Final = ("service.placeholderRunAsUser", "service.placeholderRunAsGroup", "service.placeholderFsGroup")
CLUSTER_ID: Final = "service.clusterId"
DEFAULT_CLUSTER_ID: Final = "mycluster"


class ConfigurationError(Exception):
    """A ConfigMap, or a value in it, cannot be used; the text names the key."""


class Configuration(msgspec.Struct, frozen=True):
    """What both ConfigMaps say together: the queue configuration ("" if there is none), and the settings."""

    queues: str = ""
    settings: dict[str, str] = {}

    @property
    def cluster_id(self) -> str:
        """The id under which REST shows the cluster."""
        return self.settings.get(CLUSTER_ID) or DEFAULT_CLUSTER_ID

    @property
    def policy_group(self) -> str:
        """The name of the queue configuration."""
        return self.settings.get(POLICY_GROUP) or DEFAULT_POLICY_GROUP

    def work_settings(self, scheduler_names: Iterable[str]) -> WorkSettings:
        """Return what changes the meaning of pods. Raises ConfigurationError."""
        return WorkSettings(
            scheduler_names=frozenset(scheduler_names),
            gangs=not self._flag(DISABLE_GANGS),
            generate_unique_app_id=self._flag(GENERATE_IDS),
        )

    def placeholder_settings(self) -> PlaceholderSettings:
        """Return how placeholder pods look. Raises ConfigurationError."""
        user, group, files = (self._number(key) for key in RUN_AS)
        return PlaceholderSettings(
            self.settings.get(IMAGE) or DEFAULT_IMAGE, run_as_user=user, run_as_group=group, fs_group=files
        )

    def _flag(self, key: str) -> bool:
        text = self.settings.get(key, "")
        value = parse_flag(text) if text else False
        if value is None:
            raise ConfigurationError(f"{key}: {text!r}: must be true or false")
        return value

    def _number(self, key: str) -> int:
        text = self.settings.get(key, "") or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            raise ConfigurationError(f"{key}: {text!r}: must be a number, 0 or more")
        return int(text)


def read_configuration(maps: Mapping[str, ConfigMap]) -> Configuration:
    """Return what the ConfigMaps say, by their names; without any, everything has its default.

    Raises:
        ConfigurationError: a value under `binaryData` cannot be read.
    """
    items = [
        {
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": found.data or {},
            "binaryData": found.binary_data or {},
        }
        for name in OVERLAID
        if (found := maps.get(name)) is not None
    ]
    if not items:
        return Configuration()
    try:
        entries = read_entries(msgspec.json.encode({"kind": "List", "items": items}).decode(), "ConfigMap")
    except ConfigError as error:
        raise ConfigurationError(str(error)) from None
    texts = {entry.key: entry.text for entry in entries}
    settings = {key: text for key, text in texts.items() if not key.endswith(".yaml")}
    group = settings.get(POLICY_GROUP) or DEFAULT_POLICY_GROUP
    return Configuration(texts.get(f"{group}.yaml", ""), settings)
