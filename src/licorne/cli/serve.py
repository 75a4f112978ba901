"""`licorne serve`: a scheduler for resource managers on this and other machines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from licorne.cli.common import CommandError, pairs, read_text
from licorne.config import ConfigError, load
from licorne.core.settings import SettingsError, read_settings
from licorne.si.rpc import DEFAULT_ADDRESS

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when gRPC is first imported; its own log is not ours

from licorne.service import (
    Security,
    SecurityError,
    Service,
    ServiceSettings,
    SettingError,
    Web,
    make_log,
)
from licorne.service.rest import Access

Flag = Annotated[bool, Parameter(negative="")]
Many = Annotated[tuple[str, ...], Parameter(negative="", show_default=False)]
Group = tuple[str, Mapping[str, str]]
DEFAULTS = ServiceSettings()


class Groups(UserDict[str, Group]):
    """Policy groups by name; where there is a configuration for everybody, each other name means that one."""

    def __init__(self, named: dict[str, Group], rest: Group | None) -> None:
        super().__init__(named)
        self._rest = rest

    def get(self, key: str, default: Group | None = None) -> Group | None:  # type: ignore[override]
        """The configuration that a policy group's name means."""
        return self.data.get(key, self._rest or default)


@Parameter(name="*")
@dataclass(frozen=True)
class Protection:
    """Who may speak to it.

    Parameters
    ----------
    tls_cert
        Certificate of the service, PEM.
    tls_key
        Its private key, PEM.
    tls_client_ca
        Take only clients with a certificate of this authority, PEM.
    token_file
        File that holds a token; take only clients that send it as `authorization: Bearer TOKEN`.
    insecure
        Listen beyond loopback without protection.
    """

    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token_file: Path | None = None
    insecure: Flag = False

    def read(self) -> Security:
        """What the files hold."""
        return Security(
            certificate=_bytes(self.tls_cert, "a certificate"),
            key=_bytes(self.tls_key, "a private key"),
            client_ca=_bytes(self.tls_client_ca, "the certificate of an authority"),
            token=_token(self.token_file),
            insecure=self.insecure,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """Limits and times.

    Parameters
    ----------
    rm_timeout
        Seconds after which a resource manager whose connection is lost is stopped, and forgotten.
    max_message
        Bytes of the longest message that is taken.
    max_buffer
        Bytes that may wait for a resource manager to read them, before it is slowed down.
    max_streams
        Streams at once, of all resource managers together.
    max_managers
        Resource managers at once.
    """

    rm_timeout: float = DEFAULTS.rm_timeout_s
    max_message: int = DEFAULTS.message_bytes
    max_buffer: int = DEFAULTS.buffer_bytes
    max_streams: int = DEFAULTS.streams
    max_managers: int = DEFAULTS.managers

    def settings(self) -> ServiceSettings:
        """The service's settings; raises SettingError."""
        return ServiceSettings(
            rm_timeout_s=self.rm_timeout,
            message_bytes=self.max_message,
            buffer_bytes=self.max_buffer,
            streams=self.max_streams,
            managers=self.max_managers,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Rest:
    """REST and metrics.

    Parameters
    ----------
    rest
        Where to listen for REST: HOST:PORT (the original's port is 9080) or unix:PATH. May be repeated. Not given: no REST.
    rest_token_file
        File with tokens, one a line; REST changes something only for who sends one of them.
    rest_read_token_file
        File with tokens, one a line, with which all may be read.
    old_queue_metrics
        Give metrics of queues also under the names that they had before release 1.4.
    """

    rest: Many = ()
    rest_token_file: Path | None = None
    rest_read_token_file: Path | None = None
    old_queue_metrics: Flag = False

    def web(self) -> Web | None:
        """What the options say; None for no REST."""
        if not self.rest:
            return None
        access = Access(
            read_tokens=_tokens(self.rest_read_token_file),
            admin_tokens=_tokens(self.rest_token_file),
        )
        return Web(addresses=self.rest, access=access, old_queue_names=self.old_queue_metrics)


def serve(
    *,
    grpc: Many = (),
    rest: Rest = Rest(),
    config: Path | None = None,
    policy_group: Many = (),
    setting: Many = (),
    limits: Limits = Limits(),
    protection: Protection = Protection(),
    log_format: Literal["text", "json"] = "text",
    log_level: Literal["debug", "info", "warning", "error"] = "info",
) -> int:
    """Run a scheduler that resource managers reach by gRPC, until SIGTERM or SIGINT.

    It listens on loopback unless told otherwise. Beyond loopback it wants TLS and either certificates of clients or a
    token, or --insecure. What happens is logged on standard error, one line for each event.
    Exit status: 0 when it was ended, 1 when it could not start or failed.

    Parameters
    ----------
    grpc
        Where to listen: HOST:PORT (port 0: a free one) or unix:PATH; 127.0.0.1:3333 if not given. May be repeated.
    rest
        REST and metrics.
    config
        Queue configuration (queues.yaml) of resource managers that bring none. Without it: the built-in one.
    policy_group
        NAME=FILE: the queue configuration of resource managers that name this policy group. May be repeated.
    setting
        KEY=VALUE: a setting of the scheduler, like reservation.delay=5s. May be repeated.
    limits
        Limits and times.
    protection
        Who may speak to it.
    log_format
        One line of text, or one JSON object, for each event.
    log_level
        What is logged at least.
    """
    settings_of_scheduler = pairs("--setting", setting)
    try:
        read_settings(settings_of_scheduler)
        service = Service(
            grpc or (DEFAULT_ADDRESS,),
            policy_groups=_groups(config, policy_group),
            scheduler_settings=settings_of_scheduler,
            settings=limits.settings(),
            security=protection.read(),
            web=rest.web(),
            log=make_log(sys.stderr, form=log_format, level=log_level),
        )
        return asyncio.run(_run(service))
    except (SecurityError, SettingError, SettingsError) as error:
        raise CommandError(str(error)) from None


async def _run(service: Service) -> int:
    """Serve until a signal, or until the scheduler fails."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # where loops know no signals, Python's own handling ends it
            loop.add_signal_handler(number, ended.set)
    with service.memory.running():
        await service.start()
        await _until(ended, service)
        await service.stop()
    return 1 if service.failed.is_set() else 0


async def _until(ended: asyncio.Event, service: Service) -> None:
    waiting = [asyncio.create_task(ended.wait()), asyncio.create_task(service.failed.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


def _groups(config: Path | None, named: tuple[str, ...]) -> Groups:
    rest: Group | None = None if config is None else (_configuration(config), {})
    files = pairs("--policy-group", named)
    return Groups({name: (_configuration(Path(file)), {}) for name, file in files.items()}, rest)


def _configuration(file: Path) -> str:
    text = read_text(file, "a queue configuration")
    try:
        load(text)
    except ConfigError as error:
        raise CommandError(f"{file}: {error}; `licorne config check {file}` says more") from None
    return text


def _bytes(file: Path | None, what: str) -> bytes:
    return b"" if file is None else read_text(file, what).encode()


def _tokens(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return ()
    tokens = [line.strip() for line in read_text(file, "tokens").splitlines() if line.strip()]
    if not tokens:
        raise CommandError(f"{file}: holds no token; give one a line")
    return tuple(_checked(token, file) for token in tokens)


def _token(file: Path | None) -> str:
    return "" if file is None else _checked(read_text(file, "a token").strip(), file)


def _checked(token: str, file: Path) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError(f"{file}: a token is a line of printable ASCII characters without spaces")
    return token
