"""`licorne.grpc.client`: the same interface as in process; connections that break, schedulers that forget."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from common.waiting import WAIT_S, wait_for
from deployment.places import certificate
from licorne import Incident, NotRegisteredError, RegistrationError, RequestError, ResourceManagerCallback
from licorne.grpc.client import DisconnectedError, SchedulerClient, SchedulerUnreachableError
from licorne.grpc.client.connection import Connection
from licorne.grpc.client.scheduler import ITEMS_MAX, _parts
from licorne.grpc.service import Service
from licorne.grpc.service.streams import End
from licorne.si import first, v19, wire
from service.manager import REQUEST, Manager, facts
from service.processes import serving
from service.threads import Site, site

QUICK = (0.02, 0.2)


def connected(here: Site, manager: Manager, **given: Any) -> SchedulerClient:
    client = SchedulerClient(here.wire.address, retry_s=QUICK)
    client.register_resource_manager(REQUEST, manager, resync=given.pop("resync", manager.report), **given)
    return client


def test_a_resource_manager_in_few_lines() -> None:
    with site() as here:
        manager = Manager()
        with connected(here, manager) as client:
            manager.add_node(client, "n1", 3000)
            manager.add_application(client, "app")
            manager.ask(client, "app", {"a": 1000, "b": 1000, "c": 1000, "d": 1000})
            wait_for(lambda: len(manager.running) == 3)
            manager.release(client, ["a"])
            wait_for(lambda: len(manager.running) == 3)
            wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        assert manager.faults == client.callback_errors == []
        assert here.look(lambda s: s.sessions.by_id) == {}  # leaving is a goodbye


def test_the_first_dialect() -> None:
    heard: list[first.UpdateResponse] = []

    class Callback(ResourceManagerCallback):
        def recv_update_response(self, response: first.UpdateResponse) -> None:
            heard.append(response)

    with site() as here, SchedulerClient(here.wire.address) as client:
        client.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm"), Callback())
        node = first.NewNodeInfo(node_id="n1", schedulable_resource={"vcore": 2000})
        ask = first.AllocationAsk(allocation_key="k", resource_ask={"vcore": 1000}, tags={"namespace": "dev"})
        client.update(first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[node], asks=[ask]))
        wait_for(lambda: [new.node_id for response in heard for new in response.new_allocations] == ["n1"])
        with pytest.raises(NotRegisteredError):
            client.update_node(v19.NodeRequest(rm_id="rm"))


def test_requests_in_bytes_and_calls_from_callbacks() -> None:
    class Callback(ResourceManagerCallback):
        def update_application(self, response: v19.ApplicationResponse) -> None:
            if response.accepted:
                asks = [v19.Allocation(allocation_key="k", application_id="app", resource_per_alloc={"vcore": 1})]
                client.update_allocation(wire.encode(v19.AllocationRequest(rm_id="rm", allocations=asks)))

        def update_allocation(self, response: v19.AllocationResponse) -> None:
            if response.new:
                told.set()
                raise ZeroDivisionError

    told = threading.Event()
    with site() as here, SchedulerClient(here.wire.address) as client:
        client.register_resource_manager(REQUEST, Callback())
        manager = Manager()
        manager.add_node(client, "n1", 3000)
        manager.add_application(client, "app")
        assert told.wait(WAIT_S)
        wait_for(lambda: client.callback_errors == ["ZeroDivisionError: "])


def test_mistakes_raise_and_nothing_is_sent() -> None:
    def ask(number: int, amount: Any = 1) -> v19.Allocation:
        return v19.Allocation(allocation_key=str(number), application_id="app", resource_per_alloc={"vcore": amount})

    wrong: list[tuple[str, Any, str]] = [
        ("update_node", v19.ApplicationRequest(rm_id="rm"), "must be a NodeRequest"),
        ("update_node", v19.NodeRequest, "must be a NodeRequest, not the class itself"),
        ("update_node", v19.NodeRequest(rm_id="rm", nodes=v19.NodeInfo()), "nodes NodeInfo(node_id=''"),  # type: ignore[arg-type]
        (
            "update_allocation",  # the last one, in the second of two messages
            v19.AllocationRequest(rm_id="rm", allocations=[*map(ask, range(ITEMS_MAX)), ask(ITEMS_MAX, 1.5)]),
            "resourcePerAlloc['vcore'] 1.5: must be an integer",
        ),
    ]
    with site() as here:
        manager = Manager()
        with connected(here, manager) as client:
            manager.add_application(client, "app")
            for method, request, text in wrong:
                with pytest.raises(RequestError) as error:
                    getattr(client, method)(request)
                assert text in str(error.value)
            manager.add_node(client, "n1", 3000)
            manager.ask(client, "app", {"a": 1000})
            wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        for callback in (Manager, print):
            with pytest.raises(RequestError, match="invalid callback"):
                SchedulerClient(here.wire.address).register_resource_manager(REQUEST, callback)  # type: ignore[arg-type]


def test_refusals_that_the_callback_does_not_take_reach_the_handler() -> None:
    heard: list[Incident] = []
    with site() as here, SchedulerClient(here.wire.address, on_incident=heard.append) as client:
        client.register_resource_manager(REQUEST, ResourceManagerCallback())
        client.update_node(v19.NodeRequest(rm_id="rm", nodes=[v19.NodeInfo(node_id="n1")]))  # without an action
        wait_for(lambda: heard)
    (said,) = heard
    assert (said.kind, said.rm_id, said.callback) == ("refusal", "rm", "update_node")
    assert said.text == ("node 'n1' was refused: invalid nodes[0].action 0: must say what is to be done with the node")


def test_a_resource_manager_may_bring_settings_that_a_later_release_knows() -> None:
    with site() as here, SchedulerClient(here.wire.address) as client:
        extra = {"service.ofRelease2": "x", "priority.class.high": "7"}
        client.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", extra_config=extra))
        found = here.look(lambda s: s.api.cluster.managers["rm"].settings.priority_classes)
        assert found == {"high": 7}


def test_asks_wait_for_their_application_and_node() -> None:
    """They go on another stream, and would be refused if they came first."""
    with site() as here:
        manager = Manager()
        with connected(here, manager) as client:
            for number in range(60):
                manager.add_node(client, f"n{number}", 1000)
                manager.add_application(client, f"app{number}")
                manager.ask(client, f"app{number}", {f"p{number}": 1000})
            wait_for(lambda: len(manager.running) == 60)
        assert manager.faults == []


def test_long_requests_are_divided() -> None:
    asks = [v19.Allocation(allocation_key=str(i)) for i in range(2 * ITEMS_MAX + 1)]
    releases = v19.AllocationReleasesRequest()
    parts = list(_parts(v19.AllocationRequest(rm_id="rm", allocations=asks, releases=releases)))
    assert [ask for part in parts for ask in part.allocations] == asks
    assert [part.releases for part in parts] == [None, None, None, releases]
    assert max(len(part.allocations) for part in parts) == ITEMS_MAX
    nodes = v19.NodeRequest(rm_id="rm", nodes=[v19.NodeInfo()] * (ITEMS_MAX + 1))
    assert [len(part.nodes) for part in _parts(nodes)] == [ITEMS_MAX, 1]
    apps = v19.ApplicationRequest(rm_id="rm", new=[v19.AddApplicationRequest()] * (ITEMS_MAX + 1))
    assert [len(part.new) for part in _parts(apps)] == [ITEMS_MAX, 1]


# -- refusals --------------------------------------------------------------------------------------------


def test_an_unreachable_scheduler_raises(caplog: pytest.LogCaptureFixture) -> None:
    client = SchedulerClient("127.0.0.1:1")
    with pytest.raises(SchedulerUnreachableError, match=r"127\.0\.0\.1:1: nobody listens there; is `licorne"):
        client.register_resource_manager(REQUEST, timeout_s=2)
    client.close()
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "licorne.grpc.client"]
    assert warning.startswith("127.0.0.1:1: nobody listens there;")
    assert "Trying again for " in warning


def test_a_scheduler_that_starts_a_little_later_is_waited_for(tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'socket'}"
    with SchedulerClient(address, retry_s=QUICK) as client:
        registering = threading.Thread(
            target=client.register_resource_manager, args=(REQUEST,), kwargs={"timeout_s": WAIT_S}, daemon=True
        )
        registering.start()
        time.sleep(0.5)
        with serving(address=address):
            registering.join(WAIT_S)
            assert not registering.is_alive()
            client.update_node(v19.NodeRequest(rm_id="rm"))


def test_refusals_are_those_of_the_scheduler_in_process() -> None:
    with site() as here, SchedulerClient(here.wire.address) as client:
        with pytest.raises(NotRegisteredError):
            client.update_node(v19.NodeRequest(rm_id="rm"))
        with pytest.raises(RegistrationError, match="registration of RM failed"):
            client.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config="partitions: 7"))
        client.register_resource_manager(REQUEST)
        with pytest.raises(NotRegisteredError, match="other"):
            client.update_node(v19.NodeRequest(rm_id="other"))
        with pytest.raises(DisconnectedError, match="registers once"):
            client.register_resource_manager(REQUEST)
        client.close()
        with pytest.raises(DisconnectedError, match="closed"):
            client.update_node(v19.NodeRequest(rm_id="rm"))


def test_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sesame\n")
    with serving("--token-file", str(tmp_path / "token")) as running:
        with SchedulerClient(running.address) as stranger, pytest.raises(RegistrationError, match="a token is needed"):
            stranger.register_resource_manager(REQUEST)
        with SchedulerClient(running.address, token="other") as stranger:  # noqa: S106, SIM117
            with pytest.raises(RegistrationError, match="the token is wrong"):
                stranger.register_resource_manager(REQUEST)
        with SchedulerClient(running.address, token="sesame\n") as client:  # noqa: S106
            client.register_resource_manager(REQUEST)
        assert running.end() == 0
        assert "sesame" not in "".join(running.lines)


@pytest.mark.parametrize("token", ["two\nlines", "\x00", "schlüssel"])
def test_a_token_that_cannot_be_sent_is_refused_at_once(token: str) -> None:
    with pytest.raises(ValueError, match="the token has characters that no token has"):
        SchedulerClient("127.0.0.1:1", token=token)


@pytest.mark.parametrize(
    ("service_has_tls", "given", "told"),
    [
        (True, "", "if the service uses TLS, give its certificate"),
        (True, "other", "is not that of the authority which signed the service's certificate"),
        (True, "key", "is no certificate in PEM form"),
        (True, "own", "is for another name than this address"),
        (False, "own", "the service does not use TLS"),
    ],
)
def test_what_is_wrong_with_tls_is_said(tmp_path: Path, service_has_tls: bool, given: str, told: str) -> None:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
        certificate(tmp_path / name, "licorne")
    files = {"own": "own/tls.crt", "other": "other/tls.crt", "key": "own/tls.key"}
    options = ("--tls-cert", str(tmp_path / "own/tls.crt"), "--tls-key", str(tmp_path / "own/tls.key"))
    with serving(*options if service_has_tls else ()) as running:
        roots = (tmp_path / files[given]).read_bytes() if given else None
        credentials = grpc.ssl_channel_credentials(roots) if roots else None
        client = SchedulerClient(running.address, credentials=credentials)
        with client, pytest.raises(SchedulerUnreachableError, match=told):
            client.register_resource_manager(REQUEST, timeout_s=10 if given else 2)


def test_a_second_instance_takes_over_and_the_first_one_stays_away() -> None:
    with site() as here:
        manager, other = Manager(), Manager()
        older, newer = connected(here, manager), connected(here, other)
        wait_for(lambda: older._over)
        with pytest.raises(DisconnectedError, match="another instance took over"):
            older.update_node(v19.NodeRequest(rm_id="rm"))
        other.add_node(newer, "n1", 1000)
        wait_for(lambda: here.look(lambda s: facts(s.api)) == other.expected())
        assert (older.resyncs, newer.resyncs) == (0, 0)
        older.close()
        newer.close()


def test_without_resync_a_lost_connection_is_the_end() -> None:
    with site() as here:
        manager = Manager()
        client = connected(here, manager, resync=None)
        here.cut()
        wait_for(lambda: client._over)
        with pytest.raises(DisconnectedError, match="no resync"):
            manager.add_node(client, "n1", 1000)
        client.close()


# -- faults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["cut", "restart", "resync"])
def test_after_a_fault_everything_is_as_it_was(fault: str) -> None:
    with site() as here:
        manager = Manager()
        client = connected(here, manager)
        manager.add_node(client, "n1", 3000)
        manager.add_application(client, "app")
        manager.ask(client, "app", {"a": 1000, "b": 1000, "c": 1000, "d": 1000})
        wait_for(lambda: len(manager.running) == 3)
        if fault == "cut":
            here.cut()
        elif fault == "restart":
            here.restart()
        else:
            here.look(lambda s: s.sessions.stop_all("a test"))
        wait_for(lambda: client.resyncs == 1)
        wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        manager.release(client, ["b"])
        wait_for(lambda: "d" in manager.running)
        client.close()
        assert manager.faults == client.callback_errors == []


def test_messages_of_other_threads_during_a_resync_follow_it() -> None:
    with site() as here:
        manager = Manager()
        going_on = threading.Event()

        def resync(client: SchedulerClient) -> None:
            going_on.set()
            time.sleep(0.3)
            manager.report(client)

        client = connected(here, manager, resync=resync)
        manager.add_node(client, "n1", 9000)
        manager.add_application(client, "app")
        manager.ask(client, "app", {"a": 1000})
        wait_for(lambda: "a" in manager.running)
        here.cut()
        assert going_on.wait(WAIT_S)
        manager.ask(client, "app", {"b": 1000})
        manager.release(client, ["a"])
        wait_for(lambda: "b" in manager.running)
        wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        client.close()
        assert manager.faults == []


def end_node_stream(serving: Service) -> None:
    for stream in serving._streams:
        if stream.kind == "node":
            stream.end(End(grpc.StatusCode.UNAVAILABLE))


def test_a_stream_that_is_ended_alone_is_a_lost_connection_too() -> None:
    with site() as here:
        manager = Manager()
        client = connected(here, manager)
        manager.add_node(client, "n1", 1000)
        wait_for(lambda: len(here.look(lambda s: facts(s.api))["nodes"]) == 1)
        here.look(end_node_stream)
        wait_for(lambda: client.resyncs == 1)
        wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        client.close()


# -- the end -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True], ids=["registering", "connecting again"])
def test_closed_while_it_connects(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes does not wait for ever, and nothing of the connection that was on its way is left."""
    made = []

    def connect_and_close(self: SchedulerClient, timeout_s: float, *, wait: bool = True) -> Connection:
        made.append(connect(self, timeout_s, wait=wait))
        if len(made) == 1 + again:
            closing.start()
            assert self._closing.wait(WAIT_S)
        return made[-1]

    connect = SchedulerClient._connect
    monkeypatch.setattr(SchedulerClient, "_connect", connect_and_close)
    with site() as here:
        client = SchedulerClient(here.wire.address, retry_s=QUICK)
        closing = threading.Thread(target=client.close, daemon=True)
        if again:
            client.register_resource_manager(REQUEST, resync=lambda _: None)
            here.cut()
        else:
            with pytest.raises(DisconnectedError, match="closed"):
                client.register_resource_manager(REQUEST)
        wait_for(lambda: closing.ident is not None)
        closing.join(WAIT_S)
        assert not closing.is_alive()
        wait_for(lambda: here.look(lambda s: s.sessions.by_id) == {})
        wait_for(made[-1].lost.is_set)
