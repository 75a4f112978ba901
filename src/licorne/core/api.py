"""The Scheduler Interface in process: `SchedulerAPI`, for programs that embed the scheduler.

Sources: *Scheduler Interface Spec*, "API Interface" and "Scheduler plugin"; docs/spec/scheduler-interface.md,
sections 5 to 7 and 9.

Both dialects, the first interface and the 1.9 interface, are supported side by side: a resource manager uses the
dialect in which it has registered. An update is taken in at once and answered through the callback before the call
returns; decisions are made only in `schedule`, when the program calls it. Every call carries the time (`now_ns`),
because the core reads no clock: pass it, or give a `clock` to the constructor, or let time stand still, as a simulation
does between events.

Calls from within a callback are refused, because the step that called back has not ended yet.

No error is swallowed. A mistake of the calling program raises at once (`licorne.core.arguments`); refusals that no
callback takes, and exceptions of callbacks, reach a handler (`licorne.core.incidents`).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Any

import msgspec

from licorne.config import DEFAULT_CONFIGURATION, ConfigError
from licorne.core.base.setting_table import SettingsError, check_settings, unknown_settings
from licorne.si import first, v19
from licorne.si.callback import ResourceManagerCallback

from .arguments import RequestError, check_callables, check_callback, check_text, checked
from .calls import REENTERED, Calls, Clock, Moment, NotRegisteredError, OnOutput
from .connection import ManagerConnection
from .incidents import Handler, Incident
from .inputs.ages import ApplicationAge, ages_of, restore_ages
from .inspection import dump
from .partition import Partition, PlacementConfigError
from .plugins import Plugins
from .strict import NoEffectError

PolicyGroups = MutableMapping[str, tuple[str, Mapping[str, str]]]


class RegistrationError(ValueError):
    """A registration was refused; the text says why. An earlier registration of the same id stays as it was."""


class ConfigurationError(ValueError):
    """A configuration was refused; the text says where and why. The old configuration stays in force."""


class SchedulerAPI(Calls):
    """A scheduler for any number of resource managers in this process.

    Parameters:
        policy_groups: for each name of a policy group, (queue configuration in YAML, settings). A registration without
            a configuration of its own gets that of its policy group, or the built-in one if there are no policy groups.
        settings: settings for every resource manager; those of its policy group and its own take precedence.
        clock: called for the time in nanoseconds when a call does not pass it.
        on_output: takes (rm_id, outputs) as internal messages (`licorne.si.messages`) in place of the callbacks. A host
            that sends bytes makes them with `responses_as_bytes` of the adapter of its peer's dialect
            (`licorne.si.adapt_v19`, `licorne.si.adapt_first`).
        on_incident: takes an `Incident`: a refusal that no callback took, an error that a callback raised, or a part of
            a request that has no effect. The default writes them to `logging.getLogger("licorne")`. Refusals that
            are handed to `on_output` are no incidents.
        strict: a request that ends or changes something that does not exist raises `NoEffectError`, instead of
            changing nothing.
        other_settings: a setting that neither the scheduler nor YuniKorn knows is ignored, with an incident, instead of
            refused: for a host whose resource managers may be newer than itself.

    The attribute `input_log`, set before the first registration, is told of all inputs (`licorne.core.input_log`).
    The attribute `settings` may be changed: a new value takes effect for each resource manager with its next
    registration or reload. `callback_errors` are the last errors that callbacks raised (at most 100), as texts; they have no
    influence on decisions.

    Raises:
        SettingsError: a setting is unknown, or its value is no text.
        RequestError: another argument cannot be used.
    """

    def __init__(
        self,
        *,
        policy_groups: PolicyGroups | None = None,
        settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        on_output: OnOutput | None = None,
        on_incident: Handler | None = None,
        strict: bool = False,
        other_settings: bool = False,
    ) -> None:
        check_callables(clock=clock, on_output=on_output, on_incident=on_incident)
        check_settings({} if settings is None else settings, known=not other_settings)
        self._other_settings = other_settings
        super().__init__(clock, on_output, on_incident, strict=strict)
        self.policy_groups: PolicyGroups = {} if policy_groups is None else policy_groups
        self.settings: dict[str, str] = dict(settings or {})

    # -- checkpoints -----------------------------------------------------------------------------------

    def checkpoint(self) -> bytes:
        """Return the whole state as bytes, from which `restore_checkpoint` makes an equal scheduler.

        It is read between two calls and changed by none; callbacks and records of events are not part of it.

        Raises:
            RuntimeError: a callback calls this.
        """
        from .checkpoint.take import take  # noqa: PLC0415  only programs that take checkpoints load all that it knows

        if self._busy:
            raise RuntimeError(REENTERED)
        return take(self.cluster, {each.rm_id: (each.policy_group, each.extra) for each in self._connections.values()})

    def restore_checkpoint(
        self, data: bytes, callbacks: Mapping[str, ResourceManagerCallback] | None = None, *, check: bool = True
    ) -> None:
        """Take over the state of a checkpoint: from now on, equal calls have equal results.

        Its resource managers are registered then, with these `callbacks`, by id. `check`: the state is checked for
        contradictions first, which takes longer than all the rest; leave it out only where nobody else can have written
        the bytes.

        Raises:
            CheckpointError: the bytes are no checkpoint that this licorne can use; nothing has changed.
            RequestError: the data are no bytes; a callback is no callback, or is missing for a resource manager that
                answered predicates; a resource manager is registered already, or inputs are recorded, which begins
                with a registration.
        """
        from .checkpoint.restore import restore  # noqa: PLC0415  as for `checkpoint`

        callbacks = {} if callbacks is None else callbacks
        if not isinstance(callbacks, Mapping):
            raise RequestError(f"callbacks: must be callbacks by the ids of resource managers, not {callbacks!r:.50}")
        for each in callbacks.values():
            check_callback(each)
        if not isinstance(data, bytes):
            raise RequestError(f"data: must be the bytes of a checkpoint, not {data!r:.50}")
        if self._busy:
            raise RuntimeError(REENTERED)
        if self._connections or self.input_log is not None:
            raise RequestError(
                "restore_checkpoint: only a new scheduler, whose inputs are not recorded, can be restored"
            )
        peers, cluster = restore(data, check=check)
        connections = {}
        for peer in peers:
            callback = callbacks.get(peer.rm_id)
            plugins = Plugins(callback, partial(self._incidents.failed, peer.rm_id))
            if (plugins.asked, plugins.preempts) != (peer.predicates, peer.preemption_predicates):
                raise RequestError(
                    f"callbacks: {peer.rm_id!r}: must answer the predicates that it answered when the checkpoint was taken"
                    f" (predicates: {peer.predicates}, preemption_predicates: {peer.preemption_predicates})"
                )
            plugins.manager = cluster.managers[peer.rm_id]
            connections[peer.rm_id] = ManagerConnection(
                peer.rm_id,
                callback,
                plugins,
                peer.policy_group,
                peer.extra,
                self._incidents,
                first_interface=peer.first_interface,
            )
        cluster.take_over(self.cluster)
        for rm_id, connection in connections.items():
            plugins = connection.plugins
            cluster.attach(rm_id, plugins.predicate(), plugins.preemption_predicate(), listens=plugins.listens)
        self.cluster = cluster
        self._connections = connections
        self._note_plugins()

    # -- registration and configuration ----------------------------------------------------------------

    def register_resource_manager(
        self,
        request: v19.RegisterResourceManagerRequest | first.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback | None = None,
        *,
        now_ns: Moment = None,
    ) -> v19.RegisterResourceManagerResponse | first.RegisterResourceManagerResponse:
        """Register a resource manager in the dialect of the request.

        A resource manager that registers again loses all its state here, and has to report it anew.

        `callback`: an instance of a subclass of `ResourceManagerCallback`, or any object that has some of its methods.

        In the 1.9 interface the policy group is only a name: an unknown one is an incident, and the configuration of
        the request, or else the built-in one, is used.

        Raises:
            RegistrationError: the id is empty, the configuration or a setting is refused, or (first interface) the
                policy group is not among those of this scheduler, if it has any.
            RequestError: `request` is no such request, or `callback` is a class or has none of the methods.
        """
        request = checked(request, v19.RegisterResourceManagerRequest, first.RegisterResourceManagerRequest)
        check_callback(callback)
        self._begin(now_ns)
        rm_id = request.rm_id
        first_interface = isinstance(request, first.RegisterResourceManagerRequest)
        text = request.config if isinstance(request, v19.RegisterResourceManagerRequest) else ""
        extra = request.extra_config if isinstance(request, v19.RegisterResourceManagerRequest) else {}
        if not rm_id:
            raise RegistrationError("registration of RM failed: rmID: must not be empty")
        group_text, group_settings = self._policy_group(request.policy_group, required=first_interface)
        plugins = Plugins(callback, partial(self._incidents.failed, rm_id))
        try:
            settings = self._checked(rm_id, {**self.settings, **group_settings, **extra})
            plugins.manager = self.cluster.register(
                rm_id,
                text or group_text or DEFAULT_CONFIGURATION,
                settings,
                plugins.predicate(),
                first_interface=first_interface,
                listens=plugins.listens,
                preemption_predicates=plugins.preemption_predicate(),
            )
        except (ConfigError, SettingsError, PlacementConfigError) as error:
            raise RegistrationError(f"registration of RM failed: {error}") from error
        self._connections[rm_id] = ManagerConnection(
            rm_id, callback, plugins, request.policy_group, extra, self._incidents, first_interface=first_interface
        )
        if (
            request.policy_group
            and self.policy_groups
            and self.policy_groups.get(request.policy_group) is None
            and not text
        ):
            self._incidents.passed_over(
                rm_id, f"policyGroup: {request.policy_group!r}: unknown; the built-in configuration counts"
            )
        self._note_plugins()
        self._note_registration(rm_id, settings, plugins, first_interface=first_interface)
        self._deliver()
        return first.RegisterResourceManagerResponse() if first_interface else v19.RegisterResourceManagerResponse()

    def _note_registration(
        self, rm_id: str, settings: Mapping[str, str], plugins: Plugins, *, first_interface: bool
    ) -> None:
        if self.input_log is None:
            return
        plugins.answered = self.input_log.answered
        self.input_log.registered(
            rm_id,
            self.cluster.managers[rm_id].configuration.text,
            settings,
            first_interface=first_interface,
            predicates=plugins.asked,
            preemption_predicates=plugins.preempts,
            alone=len(self._connections) == 1,
        )

    def _note_plugins(self) -> None:
        plugins = [each.plugins for each in self._connections.values()]
        self._syncing = [each for each in plugins if each.syncs]
        self._predicates = any(each.asked for each in plugins)

    def _policy_group(self, name: str, *, required: bool) -> tuple[str, Mapping[str, str]]:
        known = self.policy_groups.get(name)
        if known is not None:
            return known
        if required and self.policy_groups:
            names = ", ".join(sorted(self.policy_groups))
            raise RegistrationError(f"registration of RM failed: policyGroup: {name!r}: unknown, there are: {names}")
        return "", {}

    def update_configuration(self, request: v19.UpdateConfigurationRequest, *, now_ns: Moment = None) -> None:
        """Apply a configuration (1.9); an empty text means the built-in one, and the text in force changes nothing.

        `extra_config`, if it is not empty, replaces that of the registration; only the settings named in
        `Settings.reread` take effect. It is applied together with the configuration, or not at all.

        Raises:
            ConfigurationError: the configuration is refused; the old one stays in force.
            RequestError: `request` is no such request.
        """
        request = checked(request, v19.UpdateConfigurationRequest)
        self._begin(now_ns)
        connection = self._connections.get(request.rm_id)
        if connection is None:
            raise ConfigurationError(
                f"update of configuration failed: RM {request.rm_id} has no active partitions, make sure it is registered"
            )
        self._reload(request.rm_id, connection, request.config or DEFAULT_CONFIGURATION, request.extra_config)

    def reload_configuration(self, rm_id: str, *, now_ns: Moment = None) -> None:
        """Read the resource manager's policy group again and apply its configuration (first interface).

        Raises:
            ConfigurationError: the configuration is refused; the old one stays in force.
        """
        check_text("rm_id", rm_id)
        self._begin(now_ns)
        connection = self._connections.get(rm_id)
        if connection is None:
            raise ConfigurationError(f"update of configuration failed: RM {rm_id} is not registered")
        if connection.policy_group not in self.policy_groups and not connection.first_interface:
            raise ConfigurationError(
                f"update of configuration failed: policyGroup: {connection.policy_group!r}: no such group; "
                "a resource manager that brought its configuration changes it with update_configuration"
            )
        text = self.policy_groups.get(connection.policy_group, ("", {}))[0] or DEFAULT_CONFIGURATION
        self._reload(rm_id, connection, text, {})

    def change_configuration(
        self, rm_id: str, text: str, *, now_ns: Moment = None
    ) -> first.UpdateConfigurationResponse:
        """Change the configuration from the scheduler's side, for an operator rather than the resource manager.

        First the whole text is checked. Then the resource manager saves it, if it has the plugin
        `update_configuration`; without that plugin, its next registration or reload brings the old configuration back.
        Only then is the text applied.

        Returns:
            `success`, which is always true, and `old_config`, the text that was in force here until now.

        Raises:
            ConfigurationError: the resource manager is not registered, the text is refused, or the resource manager
                did not save it; nothing has changed. All three raise, as in the other ways to change a configuration.
        """
        check_text("rm_id", rm_id)
        check_text("text", text)
        self._begin(now_ns)
        connection = self._connections.get(rm_id)
        if connection is None:
            raise ConfigurationError(f"update of configuration failed: RM {rm_id} is not registered")
        if not text.strip():  # an empty text is legal, but would remove all partitions
            raise ConfigurationError("update of configuration failed: the text is empty")
        try:
            self.cluster.check_reload(rm_id, text, self._settings_of(rm_id, connection, connection.extra))
        except (ConfigError, SettingsError, PlacementConfigError) as error:
            raise ConfigurationError(f"update of configuration failed: {error}") from error
        old = self.cluster.managers[rm_id].configuration.text
        if connection.plugins.saves:
            self._busy = True
            try:
                refusal = connection.plugins.save(text)
            finally:
                self._busy = False
            if refusal:
                raise ConfigurationError(f"update of configuration failed: {refusal}")
        self._reload(rm_id, connection, text, {})
        return first.UpdateConfigurationResponse(success=True, old_config=old)

    def _settings_of(self, rm_id: str, connection: ManagerConnection, extra: Mapping[str, str]) -> dict[str, str]:
        group = self.policy_groups.get(connection.policy_group, ("", {}))[1]
        return self._checked(rm_id, {**self.settings, **group, **extra})

    def _checked(self, rm_id: str, settings: dict[str, str]) -> dict[str, str]:
        """Return the settings; raise for unknown ones, or make an incident of each if `other_settings` is set."""
        check_settings(settings, known=not self._other_settings)
        if self._other_settings:
            for words in unknown_settings(settings):
                self._incidents.passed_over(rm_id, words)
        return settings

    def _reload(self, rm_id: str, connection: ManagerConnection, text: str, extra: Mapping[str, str]) -> None:
        extra = dict(extra) or connection.extra
        try:
            settings = self._settings_of(rm_id, connection, extra)
            self.cluster.reload(rm_id, text, settings)
        except (ConfigError, SettingsError, PlacementConfigError) as error:
            self._end_refused(rm_id)
            raise ConfigurationError(f"update of configuration failed: {error}") from error
        connection.extra = extra
        if self.input_log is not None:
            self.input_log.reloaded(rm_id, text, settings)
        self._deliver()

    def extra_config(self, rm_id: str) -> Mapping[str, str]:
        """Return the settings that a resource manager has brought; an empty map for an unknown one."""
        check_text("rm_id", rm_id)
        return self._connections[rm_id].extra if rm_id in self._connections else {}

    def stop(self, rm_id: str, *, now_ns: Moment = None) -> None:
        """Remove a resource manager that shuts down, with all its state.

        Raises:
            NotRegisteredError: with `strict`, the id is unknown; otherwise that is ignored.
        """
        self._check_known(rm_id)
        self._begin(now_ns)
        self._connections.pop(rm_id, None)
        self._note_plugins()
        self.cluster.remove(rm_id)
        if self.input_log is not None:
            self.input_log.removed(rm_id)
        self._deliver()

    # -- restart ---------------------------------------------------------------------------------------

    def ages(self, rm_id: str) -> dict[str, dict[str, ApplicationAge]]:
        """Return since when the applications and asks of a resource manager wait, by partition and application.

        A program stores this, for example as JSON, and hands it to `restore_ages` after a restart.

        Raises:
            NotRegisteredError: the id is unknown.
        """
        return {name: ages_of(each.applications.values()) for name, each in self._partitions(rm_id).items()}

    def restore_ages(self, rm_id: str, ages: object, *, now_ns: Moment = None) -> None:
        """Take over `ages`, as they were returned or as data from JSON: call it between the report and `schedule`.

        Applications, asks and allocations that were not reported again are passed over. `now_ns` goes on from the time
        before the restart: a time in `ages` that is later counts as `now_ns`.

        Raises:
            NotRegisteredError: the id is unknown.
            RequestError: `ages` is not what `ages` returns.
        """
        partitions = self._partitions(rm_id)
        try:
            given = msgspec.convert(ages, dict[str, dict[str, ApplicationAge]])
        except msgspec.ValidationError as error:
            raise RequestError(f"invalid ages: {error}") from None
        self._begin(now_ns)
        if self.input_log is not None:
            self.input_log.ages_restored(rm_id, msgspec.to_builtins(given))
        for name in sorted(given.keys() & partitions.keys()):
            restore_ages(partitions[name], given[name])
        self._deliver()

    def _partitions(self, rm_id: str) -> dict[str, Partition]:
        check_text("rm_id", rm_id)
        if rm_id not in self._connections:
            raise NotRegisteredError(f'RmID="{rm_id}" not registered')
        return self.cluster.managers[rm_id].partitions

    # -- pausing, looking ------------------------------------------------------------------------------

    def pause(self, rm_id: str, *, paused: bool = True) -> None:
        """Stop deciding for a resource manager (`paused`), or resume; its state is kept, and its deadlines still come.

        May be called from within `on_output`: it takes effect at the next `schedule`. A new registration ends a pause.

        Raises:
            NotRegisteredError: with `strict`, the id is unknown; otherwise that is ignored.
        """
        self._check_known(rm_id)
        self.cluster.pause(rm_id, paused=paused)
        if self.input_log is not None:
            self.input_log.paused(rm_id, paused=paused)

    def _check_known(self, rm_id: str) -> None:
        check_text("rm_id", rm_id)
        if self._strict and rm_id not in self._connections:
            raise NotRegisteredError(f'RmID="{rm_id}" not registered')

    def next_deadline_ns(self) -> int | None:
        """Return the next time (ns) at which `schedule` may do something without an input; None if there is none."""
        return self.cluster.next_deadline_ns()

    def validate(self) -> None:
        """Check every invariant that the state can show.

        Raises:
            InvariantError: the state contradicts itself, which means a bug.
        """
        self.cluster.validate()

    def state_dump(self) -> dict[str, Any]:
        """Return the whole state as data for JSON, in a fixed order (`licorne.core.inspection.dump`).

        Diagnostics that a resource manager adds (plugin `get_state_dump`, 1.9) are `rmDiagnostics` of its entry.
        """
        return dump.state(self.cluster, self.diagnostics())

    def diagnostics(self) -> dict[str, dict[str, Any]]:
        """Return the diagnostics that resource managers add to a state dump (plugin `get_state_dump`, 1.9), by id."""
        if self._busy:
            raise RuntimeError(REENTERED)
        self._busy = True
        try:
            added = {rm_id: self._connections[rm_id].plugins.diagnostics() for rm_id in sorted(self._connections)}
        finally:
            self._busy = False
        return {rm_id: found for rm_id, found in added.items() if found is not None}


__all__ = [
    "ConfigurationError",
    "Incident",
    "NoEffectError",
    "NotRegisteredError",
    "PolicyGroups",
    "RegistrationError",
    "RequestError",
    "SchedulerAPI",
    "SettingsError",
]
