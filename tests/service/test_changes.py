"""Files that change while the service runs: changes that take effect, refusals, settings of resource managers that stay."""

from __future__ import annotations

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.waiting import eventually
from licorne.grpc.service import Service, Web, make_log
from licorne.grpc.service.configuration import Changes, Given, building, changes, load_all
from licorne.grpc.service.configuration.loaded import load_again
from licorne.grpc.service.configuration.queues import Groups
from licorne.host.log import Levels
from service.peers import Peer, client_of
from service.processes import serving

QUEUES = """\
partitions:
  - name: default
    placementrules:
      - name: fixed
        value: root.%s
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
          - name: b
"""
INTERVAL_S = 0.02


class Running:
    """A service with its files, and what it logs."""

    def __init__(self, given: Given) -> None:
        self.out = io.StringIO()
        loaded = load_all(given)
        self.levels = Levels()
        building.set_levels(self.levels, loaded.values)
        log = make_log(self.out, form="json", levels=self.levels)
        groups = Groups(loaded.sources)
        self.service = Service(
            ("127.0.0.1:0",),
            policy_groups=groups,
            scheduler_settings=loaded.values.texts(),
            settings=building.service_settings(loaded.values),
            web=Web(addresses=("127.0.0.1:0",)),
            log=log,
        )
        self.changes = Changes(self.service, loaded, groups, self.levels, log, interval_s=INTERVAL_S)

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = [msgspec.json.decode(line) for line in self.out.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    async def until(self, event: str, count: int = 1) -> dict[str, Any]:
        await eventually(lambda: len(self.said(event)) >= count, f"never said: {event}\n{self.out.getvalue()}")
        return self.said(event)[count - 1]

    def queue_of(self, rm_id: str, app: str) -> str:
        return str(self.service.api.cluster.partition(rm_id).applications[app].queue.path)


@asynccontextmanager
async def running(**given: Any) -> AsyncIterator[Running]:
    made = Running(Given(**given))
    async with made.service:
        watching = asyncio.create_task(made.changes.run())
        try:
            yield made
            assert not watching.done()
        finally:
            watching.cancel()


def swap(file: Path, text: str) -> None:
    """Put another text in the place of a file, in one step."""
    other = file.with_suffix(".new")
    other.write_text(text)
    other.replace(file)


REFUSED = "configuration refused, the old one stays"
APPLIED = "queue configuration applied"


async def test_a_good_change_takes_effect_and_a_bad_one_keeps_the_old_configuration(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES % "a")
    async with (
        running(options={"licorne.config": str(file)}) as made,
        Peer(made.service.addresses[0], "rm") as peer,
        Peer(made.service.addresses[0], "own") as other,
    ):
        await peer.running()
        await other.register(config=QUEUES % "a")
        assert made.queue_of("rm", "app") == "root.a"
        secret = "OPEN-SESAME"  # noqa: S105
        swap(file, (QUEUES % "b").replace("submitacl: '*'", f"submitacl: '*'\n        max: {secret}"))
        refused = await made.until(REFUSED)
        assert (refused["line"], refused["column"], refused["rule"]) == (9, 9, "yaml-key-unknown")
        assert (await peer.application("second")).accepted
        assert made.queue_of("rm", "second") == "root.a"
        swap(file, QUEUES % "b")
        assert (await made.until(APPLIED))["managers"] == 1
        assert (await peer.application("third")).accepted
        assert made.queue_of("rm", "third") == "root.b"
        for rm_id, rule in (("rm", "root.b"), ("own", "root.a")):
            partition = made.service.api.cluster.partition(rm_id)
            assert partition.config.placement_rules[0].value == rule
        async with Peer(made.service.addresses[0], "late") as late:
            await late.register()
            assert made.service.api.cluster.partition("late").config.placement_rules[0].value == "root.b"
        assert secret not in made.out.getvalue()


async def test_a_raised_quota_wakes_asks_that_wait(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    limited = QUEUES % "a" + "            resources: {max: {vcore: %d}}\n"
    file.write_text((limited % 1).replace("root.a", "root.b"))
    async with running(options={"licorne.config": str(file)}) as made, Peer(made.service.addresses[0]) as peer:
        await peer.running()
        await peer.asks("first", "second")
        assert len(await peer.allocations(1)) == 1
        swap(file, (limited % 2).replace("root.a", "root.b"))
        assert len(await peer.allocations(1)) == 1
        made.service.api.validate()


async def test_a_file_that_vanishes_or_is_empty_keeps_the_old_configuration(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES % "a")
    async with running(options={"licorne.policy-group": f"g={file}"}) as made:
        file.unlink()
        assert "no such file" in (await made.until(REFUSED))["reason"]
        file.write_text("")
        assert (await made.until(REFUSED, 2))["rule"] == "has no partition"
        file.write_bytes(b"\xff")
        assert "is not UTF-8 text" in (await made.until(REFUSED, 3))["reason"]
        file.write_text(QUEUES % "b")
        await made.until(APPLIED)
        async with Peer(made.service.addresses[0]) as peer:
            await peer.register(policy_group="g")
            assert made.service.api.cluster.partition("rm").config.placement_rules[0].value == "root.b"


async def test_a_mounted_config_map_that_is_swapped(tmp_path: Path) -> None:
    """Settings, and the configurations of two policy groups, change in one step; each resource manager gets its own."""

    def release(name: str, **texts: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        for key, text in texts.items():
            (folder / f"{key}.yaml").write_text(text)
            if not (tmp_path / f"{key}.yaml").is_symlink():
                (tmp_path / f"{key}.yaml").symlink_to(Path("..data", f"{key}.yaml"))
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    release("..1", queues=QUEUES % "a", other=QUEUES % "a")
    async with (
        running(file=tmp_path) as made,
        Peer(made.service.addresses[0], "x") as x,
        Peer(made.service.addresses[0], "y") as y,
    ):
        await x.register()
        await y.register(policy_group="other")
        release("..2", queues=QUEUES % "b", other=QUEUES % "a", third=QUEUES % "b")
        await made.until(APPLIED, 2)
        found = {one["file"].rpartition("[")[2]: one["managers"] for one in made.said(APPLIED)}
        assert found == {"queues.yaml]": 1, "third.yaml]": 0}
        rules = {name: made.service.api.cluster.partition(name).config.placement_rules[0].value for name in "xy"}
        assert rules == {"x": "root.b", "y": "root.a"}
        release("..3", queues=QUEUES % "a", other="partitions: 7")
        await made.until(REFUSED)  # nothing of the folder is taken
        assert made.service.api.cluster.partition("x").config.placement_rules[0].value == "root.b"


async def test_a_configuration_set_by_rest_lasts_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES % "a")
    async with running(options={"licorne.config": str(file)}) as made, Peer(made.service.addresses[0]) as peer:
        await peer.register()
        partition = made.service.api.cluster.partition("rm")
        async with client_of(made.service) as client:
            by_rest = (QUEUES % "b") + "          - name: c\n"
            assert (await client.put("/ws/v1/config", content=by_rest)).status_code == 200
        made.changes.again()
        await made.until("configuration read again, nothing has changed")
        assert partition.config.placement_rules[0].value == "root.b"
        swap(file, (QUEUES % "a") + "          - name: d\n")
        await made.until("a configuration that REST had set is replaced by that of the file")
        assert partition.config.placement_rules[0].value == "root.a"


async def test_settings_that_take_effect_at_once(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("log.level: info\n")

    def write(*lines: str) -> None:
        swap(file, "".join(f"{line}\n" for line in lines))

    async with running(file=file) as made, Peer(made.service.addresses[0]) as peer:
        await peer.running()
        monitor, web = made.service.monitor, made.service.web
        assert monitor is not None
        assert web is not None
        events = monitor.ring.made
        assert events > 0
        write(
            "event.trackingEnabled: false",
            "event.ringBufferCapacity: 2",
            "event.maxStreams: 3",
            "health.checkInterval: 0",
            "log.level: error",
            "log.core.config.level: info",
            "priority.class.high: 7",
            "licorne.max-managers: 1",
            "licorne.max-message: 5",
            "licorne.rm-timeout: 5",
        )
        changed = await made.until("settings changed")
        assert len(changed["settings"]) == 9
        assert (await made.until("a change takes effect at restart"))["settings"] == ["licorne.max-message"]
        await eventually(lambda: made.service.api.cluster.managers["rm"].settings.priority_classes == {"high": 7})
        assert (made.service.settings.managers, made.service.sessions.settings.rm_timeout_s) == (1, 5.0)
        assert made.service.settings.message_bytes == 4 << 20
        assert made.levels.of("core.rmproxy") == 40
        assert (web._app.handlers.limits.streams, monitor.ring.made - monitor.ring.lowest) == (3, 2)
        await peer.application("quiet")
        assert monitor.ring.made == events
        async with client_of(made.service) as client:
            assert (await client.get("/ws/v1/events/batch")).status_code == 500
            write("log.core.rmproxy.level: debug")  # all else as by default
            await made.until("settings changed", 2)
            await peer.application("loud")
            assert (await client.get("/ws/v1/events/batch")).status_code == 200
        assert monitor.ring.made > events
        assert made.levels.of("core.rmproxy") == 10
        assert made.service.settings.managers == 1000
        write("service.enableConfigHotRefresh: false")
        await made.until("settings changed", 3)
        write("log.level: debug", "service.enableConfigHotRefresh: true")
        await asyncio.sleep(10 * INTERVAL_S)
        assert made.levels.of("core") == 20
        made.changes.again()
        await made.until("settings changed", 4)
        assert made.levels.of("core") == 10


async def test_a_bad_setting_keeps_all_of_the_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("licorne.max-tags: 50\n")
    async with running(file=file) as made:
        swap(file, "licorne.max-tags: 60\nservice.dispatchTimeout: soon\n")
        assert "settings.yaml:2: service.dispatchTimeout: 'soon'" in (await made.until(REFUSED))["reason"]
        assert made.service.settings.tags == 50
        swap(file, "licorne.max-tags: 60\nevent.maxStreams: some\n")
        assert "the default is used" in (await made.until("setting ignored"))["reason"]
        assert made.service.settings.tags == 60


def test_half_a_file_is_not_taken(tmp_path: Path) -> None:
    """While a file still changes from look to look it is not read."""
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES % "a")
    taken: list[str] = []

    def watch(old: Any, read: Any) -> Any:
        taken.append(file.read_text())
        return load_again(old, read)

    async def story() -> None:
        async with running(options={"licorne.config": str(file)}) as made:
            marks = made.changes._marks
            looks = 0

            async def growing() -> Any:
                nonlocal looks
                looks += 1
                if looks <= 5:
                    file.write_text((QUEUES % "b")[: 30 * looks] if looks < 5 else QUEUES % "b")
                    os.utime(file, ns=(looks, looks))
                return await marks()

            made.changes._marks = growing  # type: ignore[method-assign]
            await made.until(APPLIED)
            assert taken == [QUEUES % "b"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "load_again", watch)
        asyncio.run(story())


async def test_a_signal_reads_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("service.enableConfigHotRefresh: false\nlicorne.max-name: 60\n")
    with serving("--settings", str(file)) as made:
        async with Peer(made.address) as peer:
            await peer.running()
            file.write_text("licorne.max-name: 5\n")
            made.process.send_signal(signal.SIGHUP)
            await eventually(lambda: made.events("settings changed"))
            assert (await peer.application("a-long-name")).rejected
        assert made.end() == 0
