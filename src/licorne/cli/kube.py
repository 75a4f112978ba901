"""`licorne kube`: runs licorne as a scheduler of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, validators

from licorne._extras import require
from licorne.cli.common import Argument, CommandError, UsageError, print_json, read_text, say

require("kube")

from licorne.answers.follower import Follower, follower
from licorne.config.manifest import OVERLAID, queue_source
from licorne.config.problems import ConfigError
from licorne.core.base import setting_kinds as kinds
from licorne.core.base.setting_table import unknown_settings
from licorne.daemon.descriptors import raise_limit
from licorne.daemon.log import Format, Levels, Log
from licorne.daemon.process_log import process_log
from licorne.daemon.recording import recording
from licorne.daemon.secrets import SecurityError, pem_in, tokens_in
from licorne.daemon.security import Security
from licorne.daemon.setting_table import REST_ADDRESS, SETTINGS
from licorne.daemon.shown_settings import Shown, table
from licorne.daemon.signals import signals
from licorne.kube.api import Access, ApiError, Client, KubeconfigError, Requests, UnansweredError
from licorne.kube.api.kinds import config_map_kind
from licorne.kube.configmaps import ConfigurationError, read_configuration
from licorne.kube.lease import LeaseLostError
from licorne.kube.objects import ConfigMap
from licorne.kube.runner import Clients, Runner, RunSettings
from licorne.kube.settings import RESTART, TABLE, shown
from licorne.recording import Recorder, RecordingError
from licorne.web.rest import Access as RestAccess
from licorne.web.server import Web

SERVE = {setting.option: setting for setting in SETTINGS if setting.option}
"""Settings of `licorne serve` by their option: what means the same here has their words and defaults."""
RUN = RunSettings()
"""How licorne runs if nothing is said."""
NAMES = ",".join(RUN.scheduler_names)


@Parameter(name="*")
@dataclass(kw_only=True, frozen=True)
class RestOptions:
    """Where REST listens, and who may use it."""

    rest: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help=f"Where to listen for REST: HOST:PORT. May be repeated. [default: {REST_ADDRESS}]",
            negative="--no-rest",
        ),
    ] = None
    tls_cert: Annotated[Path | None, Parameter(help="Certificate of REST, PEM.")] = None
    tls_key: Annotated[Path | None, Parameter(help=SERVE["tls-key"].what)] = None
    tls_client_ca: Annotated[Path | None, Parameter(help=SERVE["tls-client-ca"].what)] = None
    rest_token_file: Annotated[Path | None, Parameter(help=SERVE["rest-token-file"].what)] = None
    rest_read_token_file: Annotated[Path | None, Parameter(help=SERVE["rest-read-token-file"].what)] = None
    insecure: Annotated[bool, Parameter(negative=(), help=SERVE["insecure"].what)] = False
    follow: Annotated[bool, Parameter(negative=(), help=SERVE["follow"].what)] = False

    def security(self) -> Security:
        """Return TLS of REST. Raises CommandError, or SecurityError."""
        return Security(
            certificate=_pem(self.tls_cert, "a certificate"),
            key=_pem(self.tls_key, "a private key"),
            client_ca=_pem(self.tls_client_ca, "the certificate of an authority"),
            insecure=self.insecure,
        )

    def web(self) -> Web | None:
        """Return addresses and tokens; None: no REST."""
        tokens = RestAccess(read_tokens=_tokens(self.rest_read_token_file), admin_tokens=_tokens(self.rest_token_file))
        return Web(addresses=self.rest or (REST_ADDRESS,), access=tokens) if self.rest != () else None


class Seconds(Argument, shown="DURATION"):
    """A number of seconds, or a duration like 720h, as settings have it."""

    __slots__ = ()


RECORD_MIB, RECORD_AGE = SERVE["record-mib"], SERVE["record-age"]


@Parameter(name="*")
@dataclass(kw_only=True, frozen=True)
class RecordOptions:
    """Where all inputs of the scheduler are recorded."""

    record: Annotated[Path | None, Parameter(help=SERVE["record"].what)] = None
    record_mib: Annotated[
        int | None,
        Parameter(
            help=f"{RECORD_MIB.what} [default: {RECORD_MIB.default}]",
            validator=validators.Number(gte=1),
        ),
    ] = None
    record_age: Annotated[
        Seconds | None,
        Parameter(help=f"{RECORD_AGE.what} [default: {RECORD_AGE.default}]"),
    ] = None
    anonymous: Annotated[bool, Parameter(negative="", show_default=False, help=SERVE["anonymous"].what)] = False

    def bounds(self) -> tuple[int, float]:
        """Return the size in MiB and the age in seconds. Raises CommandError."""
        age = self.record_age or RECORD_AGE.default
        age_s = kinds.SECONDS.read(age)
        if age_s is None:
            raise UsageError(f"--record-age {age}: {kinds.SECONDS.rule}")
        return self.record_mib or int(RECORD_MIB.default), float(age_s)


def kube(
    *,
    kubeconfig: Annotated[Path | None, Parameter(help="Where the cluster is, and the credentials for it.")] = None,
    context: Annotated[
        str | None, Parameter(help="Context of the kubeconfig; not given: the current one.", show_default=False)
    ] = None,
    namespace: Annotated[
        str | None,
        Parameter(help=f"Where the ConfigMaps yunikorn-defaults and yunikorn-configs are. [default: {RUN.namespace}]"),
    ] = None,
    scheduler_name: Annotated[
        tuple[str, ...] | None,
        Parameter(help=f"Schedule pods that name this scheduler. May be repeated. [default: {NAMES}]", negative=""),
    ] = None,
    config: Annotated[
        Path | None,
        Parameter(help="Queue configuration (queues.yaml, or a ConfigMap) in place of that of the ConfigMaps."),
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="",
            help="Write nothing; follow what another scheduler decides, and say where licorne would have decided otherwise.",
        ),
    ] = False,
    rest_options: RestOptions | None = None,
    record_options: RecordOptions | None = None,
    log_format: Annotated[
        Format | None, Parameter(help=f"{SERVE['log-format'].what} [default: {SERVE['log-format'].default}]")
    ] = None,
    print_config: Annotated[
        bool,
        Parameter(negative="", help="Print all settings, with values and where these come from, and start nothing."),
    ] = False,
    json: Annotated[bool, Parameter(negative="", help="With --print-config: as JSON.")] = False,
) -> int:
    """Schedule the pods of a Kubernetes cluster that ask for it, until SIGTERM or SIGINT.

    Without --kubeconfig: the files of KUBECONFIG, else what a pod finds in its own file system, else ~/.kube/config. The
    namespace of the ConfigMaps is that of the variable NAMESPACE, else `default`. Beyond loopback REST wants TLS and either
    tokens or certificates of clients, or --insecure.
    """
    rest_options = rest_options or RestOptions()
    record_options = record_options or RecordOptions()
    bounds = record_options.bounds()
    given: dict[str, Any] = {
        "kubeconfig": kubeconfig,
        "context": context,
        "namespace": namespace,
        "scheduler_name": scheduler_name,
    }
    given |= {"config": config, "dry_run": dry_run, **vars(rest_options), **vars(record_options)}
    given["log_format"] = log_format
    options = {one.key: one for one in _options(given, os.environ)}
    settings = RunSettings(
        namespace=options["--namespace"].value,
        scheduler_names=scheduler_name or RUN.scheduler_names,
        queues=_queues(config) if config is not None else "",
        dry_run=dry_run,
    )
    try:
        access = Access.load(str(kubeconfig) if kubeconfig is not None else None, context or None)
        if print_config:
            return asyncio.run(_show(access, settings, list(options.values()), as_json=json))
        levels = Levels()
        with (
            process_log(sys.stderr, form=log_format or "text", levels=levels) as log,
            recording(record_options.record, *bounds, log, anonymous=record_options.anonymous) as recorder,
        ):
            raise_limit()
            following = None
            if rest_options.follow and rest_options.rest != ():
                following = follower(None if record_options.anonymous else record_options.record, log)
            return _run_on_uvloop(_run(access, settings, rest_options, (recorder, following), log, levels))
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
    defaults = {"namespace": RUN.namespace, "scheduler_name": NAMES, "rest": REST_ADDRESS}
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


def _queues(path: Path) -> str:
    """Return the queue configuration in a file, which is one itself or a ConfigMap."""
    try:
        return queue_source(read_text(path, "a queue configuration"), str(path)).text
    except ConfigError as error:
        raise CommandError(str(error)) from None


def _pem(path: Path | None, what: str) -> bytes:
    return pem_in(read_text(path, what), str(path), what) if path is not None else b""


def _tokens(path: Path | None) -> tuple[str, ...]:
    return tokens_in(read_text(path, "tokens"), str(path)) if path is not None else ()


async def _run(
    access: Access,
    settings: RunSettings,
    rest: RestOptions,
    logs: tuple[Recorder | None, Follower | None],
    log: Log,
    levels: Levels,
) -> int:
    web, security = rest.web(), rest.security()
    requests = Requests()
    async with (
        Client(access, requests=requests) as reading,
        Client(access, connections=64, requests=requests) as binding,
        Client(access, requests=requests) as writing,
    ):
        await access.headers()  # what cannot say who we are ends at once
        runner = Runner(
            Clients(reading, binding, writing, requests),
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


__all__ = ["kube"]
