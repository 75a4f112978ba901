"""Recording in a long-running process, with what becomes of it in the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from licorne.host.log import Log
from licorne.host.setting_table import MIB
from licorne.state.recording import Bounds, Names, Recorder

CHECKPOINT_BYTES = MIB // 2
"""Bytes of a recording after which it gets a checkpoint: some 8,000 to 40,000 decisions, a second to repeat at most."""


@contextmanager
def recording(
    folder: Path | None, mib: int, age_s: float, log: Log, *, anonymous: bool = False
) -> Iterator[Recorder | None]:
    """Record into a folder within the `with` block, and log what becomes of it. None: nothing is recorded.

    `anonymous`: digests are written in place of names of users and groups.

    Raises:
        RecordingError: the folder cannot be used.
    """
    if folder is None:
        yield None
        return

    def stopped(reason: str) -> None:
        log.error(
            "nothing is recorded any more, until a resource manager registers anew", folder=str(folder), reason=reason
        )

    names = Names() if anonymous else None
    bounds = Bounds(bytes_max=mib * MIB, age_max_s=age_s, checkpoint_bytes=CHECKPOINT_BYTES)
    recorder = Recorder(folder, bounds, stopped, names)
    log.info("recording", folder=str(folder), mib_max=mib, anonymous=anonymous)
    try:
        yield recorder
    finally:
        done = recorder.close()
        counts = recorder.counts
        log.info("recorded", folder=str(folder), bytes=counts.bytes, allocations=counts.allocations, complete=done)
