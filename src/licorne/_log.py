"""Where incidents go when a program that uses the library says nothing else: to the logger `licorne`.

The core and the dialects write no log (a contract that `make check` enforces), so the handler stands outside of them,
and `licorne/__init__.py` sets it. A program that configures no logging sees warnings and errors on its standard error, as
Python has it; `logging.getLogger("licorne")` is where they are directed elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.core.incidents import Incident


def log_incident(incident: Incident) -> None:
    """Write an incident: a refusal and what was passed over as a warning, an error of a callback with its traceback."""
    import logging  # noqa: PLC0415  most programs need it only when there is something to say

    log = logging.getLogger("licorne")
    if incident.error is not None:
        log.error("resource manager %r: %s", incident.rm_id, incident.text, exc_info=incident.error)
    else:
        log.warning("resource manager %r: %s", incident.rm_id, incident.text)
