"""Files that are there only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that only its owner may read, as FILE.part within the `with` block; at its end it is renamed.

    What was there before stays until then. After an error there is no FILE.part either.
    """
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


__all__ = ["whole_file"]
