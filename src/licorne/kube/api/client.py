"""Calls to the API server: typed lists and watches, bindings, and the few other writes.

aiohttp carries them: with many requests in flight it takes a seventh of the processor time, or less, of the clients that
lightkube could use (`python -m bench clients`). Answers are not compressed, as for kube-scheduler: within a cluster that
costs more time than it saves, and Kubernetes 1.37 would compress each change of a watch that began with a list.
Bindings have a client, and so connections, of their own, so that nothing else can delay them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, Final, Generic, Self, TypeVar

import aiohttp
import msgspec

from licorne._bounded import UNDECODABLE
from licorne.kube.objects import KubernetesObject
from licorne.kube.objects.meta import ListMeta

from .config import Access
from .errors import ApiError, KubeconfigError, UnansweredError, error_of
from .kinds import PODS, Kind

T = TypeVar("T", bound=KubernetesObject)

CALL_S: Final = 30.0
CONNECT_S: Final = 10.0
CALL_TIMEOUT: Final = aiohttp.ClientTimeout(total=CALL_S, sock_connect=CONNECT_S)
EVENT_BYTES_MAX: Final = 16 << 20
"""The longest event of a watch that is taken: far above what the API server stores."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Fault(msgspec.Struct, frozen=True, gc=False):
    """An object that cannot be read: a sentence that says why, and which one it is, as far as that can be read."""

    text: str
    namespace: str = ""
    name: str = ""
    uid: str = ""


class WatchEvent(msgspec.Struct, Generic[T], gc=False):
    """One change that a watch tells: ADDED, MODIFIED, DELETED, or BOOKMARK (only the version, and `end_of_list`).

    FAULT is that of an object that cannot be read; only if it is known to be deleted, that stays DELETED.
    """

    type: str
    object: T | None
    version: str
    end_of_list: bool = False
    fault: Fault | None = None
    """Which object could not be read; then `object` is None."""


class Page(msgspec.Struct, Generic[T]):
    """Some objects of a list, its version, and where the next page begins ("": this is the last)."""

    items: list[T]
    version: str
    next: str
    faults: list[Fault]


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 0


class _Identity(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity


class _List(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] = []


class Requests:
    """What all clients that share this object have asked an API server.

    `answers` counts requests by method and status; those without an answer have the status `error`. `idle` is set while no
    write is under way.
    """

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.idle = asyncio.Event()
        self.idle.set()
        self._writing = 0

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Count a write as under way."""
        self._writing += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self.idle.set()


class Client:
    """A client of one API server, within a running loop.

    Parameters:
        access: where the server is, and who we are.
        connections: how many requests may be under way at once; more wait. A watch holds one, for each kind.
        requests: counts the calls.
    """

    def __init__(
        self,
        access: Access,
        *,
        connections: int = 64,
        requests: Requests | None = None,
    ) -> None:
        self.access = access
        self.requests = requests or Requests()
        connector = aiohttp.TCPConnector(limit=connections)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "licorne"},
            proxy=access.proxy,  # found once: aiohttp would look for it, and for ~/.netrc, in a thread with each call
            read_bufsize=1 << 20,
        )

    async def close(self) -> None:
        """Close all connections; calls under way end with an error."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        """Do nothing: connections are opened when they are needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.close()

    # -- reading ------------------------------------------------------------------------------------------------

    async def list_page(
        self, kind: Kind[T], *, limit: int = 1000, next_page: str = "", newest: bool = False
    ) -> Page[T]:
        """Return a page of a list.

        `newest`: as stored now, not as the server's cache has it, which may be some moments behind.

        Raises:
            ApiError, UnansweredError
        """
        query = {"limit": str(limit)}
        if next_page:
            query["continue"] = next_page
        elif not newest:
            query["resourceVersion"] = "0"
        if kind.fields:
            query["fieldSelector"] = kind.fields
        body = await self._call("GET", kind.path(), query=query)
        try:
            listed = msgspec.json.decode(body, type=_List)
        except UNDECODABLE as error:
            raise UnansweredError(f"the list of {kind.plural} cannot be read: {error}") from None
        items, faults = [], []
        decoder = msgspec.json.Decoder(kind.type)
        for raw in listed.items:
            try:
                items.append(decoder.decode(raw))
            except UNDECODABLE as error:
                faults.append(_fault(kind, raw, error))
        return Page(items, listed.metadata.resource_version, listed.metadata.continue_, faults)

    async def watch(
        self, kind: Kind[T], version: str = "", *, initial: bool = False, timeout_s: float = 300.0
    ) -> AsyncGenerator[list[WatchEvent[T]]]:
        """Yield changes as they come, those that have come together in one list; an empty one when the server has answered.

        `version`: go on after it. `initial`: begin with all objects that there are, in no order, and a bookmark with
        `end_of_list` after them. The iteration ends when the server closes the watch.

        Raises:
            ApiError: also in the middle; ExpiredError if the version is too old.
            UnansweredError: the connection is lost.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(int(timeout_s))}
        if version:
            query["resourceVersion"] = version
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if kind.fields:
            query["fieldSelector"] = kind.fields
        envelope, decoder = msgspec.json.Decoder(_Envelope), msgspec.json.Decoder(kind.type)
        timeout = aiohttp.ClientTimeout(total=timeout_s + CALL_S, sock_connect=CONNECT_S)
        rest = b""
        async with await self._request("GET", kind.path(), query=query, timeout=timeout) as response:
            yield []
            async for chunk in _chunks(response):
                lines = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
                rest = lines.pop()
                if len(rest) > EVENT_BYTES_MAX:
                    raise UnansweredError(f"an event of {kind.plural} is longer than {EVENT_BYTES_MAX} bytes")
                if lines:
                    yield [_read_event(kind, envelope, decoder, line) for line in lines if line]

    async def get(self, kind: Kind[T], namespace: str, name: str) -> T:
        """Return one object. Raises ApiError (404: there is none), UnansweredError."""
        body = await self._call("GET", kind.path(namespace, name))
        try:
            return msgspec.json.decode(body, type=kind.type)
        except UNDECODABLE as error:
            raise UnansweredError(f"{kind.name} {namespace}/{name} cannot be read: {error}") from None

    # -- writing ------------------------------------------------------------------------------------------------

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod to a node. Raises ApiError, UnansweredError."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", PODS.path(namespace, name, "binding"), body=body)

    async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
        """Delete a pod, if it is still the one with this UID. Raises ApiError (404, 409), UnansweredError."""
        await self.delete(PODS.path(namespace, name), uid, grace_s)

    async def delete(self, path: str, uid: str, grace_s: int | None = None) -> None:
        """Delete an object, if it is still the one with this UID. Raises ApiError (404, 409), UnansweredError."""
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._call("DELETE", path, body=body)

    async def patch_status(
        self, kind: Kind[Any], namespace: str, name: str, uid: str, status: dict[str, Any], version: str = ""
    ) -> None:
        """Change fields of an object's status, if it is still the one with this UID, and has this version if one is given.

        Raises ApiError (409: it is another one, or has changed), UnansweredError.
        """
        body = {"metadata": {"uid": uid, **({"resourceVersion": version} if version else {})}, "status": status}
        content_type = "application/strategic-merge-patch+json"
        await self._call("PATCH", kind.path(namespace, name, "status"), body=body, content_type=content_type)

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object in a collection. Raises ApiError (409: it is there already), UnansweredError."""
        await self._call("POST", path, body=body)

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        """Change fields of an object, and return it as it is then. Raises ApiError, UnansweredError."""
        return await self._call("PATCH", path, body=body, content_type="application/merge-patch+json")

    # -- requests -----------------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        with self.requests.write() if method != "GET" else contextlib.nullcontext():
            async with await self._request(method, path, query=query, body=body, content_type=content_type) as response:
                try:
                    return await response.read()
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    raise UnansweredError(f"{method} {path}: {_said(error)}") from None

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout = CALL_TIMEOUT,  # noqa: ASYNC109  aiohttp's own
    ) -> aiohttp.ClientResponse:
        """Send a request; return the answer when its head is there. The caller reads its body, and releases the connection.

        Once, credentials that are refused are looked up again.

        Raises:
            ApiError: the answer is an error, or the body cannot be encoded, which counts as refused: it never will be.
            UnansweredError: there is no answer.
        """
        data = _encoded(body) if body is not None else None
        for attempt in (1, 2):
            try:
                headers = await self.access.headers(renew=attempt > 1)
            except KubeconfigError as error:  # for now: a program that prints credentials may work again later
                raise UnansweredError(str(error)) from None
            if data is not None:
                headers["Content-Type"] = content_type
            try:
                response = await self._session.request(
                    method,
                    self.access.server + path,  # a server's address may have a path of its own
                    params=query,
                    data=data,
                    headers=headers,
                    allow_redirects=False,
                    timeout=timeout,
                    ssl=self.access.ssl or True,
                    server_hostname=self.access.server_name,
                )
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self.requests.answers[method, "error"] += 1
                raise UnansweredError(f"{method} {path}: {_said(error)}") from None
            self.requests.answers[method, str(response.status)] += 1
            if response.status < 300:
                return response
            async with response:
                if response.status == 401 and attempt == 1:
                    continue
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                    raise error_of(response.status, await response.read(), response.headers.get("Retry-After"))
                raise UnansweredError(f"{method} {path}: {response.status}, and no more")
        raise AssertionError  # the second attempt returns or raises


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnansweredError(f"the watch broke off: {_said(error)}") from None


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # such as half of a surrogate pair
        raise ApiError(400, "BadRequest", f"the request cannot be encoded: {error}") from None


def _said(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(
        error, aiohttp.ClientConnectorCertificateError
    ):
        return (
            f"cannot connect to {error.host}:{error.port}: {error.os_error}"  # its own text quotes Python's TLS context
        )
    return str(error) or type(error).__name__


def _read_event(
    kind: Kind[T], envelope: msgspec.json.Decoder[_Envelope], decoder: msgspec.json.Decoder[T], line: bytes
) -> WatchEvent[T]:
    raw: bytes | msgspec.Raw = line
    gone = False
    try:
        event = envelope.decode(line)
        raw, gone = event.object, event.type == "DELETED"
        if event.type in ("ADDED", "MODIFIED", "DELETED"):
            found = decoder.decode(event.object)
            return WatchEvent(event.type, found, found.metadata.resource_version)
        head = msgspec.json.decode(event.object, type=_Head)
    except UNDECODABLE as error:
        return WatchEvent("DELETED" if gone else "FAULT", None, "", fault=_fault(kind, raw, error))
    if event.type == "ERROR":
        raise error_of(head.code, bytes(event.object))
    last = (head.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return WatchEvent("BOOKMARK", None, head.metadata.resource_version, end_of_list=last)


def _fault(kind: Kind[Any], raw: bytes | msgspec.Raw, error: Exception) -> Fault:
    try:
        meta = msgspec.json.decode(bytes(raw), type=_Identified).metadata
    except UNDECODABLE:
        meta = _Identity()
    name = " " + f"{meta.namespace}/{meta.name}".lstrip("/") if meta.name else ""
    return Fault(f"{kind.name}{name} cannot be read: {error}", meta.namespace, meta.name, meta.uid)
