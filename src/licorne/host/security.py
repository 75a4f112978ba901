"""Access control: on which addresses the service listens, and which clients it accepts.

On loopback or a unix socket every client of this machine is accepted. Any other address needs TLS, and clients with a
certificate or a token; the setting `insecure` removes that rule.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .guesses import Guesses
from .secrets import SecurityError
from .setting_table import TABLE


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
        self.refuse_exposed(addresses, "certificates of clients or a token", tokens=bool(self.token))

    def refuse_exposed(self, addresses: Sequence[str], what: str, *, tokens: bool) -> None:
        """Refuse addresses that are exposed, unless that is allowed (`insecure`); `what`: what clients may be asked for.

        Raises:
            SecurityError: an address beyond loopback without TLS and client authentication.
        """
        exposed = self.exposed(addresses, tokens=tokens)
        if exposed and not self.insecure:
            need = f"ask for {what}" if self.certificate else "give TLS a certificate and a key"
            raise SecurityError(f"{exposed[0]} is beyond loopback: {need}, or say --insecure")

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
