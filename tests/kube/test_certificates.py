"""Client certificates: in files that are replaced, in the kubeconfig itself, and printed by programs."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from common.certificates import FLAGS_OF_313, default_flags
from kube.test_access import SAYS, kubeconfig
from kube.test_client import site_address
from licorne.kube.api import Access, Client, KubeconfigError, UnansweredError
from licorne.kube.api import config as config_module
from licorne.kube.api.kinds import PODS


class Server:
    """A server that asks clients for a certificate, and notes whose each request has; the names in `refused` get a 401."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.refused: set[str] = set()
        self.watched, self.release = asyncio.Event(), asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note who asks. A watch goes on until it is released."""
        assert request.transport is not None
        found = request.transport.get_extra_info("peercert")
        name = dict(part[0] for part in found["subject"])["commonName"] if found else ""
        self.seen.append(name)
        if name in self.refused:
            return web.json_response({"reason": "Unauthorized"}, status=401)
        if "watch" in request.query:
            self.watched.set()
            response = web.StreamResponse()
            await response.prepare(request)
            await self.release.wait()
            return response
        return web.json_response({"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1"}})


@asynccontextmanager
async def secured(
    certificates: Path, folder: Path, user: Any, authority: str = "ca.pem"
) -> AsyncIterator[tuple[Server, Client]]:
    """Serve HTTPS on loopback, and connect a client that knows the server by the certificate `authority`."""
    server = Server()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(certificates / "ca.pem")
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    address = site_address(runner).replace("http:", "https:")
    cluster = {"server": address, "certificate-authority": str(certificates / authority)}
    try:
        async with Client(Access.load(kubeconfig(folder, user, **cluster))) as client:
            yield server, client
    finally:
        await runner.cleanup()


def put(certificates: Path, name: str, folder: Path) -> dict[str, str]:
    """Write the certificate of a client into files, and return the user that has them."""
    shutil.copy(certificates / f"{name}.pem", folder / "mine.pem")
    shutil.copy(certificates / f"{name}.key", folder / "mine.key")
    return {"client-certificate": "mine.pem", "client-key": "mine.key"}


async def test_files_that_change_are_read_again_after_a_while(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_module, "FILES_S", 0.0)
    async with secured(certificates, tmp_path, put(certificates, "one", tmp_path)) as (server, client):
        await client.get(PODS, "n", "p")
        shutil.copy(certificates / "two.pem", tmp_path / "mine.pem")
        await client.get(PODS, "n", "p")  # the key is not there yet
        shutil.copy(certificates / "two.key", tmp_path / "mine.key")
        await client.get(PODS, "n", "p")
        (tmp_path / "mine.pem").unlink()
        await client.get(PODS, "n", "p")
    assert server.seen == ["one", "one", "two", "two"]


async def test_files_that_change_are_read_at_once_when_the_old_certificate_is_refused(
    certificates: Path, tmp_path: Path
) -> None:
    """What is under way with the old one goes on."""
    async with secured(certificates, tmp_path, put(certificates, "one", tmp_path)) as (server, client):
        watch = asyncio.create_task(anext(stream := client.watch(PODS)))
        await server.watched.wait()
        put(certificates, "two", tmp_path)
        await client.get(PODS, "n", "p")
        server.refused.add("one")
        await client.get(PODS, "n", "p")
        await client.get(PODS, "n", "p")
        assert server.seen == ["one", "one", "one", "two", "two"]
        server.release.set()
        assert await watch == [], "it is answered"
        assert await anext(stream, None) is None


def test_what_stands_in_the_kubeconfig_goes_before_files(certificates: Path, tmp_path: Path) -> None:
    def data(name: str) -> str:
        return base64.b64encode((certificates / name).read_bytes()).decode()

    async def run(user: dict[str, str]) -> list[str]:
        async with secured(certificates, tmp_path, user) as (server, client):
            await client.get(PODS, "n", "p")
        return server.seen

    files = put(certificates, "one", tmp_path)
    inside = {"client-certificate-data": data("two.pem"), "client-key-data": data("two.key")}
    assert asyncio.run(run(inside)) == ["two"]
    assert asyncio.run(run(files | inside)) == ["two"]
    one = {"client-certificate": "mine.pem", "client-key-data": data("one.key")}
    assert asyncio.run(run(one)) == ["one"]


def test_an_authority_without_key_usage_is_taken(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Go's clients take it. Python's default refuses it from 3.13 on."""
    default_flags(monkeypatch, FLAGS_OF_313)

    async def run() -> None:
        async with secured(certificates, tmp_path, {}) as (server, client):
            context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
            async with aiohttp.ClientSession() as session:
                with pytest.raises(aiohttp.ClientConnectorCertificateError, match="key usage"):
                    await session.get(client.access.server, ssl=context)
            await client.get(PODS, "n", "p")
        assert server.seen == [""]

    asyncio.run(run())


def test_an_authority_need_not_have_signed_itself(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for Go's clients: an authority between, or the server's own certificate. Python's default takes them from 3.13 on."""
    default_flags(monkeypatch, 0)

    async def run() -> None:
        async with secured(certificates, tmp_path, {}, "server.pem") as (server, client):
            await client.get(PODS, "n", "p")
        assert server.seen == [""]

    asyncio.run(run())


async def test_another_authority_is_not_taken(certificates: Path, tmp_path: Path) -> None:
    async with secured(certificates, tmp_path, {}, "one.pem") as (server, client):
        with pytest.raises(UnansweredError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(PODS, "n", "p")
    assert server.seen == []


PRINTS_PAIR = """
import json, os, pathlib
folder, calls = pathlib.Path(os.environ["FOLDER"]), pathlib.Path(os.environ["CALLS"])
calls.write_text((calls.read_text() if calls.exists() else "") + "x")
name = ("one", "two")[len(calls.read_text()) - 1]
pair = {"clientCertificateData": (folder / f"{name}.pem").read_text(), "clientKeyData": (folder / f"{name}.key").read_text()}
head = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
print(json.dumps({**head, "status": pair}))
"""


def program(code: str, **environment: str) -> dict[str, Any]:
    """Return a user whose credentials a program prints."""
    made = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", code]}
    return {"exec": {**made, "env": [{"name": name, "value": value} for name, value in environment.items()]}}


def test_a_program_may_print_a_certificate_and_another_one_later(certificates: Path, tmp_path: Path) -> None:
    async def run() -> None:
        user = program(PRINTS_PAIR, FOLDER=str(certificates), CALLS=str(tmp_path / "calls"))
        async with secured(certificates, tmp_path, user) as (server, client):
            await client.get(PODS, "n", "p")
            await client.get(PODS, "n", "p")
            server.refused.add("one")
            await client.get(PODS, "n", "p")
        assert server.seen == ["one", "one", "one", "two"]

    asyncio.run(run())
    assert (tmp_path / "calls").read_text() == "xx"


def test_a_printed_certificate_that_cannot_be_used_is_told(certificates: Path, tmp_path: Path) -> None:
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(certificates / "ca.pem")}
    user = program(SAYS % {"clientCertificateData": "c", "clientKeyData": "k"})
    access = Access.load(kubeconfig(tmp_path, user, **cluster))
    with pytest.raises(KubeconfigError, match="the certificates of context 'here' cannot be used"):
        asyncio.run(access.headers())


def test_an_empty_authority_is_not_the_one_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    with pytest.raises(KubeconfigError, match="that of the authority is empty"):
        Access.load(kubeconfig(tmp_path, server="https://127.0.0.1:1", **{"certificate-authority": "ca.pem"}))
