"""Which packages the optional parts of licorne need, and the error where they are not installed.

The library needs three packages; the command line, the client, the service, its pages and `licorne kube` need others, which
the extras `cli`, `client`, `service`, `web` and `kube` install (`pyproject.toml`). Such a part checks its extra when it is
imported, before it imports any of these packages, so that the error says what to install rather than which module of a
stranger is missing. The extra `data` is for Parquet, and is checked when such a file is to be written; `mcp` is for
`licorne mcp`, `report` for reports of simulations.
"""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

_CLI = ("cyclopts", "rich")
_UVLOOP = () if sys.platform == "win32" else ("uvloop",)
_WEB = ("h11", "jinja2", "prometheus_client", "starlette", "structlog", "uvicorn")
MODULES: dict[str, tuple[str, ...]] = {
    "cli": _CLI,
    "client": ("grpc",),
    "data": ("polars",),
    "kube": ("aiohttp", "cel_expr_python", "lightkube", *_UVLOOP, *_WEB),
    "mcp": ("mcp", *_CLI),
    "ray": ("ray",),
    "report": ("jinja2", "matplotlib", "polars"),
    "service": ("grpc", "grpc_health", "grpc_reflection", *_WEB),
    "web": _WEB,
}
"""What the packages of each extra are imported as."""


CLONE = Path(__file__).resolve().parents[2]
"""The folder of the sources, where the package lies in a clone; where it was installed, a folder without `pyproject.toml`."""


class MissingExtraError(ImportError):
    """A part of licorne needs packages that are not installed; the text says how to install them."""


def require(extra: str) -> None:
    """Raise MissingExtraError unless all packages of an extra are installed; none of them is imported."""
    missing = [name for name in MODULES[extra] if find_spec(name) is None]
    if missing:
        python = shlex.quote(sys.executable)
        pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
        command = f"{pip} {shlex.quote(f'licorne[{extra}]')}"
        if (CLONE / "pyproject.toml").exists():  # what is compiled beside the sources stays
            pure = "" if sys.platform == "win32" else "LICORNE_PURE=1 "
            command = f"{pure}{pip} --editable {shlex.quote(f'{CLONE}[{extra}]')}"
        message = f"this needs licorne's extra '{extra}': {command} (missing: {', '.join(missing)})"
        raise MissingExtraError(message, name=missing[0])
