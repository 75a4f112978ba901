"""Access control: on which addresses the service listens, and which clients it accepts.

On loopback or a unix socket every client of this machine is accepted. Any other address needs TLS, and clients with a
certificate or a token; the setting `insecure` removes that rule.
"""

from __future__ import annotations

import hmac
import inspect
import ipaddress
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import msgspec

from .guesses import Guesses
from .setting_table import TABLE

HEALTH = "/grpc.health.v1.Health/"
"""Prefix of the calls that need no token, for health probes have none."""


class SecurityError(ValueError):
    """An address, or the protection for it, is refused; the text says what to do."""


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """TLS and token of the service.

    `certificate`, `key`, `client_ca`: PEM. `token`: clients send it as `authorization: Bearer TOKEN`. `insecure`:
    listen beyond loopback without protection.
    """

    certificate: bytes = b""
    key: bytes = b""
    client_ca: bytes = b""
    token: str = ""
    insecure: bool = TABLE.field("licorne.insecure")

    def check(self, addresses: Sequence[str]) -> None:
        """Check that no address is open to clients that are neither local nor authenticated.

        Raises:
            SecurityError: an address beyond loopback without TLS and client authentication; half of a key pair.
        """
        if bool(self.certificate) != bool(self.key):
            raise SecurityError("TLS needs both a certificate and its key")
        if self.client_ca and not self.certificate:
            raise SecurityError("certificates of clients can only be checked where the service has one itself")
        exposed = self.exposed(addresses, tokens=bool(self.token))
        if not exposed or self.insecure:
            return
        if not self.certificate:
            raise SecurityError(f"{exposed[0]} is beyond loopback: give TLS a certificate and a key, or say insecure")
        raise SecurityError(
            f"{exposed[0]} is beyond loopback: ask for certificates of clients or a token, or say insecure"
        )

    def exposed(self, addresses: Sequence[str], *, tokens: bool) -> list[str]:
        """Return the addresses beyond loopback without TLS and client authentication. `tokens`: a token is needed."""
        if self.certificate and (self.client_ca or tokens):
            return []
        return [address for address in addresses if not is_local(address)]

    def context(self, guesses: Guesses | None = None) -> ssl.SSLContext | None:
        """Make the TLS context of a server on Python's `ssl`; None without TLS. `guesses` logs refused clients.

        Raises:
            SecurityError: a certificate or key that cannot be used; the text says why.
        """
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if guesses is not None:
            context.sslobject_class = _telling(guesses)
        try:
            with tempfile.TemporaryDirectory() as folder:  # `ssl` reads them from files only
                certificate, key = Path(folder, "certificate"), Path(folder, "key")
                certificate.write_bytes(self.certificate)
                key.touch(0o600)
                key.write_bytes(self.key)
                context.load_cert_chain(certificate, key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            raise SecurityError(_why_not(error)) from None
        if self.client_ca:
            try:
                context.load_verify_locations(cadata=self.client_ca.decode())
            except (OSError, ValueError) as error:
                raise SecurityError(
                    f"the certificate of the clients' authority cannot be used: it is no PEM certificate ({error})"
                ) from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def credentials(self) -> grpc.ServerCredentials | None:
        """Make the TLS credentials of a gRPC port; None without TLS.

        Raises:
            SecurityError: a certificate or key that cannot be used. `context` finds out why; gRPC itself would only say
                that it cannot listen.
        """
        if self.context() is None:
            return None
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)], self.client_ca or None, require_client_auth=bool(self.client_ca)
        )


def _telling(guesses: Guesses) -> type[ssl.SSLObject]:
    class Told(ssl.SSLObject):
        def do_handshake(self) -> None:
            try:
                super().do_handshake()
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                raise
            except ssl.SSLError as error:  # asyncio closes the connection without a word in any log
                guesses.refused("TLS", str(error.reason or error).lower().replace("_", " "))
                raise

    return Told


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted, and there is nobody to ask for its passphrase")


def _why_not(error: Exception) -> str:
    """Return a text that says why a pair of certificate and private key cannot be used."""
    told = str(error)
    if "KEY_VALUES_MISMATCH" in told:
        return "the key does not belong to the certificate"
    what = "the certificate or its key cannot be used"
    return f"{what}: they are no PEM files" if "PEM" in told else f"{what}: {told}"


def grpc_address(address: str) -> str:
    """Return an address in gRPC's form: without a leading `tcp://`, and `unix:PATH` for a unix socket.

    Raises:
        SecurityError: the address is neither HOST:PORT nor that of a unix socket.
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
    """Whether an address is a unix socket, or one that only this machine reaches."""
    plain = grpc_address(address)
    if plain.startswith("unix:"):
        return True
    host = plain.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a host name may resolve to any address


class TokenCheck(grpc.aio.ServerInterceptor):
    """Refuses gRPC calls without the right token; `guesses` logs these, and slows down clients that guess."""

    def __init__(self, token: str, guesses: Guesses) -> None:
        self._wanted = f"Bearer {token}".encode()
        self._guesses = guesses

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the handler of a call, wrapped in a check of its token: only a handler knows the client's address."""
        details: Any = handler_call_details
        handler: Any = await continuation(handler_call_details)
        if handler is None or details.method.startswith(HEALTH):
            return handler
        given = b""
        for key, value in details.invocation_metadata or ():
            if key == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
        answer: Any
        if handler.unary_unary is not None:

            async def answer(request: Any, context: Any) -> Any:
                await self._look(given, context)
                return await handler.unary_unary(request, context)

            return grpc.unary_unary_rpc_method_handler(
                answer, handler.request_deserializer, handler.response_serializer
            )
        if inspect.isasyncgenfunction(handler.stream_stream):

            async def answer(requests: Any, context: Any) -> Any:
                await self._look(given, context)
                async for one in handler.stream_stream(requests, context):
                    yield one

        else:

            async def answer(requests: Any, context: Any) -> Any:
                await self._look(given, context)
                await handler.stream_stream(requests, context)

        return grpc.stream_stream_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)

    async def _look(self, given: bytes, context: Any) -> None:
        """Abort the call unless its token is right."""
        address: str = context.peer().rpartition(":")[0]
        if given and not await self._guesses.pause(address):
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many wrong tokens came from this address")
        if hmac.compare_digest(given, self._wanted):  # takes the same time for any wrong token
            return
        self._guesses.refused(address, "a wrong token" if given else "no token", wrong=bool(given))
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a token is needed: authorization: Bearer TOKEN")
