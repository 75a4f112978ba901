"""Errors of calls to the API server."""

from __future__ import annotations

from typing import Final

import msgspec

from licorne._bounded import UNDECODABLE

RETRY_AFTER_MAX_S: Final = 60.0
"""The longest time that is taken from an answer; a proxy may ask for a day."""


class KubeconfigError(Exception):
    """The configuration of the connection cannot be used; the text says what to do."""


class ApiError(Exception):
    """The API server refused a call.

    `status` is the HTTP status, `reason` the machine-readable one (`NotFound`, `AlreadyExists`, ...), and
    `retry_after_s` how long the server wants to be left alone, if it said so, of which no more than `RETRY_AFTER_MAX_S` counts.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = None if retry_after_s is None else min(retry_after_s, RETRY_AFTER_MAX_S)


class UnansweredError(Exception):
    """A call got no answer, or not all of it: whether it took effect is unknown."""


class ExpiredError(ApiError):
    """The version from which a watch was to go on is too old (410): everything must be listed anew."""


class _Status(msgspec.Struct, rename="camel"):
    reason: str | None = None
    message: str | None = None
    code: int | None = None


def error_of(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer means."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except UNDECODABLE:
        said = _Status(message=body[:200].decode("utf-8", "replace"))
    wait = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    status = status or said.code or 0
    kind = ExpiredError if status == 410 else ApiError
    return kind(status, said.reason or "", said.message or "", wait)
