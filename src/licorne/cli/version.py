"""What `licorne --version` prints: the version, and whether the hot modules are compiled."""

from __future__ import annotations

import platform

from licorne import __version__


def describe() -> str:
    """Return a line with the version, compiled or interpreted, and the version of Python."""
    from licorne.core import compiled  # noqa: PLC0415  # `licorne --help` needs no scheduler

    kind = "compiled" if compiled else "interpreted"
    return f"licorne {__version__} ({kind}, Python {platform.python_version()})"
