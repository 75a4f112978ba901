"""Where a state dump comes from: a file, standard input, or a running YuniKorn or licorne, which is only read.

Source: docs/spec/rest-api.md, section 1: the dump is at `/debug/fullstatedump`, before YuniKorn 1.7 at
`/ws/v1/fullstatedump`.
"""

from __future__ import annotations

import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from licorne.answers.dump import LARGEST_BYTES, Dump, DumpError, read_dump

PATHS: Final = ("/debug/fullstatedump", "/ws/v1/fullstatedump")
"""Where a scheduler answers its state dump, in the order in which they are tried."""
TIMEOUT_S: Final = 60.0
STDIN: Final = "-"


class SourceError(OSError):
    """The dump cannot be fetched; the text says why and what to do."""


def is_url(where: str) -> bool:
    """Return whether a source is an address rather than a file."""
    return where.startswith(("http://", "https://"))


def fetch(where: str, *, token: str = "", tls_ca: Path | None = None, timeout_s: float = TIMEOUT_S) -> Dump:
    """Read a state dump.

    Args:
        where: a file, `-` for standard input, or the address of a scheduler's REST interface such as
            `http://127.0.0.1:9080`; a path in it is kept, otherwise those of the dump are tried; a query is kept.
        token: sent as a bearer token, to this address alone and not to one to which it redirects.
        tls_ca: certificate to know the server by, PEM; by default the authorities of this system.
        timeout_s: how long the server may be silent.

    Raises:
        SourceError: there is no such file, or the server cannot be reached or does not answer with a dump.
        DumpError: what was read is no dump.
    """
    if is_url(where):
        return _from_server(where, token, tls_ca, timeout_s)
    if where == STDIN:
        return read_dump(sys.stdin.buffer.read(LARGEST_BYTES + 1))
    try:
        return read_dump(Path(where).read_bytes())
    except OSError as error:
        raise SourceError(
            f"{where}: {error.strerror}; give a file with a state dump, or the address of a scheduler, http://HOST:PORT"
        ) from None
    except DumpError as error:
        raise DumpError(f"{where}: {error}") from None


def _from_server(where: str, token: str, tls_ca: Path | None, timeout_s: float) -> Dump:
    parts = urlsplit(where)
    query = f"?{parts.query}" if parts.query else ""
    paths = tuple(path + query for path in ((parts.path,) if parts.path.strip("/") else PATHS))
    base = f"{parts.scheme}://{parts.netloc}"
    opener = urllib.request.build_opener(*_tls(parts.scheme, tls_ca))
    for path in paths:
        request = urllib.request.Request(base + path, headers={"Accept-Encoding": "gzip"})  # noqa: S310  http or https
        if token:
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            with opener.open(request, timeout=timeout_s) as answer:
                return read_dump(answer.read(LARGEST_BYTES + 1))
        except urllib.error.HTTPError as error:
            if error.code == 404 and path != paths[-1]:
                continue
            raise SourceError(f"{base}{path}: {_explained(error)}") from None
        except urllib.error.URLError as error:
            raise SourceError(f"{where}: {_unreachable(error.reason)}") from None
        except (OSError, ValueError) as error:
            if isinstance(error, DumpError):
                raise DumpError(f"{base}{path}: {error}") from None
            raise SourceError(f"{where}: {_unreachable(error)}") from None
    raise AssertionError("the last path answers or raises")


def _tls(scheme: str, tls_ca: Path | None) -> list[urllib.request.BaseHandler]:
    if scheme != "https":
        return []
    try:
        context = ssl.create_default_context(cafile=None if tls_ca is None else str(tls_ca))
    except (OSError, ssl.SSLError) as error:
        raise SourceError(f"{tls_ca}: is no certificate that can be read: {error}") from None
    return [urllib.request.HTTPSHandler(context=context)]


def _explained(error: urllib.error.HTTPError) -> str:
    match error.code:
        case 401:
            return "401: the scheduler asks for a token; give --token-file"
        case 403:
            return "403: this token may not read the state dump"
        case 404:
            return "404: no state dump is here; is this the REST interface of YuniKorn (port 9080) or licorne?"
        case _:
            return f"{error.code} {error.reason}"


def _unreachable(reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {reason.verify_message}; give --tls-ca"
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there; is the scheduler running, and this its REST address?"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    return f"cannot be reached: {reason}"


__all__ = ["SourceError", "fetch", "is_url"]
