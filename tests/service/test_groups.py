"""Groups of users where messages name none: the operating system, remembered answers, lookups that hang."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from common.waiting import WAIT_S, eventually
from core import bench
from licorne import SchedulerAPI
from licorne.core.api import PolicyGroups
from licorne.grpc.service import GroupSettings, SettingError
from licorne.grpc.service.groups.resolver import Resolver, Wanted
from licorne.grpc.service.groups.system import GroupsError, os_groups
from licorne.host.threads import Threads
from licorne.si import first, v19
from licorne.si.constants import TAG_CREATE_FORCE
from licorne.si.messages import AddApplication, Output, RejectedApplication
from service.peers import Peer, service


def config(resolver: str) -> str:
    limits = "limits: [{limit: developers, groups: [dev], maxresources: {vcore: 2}}]"
    return bench.config(f"a {limits}", more=f"usergroupresolver: {{type: {resolver}}}")


class Directory:
    """Stands for the operating system: users, calls, and a gate before which calls hang."""

    def __init__(self, **users: tuple[str, ...]) -> None:
        self.users = users
        self.calls: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, user: str) -> tuple[str, ...]:
        self.calls.append(user)
        self.gate.wait(WAIT_S)
        if user not in self.users:
            raise GroupsError(f"groups of user {user!r} cannot be found: the user is unknown")
        return self.users[user]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def application(name: str = "app", user: str = "ann", **fields: Any) -> AddApplication:
    return AddApplication(application_id=name, queue="root.a", user=user, **fields)


def registered(resolver: str) -> tuple[SchedulerAPI, list[Output]]:
    told: list[Output] = []
    api = SchedulerAPI(on_output=lambda _, outputs: told.extend(outputs))
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=config(resolver)))
    return api, told


def wanted_of(resolver: Resolver, api: SchedulerAPI, *inputs: AddApplication) -> Wanted:
    return resolver.wanted(api.cluster.managers["rm"].partitions, inputs)


def completed(resolver: Resolver, api: SchedulerAPI, *inputs: AddApplication) -> None:
    """As the service does it."""

    async def run() -> None:
        wanted = wanted_of(resolver, api, *inputs)
        if wanted:
            await resolver.complete(wanted)

    asyncio.run(run())


# -- who says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "configured", "way"),
    [
        ("config", "", "none"),
        ("config", "test", "none"),
        ("config", "os", "os"),
        ("config", "ldap", "ldap"),
        ("none", "os", "none"),
        ("os", "", "os"),
    ],
)
def test_the_source_of_groups_follows_settings_and_configuration(chosen: Any, configured: str, way: str) -> None:
    assert Resolver(GroupSettings(resolver=chosen)).way(configured) == way


def test_the_operating_system_knows_its_first_user() -> None:
    pwd = pytest.importorskip("pwd")
    grp = pytest.importorskip("grp")
    entry = pwd.getpwuid(os.getuid())
    groups = os_groups(entry.pw_name)
    numbers = [entry.pw_gid, *(gid for gid in os.getgrouplist(entry.pw_name, entry.pw_gid) if gid != entry.pw_gid)]
    names = {group.gr_gid: group.gr_name for group in grp.getgrall()}
    assert groups == tuple(dict.fromkeys(names.get(number, str(number)) for number in numbers))
    for nobody in ("no such user", "", "a\0b", "\udcff", "x" * 5000):
        with pytest.raises(GroupsError, match="the user is unknown"):
            os_groups(nobody)


def test_a_program_asks_for_itself() -> None:
    directory = Directory(ann=("dev", "ops"))
    resolver = Resolver(GroupSettings(resolver="os"), lookup=directory)
    assert resolver.groups_of("ann") == resolver.groups_of("ann") == ("dev", "ops")
    for _ in range(2):
        with pytest.raises(GroupsError, match="the user is unknown"):
            resolver.groups_of("bob")
    assert directory.calls == ["ann", "bob"]
    assert Resolver().groups_of("ann") == ("ann",)
    with pytest.raises(GroupsError, match="ldap, which is not built in"):
        Resolver().groups_of("ann", "ldap")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"resolver": "ldap"}, "must be config, none or os"),
        ({"capacity": 0}, "capacity: 0: must be more than 0"),
        ({"timeout_s": float("nan")}, "timeout_s"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        GroupSettings(**fields)


# -- what the core makes of it ----------------------------------------------------------------------------


def test_found_groups_count_and_a_failed_lookup_rejects() -> None:
    api, told = registered("os")
    resolver = Resolver(lookup=Directory(**{"ann": ("dev", "ops"), "1001": ("dev",)}))
    forced = {TAG_CREATE_FORCE: "true"}
    inputs = [
        application("found"),
        application("any name", "1001"),
        application("said", groups=("mine",)),
        application("said of any name", "1001", groups=("mine",)),
        application("unknown", "bob"),
        application("forced", "bob", tags=forced),
        application("nobody", "", tags=forced),
        application("empty", ""),
    ]
    completed(resolver, api, *inputs)
    api.submit("rm", inputs)
    apps = api.cluster.partition("rm").applications
    assert {name: app.groups for name, app in apps.items()} == {
        "found": ("dev", "ops"),
        "any name": ("dev",),
        "said": ("mine",),
        "forced": ("nogroup",),
        "nobody": ("nogroup",),
    }
    reasons = {item.application_id: item.reason for item in told if isinstance(item, RejectedApplication)}
    assert reasons == {
        "said of any name": "invalid username, it contains invalid characters",
        "unknown": "groups of user 'bob' cannot be found: the user is unknown",
        "empty": "empty user cannot resolve",
    }


def test_where_nothing_is_looked_up_messages_stay_as_they_are() -> None:
    api, _ = registered("''")
    message = application()
    directory = Directory()
    assert wanted_of(Resolver(lookup=directory), api, message) == []
    assert (message, directory.calls) == (application(), [])


def test_many_users_and_long_names() -> None:
    api, _ = registered("os")
    directory = Directory(**{f"u{number}": ("dev",) for number in range(2000)})
    resolver = Resolver(lookup=directory)
    long = application(user="x" * 257)
    for _ in range(2):
        messages = [application(f"app{number}", f"u{number}") for number in range(2000)]
        completed(resolver, api, *messages, long)
        assert {message.groups for message in messages} == {("dev",)}
    assert sorted(directory.calls) == sorted(directory.users)
    assert long.groups_fault.endswith("the name has more than 256 characters")
    assert len(long.groups_fault) < 200


def test_a_lookup_fails_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    api, _ = registered("os")
    message = application()
    monkeypatch.setattr(threading.Thread, "start", fail)
    completed(Resolver(), api, message)
    assert message.groups_fault == "groups of user 'ann' cannot be found: RuntimeError"


# -- what is remembered -----------------------------------------------------------------------------------


def test_answers_are_remembered_and_failures_for_a_shorter_time() -> None:
    api, _ = registered("os")
    clock, directory = Clock(), Directory(ann=("dev",))
    resolver = Resolver(clock=clock, lookup=directory)
    asked = []
    for after in (0, 29, 2, 270, 0):  # in seconds, since the time before
        clock.now += after
        directory.calls.clear()
        completed(resolver, api, application(), application("other", "bob"))
        asked.append(sorted(directory.calls))
    assert asked == [["ann", "bob"], [], ["bob"], ["ann", "bob"], []]


def test_a_user_of_many_applications_is_looked_up_once() -> None:
    api, _ = registered("os")
    directory = Directory(ann=("dev",))
    messages = [application(f"app-{number}") for number in range(500)]
    completed(Resolver(lookup=directory), api, *messages)
    assert directory.calls == ["ann"]
    assert {message.groups for message in messages} == {("dev",)}


def test_remembered_answers_are_bounded_and_cleaned() -> None:
    clock = Clock()
    resolver = Resolver(GroupSettings(resolver="os", capacity=10), clock=clock, lookup=lambda user: (user,))
    for number in range(25):
        resolver.groups_of(f"u{number}")
    assert list(resolver._known) == [f"u{number}" for number in range(15, 25)]
    clock.now += 301
    resolver.groups_of("u1")
    assert list(resolver._known) == ["u1"]


# -- what hangs -------------------------------------------------------------------------------------------


async def test_a_lookup_that_hangs_ends_as_a_failure_and_is_not_repeated_at_once() -> None:
    api, _ = registered("os")
    clock, directory = Clock(), Directory(ann=("dev",))
    directory.gate.clear()
    resolver = Resolver(GroupSettings(timeout_s=0.05, threads=2), clock=clock, lookup=directory)
    many = [application(f"a{number}", f"user{number}") for number in range(200)]
    late = application()
    await resolver.complete(wanted_of(resolver, api, *many))
    assert all(message.groups_fault.endswith("no answer within 0.05 s") for message in many)
    await eventually(lambda: not resolver._threads._jobs)
    assert len(directory.calls) <= 2
    assert resolver._pending == {}
    again = application(user="user0")
    assert wanted_of(resolver, api, again) == []
    assert again.groups_fault.endswith("an earlier lookup had no answer in time")
    directory.gate.set()
    while not late.groups:  # a slow machine may need more than one try
        clock.now += 31
        await resolver.complete(wanted_of(resolver, api, late))
    assert late.groups == ("dev",)


def test_the_program_ends_though_a_lookup_hangs() -> None:
    directory = Directory()
    directory.gate.clear()

    async def run() -> None:
        threads = Threads(1, "hanging")
        running, queued = threads.run(lambda: directory("x")), threads.run(lambda: directory("y"))
        assert len(threads._jobs) <= 2
        await eventually(lambda: directory.calls == ["x"])
        threads.close()
        with pytest.raises(asyncio.CancelledError):
            await queued
        assert not running.done()

    asyncio.run(run())
    directory.gate.set()
    assert directory.calls == ["x"]


# -- through the service ----------------------------------------------------------------------------------


def applications(*names: str, user: str = "ann", rm_id: str = "rm") -> v19.ApplicationRequest:
    new = [
        v19.AddApplicationRequest(application_id=name, queue_name="root.a", ugi=v19.UserGroupInformation(user=user))
        for name in names
    ]
    return v19.ApplicationRequest(rm_id=rm_id, new=new)


def looking_up(serving: Any, lookup: Callable[[str], tuple[str, ...]]) -> None:
    serving.groups._lookup = lookup


async def with_hanging_lookups(serving: Any, peer: Peer) -> Directory:
    """Register a resource manager, of whose user ann the groups are looked up; each lookup hangs until the gate is set."""
    directory = Directory(ann=("dev",))
    directory.gate.clear()
    looking_up(serving, directory)
    await peer.register(config=config("os"))
    return directory


async def test_a_limit_of_a_group_applies_to_users_found_in_it() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        looking_up(serving, Directory(ann=("staff", "dev"), bob=("staff",)))
        await peer.register(config=config("os"))
        await peer.node(vcore=100_000)
        await peer.send("application", applications("app"))
        assert [app.application_id for app in (await peer.read("application")).accepted] == ["app"]
        await peer.send("application", applications("free", user="bob"))
        await peer.read("application")
        await peer.asks("a", "b", "c", "d")
        assert len(await peer.allocations(2)) == 2
        await peer.asks("e", "f", "g", application_id="free")
        assert set(await peer.allocations(3)) == {"e", "f", "g"}
        queue = serving.api.cluster.partition("rm").tree.find("root.a")
        assert queue is not None
        assert queue.allocated_resource() == {"vcore": 5000}


async def test_a_stream_waits_for_its_lookups_in_order_and_others_go_on() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        directory = await with_hanging_lookups(serving, peer)
        await peer.send("application", applications("first", "second"))
        await eventually(lambda: directory.calls == ["ann"])
        removal = v19.RemoveApplicationRequest(application_id="first", partition_name="default")
        await peer.send("application", v19.ApplicationRequest(rm_id="rm", remove=[removal]))
        await peer.send("application", applications("third", user=""))
        assert (await peer.node()).accepted
        partition = serving.api.cluster.partition("rm")
        assert not partition.applications
        directory.gate.set()
        answer = await peer.read("application")
        assert [app.application_id for app in answer.accepted] == ["first", "second"]
        rejected: list[Any] = []
        while not rejected:
            rejected += (await peer.read("application")).rejected
        assert [app.reason for app in rejected] == ["empty user cannot resolve"]
        assert list(partition.applications) == ["second"]


@pytest.mark.parametrize("how", ["broken", "taken over", "replaced", "stopped"])
async def test_a_message_whose_stream_ends_during_the_lookup_is_dropped(how: str) -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer, Peer(serving.addresses[0]) as other:
        directory = await with_hanging_lookups(serving, peer)
        await peer.node()
        await peer.send("application", applications("app"))
        await eventually(lambda: directory.calls == ["ann"])
        stream = serving.sessions.by_id["rm"].streams["application"]
        if how == "broken":
            peer.calls["application"].cancel()
        elif how == "taken over":
            await other.register(config=config("os"))
        elif how == "replaced":
            await other.send("application", v19.ApplicationRequest(rm_id="rm"))
        else:
            serving.sessions.stop_all("a test")
        await eventually(lambda: stream not in serving._streams)
        directory.gate.set()
        await eventually(lambda: "ann" in serving.groups._known)
        await asyncio.sleep(0)
        assert serving.groups._pending == {}
        for manager in serving.api.cluster.managers.values():
            assert not manager.partitions["default"].applications
        assert all("licorne-groups" not in str(task) for task in asyncio.all_tasks())


async def test_closing_the_stream_while_it_looks_up_loses_nothing() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        directory = await with_hanging_lookups(serving, peer)
        await peer.node()
        await peer.send("application", applications("app"))
        await peer.call("application").done_writing()
        await eventually(lambda: directory.calls == ["ann"])
        directory.gate.set()
        assert [app.application_id for app in (await peer.read("application")).accepted] == ["app"]


async def test_the_first_dialect_waits_too() -> None:
    groups: PolicyGroups = {"queues": (config("os"), {})}
    async with service(policy_groups=groups) as serving, Peer(serving.addresses[0]) as peer:
        looking_up(serving, Directory(ann=("dev",)))
        await peer.register(policy_group="queues")
        new = [
            first.AddApplicationRequest(
                application_id=user, queue_name="root.a", ugi=first.UserGroupInformation(user=user)
            )
            for user in ("ann", "bob")
        ]
        asks = [
            first.AllocationAsk(allocation_key="k", application_id="ann", resource_ask={"vcore": 1}, max_allocations=1)
        ]
        node = first.NewNodeInfo(node_id="n", schedulable_resource={"vcore": 5})
        await peer.send(
            "update",
            first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[node], new_applications=new, asks=asks),
        )
        rejected: list[str] = []
        allocated: list[str] = []
        while not allocated:
            response = await peer.read("update")
            rejected += [app.reason for app in response.rejected_applications]
            allocated += [alloc.node_id for alloc in response.new_allocations]
        assert rejected == ["groups of user 'bob' cannot be found: the user is unknown"]
        assert serving.api.cluster.partition("rm").applications["ann"].groups == ("dev",)
