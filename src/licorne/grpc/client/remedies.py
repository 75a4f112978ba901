"""What to do about a connection that cannot be made.

gRPC tells the cause in the words of its implementation (`TSI_PROTOCOL_FAILURE … WRONG_VERSION_NUMBER`). Each row of the table
is a sign in such a text, what it means to the user, and whether another attempt may go well.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Remedy(NamedTuple):
    """What a failed attempt to connect means. `again`: it may succeed a little later, without a change of the program."""

    text: str
    again: bool


_SIGNS: Final = (
    ("Connection refused", "nobody listens there; is `licorne serve` running, with this address as --grpc?", True),
    ("No such file or directory", "there is no such socket; is `licorne serve` running, with this as --grpc?", True),
    ("Permission denied", "this user may not use that socket", False),
    ("WRONG_VERSION_NUMBER", "the service does not use TLS; connect without a certificate", False),
    ("HTTP_REQUEST", "the service does not use TLS; connect without a certificate", False),
    (
        "missing selected ALPN",
        "what listens there does not speak gRPC; is it the address of REST? --grpc says the right one",
        False,
    ),
    (
        "Trying to connect an http1.x server",
        "what listens there does not speak gRPC; is it the address of REST?",
        False,
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "the given certificate is not that of the authority which signed the service's certificate (or one has expired)",
        False,
    ),
    (
        "Hostname Verification Check failed",
        "the service's certificate is for another name than this address; give the name in it (--server-name)",
        False,
    ),
    ("CERTIFICATE_REQUIRED", "the service wants a certificate of the client", False),
    ("Failed to create security handshaker", "the given certificate is no certificate in PEM form", False),
    ("lookup", "the name of the host cannot be resolved", True),
    ("resolving", "the name of the host cannot be resolved", True),
)
_NO_TLS: Final = Remedy(
    "the connection was closed at once; if the service uses TLS, give its certificate (--tls-ca)", True
)
_TLS: Final = Remedy(
    "the connection was closed at once; does the service use TLS, and does it want a certificate of the client?", True
)
_CLOSED: Final = (
    "Socket closed",
    "Connection reset",
    "Endpoint closing",
    "Broken pipe",
    "connection attempt timed out",
)


def remedy(details: str, *, tls: bool) -> Remedy | None:
    """Return what gRPC's text about a failed connection means; None if that is not known. `tls`: TLS was attempted."""
    for sign, text, again in _SIGNS:
        if sign in details:
            return Remedy(text, again)
    if any(sign in details for sign in _CLOSED):
        return _TLS if tls else _NO_TLS
    return None


def explained(details: str, *, tls: bool) -> str:
    """Return what went wrong in the user's terms, or gRPC's own text where that is not known."""
    found = remedy(details, tls=tls)
    return details if found is None else found.text
