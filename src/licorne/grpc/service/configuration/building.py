"""Making the objects of the service from the values of settings: limits, security, REST, levels of the log."""

from __future__ import annotations

from pathlib import Path

from licorne.grpc.service.groups.resolver import GroupSettings
from licorne.grpc.service.settings import ServiceSettings
from licorne.host import secrets
from licorne.host.log import Levels
from licorne.host.security import Security
from licorne.host.web.rest import Access, RequestLimits
from licorne.host.web.server import Web

from .files import read_bounded
from .values import Values


def service_settings(values: Values) -> ServiceSettings:
    """Make the limits and times of the service."""
    return values.fill(ServiceSettings())


def group_settings(values: Values) -> GroupSettings:
    """Make the settings of group lookups; raises SettingError if resolver and table contradict each other."""
    return values.fill(GroupSettings())


def security(values: Values) -> Security:
    """Make TLS and token of gRPC; reads their files.

    Raises:
        SettingError: a file that cannot be read.
        SecurityError: a file that is empty, or holds no token.
    """
    security = Security(
        certificate=_bytes(values, "licorne.tls-cert", "a certificate"),
        key=_bytes(values, "licorne.tls-key", "a private key"),
        client_ca=_bytes(values, "licorne.tls-client-ca", "the certificate of an authority"),
        token=_token(values, "licorne.token-file"),
    )
    return values.fill(security)


def web(values: Values, addresses: tuple[str, ...] | None = None) -> Web | None:
    """Make addresses and access of REST; None: no REST. Reads the files of tokens.

    Raises:
        SettingError: a file that cannot be read.
        SecurityError: a file that holds no token.
    """
    addresses = values.get("licorne.rest") if addresses is None else addresses
    if not addresses:
        return None
    access = Access(
        read_tokens=_tokens(values, "licorne.rest-read-token-file"),
        admin_tokens=_tokens(values, "licorne.rest-token-file"),
    )
    return values.fill(Web(addresses=addresses, access=access, limits=values.fill(RequestLimits())))


def set_levels(levels: Levels, values: Values) -> None:
    """Set the levels of the loggers."""
    levels.set(
        values.get("log.level"), {name: value.parsed for name, value in values.many("log.<logger>.level").items()}
    )


def _bytes(values: Values, key: str, what: str) -> bytes:
    name = values.get(key)
    return secrets.pem_in(read_bounded(Path(name), what), name, what) if name else b""


def _tokens(values: Values, key: str) -> tuple[str, ...]:
    name = values.get(key)
    return secrets.tokens_in(read_bounded(Path(name), "tokens"), name) if name else ()


def _token(values: Values, key: str) -> str:
    name = values.get(key)
    return secrets.token_in(read_bounded(Path(name), "a token"), name) if name else ""
