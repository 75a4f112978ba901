"""Files that have their name only when they are complete.

Until then a file is written beside its place, with `.part` after its name, and removed if anything goes wrong: after an error,
Ctrl-C or SIGTERM, which the command `licorne` makes an exception. So nobody takes the rows up to an interruption for all of
them, and what had the name before stays. Only SIGKILL, or a machine that fails, leaves the part.

What is no ordinary file, such as a pipe, is written directly.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast


@contextmanager
def finished_file(path: Path) -> Iterator[Path]:
    """Yield the name under which a file is written; afterwards the file has its own name, or after an error none."""
    if path.exists() and not path.is_file():
        yield path
        return
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def written(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file for writing (`.gz`: compressed), which gets its name if the `with` block ends without an error.

    `mode` says who may read it.

    Raises:
        OSError: the file cannot be written.
    """
    with finished_file(path) as part, opened(part, path, mode) as stream:
        if not path.name.lower().endswith(".gz"):
            yield stream
            return
        # Gzip would store a name and the time; without them equal contents are equal files.
        with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
            yield cast("IO[bytes]", packed)


def opened(part: Path, path: Path, mode: int = 0o666) -> IO[bytes]:
    """Open the part of a file for writing. Raises OSError, with the name of the file itself."""
    try:
        return open(part, "wb", opener=lambda name, flags: os.open(name, flags, mode))
    except OSError as error:
        error.filename = str(path)  # the name that the user knows
        raise
