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
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from licorne._bounded import DUMP_BYTES, TooLargeError, read_all
from licorne._files import file_bytes
from licorne._tls import client_context
from licorne.answers.dump import Dump, DumpError, read_dump

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
            `http://127.0.0.1:9080`; a path in it is kept, otherwise those of the dump are tried; a query is kept.
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
        try:
            return read_dump(read_all(sys.stdin.buffer, DUMP_BYTES))
        except TooLargeError as error:
            raise DumpError(f"the dump {error}") from None
    try:
        return read_dump(file_bytes(Path(where), DUMP_BYTES, shell=True))
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
    paths = tuple(path + server.query for path in ((server.path,) if server.path.strip("/") else PATHS))
    for path in paths:
        try:
            return read_dump(server.read(path, "state dump", within_s=until - time.monotonic()).data)
        except SourceError as error:
            if error.code != 404 or path == paths[-1]:
                raise
        except DumpError as error:
            raise DumpError(f"{server.base}{path}: {error}") from None
    raise AssertionError("the last path answers or raises")


class Answer(NamedTuple):
    """What a server has answered, and the date of its head, "" without one."""

    data: bytes
    date: str


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
        self._context = _context(parts.scheme, tls_ca)

    def read(
        self, path: str, what: str, bytes_max: int = DUMP_BYTES, *, within_s: float | None = None, **headers: str
    ) -> Answer:
        """Ask for a path, and return the answer (`open`), which has to be there whole within a time, by default `timeout_s`.

        Raises:
            SourceError: the server cannot be reached, does not give it in time, or gives more than `bytes_max`.
        """
        seconds = self._timeout_s if within_s is None else within_s
        with closing(_Deadline(seconds)) as deadline:
            try:
                with self.open(path, what, deadline, **headers) as answer:
                    found = Answer(read_all(answer, bytes_max), answer.headers.get("Date", ""))
            except TooLargeError as error:
                raise SourceError(f"{self.base}{path}: the {what} {error}") from None
            except SourceError:
                if not deadline.passed:
                    raise
            if (
                deadline.passed
            ):  # what has come by then looks like a whole answer where the head does not say how long it is
                raise SourceError(f"{self.base}: there was no whole answer within {self._timeout_s:g} s")
        return found

    @contextmanager
    def open(
        self, path: str, what: str, deadline: _Deadline | None = None, /, **headers: str
    ) -> Iterator[HTTPResponse]:
        """Ask for a path, and yield the answer, which must be a good one. `what` is expected there, for errors.

        Without a deadline the answer may go on for ever, as a stream does.

        Raises:
            SourceError: the server cannot be reached, or does not give it; also while the answer is read.
        """
        sent = {"Accept-Encoding": "gzip", **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(self.base + path, headers=sent)  # noqa: S310  http or https
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with _opener(self._context, deadline).open(request, timeout=self._timeout_s) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            with error:
                known = bool(self._token)
                raise SourceError(f"{self.base}{path}: {_explained(error, what, token=known)}", error.code) from None
        except urllib.error.URLError as error:
            raise SourceError(f"{self.base}: {_unreachable(error.reason, encrypted=self._encrypted)}") from None
        except (HTTPException, OSError) as error:
            raise SourceError(f"{self.base}: {_unreachable(error, encrypted=self._encrypted)}") from None


class _Deadline:
    """Ends the connections of a question when its time is over, wherever they wait then; `passed`: it is.

    A time limit of a socket is one of each read, so a server that sends a byte now and then would never reach it.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = seconds <= 0
        self._sockets: list[socket] = []
        self._timer = threading.Timer(max(seconds, 0), self._end)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connected: socket) -> None:
        """End this connection too."""
        self._sockets.append(connected)
        if self.passed:
            self._end()

    def close(self) -> None:
        """End no connection any more."""
        self._timer.cancel()

    def _end(self) -> None:
        self.passed = True
        for each in self._sockets:
            with suppress(OSError):  # closed already
                each.shutdown(SHUT_RDWR)


class _Plain(HTTPConnection):
    def __init__(self, host: str, *, deadline: _Deadline | None, **how: Any) -> None:  # noqa: ANN401  as urllib has them
        super().__init__(host, **how)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        if self._deadline is not None:
            self._deadline.watch(self.sock)


class _Encrypted(_Plain, HTTPSConnection):
    pass


def _opener(context: ssl.SSLContext | None, deadline: _Deadline | None) -> urllib.request.OpenerDirector:
    """Return what asks servers by HTTP, and by nothing else to which one may redirect."""

    class Plainly(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(_Plain, req, deadline=deadline)

    class Encrypted(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(_Encrypted, req, context=context, deadline=deadline)

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        Plainly(),
        Encrypted(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _context(scheme: str, tls_ca: Path | None) -> ssl.SSLContext | None:
    if scheme != "https":
        return None
    try:
        return client_context(cafile=None if tls_ca is None else str(tls_ca))
    except (OSError, ssl.SSLError) as error:
        raise SourceError(f"{tls_ca}: is no certificate that can be read: {error}") from None


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


__all__ = ["Server", "SourceError", "fetch", "is_url"]
