"""What the core does where its host says nothing, and which it may not import: set by the package, read by the core.

It stands by itself and imports nothing, so that `import licorne` need not load the scheduler to set it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

incident_handlers: list[Callable[[Any], object]] = []
"""Who is told of an incident (`licorne.core.incidents`) if the host takes none itself: the last one."""
