"""A workload captured from a running YuniKorn or licorne by its REST API, which is only read.

    capture, Options   reads until it is stopped, and writes the workload file: `capture(server, Path("week.jsonl"))`
    Captured           what has been written, and notes of what is not known

Modules: `capturing` asks again and again, and survives lost connections; `events` reads the event stream in a thread of its
own, or else batches of events; `tracker` makes the lines of the workload of what both show, and counts what they do not
show; `spool` keeps the lines on the disk, puts them in order and writes the file.

Two sources complete each other. Polling shows everything about what is there at that moment: users, amounts, priorities,
tags. Events have exact times, also of pods that lived between two polls, but neither users nor priorities.
"""

from __future__ import annotations

from .capturing import Captured, Options, capture

__all__ = ["Captured", "Options", "capture"]
