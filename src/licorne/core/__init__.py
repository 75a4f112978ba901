"""The scheduler itself: pure, deterministic, compiled where it is hot."""

from __future__ import annotations

from licorne.core import vectors

compiled: bool = not str(vectors.__file__).endswith(".py")
"""Whether the hot modules are C extensions; the build compiles all of them or none."""
