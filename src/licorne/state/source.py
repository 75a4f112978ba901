"""Where a state dump comes from: a file, standard input, or a running YuniKorn or licorne, which is only read.

Source: docs/spec/rest-api.md, section 1: the dump is at `/debug/fullstatedump`, before YuniKorn 1.7 at
`/ws/v1/fullstatedump`.
"""

from __future__ import annotations

import re
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from licorne._bounded import DUMP_BYTES, read_all
from licorne._files import file_bytes
from licorne._tls import client_context
from licorne.state.dump import Dump, DumpError, read_dump

PATHS: Final = ("/debug/fullstatedump", "/ws/v1/fullstatedump")
"""Where a scheduler answers its state dump, in the order in which they are tried."""
TIMEOUT_S: Final = 60.0
STDIN: Final = "-"
WORKLOADS: Final = (".jsonl", ".jsonl.gz")
YAML: Final = (".yaml", ".yml")


_ADDRESS: Final = re.compile(r"[\w.-]+:\d+(/\S*)?")


class SourceError(OSError):
    """Something cannot be fetched; the text says why and what to do. `code`: the status of the answer, 0 without one."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


def is_url(where: str) -> bool:
    """Return whether a source is an address rather than a file."""
    return where.startswith(("http://", "https://"))


def fetch(where: str, *, token: str = "", tls_ca: Path | None = None, timeout_s: float = TIMEOUT_S) -> Dump:
    """Read a state dump.

    Args:
        where: a file, `-` for standard input, or the address of a scheduler's REST interface such as
            `http://127.0.0.1:9080`; a path in it is kept, otherwise those of the dump are tried; a query is kept, otherwise
            licorne is asked for its checkpoint, which YuniKorn passes over.
        token: sent as a bearer token, to this address alone and not to one to which it redirects.
        tls_ca: certificate to know the server by, PEM; by default the authorities of this system.
        timeout_s: how long the server may take, in seconds.

    Raises:
        SourceError: there is no such file, or the server cannot be reached or does not answer with a dump.
        DumpError: what was read is no dump.
    """
    if is_url(where):
        return _from_server(where, token, tls_ca, timeout_s)
    if where == STDIN:
        return read_dump(read_all(sys.stdin.buffer.read, DUMP_BYTES))
    try:
        return read_dump(file_bytes(Path(where), DUMP_BYTES, from_shell=True))
    except OSError as error:
        reason = "is a folder, and no recording, which has a manifest.json" if Path(where).is_dir() else error.strerror
        if _ADDRESS.fullmatch(where):
            reason = f"{reason}; did you mean http://{where}?"
        raise SourceError(
            f"{where}: {reason}; give a file with a state dump, the folder of a recording, "
            "or the address of a scheduler, http://HOST:PORT"
        ) from None
    except DumpError as error:
        raise DumpError(f"{where}: {error}{_hint(where)}") from None


def _hint(where: str) -> str:
    """Return what to do with a file that is no dump, by what its name says that it is."""
    if where.endswith(WORKLOADS):
        return f" A workload can be asked when it has run: licorne simulate {where} --record DIR, then give DIR."
    if where.endswith(YAML):
        run = f"licorne simulate {where} --record DIR, then give DIR"
        return f" A scenario can be asked when it has run: {run}. A queue configuration goes with --config."
    return ""


def _from_server(where: str, token: str, tls_ca: Path | None, timeout_s: float) -> Dump:
    server = Server(where, token=token, tls_ca=tls_ca, timeout_s=timeout_s)
    until = time.monotonic() + timeout_s
    query = server.query or "?checkpoint=true"
    paths = tuple(path + query for path in ((server.path,) if server.path.strip("/") else PATHS))
    for path in paths:
        try:
            return read_dump(server.read(path, "state dump", within_s=until - time.monotonic())[0])
        except SourceError as error:
            if error.code != 404 or path == paths[-1]:
                raise
        except DumpError as error:
            raise DumpError(f"{server.base}{path}: {error}") from None
    raise AssertionError("the last path answers or raises")


class Server:
    """The REST interface of a scheduler, which is only read.

    Parameters:
        where: its address, such as `http://127.0.0.1:9080`; `path` and `query` are what stands behind that.
        token: sent as a bearer token, to this address alone and not to one to which it redirects.
        tls_ca: certificate to know the server by, PEM; by default the authorities of this system.
        timeout_s: how long an answer may take in all; of a stream, how long it may be silent.
    """

    def __init__(
        self, where: str, *, token: str = "", tls_ca: Path | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        parts = urlsplit(where)
        self.path = parts.path
        self.query = f"?{parts.query}" if parts.query else ""
        self.base = f"{parts.scheme}://{parts.netloc}"
        self._encrypted = parts.scheme == "https"
        self._token = token
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_Redirects, *_tls(parts.scheme, tls_ca))

    def read(
        self,
        path: str,
        what: str,
        bytes_max: int = DUMP_BYTES,
        within_s: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[bytes, str]:
        """Ask for a path (`open`), and return the answer and its date, which has to be there whole in time, by default `timeout_s`.

        Raises:
            SourceError: the server cannot be reached, does not give it in time, or gives more than `bytes_max`.
        """
        seconds = self._timeout_s if within_s is None else within_s
        until, data, dates, failed = time.monotonic() + seconds, bytearray(), list[str](), list[Exception]()

        def ask() -> None:
            try:
                with self.open(path, what, **(headers or {})) as answer:
                    dates.append(answer.headers.get("Date", ""))
                    while (piece := answer.read1(1 << 20)) and len(data) <= bytes_max and time.monotonic() < until:
                        data.extend(piece)
            except Exception as error:  # noqa: BLE001  it is raised in the other thread
                failed.append(error)

        # A time limit of a socket is one of each read: a server that sends a byte now and then would never reach it.
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(max(seconds, 0))
        if len(data) > bytes_max:
            raise SourceError(f"{self.base}{path}: the {what} has more than {bytes_max:,} bytes")
        if asking.is_alive() or time.monotonic() >= until:
            raise SourceError(f"{self.base}: there was no whole answer within {self._timeout_s:g} s")
        if failed:
            raise failed[0]
        return bytes(data), dates[0]

    @contextmanager
    def open(self, path: str, what: str, **headers: str) -> Iterator[HTTPResponse]:
        """Ask for a path, and yield the answer, which must be a good one, and may go on for ever. `what` is expected there, for errors.

        Raises:
            SourceError: the server cannot be reached, or does not give it; also while the answer is read.
        """
        sent = {"Accept-Encoding": "gzip", **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(self.base + path, headers=sent)  # noqa: S310  http or https
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                known = bool(self._token)
                raise SourceError(f"{self.base}{path}: {_explained(error, what, token=known)}", error.code) from None
        except urllib.error.URLError as error:
            raise SourceError(f"{self.base}: {_unreachable(error.reason, encrypted=self._encrypted)}") from None
        except (HTTPException, OSError) as error:
            raise SourceError(f"{self.base}: {_unreachable(error, encrypted=self._encrypted)}") from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to HTTP alone; the library knows FTP too."""

    def redirect_request(self, *args: Any) -> urllib.request.Request | None:  # noqa: ANN401  as urllib has them
        if not is_url(args[-1]):
            args[1].close()
            raise urllib.error.URLError(f"it redirects to {args[-1][:80]!r}, which is no address of HTTP")
        return super().redirect_request(*args)


def _tls(scheme: str, tls_ca: Path | None) -> list[urllib.request.BaseHandler]:
    if scheme != "https":
        return []
    try:
        context = client_context(cafile=None if tls_ca is None else str(tls_ca))
    except (OSError, ssl.SSLError) as error:
        raise SourceError(f"{tls_ca}: is no certificate that can be read: {error}") from None
    return [urllib.request.HTTPSHandler(context=context)]


def _explained(error: urllib.error.HTTPError, what: str, *, token: bool) -> str:
    match error.code:
        case 401 if token:
            return "401: the scheduler does not know this token; --token-file has to hold one that its REST interface takes"
        case 401:
            return "401: the scheduler asks for a token; give --token-file"
        case 403:
            return f"403: this token may not read the {what}"
        case 404:
            return f"404: no {what} is here; is this the REST interface of YuniKorn (port 9080) or licorne?"
        case _:
            return f"{error.code} {error.reason}"


def _unreachable(reason: object, *, encrypted: bool) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {reason.verify_message}; give --tls-ca"
    if isinstance(reason, ConnectionRefusedError):
        return "nothing listens there; is the scheduler running, and this its REST address?"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, HTTPException | ConnectionResetError) and not encrypted:
        return f"no answer in HTTP ({reason}); if the address wants TLS, give https://"
    if isinstance(reason, ssl.SSLError) and reason.reason == "WRONG_VERSION_NUMBER":
        return "no answer in TLS; if the address has none, give http://"
    return f"cannot be reached: {reason}"
