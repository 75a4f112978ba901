"""Tells systemd how the service is, where it wants to know (a unit of `Type=notify`).

The protocol is systemd's sd_notify(3): a datagram of text to the socket that `$NOTIFY_SOCKET` names.
"""

from __future__ import annotations

import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str) -> None:
    """Say it, if somebody listens; that nobody does is no error, nor is that the message gets lost."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path or not hasattr(socket, "AF_UNIX"):
        return
    if path.startswith("@"):  # a name outside the file system, on Linux
        path = "\0" + path[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        one.sendto(state.encode(), path)


__all__ = ["READY", "STOPPING", "notify"]
