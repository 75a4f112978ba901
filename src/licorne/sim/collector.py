"""Keep Python's garbage collector nearly idle during a simulation.

Deciding makes few cycles and many live objects, and the collector walks all live objects again and again: by default that
takes a third of the time. Asks, decisions and releases leave no cycles (`tests/service/test_memory.py`), only rare
operations do, so a full collection finds next to nothing. Objects that live at the start are exempted (`gc.freeze`), and
new ones are scanned only when there are so many that garbage could matter. A host of the scheduler with as much load
should do the same. All is undone afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (5_000_000, 1, 1)
"""Containers made and not yet freed before a collection: a million pods are four million of them."""


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Keep the collector nearly idle until the context is left."""
    before = gc.get_threshold()
    gc.collect(1)
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
