"""Telling systemd the state of the service, if its unit is of `Type=notify`.

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
    """Send a state to systemd if NOTIFY_SOCKET is set; otherwise do nothing. Failures to send are ignored."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path or not hasattr(socket, "AF_UNIX"):
        return
    if path.startswith("@"):  # an abstract socket of Linux, outside the file system
        path = "\0" + path[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        one.sendto(state.encode(), path)


def watchdog_s() -> float:
    """Return the seconds within which systemd expects a sign of life (`WatchdogSec`); 0: it expects none."""
    wanted, of = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isdecimal() or (of and of != str(os.getpid())):
        return 0.0
    return int(wanted) / 1e6


async def stay_alive() -> None:
    """Send signs of life from the loop, three in each interval: if the loop hangs, systemd restarts the service."""
    wanted_s = watchdog_s()
    while wanted_s:
        notify(WATCHDOG)
        await asyncio.sleep(wanted_s / 3)
