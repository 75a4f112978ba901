"""Reading settings, and the queue configurations among them, out of the forms that Kubernetes gives them.

These are a ConfigMap, a list of ConfigMaps as `kubectl get -o yaml` prints it, or as several documents of a file, and a plain
mapping of keys to texts. Of a list, `yunikorn-defaults` and `yunikorn-configs` count, and of a key in both the value of `yunikorn-configs`. Under
`binaryData` only keys that end with `.gz` count: the value is gunzipped, the ending is removed from the key, and the value
replaces one under `data` (docs/spec/config.md, section 12).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from licorne._bounded import unpacked
from licorne.config.nodes import MAX_BYTES, YamlNode, behind, compose, documents
from licorne.config.problems import ConfigError, Notes, Problem, Spot
from licorne.config.reader import ConfigReader, LimitError

GZIP: Final = b"\x1f\x8b"
"""How a gzip file begins."""
SCHEDULER_NAMES: Final = ("yunikorn",)
"""The schedulers that pods name which licorne schedules, by default: YuniKorn's."""
NAMESPACE: Final = "default"
"""Where the ConfigMaps of settings are by default."""
OVERLAID: Final = ("yunikorn-defaults", "yunikorn-configs")
"""The ConfigMaps of a list that count, from weak to strong."""
POLICY_GROUP: Final = "service.policyGroup"
DEFAULT_POLICY_GROUP: Final = "queues"

_MANIFEST: Final = frozenset(("apiVersion", "kind", "data", "binaryData", "items"))
_CONFIGMAP: Final = frozenset(("apiVersion", "kind", "metadata", "data", "binaryData", "immutable"))
# Keys that a queue configuration does not have, at the beginning of a line, or anywhere in a text of JSON.
_HINT: Final = re.compile(r"""(?m)^["']?(?:apiVersion|kind|data|binaryData|items|[\w.-]+\.yaml)["']?[ ]*:|\A\s*\{""")

_Pairs = dict[str, tuple[YamlNode, YamlNode]]


class Entry(msgspec.Struct, frozen=True):
    """A key, its text, and its origin, such as FILE:LINE."""

    key: str
    text: str
    origin: str


class Source(NamedTuple):
    """The text of a queue configuration, and the name of its place, such as `cm.yaml[queues.yaml]`."""

    label: str
    text: str


def read_entries(text: str, file: str) -> list[Entry]:
    """Read the settings in a text; a later entry of a key replaces an earlier one.

    Raises:
        ConfigError: the text has none of the forms; the error has one fault, the first.
    """
    root = _composed(text, file)
    return [] if root is None else list(_entries(_pairs(file, root), file))


def queue_sources(settings: dict[str, Entry], file: str) -> list[Source]:
    """Return the queue configurations among settings, one for each policy group.

    Raises:
        ConfigError: there is none.
    """
    sources = [Source(label(key, entry.origin), entry.text) for key, entry in settings.items() if key.endswith(".yaml")]
    if not sources:
        raise _absent(settings, file)
    return sources


def queue_source(text: str, file: str) -> Source:
    """Return the queue configuration of a text; of settings, that of the policy group which is for everybody.

    Raises:
        ConfigError: the text looks like settings, and cannot be read, or lacks that queue configuration.
    """
    found = settings_in(text, file)
    if found is None:
        return Source(file, text)
    key = queues_key(found)
    if key not in found:
        raise _absent(found, file)
    return Source(label(key, found[key].origin), found[key].text)


def label(key: str, origin: str) -> str:
    """Return the name of the place of a configuration among settings: the file and the key."""
    return f"{origin.rpartition(':')[0] or origin}[{key}]"


def settings_in(text: str, file: str) -> dict[str, Entry] | None:
    """Return the settings in a text by key; None if it is a queue configuration, be it a faulty one.

    Raises:
        ConfigError: the text looks like settings, and cannot be read.
    """
    if not _HINT.search(text):
        return None
    root = compose(text, Notes(file), manifests=True)
    if root is None or root.kind != "mapping":
        return None  # the reader of queue configurations says what is wrong
    keys = {key.text for key in root.items[::2]}
    if "partitions" in keys or not (keys & _MANIFEST or any(key.endswith(".yaml") for key in keys)):
        return None
    return {entry.key: entry for entry in _entries(_pairs(file, root), file)}


def queues_key(settings: dict[str, Entry]) -> str:
    """Return the key of the queue configuration in force: the policy group that the settings choose, and `.yaml`."""
    chosen = settings.get(POLICY_GROUP)
    return f"{chosen.text if chosen is not None and chosen.text else DEFAULT_POLICY_GROUP}.yaml"


def manifests(text: str, file: str) -> Iterator[Any]:
    """Yield the documents of a text of any size as plain data, in which times are texts, as JSON has them; no empty ones.

    Raises:
        ConfigError: the text is no YAML, is nested too deep, or consists of aliases almost wholly.
    """
    notes = Notes(file)
    for root in documents(text, notes):
        with suppress(LimitError):
            found = ConfigReader(notes, math.inf).data(root, "", 0)
        if notes.fault_count:
            break
        if found is not None:
            yield found
    if notes.fault_count:
        raise ConfigError(notes.report().faults)


def _absent(settings: dict[str, Entry], file: str) -> ConfigError:
    there = ", ".join(settings) or "nothing"
    message = f"there is no {queues_key(settings)}, the key of the queue configuration; there is: {there[:200]}"
    return ConfigError((Problem(file, 1, 1, "", "", "configmap", message),))


def _composed(text: str, file: str) -> YamlNode | None:
    notes = Notes(file)
    root = compose(text, notes, manifests=True)
    if notes.fault_count:
        first = notes.report().faults[0]
        raise ConfigError((msgspec.structs.replace(first, message="cannot be read as YAML"),))
    return None if root is None or (root.kind == "scalar" and not root.text) else root


def _entries(pairs: _Pairs, file: str) -> Iterator[Entry]:
    if "items" in pairs and "kind" in pairs:
        for found in _overlaid(pairs["items"][1], file):
            yield from _entries(found, file)
    elif "data" not in pairs and "binaryData" not in pairs and "kind" not in pairs:
        yield from (_entry(file, key, value) for key, value in pairs.values())
    else:
        for name, (key, value) in pairs.items():
            if name not in _CONFIGMAP:
                raise _fault(file, key, f"{name[:100]!r}: no part of a ConfigMap")
            if name == "kind" and value.text != "ConfigMap":
                raise _fault(file, value, f"{value.text[:100]!r}: give a ConfigMap, or a queue configuration")
        if "data" in pairs:
            yield from (_entry(file, key, value) for key, value in _pairs(file, pairs["data"][1]).values())
        if "binaryData" in pairs:
            for name, (key, value) in _pairs(file, pairs["binaryData"][1]).items():
                if name.endswith(".gz"):
                    yield _unpacked(file, key, value)


def _overlaid(items: YamlNode, file: str) -> Iterator[_Pairs]:
    """Yield those ConfigMaps of a list that count, from weak to strong."""
    if items.kind != "sequence":
        raise _fault(file, items, "items must be a list of ConfigMaps")
    named = {}
    for item in items.items:
        pairs = _pairs(file, item)
        metadata = _pairs(file, pairs["metadata"][1]) if "metadata" in pairs else {}
        if "kind" in pairs and pairs["kind"][1].text == "ConfigMap":
            named[metadata["name"][1].text if "name" in metadata else ""] = pairs
    if not named.keys() & set(OVERLAID):
        there = ", ".join(sorted(named)) or "none"
        raise _fault(file, items, f"there is no ConfigMap {' or '.join(OVERLAID)}; there is: {there[:200]}")
    yield from (named[name] for name in OVERLAID if name in named)


def _pairs(file: str, node: YamlNode) -> _Pairs:
    """Return the keys and values of a mapping, by the text of the key; an empty node counts as an empty mapping."""
    node = behind(node)
    if node.kind == "scalar" and node.plain and node.text in ("", "null", "~"):
        return {}
    if node.kind != "mapping":
        raise _fault(file, node, "must be a mapping of keys to texts")
    found: _Pairs = {}
    for key, value in zip(node.items[::2], node.items[1::2], strict=True):
        if key.kind != "scalar":
            raise _fault(file, key, "a key must be a text")
        if key.text in found:
            raise _fault(file, key, f"{key.text[:100]!r}: is there twice")
        found[key.text] = key, behind(value)
    return found


def _entry(file: str, key: YamlNode, value: YamlNode) -> Entry:
    origin = f"{file}:{key.line}"
    if value.kind == "scalar":
        return Entry(key.text, value.text, origin)
    if value.kind == "sequence" and all(behind(item).kind == "scalar" for item in value.items):
        return Entry(key.text, ",".join(behind(item).text for item in value.items), origin)
    block = " (write `|` behind the colon)" if key.text.endswith(".yaml") else ""
    raise _fault(file, value, f"{key.text[:100]}: must be a text{block}")


def _unpacked(file: str, key: YamlNode, value: YamlNode) -> Entry:
    try:
        packed = base64.b64decode("".join(value.text.split()), validate=True)
        if not packed.startswith(GZIP):  # YuniKorn wants the file itself to be base64, so it is base64 of base64 here
            packed = base64.b64decode(b"".join(packed.split()), validate=True)
        text = gunzip(packed).decode()
    except UnicodeDecodeError as error:
        raise _fault(file, key, f"is not UTF-8 text (byte {error.start}); is it text?") from None
    except (binascii.Error, ValueError):
        message = f"{key.text[:100]}: must be base64 of gzip, of at most {MAX_BYTES} bytes"
        raise _fault(file, key, message) from None
    return Entry(key.text.removesuffix(".gz"), text, f"{file}:{key.line}")


def gunzip(packed: bytes) -> bytes:
    """Unpack a complete gzip file of one member.

    Raises:
        ValueError: the bytes are no such file, or it holds more than `MAX_BYTES` (4 MiB).
    """
    return unpacked(packed, MAX_BYTES, gzip=True)


def _fault(file: str, node: YamlNode, message: str) -> ConfigError:
    spot: Spot = node.spot("")
    return ConfigError((Problem(file, spot.line, spot.column, "", spot.text[:80], "configmap", message),))
