"""The settings of `licorne kube`: where each comes from, what changes count at once, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import licorne
import licorne.cli
from common.virtual import in_virtual_time, run
from common.waiting import WAIT_S, eventually
from kube import schedules
from kube.apiserver import FakeClient
from licorne.cli.scheduling import READING, _options
from licorne.host.log import Levels, make_log, no_log
from licorne.host.web.monitor import Monitor
from licorne.host.web.server import Web
from licorne.kube.api import ApiError, Kind, Page, WatchEvent
from licorne.kube.configmaps import ConfigurationError, read_configuration
from licorne.kube.objects import ConfigMap, ObjectMeta, PlainWorkload, PodDisruptionBudget
from licorne.kube.runner import Clients, Runner
from licorne.kube.settings import SETTINGS, RunSettings, shown, unread, wait_for_restart

OTHER_QUEUES = schedules.QUEUES + "          - {name: other}\n"
LATER_QUEUES = schedules.QUEUES + "          - {name: later}\n"


def maps(**data: dict[str, str]) -> dict[str, ConfigMap]:
    """Return ConfigMaps by name, `defaults` and `configs`."""
    named = {f"yunikorn-{name}": found for name, found in data.items()}
    return {name: ConfigMap(metadata=ObjectMeta(name=name), data=found) for name, found in named.items()}


def put_map(world: schedules.World, data: dict[str, str], name: str = "yunikorn-configs") -> None:
    """Create or change a ConfigMap of the cluster."""
    known = world.server.objects["configmaps"].get(("default", name))
    metadata = known.metadata if known is not None else ObjectMeta(name=name, namespace="default", uid=name)
    world.server.put("configmaps", ConfigMap(metadata=metadata, data=data))


def queues_of(runner: Runner) -> set[str]:
    """Return the names of the queues right below root, without those that are being removed."""
    (partition,) = runner.api.cluster.partitions()
    return {name for name, queue in partition.tree.root.children.items() if not queue.draining}


def test_the_second_configmap_counts_and_each_value_has_its_origin() -> None:
    found = read_configuration(
        maps(
            defaults={"service.clusterId": "one", "service.placeholderImage": "a", "queues.yaml": "x"},
            configs={"service.clusterId": "two", "log.core.level": "DEBUG", "service.policyGroup": ""},
        )
    )
    assert found.queues == "x"
    rows = {row.key: row for row in shown(found.texts, found.origins)}
    assert (rows["service.clusterId"].value, rows["service.clusterId"].source) == ("two", "ConfigMap yunikorn-configs")
    assert rows["service.placeholderImage"].source == "ConfigMap yunikorn-defaults"
    assert (rows["service.policyGroup"].value, rows["service.policyGroup"].source) == ("queues", "default")
    assert rows["log.core.level"].value == "DEBUG"
    assert found.settings.levels == {"core": logging.DEBUG}


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["--rest", "127.0.0.1:port"], 2, "licorne: --rest: '127.0.0.1:port': an address is written HOST:PORT"),
        (
            ["--rest", "0.0.0.0:9080"],
            2,
            "0.0.0.0:9080 is beyond loopback: give TLS a certificate and a key, or say --ins",
        ),
        (["--tls-cert", "{}/bad.yaml"], 2, "TLS needs both a certificate and its key"),
        (["--config", "{}/bad.yaml"], 5, "licorne: {}/bad.yaml:1:1: "),
        (
            ["--config", "{}/other.yaml"],
            5,
            "licorne: {}/other.yaml: the queue configuration has no partition 'default'",
        ),
        ([], 4, "licorne: {}/nope: no such file; give the path of a kubeconfig"),
    ],
)
def test_what_the_command_line_gives_is_checked_before_the_cluster_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, complaint: str
) -> None:
    (tmp_path / "bad.yaml").write_text("partition: []\n")
    (tmp_path / "other.yaml").write_text("partitions: [{name: other, queues: [{name: root}]}]\n")
    given = [argument.replace("{}", str(tmp_path)) for argument in (*arguments, "--kubeconfig", "{}/nope")]
    assert licorne.cli.run(["kube", *given]) == status
    assert complaint.replace("{}", str(tmp_path)) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("service.disableGangScheduling", "maybe"),
        ("service.placeholderRunAsUser", "-1"),
        ("service.placeholderFsGroup", "1e3"),
        ("licorne.scheduled-events", "2"),
        ("licorne.max-body", "0"),
        ("licorne.max-body", "1Mi"),
        ("licorne.request-time", "soon"),
        ("licorne.old-queue-metrics", "maybe"),
        ("reservation.delay", "abc"),
        ("service.schedulingInterval", "abc"),
        ("service.schedulingInterval", "1"),
        ("service.volumeBindTimeout", "x"),
        ("service.dispatchTimeout", "300"),
        ("service.eventChannelCapacity", "1k"),
        ("service.eventChannelCapacity", "2147483648"),
        ("kubernetes.qps", "x"),
        ("kubernetes.burst", "1.5"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(key: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"ConfigMap yunikorn-configs: {key}: '{text}': must be "):
        read_configuration(maps(configs={key: text}))
    assert read_configuration(maps(defaults={key: text}, configs={key: ""})).texts == {}


@pytest.mark.parametrize("key", ["kubernetes.qps", "kubernetes.burst", "service.eventChannelCapacity"])
@pytest.mark.parametrize("text", ["-1", "+5", "007"])
def test_integers_are_those_of_yunikorn(key: str, text: str) -> None:
    assert read_configuration(maps(configs={key: text})).texts == {key: text}


def test_all_values_that_cannot_be_used_are_told_with_their_configmap() -> None:
    with pytest.raises(ConfigurationError) as told:
        read_configuration(maps(defaults={"kubernetes.qps": "x"}, configs={"licorne.max-body": "y"}))
    assert str(told.value) == (
        "ConfigMap yunikorn-defaults: kubernetes.qps: 'x': must be an integer of 32 bits; "
        "ConfigMap yunikorn-configs: licorne.max-body: 'y': must be a whole number from 1 to 2147483648"
    )


DEFAULTS, CONFIGS = "yunikorn-defaults", "yunikorn-configs"
MORE = {"queues.yaml": OTHER_QUEUES}
BOTH: dict[str, tuple[list[tuple[str, dict[str, str] | None]], list[tuple[str, str]], bool]] = {
    "a wrong value is overlaid later": (
        [(DEFAULTS, {"kubernetes.qps": "x"}), (CONFIGS, {**MORE, "kubernetes.qps": "5"})],
        [(DEFAULTS, "ConfigMap yunikorn-defaults: kubernetes.qps: 'x': must be ")],
        True,
    ),
    "another change while a value is wrong": (
        [(DEFAULTS, {"kubernetes.qps": "x"}), (CONFIGS, MORE)],
        [
            (DEFAULTS, "ConfigMap yunikorn-defaults: kubernetes.qps: "),
            (CONFIGS, "ConfigMap yunikorn-defaults: kubernetes.qps: "),
        ],
        False,
    ),
    "the wrong one is mended after another change": (
        [(DEFAULTS, {"kubernetes.qps": "x"}), (CONFIGS, MORE), (DEFAULTS, {"kubernetes.qps": "5"})],
        [(DEFAULTS, "ConfigMap yunikorn-defaults: "), (CONFIGS, "ConfigMap yunikorn-defaults: ")],
        True,
    ),
    "wrong queues show when those that overlay them go": (
        [(DEFAULTS, {"queues.yaml": "null"}), (CONFIGS, {}), (DEFAULTS, MORE)],
        [(CONFIGS, "ConfigMap yunikorn-defaults[queues.yaml]: the queue configuration has no partition")],
        True,
    ),
    "the one that overlays a wrong value is deleted": (
        [(CONFIGS, {**MORE, "kubernetes.qps": "5"}), (DEFAULTS, {"kubernetes.qps": "x"}), (CONFIGS, None)],
        [(DEFAULTS, "ConfigMap yunikorn-defaults: kubernetes.qps: ")],
        True,
    ),
}
"""Steps, the ConfigMap of each event and the beginning of its reason, and whether the other queues count at the end."""


@pytest.mark.parametrize(("steps", "told", "counts"), BOTH.values(), ids=BOTH)
@in_virtual_time
async def test_both_configmaps_count_as_they_are_now(
    steps: list[tuple[str, dict[str, str] | None]], told: list[tuple[str, str]], counts: bool
) -> None:
    world = schedules.World(1)
    runner, task = schedules.start(world)
    await asyncio.sleep(1.0)
    for name, data in steps:
        if data is None:
            world.server.remove("configmaps", "default", name)
        else:
            put_map(world, data, name)
        await asyncio.sleep(1.0)
    assert ("other" in queues_of(runner)) is counts
    begin = "the configuration is refused, and the one before counts: "
    refused = [event for event in world.server.events if event["reason"] == "ConfigurationRefused"]
    assert [event["regarding"]["name"] for event in refused] == [name for name, _ in told]
    for event, (_, why) in zip(refused, told, strict=True):
        assert event["note"].startswith(begin + why)
    await schedules.stop(task)


@in_virtual_time
async def test_the_last_setting_of_the_scheduler_may_go() -> None:
    world = schedules.World(1)
    runner, task = schedules.start(world)
    await asyncio.sleep(1.0)
    found = []
    for more in ({"outstanding.inspection": "false"}, {}):
        put_map(world, {"queues.yaml": schedules.QUEUES, **more})
        await asyncio.sleep(1.0)
        (partition,) = runner.api.cluster.partitions()
        found.append(partition.settings.outstanding_inspection)
    assert found == [False, True]
    await schedules.stop(task)


class Forbids(FakeClient):
    """A client that may not read some kinds."""

    forbidden: frozenset[str] = frozenset()

    async def watch(self, kind: Kind[Any], *arguments: Any, **more: Any) -> AsyncGenerator[list[WatchEvent[Any]]]:
        """Yield changes, or be refused."""
        if kind.plural in self.forbidden:
            raise ApiError(403, "Forbidden", f"{kind.plural} is forbidden")
        async for batch in super().watch(kind, *arguments, **more):
            yield batch

    async def list_page(self, kind: Kind[Any], **more: Any) -> Page[Any]:
        """Return a page, or be refused."""
        if kind.plural in self.forbidden:
            raise ApiError(403, "Forbidden", f"{kind.plural} is forbidden")
        return await super().list_page(kind, **more)


@pytest.mark.parametrize("streams", [True, False])
@in_virtual_time
async def test_nothing_is_scheduled_while_the_configmaps_may_not_be_read(streams: bool) -> None:
    world = schedules.World(4)
    world.server.trouble.no_streams = not streams
    world.add_pod()
    client = Forbids(world.server)
    client.forbidden = frozenset({"configmaps"})
    runner, task = schedules.start(world, client)
    written = io.StringIO()
    runner.reading.log = make_log(written, form="json")
    await asyncio.sleep(600.0)
    assert not runner.reading.begun
    assert not world.bound
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    told = [line for line in lines if line["event"].startswith("the ConfigMaps may not be read; nothing is scheduled")]
    assert 20 < len(told) < 100
    assert {(line["level"], line["namespace"]) for line in told} == {("error", "default")}
    assert "403 Forbidden: configmaps is forbidden; tried again in " in told[0]["text"]
    client.forbidden = frozenset()
    await asyncio.sleep(40.0)
    assert len(world.bound) == 1
    assert queues_of(runner) == {"a", "b"}
    await schedules.stop(task)


DEFAULT_SPREAD = "[{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]"


@pytest.mark.parametrize("first", [True, False], ids=["a service of before", "a service that comes"])
@in_virtual_time
async def test_default_spread_constraints_spread_the_pods_of_a_service(first: bool) -> None:
    """Where one of the two zones has no room, every second pod of the service waits."""
    world = schedules.World(1)
    for name in ("n0", "n1", "n2"):
        world.server.remove("nodes", "", name)
    for name, zone in (("a", "z1"), ("b", "z2")):
        world.add_node(name)
        node = world.node(name)
        meta = msgspec.structs.replace(node.metadata, labels={"topology.kubernetes.io/zone": zone})
        cordoned = msgspec.structs.replace(node.spec, unschedulable=name == "b")
        world.server.put("nodes", msgspec.structs.replace(node, metadata=meta, spec=cordoned))
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}}
    if first:
        world.server.put("services", msgspec.convert(service, PlainWorkload))
    _, task = schedules.start(world, settings=RunSettings(spread=DEFAULT_SPREAD))
    if not first:
        await asyncio.sleep(5.0)
        world.server.put("services", msgspec.convert(service, PlainWorkload))
        await asyncio.sleep(5.0)
    container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
    for app in ("x", "x", "y", "y"):
        labels = {"applicationId": "a", "queue": "root.a", "app": app}
        world.add_pod(metadata={"labels": labels}, containers=[container])
    await asyncio.sleep(20.0)
    assert len(world.bound) == 3
    world.server.remove("services", "default", "s")
    await asyncio.sleep(20.0)
    assert len(world.bound) == 4
    await schedules.stop(task)


WITHOUT = {
    "pods": "what runs already is not known",
    "nodes": "there would seem to be no room",
    "namespaces": "their quotas are not known",
}


@pytest.mark.parametrize("plural", WITHOUT)
@in_virtual_time
async def test_nothing_is_scheduled_while_pods_nodes_or_namespaces_may_not_be_read(plural: str) -> None:
    """An API server that starts answers 403 for moments, in which nothing may be decided without these."""
    world = schedules.World(4)
    world.add_pod()
    client = Forbids(world.server)
    client.forbidden = frozenset({plural})
    runner, task = schedules.start(world, client, RunSettings(queues=schedules.QUEUES))
    written = io.StringIO()
    runner.reading.log = make_log(written, form="json")
    await asyncio.sleep(200.0)
    assert not runner.reading.begun
    assert not world.bound
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    told = [line for line in lines if line["level"] == "error"]
    said = f"the {plural} may not be read; nothing is scheduled until they may, because {WITHOUT[plural]}"
    assert {line["event"] for line in told} == {said}
    assert 8 < len(told) < 30
    client.forbidden = frozenset()
    await asyncio.sleep(40.0)
    assert len(world.bound) == 1
    await schedules.stop(task)


@in_virtual_time
async def test_budgets_are_known_where_the_api_server_refuses_to_show_them_while_it_starts() -> None:
    world = schedules.World(4)
    meta = ObjectMeta(name="b", namespace="default", uid="b")
    world.server.put("poddisruptionbudgets", PodDisruptionBudget(metadata=meta))
    client = Forbids(world.server)
    client.forbidden = frozenset({"poddisruptionbudgets"})
    runner, task = schedules.start(world, client)
    await asyncio.sleep(5.0)
    assert not runner.reading.begun
    client.forbidden = frozenset()
    await asyncio.sleep(10.0)
    assert len(runner.manager.lifecycle.budgets) == 1
    await schedules.stop(task)


@pytest.mark.parametrize("queues", ["", schedules.QUEUES], ids=["not there", "not needed"])
@in_virtual_time
async def test_it_is_done_without_budgets_and_classes_and_without_configmaps_that_are_not_there(queues: str) -> None:
    world = schedules.World(4)
    world.server.remove("configmaps", "default", CONFIGS)
    world.add_pod()
    client = Forbids(world.server)
    kinds = {"poddisruptionbudgets", "priorityclasses"} | ({"configmaps"} if queues else set())
    client.forbidden = frozenset(kinds)
    _, task = schedules.start(world, client, RunSettings(queues=queues))
    await asyncio.sleep(30.0)
    assert len(world.bound) == 1
    await schedules.stop(task)


WRONG = [
    ("licorne.max-body", "0"),
    ("licorne.request-time", "soon"),
    ("licorne.old-queue-metrics", "maybe"),
    ("kubernetes.qps", "x"),
]


@pytest.mark.parametrize(("key", "text"), WRONG)
async def test_a_value_that_cannot_be_used_refuses_the_whole_change(key: str, text: str) -> None:
    world = schedules.World(1)
    async with served(world) as (runner, rest):
        put_map(world, {"queues.yaml": OTHER_QUEUES, key: text})
        await eventually(lambda: world.server.events)
        (event,) = world.server.events
        assert event["reason"] == "ConfigurationRefused"
        assert f"ConfigMap yunikorn-configs: {key}: '{text}': must be " in event["note"]
        assert "other" not in queues_of(runner)
        assert (await asyncio.to_thread(rest.get, "/ws/v1/version")).status_code == 200
        put_map(world, {"queues.yaml": OTHER_QUEUES, key: ""})
        await eventually(lambda: "other" in queues_of(runner))


@pytest.mark.parametrize(("key", "text"), WRONG)
async def test_licorne_does_not_start_with_a_value_that_cannot_be_used(key: str, text: str) -> None:
    world = schedules.World(1)
    put_map(world, {**schedules.DATA, key: text})
    with pytest.raises(ConfigurationError, match=f"ConfigMap yunikorn-configs: {key}: "):
        async with served(world):
            pass


NONE = ["null", "~", "---", "# nothing", "{}", "partitions: []", "partitions: [{name: other, queues: [{name: root}]}]"]
"""Queue configurations that the scheduler accepts, and that would take all nodes and pods from a cluster."""


@pytest.mark.parametrize("queues", NONE)
@in_virtual_time
async def test_queues_without_the_partition_of_the_cluster_are_refused_and_no_pod_goes(queues: str) -> None:
    world = schedules.World(4)
    world.add_pod()
    _, task = schedules.start(world)
    await asyncio.sleep(5.0)
    assert len(world.bound) == 1
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    world.server.put("configmaps", msgspec.structs.replace(known, data={"queues.yaml": queues}))
    await asyncio.sleep(1.0)
    (event,) = (one for one in world.server.events if one["reason"] == "ConfigurationRefused")
    assert "no partition 'default'" in event["note"]
    world.add_pod()
    await asyncio.sleep(60.0)
    assert len(world.bound) == len(world.server.pods()) == 2
    await schedules.stop(task)


@pytest.mark.parametrize("queues", NONE)
@in_virtual_time
async def test_licorne_does_not_start_without_the_partition_of_the_cluster(queues: str) -> None:
    world = schedules.World(4)
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    world.server.put("configmaps", msgspec.structs.replace(known, data={"queues.yaml": queues}))
    _, task = schedules.start(world)
    with pytest.raises(ConfigurationError, match="no partition 'default'"):
        await asyncio.wait_for(task, 30.0)


CHANGES: list[tuple[dict[str, str], dict[str, str], list[str]]] = [
    ({}, {"service.clusterId": "x"}, ["service.clusterId"]),
    ({"service.clusterId": "x"}, {}, ["service.clusterId"]),
    ({}, {"service.clusterId": "mycluster"}, []),
    ({}, {"log.level": "debug", "service.placeholderImage": "x", "unknown.key": "1"}, []),
    (
        {"reservation.delay": "1s"},
        {"reservation.delay": "2s", "service.policyGroup": "p"},
        ["reservation.delay", "service.policyGroup"],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_what_waits_for_a_restart(old: dict[str, str], new: dict[str, str], expected: list[str]) -> None:
    assert wait_for_restart(old, new) == expected


def test_a_value_that_means_the_default_is_told() -> None:
    texts = {
        "log.level": "6",
        "log.core.level": "debug",
        "log.shim.level": "loud",
        "unknown.key": "6",
        "event.ringBufferCapacity": "",
    }
    said = [text.partition(": must be ")[0] for _, text in unread(texts, lenient=True)]
    assert said == ["log.level: '6'", "log.shim.level: 'loud'"]

    async def play() -> None:
        world = schedules.World(4)
        _, task = schedules.start(world)
        await asyncio.sleep(5.0)
        known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
        assert isinstance(known, ConfigMap)
        world.server.put("configmaps", msgspec.structs.replace(known, data={**(known.data or {}), "log.level": "6"}))
        await asyncio.sleep(1.0)
        (event,) = (one for one in world.server.events if one["reason"] == "ValueNotUsed")
        assert event["note"].startswith("log.level: '6': must be debug, info, ")
        await schedules.stop(task)

    run(play())


def test_options_and_variables_have_their_origins() -> None:
    given: dict[str, Any] = {
        "kubeconfig": None,
        "namespace": None,
        "rest": ("a:1", "b:2"),
        "dry_run": True,
        "insecure": False,
    }
    rows = {row.key: (row.value, row.source) for row in _options(given, {"KUBECONFIG": "k"})}
    assert rows == {
        "--kubeconfig": ("k", "environment KUBECONFIG"),
        "--namespace": ("default", "default"),
        "--rest": ("a:1,b:2", "option --rest"),
        "--dry-run": ("true", "option --dry-run"),
        "--insecure": ("false", "default"),
    }


def test_keys_are_there_once() -> None:
    keys = [setting.key for setting in SETTINGS]
    assert len(set(keys)) == len(keys)


@in_virtual_time
async def test_a_configmap_that_turns_its_refresh_on_again_is_taken() -> None:
    world = schedules.World(1)
    runner, task = schedules.start(world)
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    assert isinstance(known, ConfigMap)

    async def put(**more: str) -> bool:
        world.server.put("configmaps", msgspec.structs.replace(known, data={**schedules.DATA, **more}))
        await asyncio.sleep(1.0)
        return runner.manager.lifecycle.scheduled_events

    await asyncio.sleep(1.0)
    off = {"service.enableConfigHotRefresh": "false"}
    wanted = [
        await put(**off),
        await put(**off, **{"licorne.scheduled-events": "true"}),
        await put(**{"service.enableConfigHotRefresh": "true", "licorne.scheduled-events": "true"}),
    ]
    assert wanted == [False, False, True]
    await schedules.stop(task)


@in_virtual_time
async def test_levels_and_events_follow_the_configmap_and_what_needs_a_restart_is_said() -> None:
    world = schedules.World(1)
    levels = Levels()
    _, task = schedules.start(world, levels=levels)
    await asyncio.sleep(1.0)
    pod = world.add_pod()
    await asyncio.sleep(5.0)
    assert world.server.events == []
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    assert isinstance(known, ConfigMap)
    more = {"log.shim.level": "ERROR", "licorne.scheduled-events": "true", "service.clusterId": "other"}
    world.server.put("configmaps", msgspec.structs.replace(known, data={**schedules.DATA, **more}))
    await asyncio.sleep(1.0)
    assert levels.of("shim.cache") == logging.ERROR
    (told,) = world.server.events
    assert (told["reason"], told["note"]) == (
        "RestartNeeded",
        "takes effect when licorne is started again: service.clusterId",
    )
    second = world.add_pod()
    await asyncio.sleep(5.0)
    reasons = [event["reason"] for event in world.server.events if event["regarding"]["name"] == second.metadata.name]
    assert reasons == ["Scheduled"]
    assert not [event for event in world.server.events if event["regarding"]["name"] == pod.metadata.name]
    await schedules.stop(task)


RESTARTS: dict[str, tuple[list[dict[str, str]], list[str]]] = {
    "a change": ([{"service.clusterId": "other"}], ["service.clusterId"]),
    "a change that is taken back": ([{"service.clusterId": "other"}, {}], ["service.clusterId"]),
    "a change of something else after it": (
        [{"service.clusterId": "other"}, {"service.clusterId": "other", "log.level": "ERROR"}],
        ["service.clusterId"],
    ),
    "a second change that waits, too": (
        [{"service.clusterId": "other"}, {"service.clusterId": "other", "licorne.old-queue-metrics": "true"}],
        ["service.clusterId", "licorne.old-queue-metrics, service.clusterId"],
    ),
}


@pytest.mark.parametrize(("changes", "told"), RESTARTS.values(), ids=RESTARTS)
@in_virtual_time
async def test_what_needs_a_restart_is_said_once(changes: list[dict[str, str]], told: list[str]) -> None:
    world = schedules.World(1)
    _, task = schedules.start(world)
    await asyncio.sleep(1.0)
    for more in changes:
        world.put_map({**schedules.DATA, **more}, None)
        await asyncio.sleep(2.0)
    notes = [event["note"] for event in world.server.events]
    assert notes == [f"takes effect when licorne is started again: {keys}" for keys in told]
    assert not [event for event in world.server.events if "series" in event]
    await schedules.stop(task)


POLICY_GROUPS: dict[str, tuple[list[dict[str, str]], set[str]]] = {
    "changed once": ([{"queues2.yaml": OTHER_QUEUES, "service.policyGroup": "queues2"}], set()),
    "another setting changes later": (
        [{"service.policyGroup": "queues2"}, {"service.policyGroup": "queues2", "log.level": "ERROR"}],
        set(),
    ),
    "the queues in force change later": (
        [{"service.policyGroup": "queues2"}, {"service.policyGroup": "queues2", "queues.yaml": LATER_QUEUES}],
        {"later"},
    ),
    "the queues get the new name with it": (
        [
            {"queues.yaml": "", "queues2.yaml": OTHER_QUEUES, "service.policyGroup": "queues2"},
            {"queues.yaml": "", "queues2.yaml": OTHER_QUEUES, "service.policyGroup": "queues2", "log.level": "ERROR"},
        ],
        set(),
    ),
}


@pytest.mark.parametrize(("steps", "more"), POLICY_GROUPS.values(), ids=POLICY_GROUPS)
@in_virtual_time
async def test_another_policy_group_leaves_the_queues_in_force_until_a_restart(
    steps: list[dict[str, str]], more: set[str]
) -> None:
    world = schedules.World(1)
    runner, task = schedules.start(world)
    await asyncio.sleep(1.0)
    before = queues_of(runner)
    assert len(before) > 1
    for step in steps:
        put_map(world, {**schedules.DATA, **step})
        await asyncio.sleep(1.0)
    assert queues_of(runner) == before | more
    assert [event["reason"] for event in world.server.events] == ["RestartNeeded"]
    await schedules.stop(task)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("licorne.scheduled-events", []),
        ("licorne.grpc", ["'licorne.grpc': is a setting of `licorne serve`, not of the scheduler"]),
        ("reservation.delai", ["'reservation.delai': no such setting; did you mean reservation.delay?"]),
    ],
)
@in_virtual_time
async def test_a_setting_that_has_no_effect_is_told_and_no_other(key: str, expected: list[str]) -> None:
    world = schedules.World(1)
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    assert isinstance(known, ConfigMap)
    for at, value in enumerate(("true", "false")):  # at the start, and when it changes
        world.server.put("configmaps", msgspec.structs.replace(known, data={**schedules.DATA, key: value}))
        if at == 0:
            runner, task = schedules.start(world)
            written = io.StringIO()
            runner.log = make_log(written, form="json")
        await asyncio.sleep(2.0)
    await schedules.stop(task)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    told = [line["text"] for line in lines if line["event"] == "parts of a request had no effect"]
    assert len(told) == 2 * len(expected)
    assert all(expected[0] in text for text in told)


def status(method: str, path: str, body: str = "") -> Callable[[httpx.Client, Monitor], Any]:
    """Return a look at the status of an answer of REST."""
    return lambda rest, _: rest.request(method, path, content=body).status_code


def batch(rest: httpx.Client, _: Monitor) -> Any:
    """Return whether there is one event in an answer."""
    return len(rest.get("/ws/v1/events/batch").json()["EventRecords"]) == 1


LOOKS: list[tuple[str, str, Callable[[httpx.Client, Monitor], Any], Any, Any]] = [
    ("licorne.max-body", "10", status("POST", "/ws/v1/validate-conf", schedules.QUEUES), 200, 413),
    ("licorne.max-queues", "3", status("PUT", "/ws/v1/config", schedules.QUEUES + "          - {name: c}\n"), 200, 409),
    ("event.trackingEnabled", "false", status("GET", "/ws/v1/events/batch"), 200, 500),
    ("event.RESTResponseSize", "1", batch, False, True),
    ("health.checkInterval", "7s", lambda _, monitor: monitor._health_interval_s, 30, 7),
]


@pytest.mark.parametrize(("key", "text", "look", "before", "after"), LOOKS, ids=[row[0] for row in LOOKS])
@pytest.mark.parametrize("later", [False, True], ids=["at the start", "at run time"])
async def test_settings_of_rest_count(
    key: str, text: str, look: Callable[[httpx.Client, Monitor], Any], before: Any, after: Any, later: bool
) -> None:
    world = schedules.World(1)
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    assert isinstance(known, ConfigMap)
    changed = msgspec.structs.replace(known, data={**schedules.DATA, key: text})
    if not later:
        world.server.put("configmaps", changed)
    async with served(world) as (runner, rest):
        assert runner.monitor is not None
        found = await asyncio.to_thread(look, rest, runner.monitor)
        assert found == (before if later else after)
        if later:
            world.server.put("configmaps", changed)
            while await asyncio.to_thread(look, rest, runner.monitor) != after:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("wanted", [False, True])
async def test_metrics_have_the_old_names_of_queues_if_they_are_wanted(wanted: bool) -> None:
    world = schedules.World(1)
    known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
    assert isinstance(known, ConfigMap)
    data = {**schedules.DATA, "licorne.old-queue-metrics": str(wanted).lower()}
    world.server.put("configmaps", msgspec.structs.replace(known, data=data))
    async with served(world) as (_, rest):
        answer = await asyncio.to_thread(rest.get, "/ws/v1/metrics")
        assert ("yunikorn_root_a_queue_app{" in answer.text) is wanted


@pytest.mark.parametrize(
    ("machine", "arch"), [("x86_64", "amd64"), ("AMD64", "amd64"), ("aarch64", "arm64"), ("s390x", "s390x")]
)
def test_rest_shows_the_build(machine: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)

    async def play() -> None:
        async with served(schedules.World(1)) as (_, rest):
            (cluster,) = (await asyncio.to_thread(rest.get, "/ws/v1/clusters")).json()
            expected = {"buildVersion": licorne.__version__, "arch": arch, "rmId": "mycluster"}
            assert cluster["rmBuildInformation"] == [expected]

    asyncio.run(play())


async def test_rest_shows_the_level_of_the_log() -> None:
    async with served(schedules.World(1)) as (runner, rest):
        for log, level in ((runner.log, "fatal"), (make_log(io.StringIO(), level="warning"), "warn")):
            assert runner.monitor is not None
            runner.monitor.log = log
            dump = (await asyncio.to_thread(rest.get, "/debug/fullstatedump")).json()
            assert dump["logLevel"] == level


@pytest.mark.parametrize("interval", ["0", "30s"])
def test_probes_of_the_deployment_are_answered_whatever_the_health_checks_are(interval: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "deploy/kubernetes/deployment.yaml").read_text(encoding="utf-8")
    (container,) = msgspec.yaml.decode(text)["spec"]["template"]["spec"]["containers"]
    probes = [container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]

    async def play() -> None:
        world = schedules.World(1)
        put_map(world, {**schedules.DATA, "health.checkInterval": interval})
        async with served(world) as (_, rest):
            assert [(await asyncio.to_thread(rest.get, path)).status_code for path in probes] == [200, 200, 200]

    asyncio.run(play())


@contextlib.asynccontextmanager
async def served(world: schedules.World) -> AsyncIterator[tuple[Runner, httpx.Client]]:
    """Start licorne with REST on loopback, and connect to it."""
    client = FakeClient(world.server)
    clients = Clients(client, client, client)
    web = Web(addresses=("127.0.0.1:0",))
    runner = Runner(clients, RunSettings(), web=web, log=no_log(), wall=world.now_s)
    async with asyncio.timeout(WAIT_S):
        task = asyncio.create_task(runner.run())
        while runner._server is None or not runner._server.addresses:
            schedules.check_runs(task)
            await asyncio.sleep(0.02)
        try:
            with httpx.Client(base_url=f"http://{runner._server.addresses[0]}", timeout=WAIT_S) as rest:
                yield runner, rest
        finally:
            await schedules.stop(task)


def test_each_kind_that_is_watched_has_a_connection_and_others_are_left() -> None:
    async def kinds() -> int:
        client = FakeClient(schedules.World(1).server)
        return len(
            Runner(Clients(client, client, client), RunSettings(spread="system"), log=no_log()).reading.reflectors
        )

    assert run(kinds()) < READING - 8
