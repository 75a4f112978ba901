"""Error answers as clients see them (docs/spec/rest-api.md, section 1). They never contain a traceback."""

from __future__ import annotations

from typing import NoReturn

PARTITION_NOT_FOUND = "Partition not found"
QUEUE_NOT_FOUND = "Queue not found"
NODE_NOT_FOUND = "Node not found"
APPLICATION_NOT_FOUND = "Application not found"
USER_NOT_FOUND = "User not found"
GROUP_NOT_FOUND = "Group not found"
HEALTH_NOT_AVAILABLE = "Health check is not available"
MISSING = "Missing parameters"
TRACKING_DISABLED = "Event tracking is disabled"
TOO_MANY_STREAMS = "Too many streaming connections"
SHUTTING_DOWN = "The scheduler is shutting down"
STREAM_CLOSED = "Event stream was closed by the producer"


class RestError(Exception):
    """An error that is answered with an error object: a status, a text, and perhaps headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


def refuse(status: int, message: str) -> NoReturn:
    """End the request with an error object.

    Raises:
        RestError: always.
    """
    raise RestError(status, message)
