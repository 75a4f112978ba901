"""A scheduler's REST interface behind TLS is known by the certificate that is given, on every Python."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from common.certificates import FLAGS_OF_313, default_flags, make_certificates
from licorne.state.source import Server, SourceError


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


class _Https(HTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing: a client that does not take the certificate hangs up."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority without a key usage, and key and certificate of a server and of another."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "other")


@pytest.fixture
def address(certificates: Path) -> Iterator[str]:
    """The address of a server with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    with _Https(("127.0.0.1", 0), _Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("flags", [0, FLAGS_OF_313], ids=["default of 3.11", "default of 3.13"])
@pytest.mark.parametrize("known", ["ca.pem", "server.pem"])
def test_the_authority_or_the_certificate_itself_is_enough(
    known: str, flags: int, address: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default_flags(monkeypatch, flags)
    with Server(address, tls_ca=certificates / known).open("/", "dump") as answer:
        assert answer.read() == b"{}"


def test_another_certificate_is_not_enough(address: str, certificates: Path) -> None:
    with (
        pytest.raises(SourceError, match="its certificate is not accepted"),
        Server(address, tls_ca=certificates / "other.pem").open("/", "dump"),
    ):
        pass


# -- servers that are slow, endless, or send elsewhere ---------------------------------------------------------


class _Strange(_Handler):
    def do_GET(self) -> None:
        """Answer as the path says."""
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1:9/dump")
            self.end_headers()
            return
        self.send_response(200)
        if self.path == "/slow-head":
            self.flush_headers()
        else:
            self.end_headers()
        with contextlib.suppress(OSError):
            if self.path == "/endless":
                while True:
                    self.wfile.write(bytes(1 << 16))
            while not self.server.ended.is_set():  # type: ignore[attr-defined]
                self.wfile.write(b" ")
                time.sleep(0.01)


@pytest.fixture
def strange() -> Iterator[str]:
    """The address of a server whose answers never end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Strange) as server:
        server.ended = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.ended.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("path", ["/slow", "/slow-head"])
def test_an_answer_that_comes_byte_by_byte_ends_with_the_time(strange: str, path: str) -> None:
    with pytest.raises(SourceError, match=r"there was no whole answer within 0\.3 s"):
        Server(strange, timeout_s=0.3).read(path, "dump")


def test_of_an_endless_answer_no_more_is_read_than_the_bound(strange: str) -> None:
    with pytest.raises(SourceError, match="the dump has more than 1,000,000 bytes"):
        Server(strange).read("/endless", "dump", 1_000_000)


def test_redirects_lead_to_http_alone(strange: str) -> None:
    with pytest.raises(SourceError, match=r"it redirects to 'ftp://127\.0\.0\.1:9/dump', which is no address of HTTP"):
        Server(strange).read("/elsewhere", "dump")
