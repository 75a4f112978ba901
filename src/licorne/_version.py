"""The version of licorne; `licorne.__version__` is its public name."""

from __future__ import annotations

__version__ = "0.1.0"
