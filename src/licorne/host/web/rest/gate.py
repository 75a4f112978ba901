"""Who may do what: a token in the header, or for reading a session that began with one; and pauses for those who guess."""

from __future__ import annotations

from starlette.requests import Request

from licorne.host.guesses import Guesses

from .access import Access
from .errors import RestError
from .routing import Endpoint
from .sessions import COOKIE, Sessions


class Gate:
    """Checks requests of an interface whose tokens are those of `access`."""

    def __init__(self, access: Access, guesses: Guesses) -> None:
        self.access = access
        self.sessions = Sessions()
        self._guesses = guesses

    async def check(self, request: Request, endpoint: Endpoint) -> None:
        """Refuse a request that is not permitted, after a pause for an address that has guessed tokens.

        A session permits what its browser may be made to ask for by any page: reading, and by GET alone.

        Raises:
            RestError: 401, 403 or 429.
        """
        if endpoint.role == "anyone":
            return
        headers, wanted = request.headers, self.access.wanted
        token = headers.get("authorization", "") if wanted else ""
        reads = request.method == "GET" and endpoint.role == "read"
        if wanted and not token and reads and self.sessions.knows(request.cookies.get(COOKIE, "")):
            return
        await self._check(token, endpoint, peer(request), origin="origin" in headers)

    async def log_in(self, token: str, request: Request) -> str:
        """Return the name of a new session for who has shown a token.

        Raises:
            RestError: 401 or 429.
        """
        await self._check(f"Bearer {token}" if token else "", None, peer(request), origin=False)
        return self.sessions.begin()

    async def _check(self, token: str, endpoint: Endpoint | None, address: str, *, origin: bool) -> None:
        if token and not await self._guesses.pause(address):
            raise RestError(429, "Too many wrong tokens came from this address", {"Retry-After": "1"})
        try:
            self.access.check(token, "read" if endpoint is None else endpoint.role, origin=origin)
        except RestError as error:
            why = ("a wrong token" if token else "no token") if error.status == 401 else error.message
            self._guesses.refused(address, why, wrong=bool(token) and error.status == 401)
            raise


def peer(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client else "unix"
