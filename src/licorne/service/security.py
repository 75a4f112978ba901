"""Where the service listens, and who may speak to it.

It listens on loopback, or on a unix socket, to whoever is on this machine. Beyond that only with TLS, and to those who
show a certificate or a token; or to everybody, if that is said by name (`insecure`).
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
import msgspec

HEALTH = "/grpc.health.v1.Health/"
"""Calls that need no token: probes have none."""


class SecurityError(ValueError):
    """An address, or a way to listen, that is refused; the text says what to do."""


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """What protects the service. All texts are PEM; the token is what clients send as `authorization: Bearer TOKEN`."""

    certificate: bytes = b""
    key: bytes = b""
    client_ca: bytes = b""
    token: str = ""
    insecure: bool = False

    def check(self, addresses: Sequence[str]) -> None:
        """Refuse what would be open to strangers.

        Raises:
            SecurityError: an address beyond loopback without TLS and a way to know the client; half of a key pair.
        """
        if bool(self.certificate) != bool(self.key):
            raise SecurityError("TLS needs both a certificate and its key")
        if self.client_ca and not self.certificate:
            raise SecurityError("certificates of clients can only be checked where the service has one itself")
        beyond = [address for address in addresses if not is_local(address)]
        if not beyond or self.insecure:
            return
        if not self.certificate:
            raise SecurityError(f"{beyond[0]} is beyond loopback: give TLS a certificate and a key, or say insecure")
        if not (self.client_ca or self.token):
            raise SecurityError(
                f"{beyond[0]} is beyond loopback: ask for certificates of clients or a token, or say insecure"
            )

    def credentials(self) -> grpc.ServerCredentials | None:
        """What a port with TLS needs; None without TLS."""
        if not self.certificate:
            return None
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)], self.client_ca or None, require_client_auth=bool(self.client_ca)
        )


def grpc_address(address: str) -> str:
    """An address as gRPC writes it: `tcp://` in front is left out, and a unix socket is `unix:PATH`.

    Raises:
        SecurityError: it is neither HOST:PORT nor a path of a unix socket.
    """
    if address.startswith("unix:"):
        path = address.removeprefix("unix:").removeprefix("//")
        if not path:
            raise SecurityError(f"{address!r}: a unix socket has a path: unix:PATH")
        return f"unix:{path}"
    plain = address.removeprefix("tcp://")
    host, colon, port = plain.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SecurityError(f"{address!r}: an address is written HOST:PORT or unix:PATH")
    return plain


def is_local(address: str) -> bool:
    """Is this a unix socket, or an address that only this machine reaches?"""
    plain = grpc_address(address)
    if plain.startswith("unix:"):
        return True
    host = plain.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name may mean anything


class TokenCheck(grpc.aio.ServerInterceptor):
    """Lets through who knows the token."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Answer the call, or refuse it."""
        details: Any = handler_call_details
        if details.method.startswith(HEALTH):
            return await continuation(handler_call_details)
        for key, value in details.invocation_metadata or ():
            if key == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
                if hmac.compare_digest(given, self._wanted):
                    return await continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_deny)


async def _deny(_requests: object, context: Any) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed: authorization: Bearer TOKEN")
