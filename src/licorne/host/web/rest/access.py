"""Tokens with one of two roles, and limits that keep one request from disturbing the others."""

from __future__ import annotations

import hmac
from typing import Literal

import msgspec

from licorne.host.setting_table import TABLE

from .errors import refuse

Role = Literal["anyone", "read", "admin"]
"""What a request needs: nothing, as the page to log in; a token that permits reading; or one that permits changes."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The accepted tokens. Without any, every client may read everything, and change everything unless `read_only`.

    A token is sent as `Authorization: Bearer TOKEN`. One of `read_tokens` permits reading everything; a change needs one of
    `admin_tokens`.
    """

    read_tokens: tuple[str, ...] = ()
    admin_tokens: tuple[str, ...] = ()
    read_only: bool = False

    @property
    def wanted(self) -> bool:
        """Whether a token is required."""
        return bool(self.read_tokens or self.admin_tokens)

    def check(self, header: str, role: Role, *, origin: bool = False) -> None:
        """Refuse a request that is not permitted.

        `header` is the value of the Authorization header; `origin`: a page in a browser sent the request.

        Raises:
            RestError: 401 without an accepted token; 403 if the token's role does not permit the request. Also 403 if no token is
                required and something is to be changed `read_only`, or by a page, because any page that a user visits could do that.
        """
        if not self.wanted:
            if role == "admin" and self.read_only:
                refuse(
                    403,
                    "Strangers reach this address (insecure), so it is for reading; rest-token-file permits changes",
                )
            if role == "admin" and origin:
                refuse(403, "A page may only read where no token is needed")
            return
        scheme, _, token = header.partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        known = scheme.lower() == "bearer"
        # `sum` instead of `any`: all tokens are compared, so that the time does not tell which one matched.
        admin = known and sum(hmac.compare_digest(given, one.encode()) for one in self.admin_tokens) > 0
        read = known and sum(hmac.compare_digest(given, one.encode()) for one in self.read_tokens) > 0
        if not (admin or read):
            refuse(401, f"{'The token is wrong' if given else 'A token is needed'}: Authorization: Bearer TOKEN")
        if role == "admin" and not admin:
            refuse(403, "This token may only read")


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of requests.

    `body_bytes`: the longest body; a configuration of 10,000 queues with their quotas takes 0.8 MB. `request_s`: seconds
    until an answer must begin. `path_chars`: the longest path and query together. `streams`, `streams_per_host`: open streams
    of events, in all and per Host header. `send_s`: seconds that a client may take to receive a piece of a stream. `batch`:
    most events of a batch. `checks`: most configurations that are checked at once. `keep_s`: most seconds for which an
    answer that was slow to make is given again although what it shows has changed; 0: never.
    """

    body_bytes: int = TABLE.field("licorne.max-body")
    request_s: float = TABLE.field("licorne.request-time")
    path_chars: int = 16_384
    streams: int = TABLE.field("event.maxStreams")
    streams_per_host: int = TABLE.field("event.maxStreamsPerHost")
    send_s: float = 5.0
    batch: int = TABLE.field("event.RESTResponseSize")
    checks: int = 2
    keep_s: float = 2.0
