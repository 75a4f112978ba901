"""Serving pages on the loopback address, for `licorne page`."""

from __future__ import annotations

import socket
import sys
import traceback
from collections.abc import Callable

import uvicorn

from licorne.cli.common import CommandError, say
from licorne.host.web.page.past import pages_app
from licorne.host.web.page.routes import Opened


def serve_pages(opened: Opened, port: int, told: Callable[[str], object]) -> None:
    """Serve the pages of a source on 127.0.0.1 until SIGTERM or SIGINT; `told` is called with the address.

    Raises:
        CommandError: the port is taken.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise CommandError(f"127.0.0.1:{port}: {error.strerror}; --port takes another one") from None
    config = uvicorn.Config(
        pages_app(opened, _failed),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    told(f"127.0.0.1:{listening.getsockname()[1]}")
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def _failed(path: str, error: Exception) -> None:
    """Tell of a failure of a page, which is a bug."""
    say(f"{path}:", *"".join(traceback.format_exception(error)).splitlines(), to=sys.stderr)
