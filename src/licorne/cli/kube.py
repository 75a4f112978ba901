"""`licorne kube`: runs licorne as a scheduler of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from licorne._extras import require
from licorne.cli.common import CommandError, read_text

require("kube")

from licorne.daemon.log import Format, Levels, Log
from licorne.daemon.process_log import process_log
from licorne.daemon.secrets import pem_in, tokens_in
from licorne.daemon.security import Security, SecurityError
from licorne.kube.api import Access, Client, KubeconfigError
from licorne.kube.configmaps import ConfigurationError
from licorne.kube.runner import Clients, Runner, RunSettings
from licorne.web.rest import Access as RestAccess
from licorne.web.server import Web


def kube(
    *,
    kubeconfig: Annotated[Path | None, Parameter(help="File that says where the cluster is, and who we are.")] = None,
    context: Annotated[str, Parameter(help="Context of the kubeconfig; not given: the current one.")] = "",
    namespace: Annotated[str, Parameter(help="Where the ConfigMaps yunikorn-defaults and yunikorn-configs are.")] = "",
    scheduler_name: Annotated[
        tuple[str, ...], Parameter(help="Schedule pods that name this scheduler. May be repeated.")
    ] = ("yunikorn",),
    config: Annotated[
        Path | None, Parameter(help="Queue configuration (queues.yaml) in place of that of the ConfigMaps.")
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(
            negative="",
            help="Write nothing; follow what another scheduler decides, and tell what licorne would have done otherwise.",
        ),
    ] = False,
    rest: Annotated[tuple[str, ...], Parameter(help="Where to listen for REST: HOST:PORT. May be repeated.")] = (
        "127.0.0.1:9080",
    ),
    tls_cert: Annotated[Path | None, Parameter(help="Certificate of REST, PEM.")] = None,
    tls_key: Annotated[Path | None, Parameter(help="Its private key, PEM.")] = None,
    tls_client_ca: Annotated[
        Path | None, Parameter(help="Take only clients with a certificate of this authority, PEM.")
    ] = None,
    rest_token_file: Annotated[
        Path | None, Parameter(help="File with tokens, one a line; only who sends one changes anything by REST.")
    ] = None,
    rest_read_token_file: Annotated[
        Path | None, Parameter(help="File with tokens, one a line, with which all may be read by REST.")
    ] = None,
    insecure: Annotated[bool, Parameter(negative=(), help="Listen beyond loopback without protection.")] = False,
    log_format: Annotated[Format, Parameter(help="One line of text, or one JSON object, for each event.")] = "text",
) -> int:
    """Schedule the pods of a Kubernetes cluster that ask for it, until SIGTERM or SIGINT.

    Without --kubeconfig: the file of KUBECONFIG, else what a pod finds in its own file system, else ~/.kube/config. The
    namespace of the ConfigMaps is that of the variable NAMESPACE, else `default`. Beyond loopback REST wants TLS and either
    tokens or certificates of clients, or --insecure.
    """
    settings = RunSettings(
        namespace=namespace or os.environ.get("NAMESPACE", "") or "default",
        scheduler_names=scheduler_name,
        queues=read_text(config, "a queue configuration") if config is not None else "",
        dry_run=dry_run,
    )
    try:
        security = Security(
            certificate=_pem(tls_cert, "a certificate"),
            key=_pem(tls_key, "a private key"),
            client_ca=_pem(tls_client_ca, "the certificate of an authority"),
            insecure=insecure,
        )
        tokens = RestAccess(read_tokens=_tokens(rest_read_token_file), admin_tokens=_tokens(rest_token_file))
        web = Web(addresses=rest, access=tokens) if rest else None
        access = Access.load(str(kubeconfig) if kubeconfig is not None else None, context or None)
        with process_log(sys.stderr, form=log_format, levels=Levels()) as log:
            return asyncio.run(_run(access, settings, web, security, log))
    except (KubeconfigError, ConfigurationError, SecurityError) as error:
        raise CommandError(str(error)) from None


def _pem(path: Path | None, what: str) -> bytes:
    return pem_in(read_text(path, what), str(path), what) if path is not None else b""


def _tokens(path: Path | None) -> tuple[str, ...]:
    return tokens_in(read_text(path, "tokens"), str(path)) if path is not None else ()


async def _run(access: Access, settings: RunSettings, web: Web | None, security: Security, log: Log) -> int:
    async with Client(access) as reading, Client(access, connections=64) as binding, Client(access) as writing:
        await access.headers()  # what cannot say who we are ends at once
        runner = Runner(Clients(reading, binding, writing), settings, web=web, security=security, log=log)
        with runner.memory.running():
            await _run_until_signal(runner)
        figures = {"bindings": runner.binder.sent, "other_writes": runner.writer.written}
        log.info("ended", allocations=runner.decided, **figures)
        if runner.shadow is not None:
            log.info("compared with the other scheduler", **runner.shadow.counts)
    return 0


async def _run_until_signal(runner: Runner) -> None:
    work = asyncio.create_task(runner.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


__all__ = ["kube"]
