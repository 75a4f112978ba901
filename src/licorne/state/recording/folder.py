"""The folder of a recording: a manifest, and a folder for each run.

A run begins with a scheduler that knows nothing, at the registration of its only resource manager, and ends with the next
such registration, with the process, or where inputs were lost. So each run can be repeated without those before it. One
process at a time records into a folder.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from licorne._bounded import UNDECODABLE
from licorne._files import file_bytes
from licorne._version import __version__

FORMAT: Final = 1
KIND: Final = "licorne recording"
MANIFEST: Final = "manifest.json"
LOCK: Final = "lock"


_FAULTS: Final = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError
UNREADABLE: Final = (*_FAULTS, msgspec.MsgspecError)
"""What is raised where a recording, or a message in it, holds something else than licorne has written."""


class RecordingError(Exception):
    """A folder is no recording that can be used here; the text says why, and what to do."""


class Manifest(msgspec.Struct):
    """What makes a folder a recording: the format, and the version of licorne that began it."""

    kind: str
    format: int
    licorne: str


def is_recording(path: Path) -> bool:
    """Return whether a path is the folder of a recording."""
    return (path / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a recording.

    Raises:
        RecordingError: the folder is no recording, or one of a newer format.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(file_bytes(path), type=Manifest)
    except FileNotFoundError:
        raise RecordingError(f"{folder}: no recording, it has no {MANIFEST}; give a folder of --record") from None
    except (OSError, *UNDECODABLE) as error:
        raise RecordingError(f"{path}: cannot be read: {error}") from None
    if not re.fullmatch(r"[\w.+-]{1,64}", manifest.licorne):
        raise RecordingError(f"{path}: licorne: {manifest.licorne[:80]!r} is no version")
    if manifest.kind != KIND:
        raise RecordingError(f"{path}: kind: {manifest.kind!r}: must be {KIND!r}")
    if manifest.format > FORMAT:
        raise RecordingError(
            f"{path}: format {manifest.format}, of licorne {manifest.licorne}: this is licorne {__version__}, which knows "
            f"formats up to {FORMAT}; use licorne {manifest.licorne} or newer"
        )
    return manifest


def claim(folder: Path) -> int:
    """Make a folder ready for recording, and return the descriptor of its lock, which is held until it is closed.

    Raises:
        RecordingError: the folder cannot be used, holds something else, or is in use by another process.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RecordingError(f"{folder}: cannot record there: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _begin(folder)
    except BlockingIOError:
        os.close(lock)
        raise RecordingError(f"{folder}: another process records there; give each process a folder") from None
    except OSError as error:
        os.close(lock)
        raise RecordingError(f"{folder}: cannot record there: {error.strerror}") from None
    except RecordingError:
        os.close(lock)
        raise
    return lock


def _begin(folder: Path) -> None:
    """Write the manifest if the folder is empty, and check it if not."""
    if (folder / MANIFEST).exists():
        read_manifest(folder)
    elif any(each.name != LOCK for each in folder.iterdir()):
        raise RecordingError(f"{folder}: holds other files; give a folder that is empty or a recording")
    else:
        manifest = msgspec.json.format(msgspec.json.encode(Manifest(KIND, FORMAT, __version__)))
        write_in_one_step(folder / MANIFEST, manifest + b"\n")


def write_in_one_step(path: Path, data: bytes) -> None:
    """Write a file, which only its owner may read, so that no crash leaves half of it. Raises OSError."""
    new = path.with_name(f".{path.name}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        os.fsync(file.fileno())
    new.rename(path)


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of the runs, the oldest first."""
    return sorted(path for path in _named(folder, "run", r"\d{8}") if path.is_dir())


def segments_in(run: Path) -> list[Path]:
    """Return the files of a run, in their order."""
    return sorted(_named(run, "segment", r"\d{6}"))


def checkpoints_in(run: Path) -> list[Path]:
    """Return the files of the checkpoints of a run, the oldest first."""
    return sorted(_named(run, "checkpoint", r"\d{6}-\d{6}-\d{6}"))


def _named(folder: Path, kind: str, numbers: str) -> list[Path]:
    """Return what is in a folder under a name that a recorder gives; others that begin as such are passed over, and told once."""
    found = list(folder.glob(f"{kind}-*"))
    ours = [path for path in found if re.fullmatch(numbers, path.name.removeprefix(f"{kind}-"), re.ASCII)]
    if len(ours) < len(found):
        _tell(folder, tuple(sorted(path.name for path in set(found).difference(ours))[:10]))
    return ours


@lru_cache(maxsize=100)
def _tell(folder: Path, names: tuple[str, ...]) -> None:
    """Warn of files that a recorder does not name so and that are passed over; the last hundred warnings are not repeated."""
    text = f"{folder}: passed over, as a recorder gives no such names: {', '.join(map(repr, names))}"
    logging.getLogger("licorne.state.recording").warning(text)


def segment_number(segment: Path) -> int:
    """Return the number of a segment in its run."""
    return int(segment.name.removeprefix("segment-"))


def new_run(folder: Path) -> Path:
    """Make the folder of the next run; raises OSError as the file system does."""
    runs = runs_in(folder)
    number = int(runs[-1].name.removeprefix("run-")) + 1 if runs else 1
    path = folder / f"run-{number:08d}"
    path.mkdir(mode=0o700)
    return path
