"""`licorne health`: asks a service whether it serves, for containers and scripts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from licorne._extras import require
from licorne.cli.common import CommandError, read_text, say
from licorne.cli.parameters import DURATION
from licorne.si.rpc import DEFAULT_ADDRESS


def health(
    address: str = DEFAULT_ADDRESS,
    /,
    *,
    tls_ca: Path | None = None,
    server_name: str = "",
    timeout: Annotated[float, DURATION, Parameter(validator=validators.Number(gt=0))] = 5.0,
) -> int:
    """Ask a service whether it serves, by gRPC's own health check; no token is needed.

    Exit status: 0 if it serves, 1 if it does not, or cannot be reached.

    Parameters
    ----------
    address
        HOST:PORT or unix:PATH.
    tls_ca
        Certificate to know the service by, PEM: its authority's, or its own if it has signed itself. Without it: no TLS.
    server_name
        The name in the service's certificate, if it is not the host's of the address.
    timeout
        How long to wait, in seconds or like 1m30s.
    """
    require("service")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when gRPC is first imported, whose lines are no output
    import grpc  # noqa: PLC0415  # the help needs none of these
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: PLC0415

    from licorne.grpc.client.remedies import explained  # noqa: PLC0415

    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    if tls_ca is None:
        channel = grpc.insecure_channel(address, options=options)
    else:
        roots = read_text(tls_ca, "a certificate").encode()
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options=options)
    with channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=timeout)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            why = explained(error.details() or "", tls=tls_ca is not None)
            raise CommandError(f"{address}: {code.name.lower().replace('_', ' ')}: {why}") from None
    state = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    say(state.lower().replace("_", " "))
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1
