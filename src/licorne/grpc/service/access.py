"""What gRPC wants of access control: the credentials of its ports, and the check of tokens."""

from __future__ import annotations

import hmac
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from licorne.host.guesses import Guesses
from licorne.host.security import Security

HEALTH = "/grpc.health.v1.Health/"
"""Prefix of the calls that need no token, for health probes have none."""


def server_credentials(security: Security) -> grpc.ServerCredentials | None:
    """Make the TLS credentials of a gRPC port; None without TLS.

    Raises:
        SecurityError: a certificate or key that cannot be used. `Security.context` finds out why; gRPC itself would only say
            that it cannot listen.
    """
    if security.context() is None:
        return None
    return grpc.ssl_server_credentials(
        [(security.key, security.certificate)], security.client_ca or None, require_client_auth=bool(security.client_ca)
    )


class TokenCheck(grpc.aio.ServerInterceptor):
    """Refuses gRPC calls without the right token; `guesses` logs these, and slows down clients that guess."""

    def __init__(self, token: str, guesses: Guesses) -> None:
        self._wanted = f"Bearer {token}".encode()
        self._guesses = guesses

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the handler of a call, wrapped in a check of its token: only a handler knows the client's address."""
        details: Any = handler_call_details
        handler: Any = await continuation(handler_call_details)
        if handler is None or details.method.startswith(HEALTH):
            return handler
        given = b""
        for key, value in details.invocation_metadata or ():
            if key == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
        answer: Any
        if handler.unary_unary is not None:

            async def answer(request: Any, context: Any) -> Any:
                return await handler.unary_unary(request, context) if await self._allows(given, context) else b""

            return grpc.unary_unary_rpc_method_handler(
                answer, handler.request_deserializer, handler.response_serializer
            )
        if inspect.isasyncgenfunction(handler.stream_stream):

            async def answer(requests: Any, context: Any) -> Any:
                if await self._allows(given, context):
                    async for one in handler.stream_stream(requests, context):
                        yield one

        else:

            async def answer(requests: Any, context: Any) -> Any:
                if await self._allows(given, context):
                    await handler.stream_stream(requests, context)

        return grpc.stream_stream_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)

    async def _allows(self, given: bytes, context: Any) -> bool:
        """Return whether the token of a call is right; if not, refuse the call."""
        address: str = context.peer().rpartition(":")[0]
        if given and not await self._guesses.pause(address):
            refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too many wrong tokens came from this address")
            return False
        if hmac.compare_digest(given, self._wanted):  # takes the same time for any wrong token
            return True
        self._guesses.refused(address, "a wrong token" if given else "no token", wrong=bool(given))
        wrong = "the token is wrong: it is not that of the service's --token-file"
        missing = "a token is needed: authorization: Bearer TOKEN"
        refuse(context, grpc.StatusCode.UNAUTHENTICATED, wrong if given else missing)
        return False


def refuse(context: Any, code: grpc.StatusCode, details: str) -> None:
    """Set the status, other than OK, with which a gRPC call ends when its handler returns.

    `context.abort` would end it too, by an exception that gRPC keeps: with its traceback, and so the frames of the handler,
    it is in a cycle of references, which is left to the garbage collector (`licorne.host.memory`).
    """
    context.set_code(code)
    context.set_details(details)
