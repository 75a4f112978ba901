"""licorne: a cluster resource scheduler, fast, deterministic, and able to say why.

The public interface is what is listed in `__all__`; `docs/versions.md` says what may change when.
"""

from __future__ import annotations

from licorne import _interpreted

_interpreted.install()  # before the core is imported: it decides which form of it is loaded

from licorne.core.api import ConfigurationError, NotRegisteredError, RegistrationError, SchedulerAPI
from licorne.core.validate import InvariantError
from licorne.si.callback import ResourceManagerCallback

__version__ = "0.1.0"

__all__ = [
    "ConfigurationError",
    "InvariantError",
    "NotRegisteredError",
    "RegistrationError",
    "ResourceManagerCallback",
    "SchedulerAPI",
    "__version__",
]
