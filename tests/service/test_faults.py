"""Faults between a resource manager and the scheduler, by schedules from a seed; the law is in `service.manager`.

`LICORNE_FAULTS=300 pytest tests/service/test_faults.py` runs 300 schedules; LICORNE_FAULTS_SEED is the first seed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from common.waiting import WAIT_S, wait_for
from licorne.grpc.client import SchedulerClient, SchedulerUnreachableError
from licorne.grpc.service import Service
from licorne.grpc.service.session import State
from seeds import first_seed
from service.manager import REQUEST, Manager, Work, facts
from service.processes import Serving, serving
from service.threads import Site, site

SCHEDULES = int(os.environ.get("LICORNE_FAULTS", "3"))
SEED = first_seed("LICORNE_FAULTS_SEED")
QUICK = (0.02, 0.2)

OPEN: list[SchedulerClient] = []


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    """Clients of a test that has failed must not disturb the next one, which may listen on the same port."""
    yield
    while OPEN:
        OPEN.pop().close(goodbye=False)


def connected(address: str, manager: Manager) -> SchedulerClient:
    """A client that is registered; another try if the connection is cut meanwhile."""
    OPEN[:] = [client for client in OPEN if not client._over]
    while True:
        client = SchedulerClient(address, retry_s=QUICK)
        try:
            client.register_resource_manager(REQUEST, manager, resync=manager.report)
        except SchedulerUnreachableError:
            client.close()
        else:
            OPEN.append(client)
            return client


def takes_over(here: Site, manager: Manager, first: SchedulerClient) -> SchedulerClient:
    """Start a second instance of the same resource manager; return the one of the two that is left.

    If the first one is about to connect again, it may be the one that stays.
    """
    second = connected(here.wire.address, manager)
    wait_for(lambda: first._over or second._over, "both stay")
    if second._over:
        second.close()
        return first
    first.close()  # nothing is delivered to it any more
    here.cut()  # so that the second one reports everything once, whether or not it has lost its connection already
    return second


def fault(here: Site, manager: Manager, client: SchedulerClient, rng: random.Random) -> tuple[str, SchedulerClient]:
    """Something goes wrong; what, and who is the client from now on."""
    match rng.randrange(8):
        case 0:
            here.restart()
            return "restart", client
        case 1:
            here.look(lambda s: s.sessions.stop_all("a test"))
            return "resync", client
        case 2 | 3:
            here.cut(after_bytes=rng.randrange(1, 20_000))
            return "cut later", client
        case 4:
            here.stop_reading()
            return "stops reading", client
        case 5:
            here.stop_reading(stopped=False)
            return "second instance", takes_over(here, manager, client)
        case _:
            here.cut()
            return "cut", client


def time_out(running: Service) -> None:
    """Stop who is paused, as when its time is over. A timer would also stop who opens its streams late, on a slow machine."""
    for session in list(running.sessions.by_id.values()):
        if session.state is State.PAUSED:
            running.sessions.stop(session, "paused", resync=True)


def schedule_of_faults(number: int) -> Counter[str]:
    rng = random.Random(number)
    happened: Counter[str] = Counter()
    is_impatient = rng.random() < 0.5
    settings = {
        "rm_timeout_s": 3600.0,
        "batch": rng.choice((1, 1000)),
        "buffer_bytes": rng.choice((500, 1 << 24)),
        "slow_after_s": rng.choice((0.05, 10.0)),
    }
    with site(**settings) as here:
        manager = Manager()
        work = Work(manager, number)
        client = connected(here.wire.address, manager)
        work.begin(client)
        for _ in range(rng.randrange(2, 6)):
            for _ in range(rng.randrange(1, 40)):
                work.step(client)
            what, client = fault(here, manager, client, rng)
            happened[what] += 1
            if rng.random() < 0.5:
                time.sleep(rng.random() / 4)
            if is_impatient:
                here.look(time_out)
            if rng.random() < 0.7:
                here.stop_reading(stopped=False)
        here.stop_reading(stopped=False)
        here.cut()  # also what was to come after so many bytes
        time.sleep(0.05)
        work.step(client)
        agree(here, manager, f"LICORNE_FAULTS_SEED={number}: they do not agree after {dict(happened)}")
        assert manager.faults == client.callback_errors == [], f"LICORNE_FAULTS_SEED={number}"
        happened["resyncs"] += client.resyncs
        client.close()
    return happened


def agree(here: Site, manager: Manager, what: str = "") -> None:
    """Wait until the scheduler's state is that of the records, and it has placed all that fits."""

    def settled() -> bool:
        known = here.look(lambda s: facts(s.api) if not s.engine.slice() else {})
        return bool(known) and known == manager.expected() and manager.nothing_fits()

    wait_for(settled, what)


@pytest.mark.timeout(7200)
def test_random_faults(capsys: pytest.CaptureFixture[str]) -> None:
    happened: Counter[str] = Counter()
    for number in range(SEED, SEED + SCHEDULES):
        happened += schedule_of_faults(number)
    with capsys.disabled():
        sys.stdout.write(f"\n{SCHEDULES} schedules of faults from seed {SEED}: {dict(sorted(happened.items()))}\n")


@pytest.mark.timeout(7200)
def test_a_cut_at_every_step() -> None:
    """The same short life, cut after ever more bytes: within the registration, each message, and each answer."""

    def life(after_bytes: int) -> int:
        is_impatient = random.Random(after_bytes).random() < 0.5
        with site(rm_timeout_s=3600.0) as here:

            def placed() -> bool:
                if is_impatient:
                    here.look(time_out)
                return len(manager.running) == 4

            manager = Manager()
            client = connected(here.wire.address, manager)
            begun = here.wire.carried
            if after_bytes:
                here.cut(after_bytes)
            manager.add_node(client, "n1", 4000)
            manager.add_application(client, "app")
            manager.ask(client, "app", dict.fromkeys("abcdef", 1000))
            wait_for(placed, f"cut after {after_bytes} bytes")
            manager.release(client, [next(iter(manager.running))])
            wait_for(placed, f"cut after {after_bytes} bytes")
            agree(here, manager, f"cut after {after_bytes} bytes: they do not agree")
            assert manager.faults == client.callback_errors == [], f"cut after {after_bytes} bytes"
            carried = here.wire.carried - begun
            client.close()
        return carried

    whole = life(0)
    for number in range(4 * SCHEDULES):
        life(1 + whole * number // (4 * SCHEDULES))


def test_the_comparison_finds_planted_differences() -> None:
    """Planted: a report that leaves out a pod, one that has it on another node, and one with another user."""
    with site() as here:
        manager = Manager()
        client = connected(here.wire.address, manager)
        manager.add_node(client, "n1", 1000)
        manager.add_node(client, "n2", 1000)
        manager.add_application(client, "app")
        manager.ask(client, "app", {"a": 1000})
        wait_for(lambda: here.look(lambda s: facts(s.api)) == manager.expected())
        known = manager.expected()
        assert known["users"]
        twin, manager.twin = manager.twin, here.service.api  # which knows all that is right
        application, amount, node = manager.running.pop("a")
        with pytest.raises(AssertionError, match="something else"):
            manager.expected()
        manager.running["a"] = application, amount, "n1" if node == "n2" else "n2"
        with pytest.raises(AssertionError, match="something else"):
            manager.expected()
        manager.twin = twin
        client.close()


# -- a server that is killed ------------------------------------------------------------------------------


def rest_facts(running: Serving) -> dict[str, Any]:
    """The nodes, applications and users that REST shows."""
    base = f"http://{running.events('listening for REST')[0]['addresses'][0]}/ws/v1/partition/default"

    def get(path: str) -> Any:
        answer = httpx.get(base + path, timeout=WAIT_S)
        return answer.json() if answer.status_code == 200 else []

    return {
        "nodes": {n["nodeID"]: sorted(a["allocationKey"] for a in n.get("allocations", ())) for n in get("/nodes")},
        "apps": {
            app["applicationID"]: tuple(
                sorted(item["allocationKey"] for item in app.get(kind, ())) for kind in ("allocations", "requests")
            )
            for app in get("/applications/active")
        },
        "users": {
            user["userName"]: used
            for user in get("/usage/users")
            if (used := user["queues"].get("resourceUsage", {}).get("vcore", 0))
        },
    }


def book_facts(manager: Manager) -> dict[str, Any]:
    """The same facts from the manager's records: nodes, applications and users."""
    with manager.lock:
        known = manager.expected()
        running, waiting = manager.running, manager.waiting
        return {
            "nodes": {node: sorted(k for k, of in running.items() if of[2] == node) for node in manager.capacity},
            "apps": {
                app: (
                    sorted(key for key, of in running.items() if of[0] == app),
                    sorted(key for key, of in waiting.items() if of[0] == app),
                )
                for app in manager.applications
            },
            "users": {
                user: amount
                for user in {of["user"] for of in known["applications"].values()}
                if (amount := sum(_used(of) for of in known["applications"].values() if of["user"] == user))
            },
        }


def _used(application: dict[str, Any]) -> int:
    used: dict[str, int] = application["usedResource"]
    return used.get("vcore", 0)


def serving_at(address: str = "127.0.0.1:0") -> Any:
    return serving("--rest", "127.0.0.1:0", address=address)


@pytest.mark.gate
@pytest.mark.timeout(7200)
def test_a_server_that_is_killed_and_started_again_under_load() -> None:
    for number in range(SEED, SEED + max(1, SCHEDULES // 10)):
        schedule_of_kills(number)


def comes_back(client: SchedulerClient, resyncs: int) -> None:
    wait_for(lambda: client.resyncs > resyncs, "it does not come back")


def schedule_of_kills(number: int) -> None:
    manager, rng = Manager(), random.Random(number)
    work = Work(manager, number)
    with serving_at() as first:
        address = first.address
        client = connected(address, manager)
        work.begin(client)
        for _ in range(rng.randrange(1, 80)):
            work.step(client)
        first.kill()
    for _ in range(rng.randrange(1, 3)):
        for _ in range(rng.randrange(20)):
            work.step(client)
        resyncs = client.resyncs
        with serving_at(address) as again:
            comes_back(client, resyncs)
            for _ in range(rng.randrange(60)):
                work.step(client)
            again.kill()
    resyncs = client.resyncs
    with serving_at(address) as last:
        comes_back(client, resyncs)
        wait_for(lambda: last.events("listening for REST"))
        for _ in range(rng.randrange(60)):
            work.step(client)
        what = f"LICORNE_FAULTS_SEED={number}: they do not agree"
        wait_for(lambda: rest_facts(last) == book_facts(manager), what)
        with manager.lock:
            everything = [*manager.running, *manager.waiting]
        manager.release(client, everything)
        full = {f"last{i}": 2500 for i in range(4 * len(manager.capacity))}
        manager.ask(client, "app0", full)
        wait_for(lambda: set(manager.running) == set(full), f"{what}: not all of what fits is running")
        assert manager.faults == client.callback_errors == [], f"LICORNE_FAULTS_SEED={number}"
        client.close()
