"""Keeps two processes from scheduling at once: only the holder of a Lease (`coordination.k8s.io/v1`) writes.

The rules are those of client-go's leader election. The holder renews the Lease every `RENEW_S`. Another process takes it
when it names nobody, or has not changed for `DURATION_S` by that process's own clock, so times of two machines are never
compared. Each change is made to the version that was read, so of two processes that try, one succeeds.

The holder counts as such for `HELD_S` from before it has sent a renewal that was confirmed, by a clock that goes on while
the process is stopped. So it writes nothing any more seconds before another process may take the Lease, and these seconds
are for requests that were under way. While renewals fail nothing is written; when one succeeds the process goes on, for
nobody else can have written: the Lease has named this process all the time. If it names another one, it is lost for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import uuid
from collections.abc import Callable
from typing import Any, Final

from licorne.host.log import Log
from licorne.kube.api import ApiError, Client, UnansweredError
from licorne.kube.api.kinds import LEASES
from licorne.kube.objects import Lease
from licorne.kube.objects.meta import micro_time
from licorne.kube.results import Results

NAME: Final = "licorne"
DURATION_S: Final = 15
HELD_S: Final = 10.0
RENEW_S: Final = 2.0
CALL_S: Final = 5.0
"""A request about the Lease that takes longer is given up, and made anew."""
NOT_FOUND: Final = 404


class LeaseLostError(Exception):
    """Another process has the Lease, or it was deleted: this one must not write any more."""


class HeldLease:
    """The Lease, as this process has it or waits for it.

    Parameters:
        client: sends the calls.
        namespace: where the Lease is.
        clock: returns a time in nanoseconds that never goes back, and goes on while the process is stopped.
        wall: returns the time in seconds since 1970, for people who look at the Lease.
        log: is told who has it.
        results: told what becomes of each attempt.

    `holder` is the process that the Lease named last; "": none.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        clock: Callable[[], int],
        wall: Callable[[], float],
        log: Log,
        results: Results,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._wall = wall
        self._log = log.bind(lease=f"{namespace}/{NAME}")
        self._results = results
        self.identity = f"{platform.node()}_{uuid.uuid4()}"
        self.holder = ""
        self._until_ns = 0
        self._lapses = 0
        self._seen = "", 0
        """The version of another process's Lease, and since when it has been that one."""
        self._renewed = asyncio.Event()

    def held(self) -> bool:
        """Return whether no other process can have taken the Lease."""
        return self._clock() < self._until_ns

    def lapse(self) -> None:
        """Stop counting as the holder until the next renewal: called after a pause that `clock` may have missed."""
        self._until_ns = 0
        self._lapses += 1

    async def regained(self) -> None:
        """Wait until the Lease is held."""
        while not self.held():
            self._renewed.clear()
            await self._renewed.wait()

    async def take(self) -> None:
        """Wait until this process has the Lease."""
        while True:
            if await self.attempt():
                return
            await asyncio.sleep(RENEW_S)

    async def keep(self) -> None:
        """Renew the Lease until cancelled; raises LeaseLostError."""
        while True:
            await asyncio.sleep(RENEW_S)
            await self.attempt()

    async def attempt(self) -> bool:
        """Take the Lease if that is possible, or renew it; return whether this process has it.

        Raises:
            LeaseLostError: this process had it, and another one has it now, or none.
        """
        began_ns, lapses = self._clock(), self._lapses
        try:
            async with asyncio.timeout(CALL_S):
                found = await self._find()
                if not self._may_write(found):
                    return False
                await self._write(found)
        except (ApiError, UnansweredError, TimeoutError) as error:
            unanswered = UnansweredError(f"no answer within {CALL_S:.0f} s")
            told = unanswered if isinstance(error, TimeoutError) else error
            self._results.failed("lease", f"{self._namespace}/{NAME}", told)
            return False
        self._results.done("lease")
        if self.holder not in ("", self.identity):
            self._log.info("the lease is taken over", before=self.holder)
        self.holder = self.identity
        if lapses == self._lapses:  # else there was a pause while the request was under way
            self._until_ns = began_ns + int(HELD_S * 1e9)
            self._renewed.set()
        return True

    async def release(self) -> None:
        """Let another process have the Lease at once; only when nothing is written any more, nor is under way."""
        self.lapse()
        with contextlib.suppress(ApiError, UnansweredError, TimeoutError):
            async with asyncio.timeout(CALL_S):
                found = await self._find()
                if found is not None and found.spec.holder_identity == self.identity:
                    await self._patch(found, {"holderIdentity": None})

    async def _find(self) -> Lease | None:
        try:
            return await self._client.get(LEASES, self._namespace, NAME)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def _may_write(self, found: Lease | None) -> bool:
        """Return whether the Lease is this process's, or may be taken from another one."""
        holder = (found and found.spec.holder_identity) or ""
        if holder == self.identity:
            return True
        if self.holder == self.identity:
            self.lapse()
            raise LeaseLostError(f"the Lease {self._namespace}/{NAME} is lost: {holder or 'nobody'} has it now")
        if found is None or not holder:
            return True
        if holder != self.holder:
            text = "the lease names another process; this one waits until that releases it, or has not renewed it for a while"
            self._log.info(text, holder=holder, seconds=found.spec.lease_duration_seconds or DURATION_S)
            self.holder = holder
        if found.metadata.resource_version != self._seen[0]:
            self._seen = found.metadata.resource_version, self._clock()
        return self._clock() - self._seen[1] >= (found.spec.lease_duration_seconds or DURATION_S) * 1e9

    async def _write(self, found: Lease | None) -> None:
        now = micro_time(self._wall())
        fields: dict[str, Any] = {"holderIdentity": self.identity, "leaseDurationSeconds": DURATION_S, "renewTime": now}
        if found is None:
            meta = {"name": NAME, "namespace": self._namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
            await self._client.create(LEASES.path(self._namespace), {**body, "spec": {**fields, "acquireTime": now}})
            return
        if found.spec.holder_identity != self.identity:
            fields |= {"acquireTime": now, "leaseTransitions": found.spec.lease_transitions + 1}
        await self._patch(found, fields)

    async def _patch(self, found: Lease, fields: dict[str, Any]) -> None:
        meta = {"resourceVersion": found.metadata.resource_version}
        await self._client.patch(LEASES.path(self._namespace, NAME), {"metadata": meta, "spec": fields})
