"""Register a simulated resource manager, and report faults of its configuration with file and line.

The scheduler receives texts without knowing their origin. In a workload file the configuration is a string in one line, so
a fault of it has two places: that line, and the line and column within the string.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from licorne.config import ConfigError, load
from licorne.core.api import RegistrationError, SchedulerAPI
from licorne.core.base.setting_table import SettingsError, check_settings
from licorne.core.base.settings import read_settings
from licorne.core.partition import Partition
from licorne.si import v19
from licorne.workload.workload import Workload, WorkloadError

PARTITION = "default"


def register(
    api: SchedulerAPI, rm_id: str, workload: Workload, config: str | None, settings: Mapping[str, str]
) -> Partition:
    """Register with the configuration of the workload, or with `config` in its place.

    `settings` take precedence over those of the workload. Returns the partition of the workload's applications.

    Raises:
        SettingsError: one of `settings` is not usable.
        WorkloadError: a setting or the configuration of the workload is not usable.
        RegistrationError: `config` is not usable.
    """
    place = workload.config_place
    check_settings(settings)
    read_settings(settings)
    try:
        check_settings(workload.extra)
        read_settings(workload.extra)
    except SettingsError as error:
        raise WorkloadError(f"{place}: extra: {error}" if place else str(error)) from None
    request = v19.RegisterResourceManagerRequest(
        rm_id=rm_id,
        version="1",
        config=config if config is not None else workload.config or "",
        extra_config={**workload.extra, **settings},
    )
    api.cluster.read = partial(load, simulated=True)
    try:
        api.register_resource_manager(request, None, now_ns=0)
    except RegistrationError as error:
        if config is not None:
            raise RegistrationError(refused_configuration(config, "<config>", error)) from None
        label = f"{place}: yaml" if place else "yaml"
        raise WorkloadError(refused_configuration(request.config, label, error)) from None
    try:
        return api.cluster.partition(rm_id, PARTITION)
    except KeyError:
        prefix = f"{place}: yaml: " if place and config is None else ""
        message = f"{prefix}the configuration has no partition {PARTITION!r}, where a workload's applications go"
        raise WorkloadError(message) from None


def refused_configuration(text: str, label: str, error: Exception) -> str:
    """Return why a configuration was refused: all its faults with line and column in the text, which is named `label`."""
    try:
        load(text, file=label, simulated=True)
    except ConfigError as found:
        return str(found)
    return f"{label}: {error.__cause__ or error}"
