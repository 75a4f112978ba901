"""`licorne serve --demo`: a simulated cluster beside the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from licorne.cli.common import CommandError
from licorne.demo import Demonstration, sights
from licorne.service import Service
from licorne.web.server import DEFAULT_ADDRESS as REST_ADDRESS

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "*": "127.0.0.1"}  # noqa: S104  not to listen, to be found


class _ToLog(logging.Handler):
    """What the client has to say goes into the service's log."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self._log = service.log

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self._log.log(record.levelno, "demonstration", said=record.getMessage())


@dataclass(frozen=True)
class Demo:
    """Whether something is to be looked at, and how fast it goes; another seed gives other applications."""

    wanted: bool = False
    speed: float = 1.0
    seed: int = 1

    def rest(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """Where to listen for REST."""
        return given or ((REST_ADDRESS,) if self.wanted else ())

    @asynccontextmanager
    async def beside(self, service: Service) -> AsyncIterator[None]:
        """Run the demonstration, if it is wanted, beside a service that has started; and end it before the service ends.

        Raises:
            CommandError: the options contradict each other.
        """
        if not self.wanted:
            yield
            return
        if service.security.certificate:
            raise CommandError("--demo speaks to the service without TLS: leave out --tls-cert, or --demo")
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
            raise CommandError(f"--demo-{error}") from None
        logging.getLogger("licorne.client").handlers = [_ToLog(service)]
        demonstration.start()
        if service.web is not None and service.web.addresses:
            print(sights(reachable(service.web.addresses[0]), address, token=service.web.wants_token), flush=True)
        try:
            yield
        finally:
            await asyncio.to_thread(demonstration.stop)


def reachable(address: str) -> str:
    """An address that is listened on, as a client on the same machine reaches it."""
    host, colon, port = address.rpartition(":")
    return f"{_EVERYWHERE.get(host, host)}{colon}{port}"


__all__ = ["Demo", "reachable"]
