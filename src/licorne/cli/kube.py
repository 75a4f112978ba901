"""`licorne kube`: runs licorne as a scheduler of a Kubernetes cluster.

The work is in `licorne.cli.scheduling`, which needs the extra `kube`; the help does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from licorne._extras import require
from licorne.cli.common import Argument, UsageError
from licorne.config.manifest import NAMESPACE, SCHEDULER_NAMES
from licorne.core.base import setting_kinds as kinds
from licorne.host.setting_table import REST_ADDRESS, SETTINGS

SERVE = {setting.option: setting for setting in SETTINGS if setting.option}
"""Settings of `licorne serve` by their option: what means the same here has their words and defaults."""


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
        Parameter(help=f"{RECORD_MIB.what} [default: {RECORD_MIB.default}]", validator=validators.Number(gte=1)),
    ] = None
    record_age: Annotated[Seconds | None, Parameter(help=f"{RECORD_AGE.what} [default: {RECORD_AGE.default}]")] = None
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
        Parameter(help=f"Where the ConfigMaps yunikorn-defaults and yunikorn-configs are. [default: {NAMESPACE}]"),
    ] = None,
    scheduler_name: Annotated[
        tuple[str, ...] | None,
        Parameter(
            help=f"Schedule pods that name this scheduler. May be repeated. [default: {','.join(SCHEDULER_NAMES)}]",
            negative="",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        Parameter(help="Queue configuration (queues.yaml, or a ConfigMap) in place of that of the ConfigMaps."),
    ] = None,
    spread_defaults: Annotated[
        Path | None,
        Parameter(
            help="Topology spread of pods that say none: a file with defaultConstraints as kube-scheduler has them, "
            "or system for those that it has itself."
        ),
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
        Literal["text", "json"] | None,
        Parameter(help=f"{SERVE['log-format'].what} [default: {SERVE['log-format'].default}]"),
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
    require("kube")
    from licorne.cli.scheduling import run  # noqa: PLC0415  # its packages may be missing

    given = {
        "kubeconfig": kubeconfig,
        "context": context,
        "namespace": namespace,
        "scheduler_name": scheduler_name,
        "config": config,
        "spread_defaults": spread_defaults,
        "dry_run": dry_run,
    }
    rest, record = rest_options or RestOptions(), record_options or RecordOptions()
    return run(given, rest, record, log_format, print_config=print_config, as_json=json)
