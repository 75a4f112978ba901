"""Who may not change anything changes nothing, and each change is logged with who made it: for drawn servers and requests."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from common.planting import LOOKED_AT, Counted, a_law_breaks
from licorne.host.guesses import Guesses
from licorne.host.log import make_log
from licorne.host.memory import Memory
from licorne.host.security import Security
from licorne.host.web.rest import Access, app
from licorne.host.web.rest.endpoints import ENDPOINTS
from licorne.host.web.server import Web, WebServer
from rest.world import World, run

LOCAL, REMOTE = ("127.0.0.1:0", "[::1]:0", "unix:/run/rest"), ("0.0.0.0:9080", "[::]:0", "10.0.0.7:80")
QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: new}]}]}]"
CHANGES, SHOWN = (("PUT", "/ws/v1/config"), ("POST", "/ws/v1/config")), "/ws/v1/partition/default/queues"
PATHS = sorted({endpoint.path for endpoint in ENDPOINTS if "stream" not in endpoint.path})
CASES = st.tuples(
    st.lists(st.sampled_from(LOCAL + REMOTE), min_size=1, max_size=3).map(tuple),
    st.builds(Access, read_tokens=st.sampled_from(((), ("r",))), admin_tokens=st.sampled_from(((), ("a", "b")))),
    st.sampled_from(("", "r", "a", "b", "x")),  # the token that is sent
    st.booleans(),  # whether a page sends it
    st.sampled_from(CHANGES) | st.tuples(st.sampled_from(("PUT", "POST", "GET", "DELETE")), st.sampled_from(PATHS)),
    st.sampled_from(("10.1.2.3", "::1")),  # from where
)


def check(case: tuple[tuple[str, ...], Access, str, bool, tuple[str, str], str]) -> None:
    """Check what a request changes: all with an admin's token; without tokens, where no stranger and no page is let in."""
    addresses, access, token, page, request, peer = case
    world, written = World().register(), io.StringIO()
    web, log = Web(addresses=addresses, access=access, page="off"), make_log(written, form="json")
    memory = Memory(world.api.cluster, lambda: 0.0)
    made = WebServer(web, world.monitor, Security(insecure=True), {}, log, Guesses(), memory)
    headers = {"authorization": f"Bearer {token}"} | ({"origin": "http://elsewhere"} if page else {})

    async def ask() -> int:
        transport = httpx.ASGITransport(made._app, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            return (await client.request(*request, content=QUEUES)).status_code

    before = world.get(SHOWN)
    status = run(ask())
    tokens = access.read_tokens + access.admin_tokens
    permitted = token in access.admin_tokens if tokens else not page and set(addresses) <= set(LOCAL)
    assert request not in CHANGES or status == (200 if permitted else 401 if tokens and token not in tokens else 403)
    changed = world.get(SHOWN) != before
    assert changed == (permitted and request in CHANGES), case
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    told = [(line["level"], line["peer"], line["by"]) for line in lines if line.get("applied")]
    assert told == [("warning", peer, "a token" if tokens else "no token")] * changed, lines


@examples(100)
@given(CASES)
def test_only_who_may_changes_anything_and_is_logged(case: Any) -> None:
    check(case)


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "strangers may change all": (Security, "exposed", lambda *_, **__: []),
    "a change is not logged": (app.Dispatcher, "_on_change", property(lambda _: lambda **_: None, lambda *_: None)),
    "who has made a change is not logged": (app, "peer", lambda _: "unix"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    law = Counted(check)
    monkeypatch.setattr(*FAULTS[name], raising=False)
    with a_law_breaks(sys.modules[__name__]):
        law.search(CASES, 100)
    record_property(LOOKED_AT, law.looked_at)
