"""The ConfigMaps of a running licorne: what counts at the start, and what follows from each change of one."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from licorne import __version__
from licorne.core.api import ConfigurationError as QueuesError
from licorne.core.base.setting_table import SettingsError
from licorne.host.log import Levels, Log
from licorne.kube.configmaps import Configuration, ConfigurationError, check_queues, read_configuration
from licorne.kube.manager import Manager
from licorne.kube.manager.commands import PostEvent
from licorne.kube.objects import ConfigMap
from licorne.kube.settings import RunSettings, unread, wait_for_restart
from licorne.kube.writer import Writer
from licorne.si import v19


def build_info() -> dict[str, str]:
    """Return what REST shows as the build, by YuniKorn's names and with its names of processors.

    Of YuniKorn's other keys (docs/spec/k8shim.md, section 10) nothing true can be said: a Python package has no date of
    a build and no version of Go, and core, interface and shim are one program, with one version.
    """
    machine = platform.machine().lower()
    return {"buildVersion": __version__, "arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)}


@dataclass(eq=False, repr=False)
class ConfigMaps:
    """Both ConfigMaps, as the handler of their reflectors. `in_force` is the configuration that counts.

    Parameters:
        manager: is set up as the configuration says.
        settings: how licorne runs.
        levels: the levels of loggers, which the ConfigMaps set.
        log: the log.
        writer: posts events about them; None: nothing is written.
        retune: gives REST a new configuration; None: there is no REST.
    """

    _manager: Manager
    _settings: RunSettings
    _levels: Levels
    _log: Log
    _writer: Writer | None
    _retune: Callable[[Configuration], None] | None
    _maps: dict[str, ConfigMap] = field(default_factory=dict, init=False)
    in_force: Configuration = field(default_factory=Configuration, init=False)
    _begun: bool = field(default=False, init=False)
    _texts_at_start: Mapping[str, str] = field(default_factory=dict, init=False)
    """The settings with which licorne was started."""
    _policy_group: str = field(default="", init=False)
    """The policy group that is in force: the one that the ConfigMaps named when licorne was started."""

    def added(self, new: ConfigMap) -> None:
        """Take in a new ConfigMap."""
        self.map_changed(new.metadata.name, new)

    def updated(self, _old: ConfigMap, new: ConfigMap) -> None:
        """Take in a change of a ConfigMap."""
        self.map_changed(new.metadata.name, new)

    def deleted(self, old: ConfigMap) -> None:
        """Take in that a ConfigMap is gone."""
        self.map_changed(old.metadata.name, None)

    def configuration(self) -> Configuration:
        """Return what they say now; raises a ConfigurationError."""
        return read_configuration(self._maps)

    def begin(self) -> v19.RegisterResourceManagerRequest:
        """Let what they say now count, and return the registration with it; raises a ConfigurationError."""
        configuration = self.configuration()
        self._texts_at_start = configuration.texts
        self._policy_group = configuration.settings.policy_group
        self._adopt(configuration)
        for _, text in unread(configuration.texts, lenient=True):
            self._log.warning(text)
        self._manager.outbox.rm_id = configuration.settings.cluster_id
        self._begun = True
        return v19.RegisterResourceManagerRequest(
            rm_id=configuration.settings.cluster_id,
            version=__version__,
            policy_group=self._policy_group,
            build_info=build_info(),
            config=self._queues(configuration),
            extra_config=self._extra_config(configuration),
        )

    def map_changed(self, name: str, found: ConfigMap | None) -> None:
        """Take in another state of a ConfigMap; if both together cannot be used, nothing changes, and an event on it says why.

        What counts is always what both ConfigMaps say now: one that was refused counts as soon as a change of the other one
        makes both valid, and as long as one is wrong, no change of the other is taken, since the next start would fail.
        """
        if found is None:
            self._maps.pop(name, None)
        else:
            self._maps[name] = found
        if not self._begun:
            return
        known = self.in_force
        try:
            configuration = read_configuration(self._maps, self._policy_group)
            if configuration.settings.policy_group != self._policy_group and not configuration.queues:
                # The key has been renamed together with the group, which counts after a restart: until then no quota may go.
                configuration = msgspec.structs.replace(configuration, queues=known.queues, queues_key=known.queues_key)
            if not (known.settings.hot_refresh or configuration.settings.hot_refresh):
                text = "takes effect when licorne is started again: service.enableConfigHotRefresh is false"
                self._log.info(text, config_map=name)
                return
            self._reload(configuration)
        except (ConfigurationError, QueuesError, SettingsError) as error:
            self._refuse(found, str(error))
            return
        self._adopt(configuration)
        if self._retune is not None:
            self._retune(configuration)
        self._log.info("the configuration has been changed", config_map=name)
        for _, text in unread(configuration.texts, lenient=True):
            self._log.warning(text)
            self._tell_map(found, "ValueNotUsed", text)
        waiting = wait_for_restart(self._texts_at_start, configuration.texts)
        if waiting and waiting != wait_for_restart(self._texts_at_start, known.texts):
            text = f"takes effect when licorne is started again: {', '.join(waiting)}"
            self._log.warning(text)
            self._tell_map(found, "RestartNeeded", text)
        self._manager.outbox.changed()

    def _adopt(self, configuration: Configuration) -> None:
        """Set what the manager, gangs, events and log levels read of a configuration; the scheduler and REST are told elsewhere."""
        self.in_force, settings = configuration, configuration.settings
        lifecycle = self._manager.lifecycle
        lifecycle.context.settings = configuration.work_settings(self._settings.scheduler_names)
        lifecycle.gangs.settings = settings
        lifecycle.attempts.timeout_s = settings.volume_bind_timeout_ns / 1e9
        lifecycle.scheduled_events = settings.scheduled_events
        self._levels.set(settings.level, settings.levels)

    def _reload(self, configuration: Configuration) -> None:
        """Give the scheduler another configuration; raises ConfigurationError or QueuesError if it is refused."""
        queues = self._queues(configuration)
        self._manager.outbox.api.update_configuration(
            v19.UpdateConfigurationRequest(
                rm_id=self._manager.outbox.rm_id,
                policy_group=self._policy_group,
                config=queues,
                # An empty one would leave the last one in force.
                extra_config=self._extra_config(configuration) or {"service.policyGroup": self._policy_group},
            )
        )

    def _extra_config(self, configuration: Configuration) -> dict[str, str]:
        """Return the settings that the scheduler is given. It is told to make no records of events where there is no REST."""
        given = configuration.of_scheduler()
        if self._retune is None:
            given["event.trackingEnabled"] = "false"
        return given

    def _queues(self, configuration: Configuration) -> str:
        """Return the queue configuration that counts; raises a ConfigurationError that says where it is, if it cannot be used."""
        queues = self._settings.queues or configuration.queues
        where = "--config" if self._settings.queues else configuration.queues_key
        check_queues(queues, self._manager.outbox.rm_id, configuration.settings.queues_max, where=where)
        return queues

    def _refuse(self, found: ConfigMap | None, reason: str) -> None:
        self._log.error("a configuration was refused; the one before counts", reason=reason)
        text = f"the configuration is refused, and the one before counts: {reason}"
        self._tell_map(found or next(iter(self._maps.values()), None), "ConfigurationRefused", text)

    def _tell_map(self, found: ConfigMap | None, reason: str, text: str) -> None:
        """Post an event about a ConfigMap."""
        if found is not None and self._writer is not None:
            names = (found.metadata.namespace, found.metadata.name, found.metadata.uid)
            self._writer.write(PostEvent("ConfigMap", *names, reason, "Configuring", text, warning=True))
