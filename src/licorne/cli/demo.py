"""`licorne serve --demo`: runs a simulated cluster beside the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from licorne.cli.common import UsageError, say
from licorne.host.setting_table import REST_ADDRESS

if TYPE_CHECKING:
    from licorne.grpc.service import Service

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "*": "127.0.0.1"}  # noqa: S104  only compared with


class _ToLog(logging.Handler):
    """Writes the log records of the demonstration's client to the log of the service."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._log = service.log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        self._log.log(record.levelno, "demonstration", said=record.getMessage())


@dataclass(frozen=True)
class Demo:
    """The options of the demonstration: whether it runs, how many times as fast as written, and the seed."""

    wanted: bool = False
    speed: float = 1.0
    seed: int = 1

    def rest(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the addresses for REST: those given, or else the default address if the demonstration runs."""
        return given or ((REST_ADDRESS,) if self.wanted else ())

    @asynccontextmanager
    async def beside(self, service: Service) -> AsyncIterator[None]:
        """Run the demonstration, if it is wanted, within the `with` block, beside a service that has started.

        Raises:
            CommandError: the options contradict each other.
        """
        if not self.wanted:
            yield
            return
        from licorne.grpc.demo import Demonstration, sights  # noqa: PLC0415  # needs the extra `service`

        if service.security.certificate:
            raise UsageError("--demo speaks to the service without TLS: leave out --tls-cert, or --demo")
        address = reachable(service.addresses[0])
        try:
            demonstration = Demonstration(
                address,
                token=service.security.token,
                seed=self.seed,
                speed=self.speed,
                on_end=lambda why: service.log.error("the demonstration has ended", reason=why),
            )
        except ValueError as error:
            raise UsageError(f"--demo-{error}") from None
        logging.getLogger("licorne.grpc.client").handlers = [_ToLog(service)]
        demonstration.start()
        if service.web is not None and service.web.addresses:
            say(*sights(reachable(service.web.addresses[0]), address, token=service.web.wants_token).split("\n"))
        try:
            yield
        finally:
            await asyncio.to_thread(demonstration.stop)


def reachable(address: str) -> str:
    """Return the address by which a client on the same machine reaches a service that listens on `address`."""
    host, colon, port = address.rpartition(":")
    return f"{_EVERYWHERE.get(host, host)}{colon}{port}"
