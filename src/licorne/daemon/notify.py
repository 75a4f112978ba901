"""Tells systemd how the service is, where it wants to know (a unit of `Type=notify`).

The protocol is systemd's sd_notify(3): a datagram of text to the socket that `$NOTIFY_SOCKET` names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"


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


def watchdog_s() -> float:
    """How often systemd wants to hear that the service is alive (`WatchdogSec`), in seconds; 0: it does not."""
    wanted, of = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isdecimal() or (of and of != str(os.getpid())):
        return 0.0
    return int(wanted) / 1e6


async def stay_alive() -> None:
    """Say so, from the loop, three times as often as systemd wants it: a loop that hangs is then restarted."""
    wanted_s = watchdog_s()
    while wanted_s:
        notify(WATCHDOG)
        await asyncio.sleep(wanted_s / 3)


__all__ = ["READY", "STOPPING", "WATCHDOG", "notify", "stay_alive", "watchdog_s"]
