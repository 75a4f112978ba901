"""Files are read only if they are files: a pipe or a device in their place would keep the reader waiting for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from licorne.config.nodes import MAX_BYTES


class NoFileError(OSError):
    """What has this path is no regular file."""


def regular_bytes(path: Path) -> bytes:
    """What is in a file, up to a byte more than the longest that is taken (`MAX_BYTES`).

    Raises:
        NoFileError: it is a pipe, a socket or a device.
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise NoFileError(errno.EINVAL, "is no regular file", str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


__all__ = ["NoFileError", "regular_bytes"]
