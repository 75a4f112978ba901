"""The garbage collector's part in a simulation: little.

Deciding makes few cycles and many live objects, and Python's collector walks all live objects again and again: by
default it takes a third of the time. A host of the scheduler with as much to do would do the same as is done here:
what is alive at the start is set aside (`gc.freeze`), what is new is looked through once, while it is still in the
processor's cache, and what has survived that rarely again. All is undone afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (1_000, 1_000, 100)


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Collect rarely, and only what is made from now on."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
