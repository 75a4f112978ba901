"""Sockets on which a server listens, and why an address cannot be used."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

_REMEDIES = {
    errno.EADDRINUSE: "another program listens there; choose another address, or end that program",
    errno.EACCES: "this user may not use it; ports below 1024 are for the administrator",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
    errno.ENOENT: "there is no such folder for the socket",
}


def listen(address: str) -> socket.socket:
    """Return a socket that is bound to an address, in the form of `licorne.host.security.grpc_address`.

    Raises:
        OSError: the address cannot be bound.
    """
    if address.startswith("unix:"):
        return _listen_unix(Path(address.removeprefix("unix:")))
    host, _, port = address.rpartition(":")
    family, kind, protocol, _, target = socket.getaddrinfo(
        host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(target)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


def _listen_unix(path: Path) -> socket.socket:
    found = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket() and found.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()  # left behind by a process that no longer listens
            found.close()
            found = socket.socket(socket.AF_UNIX)
        found.bind(str(path))
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


def reason(error: OSError) -> str:
    """Return why an address cannot be bound, and what to do."""
    if isinstance(error, socket.gaierror):
        return "the name of the host cannot be resolved"
    return _REMEDIES.get(error.errno or 0, error.strerror or str(error))


def why_not(address: str) -> str:
    """Return why an address could not be bound a moment ago, for a library that does not say."""
    try:
        listen(address).close()
    except OSError as error:
        return reason(error)
    if address.startswith("unix:"):
        Path(address.removeprefix("unix:")).unlink(missing_ok=True)
    return "it was not free a moment ago; try again"
