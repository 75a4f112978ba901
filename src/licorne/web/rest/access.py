"""Who may ask: tokens with one of two roles, and limits that keep one request from hurting the others."""

from __future__ import annotations

import hmac
from typing import Literal

import msgspec

from .errors import refuse

Role = Literal["read", "admin"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that are known. Without any, everybody may do everything: for loopback only.

    A token is sent as `Authorization: Bearer TOKEN`. With one of `read_tokens` all may be looked at; changing anything
    takes one of `admin_tokens`.
    """

    read_tokens: tuple[str, ...] = ()
    admin_tokens: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Is a token needed?"""
        return bool(self.read_tokens or self.admin_tokens)

    def check(self, header: str, role: Role, *, origin: bool = False) -> None:
        """Refuse who may not; `header` is that of the token, `origin`: the request is that of a page in a browser.

        Raises:
            RestError: 401 without a token that is known, 403 where the token's role does not allow it, and for pages that
            would change something where no token is wanted: any page that somebody looks at could.
        """
        if not self.wanted:
            if role == "admin" and origin:
                refuse(403, "A page may only read where no token is needed")
            return
        scheme, _, token = header.partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        known = scheme.lower() == "bearer"
        admin = known and sum(hmac.compare_digest(given, one.encode()) for one in self.admin_tokens) > 0
        read = known and sum(hmac.compare_digest(given, one.encode()) for one in self.read_tokens) > 0
        if not (admin or read):
            refuse(401, "A token is needed: Authorization: Bearer TOKEN")
        if role == "admin" and not admin:
            refuse(403, "This token may only read")


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a request may take.

    `body_bytes`: the longest body, which is a configuration: 10,000 queues with their quotas take 0.8 MB; `request_s`: the time until an answer begins; `path_chars`: the longest path and query;
    `streams`, `streams_per_host`: open streams of events, in all and per Host header (`event.maxStreams`,
    `event.maxStreamsPerHost`); `send_s`: the time that a client may take to receive a piece of a stream;
    `batch`: the most events of a batch (`event.RESTResponseSize`); `checks`: configurations that are checked at once;
    `keep_s`: the longest that an answer which took long is given again though what it shows has changed, 0: never.
    """

    body_bytes: int = 1 << 20
    request_s: float = 30.0
    path_chars: int = 16_384
    streams: int = 100
    streams_per_host: int = 15
    send_s: float = 5.0
    batch: int = 10_000
    checks: int = 2
    keep_s: float = 2.0


__all__ = ["Access", "RequestLimits", "Role"]
