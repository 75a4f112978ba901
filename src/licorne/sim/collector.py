"""The garbage collector's part in a simulation: next to none.

Deciding makes few cycles and many live objects, and Python's collector walks all live objects again and again: by
default it takes a third of the time. Asks, decisions and releases leave no cycles behind
(`tests/service/test_memory.py`), only what is seldom does, so that there is next to nothing to find. What is alive at the
start is set aside (`gc.freeze`), and what is new is looked through when so much of it has come that garbage could matter.
A host of the scheduler with as much to do would do the same. All is undone afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (5_000_000, 1, 1)
"""Containers that came and are not gone, before they are looked through: a million pods are four million of them."""


@contextmanager
def quiet_collector() -> Iterator[None]:
    """Look through what is made from now on hardly ever."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
