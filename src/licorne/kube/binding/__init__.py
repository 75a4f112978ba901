"""Bindings: sent in the order of decisions, repeated where that may help, and never given up without looking (`binder`)."""

from __future__ import annotations

from .binder import Binder

__all__ = ["Binder"]
