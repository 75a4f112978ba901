"""licorne: a cluster resource scheduler that is fast, deterministic, and able to explain its decisions.

The public interface consists of the names in `__all__` and the messages in `licorne.si`; `docs/reference/versions.md` says what
may change when. Each name is loaded when it is first used, so that a program that only asks for the version, or a
command that only prints its help, does not wait until the scheduler is loaded.

Packages, from the top down: `cli`; `grpc`, `kube`; `host`, `lab`; `answers`, `sim`, `workload`, `state`, `core`, `config`, `si`
(docs/understand/architecture.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from licorne import _default, _interpreted, _log
from licorne._version import __version__

if TYPE_CHECKING:
    from licorne.answers.explained import explain, shares
    from licorne.core.api import ConfigurationError, NotRegisteredError, RegistrationError, SchedulerAPI
    from licorne.core.arguments import RequestError
    from licorne.core.base.setting_table import SettingsError
    from licorne.core.incidents import Incident
    from licorne.core.inspection.validate import InvariantError
    from licorne.core.strict import NoEffectError
    from licorne.si.callback import ResourceManagerCallback
    from licorne.sim.policies.interface import Policy, PolicyError
    from licorne.sim.runner import Simulation, simulate
    from licorne.workload.scenarios.scenario import Scenario

__all__ = [
    "ConfigurationError",
    "Incident",
    "InvariantError",
    "NoEffectError",
    "NotRegisteredError",
    "Policy",
    "PolicyError",
    "RegistrationError",
    "RequestError",
    "ResourceManagerCallback",
    "Scenario",
    "SchedulerAPI",
    "SettingsError",
    "Simulation",
    "__version__",
    "explain",
    "shares",
    "simulate",
]

_WHERE = {
    "ConfigurationError": "licorne.core.api",
    "Incident": "licorne.core.incidents",
    "InvariantError": "licorne.core.inspection.validate",
    "NoEffectError": "licorne.core.strict",
    "NotRegisteredError": "licorne.core.api",
    "Policy": "licorne.sim.policies.interface",
    "PolicyError": "licorne.sim.policies.interface",
    "RegistrationError": "licorne.core.api",
    "RequestError": "licorne.core.arguments",
    "ResourceManagerCallback": "licorne.si.callback",
    "Scenario": "licorne.workload.scenarios.scenario",
    "SchedulerAPI": "licorne.core.api",
    "SettingsError": "licorne.core.base.setting_table",
    "Simulation": "licorne.sim.runner",
    "explain": "licorne.answers.explained",
    "shares": "licorne.answers.explained",
    "simulate": "licorne.sim.runner",
}

_interpreted.install()  # before the core is imported, because it decides whether compiled or Python modules are loaded
_default.incident_handlers.append(_log.log_incident)  # for incidents that a program does not handle itself

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name of this module

    def __getattr__(name: str) -> object:
        """Return a public name from the module that defines it, which is imported at first use."""
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)

    def __dir__() -> list[str]:
        """Return the public names, for completion and for `help`."""
        return sorted(__all__)
