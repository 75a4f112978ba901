"""Programs that print a token: what a kubeconfig names under `exec`, as the tools of cloud providers make it.

A token is used until it expires or is refused; then the program runs once, however many calls wait for it. A program that
fails, or whose tokens are refused at once, runs less and less often.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from .errors import KubeconfigError

if TYPE_CHECKING:
    from lightkube.config.models import UserExec

EXEC_S: Final = 60.0
"""How long a program may take."""
KILLED_S: Final = 1.0
"""How long a program that was killed may take to close its output."""
TOKEN_S: Final = 60.0
"""How long a token that does not say when it expires is taken for current."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""How long a program does not run after it has failed, or was needed twice in a row: at first and at most; it doubles."""
CALM_S: Final = 30.0
"""A program that could have run for so long, and was not needed, is waited for no more."""
EARLY_S: Final = 10.0
"""How long before its end a token is renewed."""
VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class _Status(msgspec.Struct, rename="camel"):
    token: str
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct):
    status: _Status


class TokenPlugin:
    """The token of a program.

    Parameters:
        program: as the kubeconfig names it.
        clock: returns a time in seconds that never goes back.

    Raises:
        KubeconfigError: it speaks a version of the protocol that is not known.
    """

    def __init__(self, program: UserExec, *, clock: Callable[[], float] = time.monotonic) -> None:
        if program.apiVersion not in VERSIONS:
            raise KubeconfigError(f"exec: {program.apiVersion!r}: only {' and '.join(VERSIONS)} are supported")
        self._program = program
        self._token = ""
        self._until = 0.0
        self._made = 0
        self._clock = clock
        self._not_before = -math.inf
        self._in_a_row = 0
        self._failure = ""
        self._one_at_a_time = asyncio.Lock()

    async def token(self, *, renew: bool) -> str:
        """Return the token, the last one again while the program must not run. `renew`: the last one was refused.

        Raises:
            KubeconfigError: the program failed, took too long, or printed something else; or it did so the last time,
                and must not run yet.
        """
        made = self._made
        if renew or time.time() >= self._until:
            async with self._one_at_a_time:
                if made == self._made:  # nobody has renewed it while we waited
                    await self._renew_in_time()
        return self._token

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
        wait_s = FIRST_WAIT_S * 2 ** (self._in_a_row - 1) if self._in_a_row else 0.0
        self._not_before = self._clock() + min(wait_s, LONGEST_WAIT_S)
        self._in_a_row = min(self._in_a_row + (not failure), 10)
        self._failure = failure
        if failure:
            raise KubeconfigError(failure)

    async def _renew(self) -> None:
        said = await self._run()
        ends = said.expiration_timestamp
        self._token = said.token.strip()
        self._until = time.time() + TOKEN_S if ends is None else ends.timestamp() - EARLY_S
        self._made += 1

    async def _run(self) -> _Status:
        program = self._program
        info = {"apiVersion": program.apiVersion, "kind": "ExecCredential", "spec": {"interactive": False}}
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
            return msgspec.json.decode(out, type=_Credential).status
        except TimeoutError:
            raise KubeconfigError(f"{program.command} took longer than {EXEC_S:.0f} s to print a token") from None
        except (OSError, msgspec.DecodeError) as error:
            hint = f"; {program.installHint.strip()}" if program.installHint else ""
            raise KubeconfigError(f"{program.command} printed no token: {error}{hint}") from None
