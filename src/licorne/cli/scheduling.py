"""The work of `licorne kube`: reads the options, connects to the cluster, and schedules its pods until a signal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from licorne.cli.common import CommandError, UsageError, print_json, read_text, say
from licorne.cli.kube import SERVE, RecordOptions, RestOptions
from licorne.cli.statuses import Status
from licorne.config.manifest import NAMESPACE, OVERLAID, SCHEDULER_NAMES, queue_source
from licorne.config.problems import ConfigError
from licorne.core.base.setting_table import unknown_settings
from licorne.host.descriptors import raise_limit
from licorne.host.follower import Follower, follower
from licorne.host.log import Format, Levels, Log
from licorne.host.process_log import process_log
from licorne.host.recording import recording
from licorne.host.secrets import SecurityError, pem_in, tokens_in
from licorne.host.security import Security
from licorne.host.setting_table import REST_ADDRESS
from licorne.host.shown_settings import Shown, table
from licorne.host.signals import signals
from licorne.host.web.rest import Access as RestAccess
from licorne.host.web.server import Web
from licorne.kube.api import Access, ApiError, Client, KubeconfigError, Requests, UnansweredError
from licorne.kube.api.kinds import config_map_kind
from licorne.kube.configmaps import ConfigurationError, check_queues, read_configuration
from licorne.kube.lease import LeaseLostError
from licorne.kube.objects import ConfigMap
from licorne.kube.pods.spreading import SYSTEM, ConstraintsError, read_constraints
from licorne.kube.runner import Clients, Runner
from licorne.kube.settings import RESTART, TABLE, RunSettings, shown
from licorne.state.recording import Recorder, RecordingError

READING = 64
"""How many requests that read may be under way at once: the watch of each kind is one, without an end."""


def run(
    given: dict[str, Any],
    rest: RestOptions,
    record: RecordOptions,
    log_format: Format | None,
    *,
    print_config: bool,
    as_json: bool,
) -> int:
    """Do what `licorne kube` is asked to do, and return its exit status. `given`: its other options, by name."""
    bounds = record.bounds()
    rows = _options({**given, **vars(rest), **vars(record), "log_format": log_format}, os.environ)
    options = {row.key: row for row in rows}
    kubeconfig, config = given["kubeconfig"], given["config"]
    settings = RunSettings(
        namespace=options["--namespace"].value,
        scheduler_names=given["scheduler_name"] or SCHEDULER_NAMES,
        queues=_queues(config) if config is not None else "",
        dry_run=given["dry_run"],
        spread=_spread(given["spread_defaults"]),
    )
    try:
        served = _rest(rest)
        if kubeconfig is not None:
            read_text(kubeconfig, "a kubeconfig")  # has a status of its own if it cannot be read
        access = Access.load(str(kubeconfig) if kubeconfig is not None else None, given["context"] or None)
        if print_config:
            return asyncio.run(_show(access, settings, list(options.values()), as_json=as_json))
        levels = Levels()
        with (
            process_log(sys.stderr, form=log_format or "text", levels=levels) as log,
            recording(record.record, *bounds, log, anonymous=record.anonymous) as recorder,
        ):
            raise_limit()
            following = None
            if rest.follow and rest.rest != ():
                following = follower(None if record.anonymous else record.record, log)
            return _run_on_uvloop(_run(access, settings, served, (recorder, following), log, levels))
    except (KubeconfigError, ConfigurationError, LeaseLostError, SecurityError, RecordingError) as error:
        raise CommandError(str(error)) from None


def _run_on_uvloop(work: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine to its end, and return its result: on the event loop of uvloop, or on Windows, where there is none, on asyncio's.

    On uvloop's loop licorne takes a tenth less processor time for a pod (docs/notes/performance.md).
    """
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop  # noqa: PLC0415  there is none for Windows

    return uvloop.run(work)


def _options(given: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Shown]:
    """Yield the options of the command line as they are printed, with the variables and defaults that take their place."""
    variables = {"kubeconfig": "KUBECONFIG", "namespace": "NAMESPACE"}
    defaults = {"namespace": NAMESPACE, "scheduler_name": ",".join(SCHEDULER_NAMES), "rest": REST_ADDRESS}
    defaults |= {name: SERVE[name.replace("_", "-")].default for name in ("log_format", "record_mib", "record_age")}
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        variable = variables.get(name, "")
        if value is not None and value is not False:
            text = ",".join(value) if isinstance(value, tuple) else str(value).lower() if value is True else str(value)
            yield Shown(option, text, f"option {option}", RESTART)
        elif environment.get(variable):
            yield Shown(option, environment[variable], f"environment {variable}", RESTART)
        else:
            yield Shown(option, "false" if value is False else defaults.get(name, ""), "default", RESTART)


async def _show(access: Access, settings: RunSettings, options: list[Shown], *, as_json: bool) -> int:
    """Print all options and settings. Returns the exit status."""
    maps: dict[str, ConfigMap] = {}
    async with Client(access) as client:
        for name in OVERLAID:
            try:
                page = await client.list_page(config_map_kind(settings.namespace, name))
            except (ApiError, UnansweredError) as error:
                raise CommandError(f"ConfigMap {settings.namespace}/{name}: {error}") from None
            maps |= {found.metadata.name: found for found in page.items}
    configuration = read_configuration(maps)
    rows = [*options, *shown(configuration.texts, configuration.origins)]
    if as_json:
        print_json(rows)
        return 0
    say(*table(rows))
    say()
    for key in unknown_settings({key: "" for key in configuration.texts if TABLE.find(key) is None}):
        say(f"ignored: {key}")
    for name in OVERLAID:
        say(f"ConfigMap {settings.namespace}/{name}: {'read' if name in maps else 'not there'}")
    group = f"{configuration.settings.policy_group}.yaml"
    origin = "option --config" if settings.queues else configuration.origins.get(group, "built-in")
    say(f"queue configuration: {origin}{f', key {group}' if origin.startswith('ConfigMap') else ''}")
    return 0


def _spread(path: Path | None) -> str:
    """Return the text of default spread constraints that can be used; "": there are none."""
    if path is None:
        return ""
    text = SYSTEM if str(path) == SYSTEM else read_text(path, "default spread constraints")
    try:
        return text if read_constraints(text) else ""
    except ConstraintsError as error:
        raise CommandError(f"{path}: {error}") from None


def _queues(path: Path) -> str:
    """Return the queue configuration in a file, which is one itself or a ConfigMap; only the ConfigMaps limit its queues."""
    try:
        source = queue_source(read_text(path, "a queue configuration"), str(path))
        check_queues(source.text, "", where=source.label)
    except (ConfigError, ConfigurationError) as error:
        raise CommandError(str(error), Status.CONFIGURATION) from None
    return source.text


def _pem(path: Path | None, what: str) -> bytes:
    return pem_in(read_text(path, what), str(path), what) if path is not None else b""


def _tokens(path: Path | None) -> tuple[str, ...]:
    return tokens_in(read_text(path, "tokens"), str(path)) if path is not None else ()


async def _run(
    access: Access,
    settings: RunSettings,
    served: tuple[Web | None, Security],
    logs: tuple[Recorder | None, Follower | None],
    log: Log,
    levels: Levels,
) -> int:
    web, security = served
    requests = Requests()
    async with (
        Client(access, connections=READING, requests=requests) as reading,
        Client(access, requests=requests) as binding,
        Client(access, requests=requests) as writing,
    ):
        await access.headers()  # what cannot say who we are ends at once
        runner = Runner(
            Clients(reading, binding, writing),
            settings,
            web=web,
            security=security,
            recorder=logs[0],
            follower=logs[1],
            log=log,
            levels=levels,
        )
        ending = asyncio.Event()
        with signals(ending, ending.set, log), runner.memory.running():
            await runner.run_until(ending)
        done = {f"{kind}s": number for (kind, result), number in runner.results.counts.items() if result == "done"}
        log.info("ended", allocations=runner.decided, **done)
        if runner.shadow is not None:
            log.info("compared with the other scheduler", **runner.shadow.counts)
    return 0


def _rest(rest: RestOptions) -> tuple[Web | None, Security]:
    """Return REST and its TLS, checked before anything is asked of the cluster. Raises CommandError, or SecurityError."""
    security = Security(
        certificate=_pem(rest.tls_cert, "a certificate"),
        key=_pem(rest.tls_key, "a private key"),
        client_ca=_pem(rest.tls_client_ca, "the certificate of an authority"),
        insecure=rest.insecure,
    )
    tokens = RestAccess(read_tokens=_tokens(rest.rest_read_token_file), admin_tokens=_tokens(rest.rest_token_file))
    if rest.rest == ():
        return None, security
    web = Web(addresses=rest.rest or (REST_ADDRESS,), access=tokens)
    try:
        security.check(())
        web.check(security)
    except SecurityError as error:
        raise UsageError(f"--rest: {error}") from None
    security.context()
    return web, security
