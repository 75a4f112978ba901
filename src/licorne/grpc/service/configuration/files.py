"""Reading the settings file: YAML, as `licorne.config.manifest` reads it, or the folder in which Kubernetes mounts a ConfigMap.

Such a folder has a file for each key; names that begin with a dot belong to Kubernetes itself, and are skipped.
"""

from __future__ import annotations

from pathlib import Path

from licorne._files import NoFileError, file_bytes
from licorne.config import ConfigError
from licorne.config.manifest import Entry, gunzip, read_entries
from licorne.config.nodes import MAX_BYTES
from licorne.grpc.service.settings import SettingError

Mark = tuple[object, ...]


def mark(path: Path) -> Mark:
    """Return a value that changes when a file, or a file in a folder, does; empty if there is none."""
    try:
        if path.is_dir():
            return tuple((file.name, mark(file)) for file in sorted(path.iterdir()) if not file.name.startswith("."))
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_bounded(path: Path, what: str) -> str:
    """Read a text file. `what` names its expected content in errors.

    Raises:
        SettingError: there is no such file, it cannot be read, is too large, or is not UTF-8.
    """
    return _decoded(path, _bytes_of(path, what), what)


def _bytes_of(path: Path, what: str) -> bytes:
    try:
        return file_bytes(path, MAX_BYTES)
    except FileNotFoundError:
        raise SettingError(f"{path}: no such file; give the path of {what}") from None
    except IsADirectoryError:
        raise SettingError(f"{path}: is a folder; give the path of {what}") from None
    except NoFileError:
        raise SettingError(f"{path}: is no regular file; give the path of {what}") from None
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror or error}") from None


def _decoded(path: Path | str, data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SettingError(f"{path}: is not UTF-8 text (byte {error.start}); is it {what}?") from None


def read_settings_file(path: Path) -> list[Entry]:
    """Read the entries of a settings file or folder; a later entry of a key replaces an earlier one.

    Raises:
        SettingError: it cannot be read, or has none of the three forms; the text names file, line and column.
    """
    if path.is_dir():
        return _folder(path)
    try:
        return read_entries(read_bounded(path, "a settings file"), str(path))
    except ConfigError as error:
        fault = error.problems[0]
        rule = f" [{fault.rule}]" if fault.rule.startswith("yaml-") else ""
        raise SettingError(f"{path}:{fault.line}:{fault.column}: {fault.message}{rule}") from None


def _folder(path: Path) -> list[Entry]:
    plain, packed = [], []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        if file.name.endswith(".gz"):
            try:
                text = _decoded(file, gunzip(_bytes_of(file, "a setting")), "text")
            except ValueError as error:
                reason = str(error) if isinstance(error, SettingError) else "must be gzip"
                raise SettingError(f"{file}: {reason}, of at most {MAX_BYTES} bytes") from None
            packed.append(Entry(file.name.removesuffix(".gz"), text, str(file)))
        else:
            text = read_bounded(file, "a setting")
            plain.append(Entry(file.name, text if file.suffix == ".yaml" else text.rstrip("\r\n"), str(file)))
    return plain + packed
