"""Reading regular files up to a bound, and nothing else: a pipe or a device under a path might block the reader for ever."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

from licorne._bounded import DOCUMENT_BYTES

_OF_THE_SHELL: Final = ("/dev/fd/", "/dev/stdin")
"""Paths of what a shell has opened for this process, as for `<(command)`."""


class NoFileError(OSError):
    """The path is that of something other than a regular file."""


def opened(path: Path, *, from_shell: bool = False) -> BufferedReader:
    """Open a file to read its bytes. `from_shell`: it may be a pipe that a shell has opened for this process.

    Raises:
        NoFileError: the path is that of a pipe, a socket or a device.
        OSError: the file cannot be read.
    """
    # Without O_NONBLOCK, opening a pipe waits for a writer, before anything can be checked.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _require_file(path, os.fstat(descriptor).st_mode, from_shell=from_shell)
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _require_file(path: Path, mode: int, *, from_shell: bool) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or (from_shell and str(path).startswith(_OF_THE_SHELL))):
        raise NoFileError(errno.EINVAL, "is no regular file", str(path))


def file_bytes(path: Path, bytes_max: int = DOCUMENT_BYTES, *, from_shell: bool = False) -> bytes:
    """Read a file (`opened`). Raises OSError: it cannot be read, or has more bytes than `bytes_max`."""
    with opened(path, from_shell=from_shell) as file:
        data = file.read(bytes_max + 1) if os.fstat(file.fileno()).st_size <= bytes_max else None
    if data is None or len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"has more than {bytes_max:,} bytes", str(path))
    return data


def file_text(path: Path) -> str:
    """Read a text that people write, in UTF-8. Raises OSError as `file_bytes`, UnicodeDecodeError."""
    return file_bytes(path).decode()
