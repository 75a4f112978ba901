"""Default handlers that the core uses but may not import, because they do I/O: set by `licorne`, read by the core.

This module is separate and imports nothing of the core, so that `import licorne` can set the handlers without loading
the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

incident_handlers: list[Callable[[Any], object]] = []
"""Handlers of incidents (`licorne.core.incidents`) of hosts without one of their own; only the last is called."""
