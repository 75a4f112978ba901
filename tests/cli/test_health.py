"""`licorne health` against services that serve, that end, that do not exist; and with TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import licorne.cli
from deployment.places import certificate
from licorne.grpc.service import Security
from service.peers import service

if TYPE_CHECKING:
    import pytest


def asked(*arguments: str) -> int:
    return licorne.cli.run(["health", *arguments])


def test_a_serving_scheduler_has_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with service() as made:
            assert await asyncio.to_thread(asked, made.addresses[0]) == 0

    asyncio.run(story())
    assert capsys.readouterr().out == "serving\n"


async def test_with_a_token_the_health_check_needs_none() -> None:
    async with service(security=Security(token="secret")) as made:  # noqa: S106
        assert await asyncio.to_thread(asked, made.addresses[0]) == 0


def test_without_a_service_the_status_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"unix:{tmp_path / 'nobody'}"
    assert asked(address, "--timeout", "10") == 1
    assert capsys.readouterr().err.startswith(f"licorne: {address}: unavailable: ")


def test_with_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate(tmp_path, "licorne")
    pair = Security(certificate=(tmp_path / "tls.crt").read_bytes(), key=(tmp_path / "tls.key").read_bytes())
    roots = ("--tls-ca", str(tmp_path / "tls.crt"))

    async def story() -> None:
        async with service(security=pair) as made:
            address = made.addresses[0]
            assert await asyncio.to_thread(asked, address, *roots, "--server-name", "licorne") == 0
            assert await asyncio.to_thread(asked, address, *roots, "--server-name", "other") == 1
            assert await asyncio.to_thread(asked, address, "--timeout", "3") == 1

    asyncio.run(story())
    assert capsys.readouterr().out == "serving\n"


def test_a_certificate_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("--tls-ca", "nowhere.pem") == 4
    assert "nowhere.pem: no such file; give the path of a certificate" in capsys.readouterr().err
