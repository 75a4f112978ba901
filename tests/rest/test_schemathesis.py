"""Schemathesis against `licorne serve` in a process of its own: requests made from the OpenAPI document, all of it.

LICORNE_SCHEMATHESIS sets the number of requests: `LICORNE_SCHEMATHESIS=20000 pytest tests/rest/test_schemathesis.py`.
Half of them are as the document allows, half are not; half of the names in paths are those of existing objects.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.examples import scaled
from common.waiting import WAIT_S, wait_for
from licorne.grpc.client import SchedulerClient
from licorne.si import v19
from rest.world import CONFIG
from service.manager import Manager
from service.processes import Serving, resident_kb, serving

pytestmark = pytest.mark.gate

schemathesis = pytest.importorskip("schemathesis", reason="Schemathesis is not installed")
checks = pytest.importorskip("schemathesis.checks")
openapi_checks = pytest.importorskip("schemathesis.specs.openapi.checks")
generation = pytest.importorskip("schemathesis.generation")

REQUESTS = int(os.environ.get("LICORNE_SCHEMATHESIS") or scaled(300))
STREAM = "/ws/v1/events/stream"
NAMES = {
    "partition": ["default", "[mycluster]default", "[other]default"],
    "queue": ["root", "root.a", "root.b", "root.dev"],
    "application": ["app"],
    "node": ["n1", "n2"],
    "user": ["ann"],
    "group": ["ann", "dev"],
    "state": ["active", "completed", "rejected"],
    "profile": ["heap", "allocs", "goroutine"],
}
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
RESIDENT_MAX_KB = 200_000
"""By how much the process may grow: the events that are kept, and what its allocator holds."""


@contextmanager
def busy_server() -> Iterator[tuple[Serving, str, Manager, SchedulerClient]]:
    """A server with something in it: its process, where its REST is, and the resource manager that goes on."""
    with serving("--rest", "127.0.0.1:0") as running:
        wait_for(lambda: running.events("listening for REST"))
        url = f"http://{running.events('listening for REST')[0]['addresses'][0]}"
        manager = Manager("mycluster")
        with SchedulerClient(running.address) as client, SchedulerClient(running.address) as second:
            request = v19.RegisterResourceManagerRequest(rm_id="mycluster", config=CONFIG)
            client.register_resource_manager(request, manager, resync=manager.report)
            second.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="other"))
            for node in ("n1", "n2"):
                manager.add_node(client, node, 10_000)
            manager.add_application(client, "app")
            manager.ask(client, "app", {f"k{number}": 1000 for number in range(30)})
            wait_for(lambda: len(manager.running) == 20)
            yield running, url, manager, client


@st.composite
def cases(draw: st.DrawFn, operations: list[Any]) -> Any:
    """A request of any operation, right or wrong."""
    operation = draw(st.sampled_from(operations))
    mode = draw(st.sampled_from(list(generation.GenerationMode)))
    case = draw(operation.as_strategy(generation_mode=mode))
    if draw(st.booleans()):
        for name in case.path_parameters or {}:
            if name in NAMES:
                case.path_parameters[name] = draw(st.sampled_from(NAMES[name]))
    return case


def begin_of_stream(case: Any, url: str) -> int:
    """The status of a stream of events, which has no end: so far its first line is read."""
    request = case.as_transport_kwargs(base_url=url)
    known = {"params": request.get("params"), "headers": dict(request.get("headers") or {}), "timeout": WAIT_S}
    with httpx.stream(request["method"], request["url"], **known) as answer:
        if answer.status_code == 200:
            assert next(answer.iter_lines()).startswith('{"InstanceUUID":')
        return answer.status_code


@pytest.mark.timeout(7200)
def test_schemathesis(capsys: pytest.CaptureFixture[str]) -> None:
    with busy_server() as (running, url, manager, client):
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json", wait_for_schema=WAIT_S)
        schema.config.update(base_url=url)
        operations = [found.ok() for found in schema.get_all_operations()]
        few = 20 * len(operations) > REQUESTS
        statuses: Counter[int] = Counter()
        called: Counter[str] = Counter()
        before = resident_kb(running.process.pid)

        @settings(max_examples=REQUESTS, suppress_health_check=list(HealthCheck), database=None)
        @given(cases(operations))
        def one(case: Any) -> None:
            called[case.operation.label] += 1
            if case.operation.path == STREAM:
                status = begin_of_stream(case, url)
                assert status in (200, 400, 401, 403, 404, 405, 503), case
            else:
                answer = case.call(timeout=WAIT_S)
                status = answer.status_code
                assert b"Traceback" not in answer.content or case.operation.path.startswith("/debug"), case
                case.validate_response(answer, checks=CHECKS)
            statuses[status] += 1

        one()
        grown = resident_kb(running.process.pid) - before
        with capsys.disabled():
            sys.stdout.write(
                f"\nSchemathesis: {sum(statuses.values())} requests to {len(called)} of {len(operations)} operations; "
                f"answers by status {dict(sorted(statuses.items()))}; the server grew by {grown} kB\n"
            )
        assert sum(statuses.values()) >= REQUESTS
        assert set(called) == {operation.label for operation in operations} or few
        assert grown < RESIDENT_MAX_KB
        manager.release(client, list(manager.running))
        wait_for(lambda: len(manager.running) == 10)  # it still decides
        assert manager.faults == client.callback_errors == []
        client.close()
        assert running.end() == 0
