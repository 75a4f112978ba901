"""How large a recording may become."""

from __future__ import annotations

import msgspec


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a recording.

    `bytes_max`: bytes on the disk. The oldest runs are removed before there are more, then the beginning of the run that
    is being recorded, up to a checkpoint; where there is none, the run is not recorded any further. `age_max_s`: how many
    seconds a run is kept after its end, and the beginning of one that goes on. `queue_bytes`: bytes that may wait to be
    written, before the run ends as the disk is too slow. `checkpoint_bytes`: after how many bytes another process writes a
    checkpoint of the run, unless the last one has more than three times as many (`checkpointer.is_due`); 0: there are none.
    """

    bytes_max: int = 1 << 30
    age_max_s: float = 30 * 24 * 3600.0
    queue_bytes: int = 64 << 20
    checkpoint_bytes: int = 0
