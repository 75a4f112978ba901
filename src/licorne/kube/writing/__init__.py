"""Every write but bindings: evictions, placeholders, conditions, events (`writer`)."""

from __future__ import annotations

from .writer import Writer

__all__ = ["Writer"]
