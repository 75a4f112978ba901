"""Reading regular files, and nothing else: a pipe or a device under the same path might block the reader for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from licorne.config.nodes import MAX_BYTES


class NoFileError(OSError):
    """The path is that of something other than a regular file."""


def regular_bytes(path: Path) -> bytes:
    """Read a file, up to `MAX_BYTES + 1` bytes, so that the caller can tell whether it is longer than allowed.

    Raises:
        NoFileError: the path is that of a pipe, a socket or a device.
        OSError: the file cannot be read.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer, before anything can be checked.
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
