"""The addresses of the page, and how one of them is answered.

The objects are fetched in the loop of the scheduler, in small steps; everything that is made of them, from the context to
the text, is made in a thread.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from licorne.core.base.states import SECOND_NS
from licorne.host.threads import COMMON
from licorne.host.web.rest.answers import wants_gzip
from licorne.host.web.rest.errors import RestError, refuse
from licorne.host.web.rest.gate import Gate, peer
from licorne.host.web.rest.routing import Call, Endpoint, Handler
from licorne.host.web.rest.sessions import COOKIE, cookie, from_here

from . import applications, configuration, frame, history, nodes, now, people, queues, why
from .live import Streams
from .view import Query, Source, View, changes

if TYPE_CHECKING:
    from licorne.host.web.rest.handlers import Handlers

VIEWS: Final[tuple[View, ...]] = (
    *(now.VIEW, queues.VIEW, why.VIEW, applications.VIEW, applications.ONE, nodes.VIEW, nodes.ONE),
    *(people.VIEW, history.FAIRNESS, history.DECISIONS, configuration.VIEW),
)
"""All views; those of the navigation in its order."""
NAVIGATION: Final = [view for view in VIEWS if view.nav]
TOKEN_CHARS: Final = 4_096
LOGGED_IN: Final = "licorne-logged-in"
"""A header by which a process that shows moments of the past is told that a browser can log out; it permits nothing."""
TITLES: Final = {404: "Not found", 403: "Not permitted", 429: "Too many attempts", 503: "No answer now"}
Opened = Callable[[Query], Awaitable[Source]]
_Method = Callable[[Call], Awaitable[Response]]
_Elsewhere = Callable[[Call, bool], Awaitable[Response | None]]
_Map = dict[str, Any]
_Make = Callable[[], _Map]


class Pages:
    """The pages about what `opened` returns for a query. `handlers`: those of the server; `gate`: checks who logs in; None: nobody has to.

    `elsewhere`: returns the page of an address that this process does not answer itself (None: it does), given whether the browser has logged in.
    """

    def __init__(
        self, opened: Opened, handlers: Handlers, gate: Gate | None = None, elsewhere: _Elsewhere | None = None
    ) -> None:
        self._opened = opened
        self._elsewhere = elsewhere
        self._gate = gate
        self._streams = Streams(handlers.ending)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the endpoints of all pages, of the files that they need, and of logging in and out."""
        return (
            *(self._read(view.path, partial(self._show, view), limited=view is not why.VIEW) for view in VIEWS),
            self._read("/find", self._find),
            self._read("/live", self._live, limited=False),
            self._open("GET", "/static/{file}", self._file),
            self._open("GET", "/login", self._login_form),
            self._open("POST", "/login", self._log_in),
            self._open("POST", "/logout", self._log_out),
        )

    def _read(self, path: str, answer: _Method, *, limited: bool = True) -> Endpoint:
        async def handler(_handlers: Handlers, call: Call) -> Response:
            found = await self._elsewhere(call, self._has_session(call.request)) if self._elsewhere else None
            return found or await answer(call)

        return self._endpoint("GET", path, handler, role="read", limited=limited)

    def _open(self, method: str, path: str, answer: _Method) -> Endpoint:
        async def handler(_handlers: Handlers, call: Call) -> Response:
            if method == "POST" and not from_here(call.request):
                refuse(403, "This form was sent by a page of another site")
            return await answer(call)

        return self._endpoint(method, path, handler, role="anyone")

    def _endpoint(self, method: str, path: str, handler: Handler, **more: Any) -> Endpoint:
        page = partial(Endpoint, summary="A page", media="text/html", refused=self._refused)
        return page(method=method, path=path, handler=handler, **more)

    # -- views -----------------------------------------------------------------------------------------

    async def _show(self, view: View, call: Call) -> Response:
        query = Query(view.path, call.request.query_params)
        source = await self._opened(query)
        names = [home.name for home in await source.partitions()]
        more: _Map = {
            "title": view.title,
            "active": view.parent or view.name,
            "source": source.name,
            "at_ns": source.now_ns(),
            "partitions": names,
            "span": source.span,
            "changes": source.changes,
            "live": source.changes and view.live,
        }
        if not names:
            return await self._page(call.request, query, "empty", more | {"title": "Nothing registered yet"})
        wanted = more["partition_name"] = query["partition"] or names[0]
        if wanted not in names:
            refuse(404, f"There is no partition {wanted}; there are: {', '.join(names)}")
        found = await view.fetch(source, wanted, query)
        make, template = partial(view.context, query, *found), view.name
        if query["against"] and not view.compared:
            more["compared"] = ", ".join(each.title for each in VIEWS if each.compared)
        elif query["against"]:
            other = await self._opened(Query(view.path, {"t": query["against"]}))
            make = partial(changes, view, query, await view.fetch(other, wanted, query), found)
            template, more["against_ns"] = "changes", other.now_ns()
        response = await self._page(call.request, query, template, more, make)
        again = _again(source, query)
        if again:
            response.headers["Refresh"] = again
        return response

    async def _page(
        self, request: Request, query: Query, template: str, more: _Map, make: _Make = dict, status: int = 200
    ) -> Response:
        """Return a page, whose context `make` and whose text are made in a thread."""
        around = {"query": query, "views": NAVIGATION, "logged_in": self._has_session(request), **more}
        compress = wants_gzip(request.scope)

        def made() -> bytes:
            text = frame.render(template, around | make()).encode("utf-8", "replace")
            return gzip.compress(text, 1) if compress else text

        headers = frame.HEADERS | ({"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if compress else {})
        return HTMLResponse(await COMMON.run(made), status, headers=headers)

    def _has_session(self, request: Request) -> bool:
        """Return whether a browser has logged in: here, or where this process is asked from."""
        if self._gate is None:
            return LOGGED_IN in request.headers
        return self._gate.sessions.knows(request.cookies.get(COOKIE, ""))

    async def _refused(self, request: Request, error: RestError) -> Response:
        """Show who may not see a page how to log in, and everybody else what is wrong."""
        if error.status == 401 and request.method == "GET":
            asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(asked, safe='')}", 303)
        title = TITLES.get(error.status, "Something went wrong")
        said = {"title": title, "message": error.message, "status": error.status}
        return await self._page(request, Query("/", {}), "error", said, status=error.status)

    async def _find(self, call: Call) -> Response:
        """Lead to what has a name: an application, a node or a queue, and else to the question why it waits."""
        query = Query("/find", call.request.query_params)
        source, name = await self._opened(query), query["name"].strip()
        homes = [home.name for home in await source.partitions()]
        partition = query["partition"] or (homes[0] if homes else "")
        if not name or partition not in homes:
            link = query.link("/applications")
        elif any(each.app.application_id == name for each in await source.applications(partition)):
            link = query.link("/application", name=name)
        elif any(each.node.node_id == name for each in await source.nodes(partition)):
            link = query.link("/node", name=name)
        elif f"{name}.".startswith("root."):
            link = query.link("/queues", queue=name.lower())
        else:
            link = query.link("/why", name=name)
        return RedirectResponse(link, 303)

    async def _live(self, call: Call) -> Response:
        """Tell when what is shown has changed, for pages that are looked at with a script."""

        async def version() -> object:
            return (await self._opened(Query("/", {}))).version()

        login = call.request.cookies.get(COOKIE, "") if self._has_session(call.request) else ""
        return self._streams.response(version, login or peer(call.request))

    async def _file(self, call: Call) -> Response:
        name = call.variables["file"]
        data = frame.static_files().get(name)
        if data is None:
            refuse(404, f"There is no file {name}")
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(data, headers=headers, media_type=frame.TYPES[name.rpartition(".")[2]])

    # -- logging in ------------------------------------------------------------------------------------

    async def _login_form(self, call: Call) -> Response:
        after = _local(call.query("next"))
        if self._gate is None or not self._gate.access.wanted or self._has_session(call.request):
            return RedirectResponse(after, 303)
        return await self._login_page(call, after)

    async def _login_page(self, call: Call, after: str, fault: str = "", status: int = 200) -> Response:
        more = {"title": "Log in", "next": after, "fault": fault}
        return await self._page(call.request, Query("/login", {}), "login", more, status=status)

    async def _log_in(self, call: Call) -> Response:
        given = parse_qs(call.body.decode("latin-1"), max_num_fields=8, errors="replace")
        after = _local(given.get("next", [""])[0])
        if self._gate is None:
            return RedirectResponse(after, 303)
        try:
            name = await self._gate.log_in(given.get("token", [""])[0].strip()[:TOKEN_CHARS], call.request)
        except RestError as error:
            return await self._login_page(call, after, error.message.partition(":")[0], error.status)
        return _with_session(call.request, after, name)

    async def _log_out(self, call: Call) -> Response:
        if self._gate is not None:
            self._gate.sessions.end(call.request.cookies.get(COOKIE, ""))
        return _with_session(call.request, "/login", "")


def _with_session(request: Request, after: str, name: str) -> Response:
    """Lead to an address with the cookie of a session, or with none any more."""
    given = cookie(name, secure=request.url.scheme == "https", lasts=bool(name))
    return RedirectResponse(after, 303, {"Set-Cookie": given})


def _again(source: Source, query: Query) -> str:
    """Return after how many seconds a browser is to look again, and where: at the same view, or of a recording at a later moment."""
    every = query.seconds("every", 3600)
    if every is None or source.span is None or source.changes:
        return "" if every is None else f"{every:g}"
    step = query.seconds("step", 10**6) or 60.0
    later_s = source.now_ns() / SECOND_NS + step
    return f"{every:g}; url={query.link(t=f'{later_s:.0f}')}" if later_s * SECOND_NS <= source.span[1] else ""


def _local(address: str) -> str:
    """Return an address of this server to go to after logging in; `/` in place of any other."""
    local = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if local and "\\" not in address else "/"
