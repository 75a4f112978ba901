"""The work of `licorne serve`: reads the options, makes the service, and runs it until a signal."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from licorne.cli.common import CommandError, pairs, print_json, say

# Read when gRPC is first imported; its own lines are no part of the log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from licorne.cli.demo import Demo
from licorne.cli.serve import argument
from licorne.grpc.service import SecurityError, Service, SettingError
from licorne.grpc.service.configuration import Changes, Given, Loaded, building, load_all, show
from licorne.grpc.service.configuration.queues import Groups
from licorne.host.descriptors import raise_limit
from licorne.host.follower import follower
from licorne.host.log import Levels, Log
from licorne.host.notify import READY, STOPPING, notify, stay_alive
from licorne.host.process_log import process_log
from licorne.host.recording import recording
from licorne.host.setting_table import SETTINGS
from licorne.host.signals import signals
from licorne.state.recording import Recorder, RecordingError

SWITCH_S = 0.001
"""Interpreter switch interval, in seconds: how long a thread that reads a configuration may block the loop at a
time."""


def run(options: dict[str, Any]) -> int:
    """Serve as the options of `licorne serve` say, and return the exit status.

    Raises:
        CommandError: an option, setting or file cannot be used.
    """
    try:
        loaded = load_all(_given(options))
        if options.get("print_config"):
            if options.get("json"):
                print_json(show.shown(loaded))
            else:
                say(*show.lines(loaded))
            return 0
        levels = Levels()
        building.set_levels(levels, loaded.values)
        values = loaded.values
        with process_log(sys.stderr, form=values.get("licorne.log-format"), levels=levels) as log:
            raise_limit()
            folder = values.get("licorne.record")
            bounds = values.get("licorne.record-mib"), values.get("licorne.record-age")
            anonymous = values.get("licorne.anonymous")
            with recording(Path(folder) if folder else None, *bounds, log, anonymous=anonymous) as recorder:
                return asyncio.run(_serve(loaded, _demo(**options), levels, recorder, log))
    except (SecurityError, SettingError, RecordingError) as error:
        raise CommandError(str(error)) from None


def _given(options: dict[str, Any]) -> Given:
    """Collect the settings on the command line and in the environment, and the path of the settings file."""
    given = {one.key: options.get(argument(one)) for one in SETTINGS if one.option}
    environment = dict(os.environ)
    found = environment.pop("LICORNE_SETTINGS", "")
    return Given(
        options={key: _text(value) for key, value in given.items() if value not in (None, ())},
        settings=pairs("--setting", options.get("setting", ())),
        environment=environment,
        file=options.get("settings") or (Path(found) if found else None),
    )


def _demo(*, demo: bool = Demo.wanted, demo_speed: float = Demo.speed, demo_seed: int = Demo.seed, **_: Any) -> Demo:
    return Demo(demo, demo_speed, demo_seed)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _serve(loaded: Loaded, demo: Demo, levels: Levels, recorder: Recorder | None, log: Log) -> int:
    """Serve until a signal, or until the scheduler fails. Returns the exit status."""
    values = loaded.values
    groups = Groups(loaded.sources)
    web = building.web(values, demo.rest(values.get("licorne.rest")))
    folder = values.get("licorne.record")
    catch_up_from = Path(folder) if folder and not values.get("licorne.anonymous") else None
    following = follower(catch_up_from, log) if values.get("licorne.follow") else None
    service = Service(
        values.get("licorne.grpc"),
        policy_groups=groups,
        scheduler_settings=values.texts(),
        settings=building.service_settings(values),
        groups=building.group_settings(values),
        security=building.security(values),
        web=web,
        recorder=recorder,
        follower=following if web is not None else None,
        log=log,
    )
    changes = Changes(service, loaded, groups, levels, log)
    ended = asyncio.Event()
    sys.setswitchinterval(SWITCH_S)
    with signals(ended, changes.again, log), service.memory.running():
        await _until(ended, service, changes, demo)
    return 1 if service.failed.is_set() else 0


async def _until(ended: asyncio.Event, service: Service, changes: Changes, demo: Demo) -> None:
    await service.start()
    watching = asyncio.create_task(changes.run())
    alive = asyncio.create_task(stay_alive())
    waiting = [asyncio.create_task(ended.wait()), asyncio.create_task(service.failed.wait()), watching]
    try:
        async with demo.beside(service):
            notify(READY)
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            notify(STOPPING)
    finally:
        for task in waiting:
            task.cancel()
        await service.stop()
        alive.cancel()
    if watching.done() and not watching.cancelled() and (error := watching.exception()) is not None:
        raise error
