"""Programs that print credentials: what a kubeconfig names under `exec`, as the tools of cloud providers make it.

A credential is a token, or a client certificate with its key, or both. It is used until it expires or is refused; then the
program runs once, however many calls wait for it. A program that fails, or whose credentials are refused at once, runs less
and less often.

The protocol is that of "client-go credential plugins" in the Kubernetes documentation. There is nobody at a terminal, so a
program that needs somebody (`interactiveMode: Always`) is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.kube.backoff import Backoff

from .errors import KubeconfigError

if TYPE_CHECKING:
    from lightkube.config.models import UserExec

EXEC_S: Final = 60.0
"""How long a program may take."""
KILLED_S: Final = 1.0
"""How long a program that was killed may take to close its output."""
BACKOFF: Final = Backoff(first_s=1.0, longest_s=60.0)
"""How long a program does not run after it has failed, or was needed twice in a row."""
CALM_S: Final = 30.0
"""A program that could have run for so long, and was not needed, is waited for no more."""
EARLY_S: Final = 10.0
"""How long before its end a credential is renewed."""
VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
KIND: Final = "ExecCredential"


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Printed(msgspec.Struct, rename="camel"):
    status: _Status
    api_version: str = ""
    kind: str = ""


class Credential(msgspec.Struct, frozen=True):
    """What says who we are: a token, or a certificate and its key in PEM, or both; what there is none of is empty."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""


class ExecPlugin:
    """The credentials of a program.

    Parameters:
        program: as the kubeconfig names it.
        interactive: its `interactiveMode`.
        cluster: what it is told of the cluster, because its `provideClusterInfo` asks for that; None: nothing.
        clock: returns a time in seconds that never goes back.

    Raises:
        KubeconfigError: it speaks a version of the protocol that is not known, or wants somebody at a terminal.
    """

    def __init__(
        self,
        program: UserExec,
        *,
        interactive: str = "IfAvailable",
        cluster: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if program.apiVersion not in VERSIONS:
            raise KubeconfigError(f"exec: {program.apiVersion!r}: only {' and '.join(VERSIONS)} are supported")
        if interactive not in ("Never", "IfAvailable"):
            why = "there is nobody at a terminal" if interactive == "Always" else "there is no such mode"
            hint = "say Never or IfAvailable, or use other credentials"
            raise KubeconfigError(f"exec: {program.command}: interactiveMode {interactive!r}: {why}; {hint}")
        self._program = program
        self._cluster = cluster
        self._credential = Credential()
        self._until = 0.0
        self._made = 0
        self._clock = clock
        self._not_before = -math.inf
        self._in_a_row = 0
        self._failure = ""
        self._one_at_a_time = asyncio.Lock()

    async def credential(self, *, renew: bool) -> Credential:
        """Return the credential, the last one again while the program must not run. `renew`: the last one was refused.

        Raises:
            KubeconfigError: the program failed, took too long, or printed something else; or it did so the last time,
                and must not run yet.
        """
        made = self._made
        if renew or time.time() >= self._until:
            async with self._one_at_a_time:
                if made == self._made:  # nobody has renewed it while we waited
                    await self._renew_in_time()
        return self._credential

    async def _renew_in_time(self) -> None:
        """Run the program, unless it is too early for that."""
        now = self._clock()
        if now < self._not_before:
            if self._failure:
                raise KubeconfigError(self._failure)
            return
        if now >= self._not_before + CALM_S:
            self._in_a_row = 0
        failure = ""
        try:
            await self._renew()
        except KubeconfigError as error:
            failure = str(error)
        self._in_a_row += bool(failure)
        self._not_before = self._clock() + (BACKOFF.wait_s(self._in_a_row) if self._in_a_row else 0.0)
        self._in_a_row += not failure
        self._failure = failure
        if failure:
            raise KubeconfigError(failure)

    async def _renew(self) -> None:
        said = await self._run()
        ends = said.expiration_timestamp
        self._credential = self._read(said)
        self._until = math.inf if ends is None else ends.timestamp() - EARLY_S
        self._made += 1

    def _read(self, said: _Status) -> Credential:
        token = said.token.strip()
        texts = said.client_certificate_data.strip(), said.client_key_data.strip()
        if not token and not any(texts):
            raise self._useless("neither a token nor a certificate")
        if any(texts) and not all(texts):
            raise self._useless("a certificate without its key, or the other way round")
        return Credential(token, texts[0].encode(), texts[1].encode())

    def _useless(self, why: str) -> KubeconfigError:
        hint = f"; {self._program.installHint.strip()}" if self._program.installHint else ""
        return KubeconfigError(f"{self._program.command} printed no credential: {why}{hint}")

    async def _run(self) -> _Status:
        program = self._program
        spec = {"interactive": False} | ({} if self._cluster is None else {"cluster": self._cluster})
        info = {"apiVersion": program.apiVersion, "kind": KIND, "spec": spec}
        environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        environment |= {one.name: one.value for one in program.env or ()}
        try:
            async with asyncio.timeout(EXEC_S):
                process = await asyncio.create_subprocess_exec(
                    program.command,
                    *(program.args or ()),
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                try:
                    out, err = await process.communicate()
                except BaseException:
                    process.kill()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(KILLED_S):
                            await process.communicate()
                    raise
            if process.returncode:
                said = err.decode(errors="replace")[:500].strip()
                raise KubeconfigError(f"{program.command} ended with {process.returncode}: {said}")
            printed = msgspec.json.decode(out, type=_Printed)
        except TimeoutError:
            raise KubeconfigError(f"{program.command} took longer than {EXEC_S:.0f} s to print a credential") from None
        except (OSError, *UNDECODABLE) as error:
            raise self._useless(str(error)) from None
        if (printed.api_version, printed.kind) != (program.apiVersion, KIND):
            wanted = f"{KIND} {program.apiVersion}"
            raise self._useless(f"{printed.kind} {printed.api_version}, where {wanted} was asked for")
        return printed.status
