"""The default handler of incidents, which writes them to the logger `licorne`.

The core and the dialects write no log (a contract that `make check` enforces), so the handler is defined outside of
them, and `licorne/__init__.py` sets it. A program that configures no logging sees warnings and errors on its standard
error, which is Python's default; `logging.getLogger("licorne")` is the logger to configure for anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.core.incidents import Incident


def log_incident(incident: Incident) -> None:
    """Log an incident: an error of a callback as an error with its traceback, any other as a warning."""
    import logging  # noqa: PLC0415  most programs need it only when there is an incident

    log = logging.getLogger("licorne")
    if incident.error is not None:
        log.error("resource manager %r: %s", incident.rm_id, incident.text, exc_info=incident.error)
    else:
        log.warning("resource manager %r: %s", incident.rm_id, incident.text)
