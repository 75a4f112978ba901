"""Reading the settings file: a YAML mapping of keys to texts, a manifest of a Kubernetes ConfigMap, or a folder of one.

Under `binaryData` of a ConfigMap only keys that end with `.gz` count: the value is gunzipped, the ending is removed
from the key, and the value replaces one under `data` (docs/spec/config.md, section 12). The folder in which Kubernetes
mounts a ConfigMap has a file for each key; names that begin with a dot belong to Kubernetes itself, and are skipped.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from licorne.config.nodes import MAX_BYTES, YamlNode, behind, compose
from licorne.config.problems import Notes
from licorne.daemon.regular import NoFileError, regular_bytes
from licorne.service.settings import SettingError

_MANIFEST = frozenset(("apiVersion", "kind", "metadata", "data", "binaryData", "immutable"))


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


class Entry(msgspec.Struct, frozen=True):
    """A key, its text, and its origin, such as FILE:LINE."""

    key: str
    text: str
    origin: str


def read_bounded(path: Path, what: str) -> str:
    """Read a text file. `what` names its expected content in errors.

    Raises:
        SettingError: there is no such file, it cannot be read, is too large, or is not UTF-8.
    """
    return _decoded(path, _bytes_of(path, what), what)


def _bytes_of(path: Path, what: str) -> bytes:
    try:
        data = regular_bytes(path)
    except FileNotFoundError:
        raise SettingError(f"{path}: no such file; give the path of {what}") from None
    except IsADirectoryError:
        raise SettingError(f"{path}: is a folder; give the path of {what}") from None
    except NoFileError:
        raise SettingError(f"{path}: is no regular file; give the path of {what}") from None
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise SettingError(f"{path}: is larger than {MAX_BYTES} bytes; is it {what}?")
    return data


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
    text = read_bounded(path, "a settings file")
    notes = Notes(str(path))
    root = compose(text, notes)
    if notes.fault_count:
        first = notes.report().faults[0]
        raise SettingError(f"{path}:{first.line}:{first.column}: cannot be read as YAML [{first.rule}]")
    if root is None or (root.kind == "scalar" and not root.text):
        return []
    pairs = {key.text: (key, value) for key, value in _pairs(path, root)}
    if "data" not in pairs and "binaryData" not in pairs:
        return [_entry(path, key, value) for key, value in pairs.values()]
    for key, _ in pairs.values():
        if key.text not in _MANIFEST:
            raise _fault(path, key, f"{key.text[:100]!r}: no part of a ConfigMap")
    found: list[Entry] = []
    if "data" in pairs:
        found += [_entry(path, key, value) for key, value in _pairs(path, pairs["data"][1])]
    if "binaryData" in pairs:
        for key, value in _pairs(path, pairs["binaryData"][1]):
            if key.text.endswith(".gz"):
                found.append(_unpacked(path, key, value))
    return found


def _pairs(path: Path, node: YamlNode) -> Iterator[tuple[YamlNode, YamlNode]]:
    """List the keys and values of a mapping; an empty node counts as an empty mapping."""
    node = behind(node)
    if node.kind == "scalar" and node.plain and node.text in ("", "null", "~"):
        return
    if node.kind != "mapping":
        raise _fault(path, node, "must be a mapping of keys to texts")
    seen = set()
    for key, value in zip(node.items[::2], node.items[1::2], strict=True):
        if key.kind != "scalar":
            raise _fault(path, key, "a key must be a text")
        if key.text in seen:
            raise _fault(path, key, f"{key.text[:100]!r}: is there twice")
        seen.add(key.text)
        yield key, behind(value)


def _entry(path: Path, key: YamlNode, value: YamlNode) -> Entry:
    origin = f"{path}:{key.line}"
    if value.kind == "scalar":
        return Entry(key.text, value.text, origin)
    if value.kind == "sequence" and all(behind(item).kind == "scalar" for item in value.items):
        return Entry(key.text, ",".join(behind(item).text for item in value.items), origin)
    block = " (write `|` behind the colon)" if key.text.endswith(".yaml") else ""
    raise _fault(path, value, f"{key.text[:100]}: must be a text{block}")


def _unpacked(path: Path, key: YamlNode, value: YamlNode) -> Entry:
    name = key.text.removesuffix(".gz")
    try:
        packed = base64.b64decode("".join(value.text.split()), validate=True)
        data = gunzip(packed)
    except (binascii.Error, ValueError, zlib.error):
        raise _fault(path, key, f"{key.text[:100]}: must be base64 of gzip, of at most {MAX_BYTES} bytes") from None
    return Entry(name, _decoded(f"{path}:{key.line}", data, "text"), f"{path}:{key.line}")


def gunzip(packed: bytes) -> bytes:
    """Unpack a complete gzip file of one member.

    Raises:
        ValueError, zlib.error: the bytes are no such file, or it holds more than `MAX_BYTES` (4 MiB).
    """
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    data = unpacking.decompress(packed, MAX_BYTES + 1)
    if len(data) > MAX_BYTES or not unpacking.eof:
        raise ValueError("too long, or cut")
    return data


def _folder(path: Path) -> list[Entry]:
    plain, packed = [], []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or not file.is_file():
            continue
        if file.name.endswith(".gz"):
            try:
                text = _decoded(file, gunzip(_bytes_of(file, "a setting")), "text")
            except (ValueError, zlib.error) as error:
                reason = str(error) if isinstance(error, SettingError) else "must be gzip"
                raise SettingError(f"{file}: {reason}, of at most {MAX_BYTES} bytes") from None
            packed.append(Entry(file.name.removesuffix(".gz"), text, str(file)))
        else:
            text = read_bounded(file, "a setting")
            plain.append(Entry(file.name, text if file.suffix == ".yaml" else text.rstrip("\r\n"), str(file)))
    return plain + packed


def _fault(path: Path, node: YamlNode, rule: str) -> SettingError:
    return SettingError(f"{path}:{node.line}:{node.column}: {rule}")


__all__ = ["Entry", "Mark", "gunzip", "mark", "read_bounded", "read_settings_file"]
