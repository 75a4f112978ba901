"""Read workload files: JSON lines in, a checked `Workload` out, or an error that names file, line and field.

A file is checked completely before anything is simulated: an error on the last line of a million must not appear after a
minute of decisions. So all lines are kept in memory, as the slim objects of `lines.py`. Decoding and checking are one
step: msgspec builds the object of the right class from the bytes of a line and refuses what the class does not allow; only
rules that span lines (order of kinds, time, version) are checked here.

Two versions are read (docs/spec/workload-format.md). Version 1 knows five kinds of line, submitted kind by kind. Version 2
is a script, executed line by line; but if any of its lines has a time (`at`), a duration (`duration_s`) or a gang, it is
a timed workload: the clock moves and decisions are made as time passes.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from licorne._bounded import LINE_BYTES, UNDECODABLE, lines
from licorne._files import opened
from licorne._wording import counted
from licorne.state.recording import Names
from licorne.workload.lines import (
    STYLES,
    AnyLine,
    App,
    Ask,
    Config,
    DevicePolicy,
    Line,
    Meta,
    Node,
    Reload,
    Run,
    encode,
    to_ns,
)

Progress = Callable[[int, int], None]
"""Called from time to time with (done, total)."""

ASKS_MAX = 2_000_000
"""Most asks of a workload by default; a single line can stand for many, as an ask that repeats or a gang."""
_BATCH = 1 << 14
_FIELD = re.compile(r"\s*- at `(?:key in )?\$\.?(.*)`$")
_MEANINGS = {
    "res": "; vcore is in thousandths of a core, memory in bytes",
    "at": "; it is in seconds from 0",
    "duration_s": "; it is in seconds",
}
"""What fields mean that are often given as something else; a message about a wrong type ends with it."""
_NAMED = re.compile(r"(?:missing required|contains unknown) field `([^`]*)`")
_VERSION_2: dict[type[Line], tuple[tuple[str, object], ...]] = {
    Meta: (("grace_s", 1), ("resubmit", True), ("notes", ()), ("devices", ""), ("replace", False)),
    Config: (("at", None),),
    Node: (("at", None), ("drain", False)),
    App: (
        ("at", None), ("timeout_ms", 0), ("ph_timeout_ms", 0), ("ph_ask", None), ("style", ""), ("gang", ()), ("atomic", False),
    ),
    Ask: (
        ("at", None), ("node", ""), ("duration_s", None), ("requested_s", None), ("max", 1), ("timeout_ms", 0),
        ("originator", False),
    ),
}  # fmt: skip
"""The kinds of line of version 1, with the fields that only version 2 has and what they are where they are not given."""


class WorkloadError(ValueError):
    """A workload that is not usable; the text names file, line and field, and says what is wrong."""


class OptionError(WorkloadError):
    """An option that a workload, or the case that is to be generated, does not have, or not with this value."""


class Mode(StrEnum):
    """How a workload is driven."""

    BATCH = "batch"
    """version 1: everything is handed in, then decided; time stands still"""
    SCRIPT = "script"
    """version 2 without times: message by message, decisions at `run`; time stands still"""
    TIMED = "timed"
    """version 2 with times, and traces: the clock moves, pods end, decisions are made as time passes"""


class LineStream(Iterable[Line]):
    """Lines that are made while they are read, the same in each iteration, in order of time.

    `reloads`: the configurations that replace the first one; `longest_ms`: the longest timeout of an application or ask;
    `names_queues`: whether applications ask for queues; `steps`: about how many lines and ends of pods there are; `length_s`:
    the time before which all lines come, 0 if it is not known.
    """

    reloads: Sequence[str] = ()
    longest_ms: int = 0
    names_queues: bool = True
    steps: int = 0
    length_s: float = 0


class Workload(msgspec.Struct, kw_only=True):
    """The input of a simulation: the configuration, and the lines in the order in which they are submitted.

    `config` is None if the file has none; then the scheduler's built-in configuration applies. `notes` are sentences for
    readers of the result, such as what the workload does not model. `grace_s` and `resubmit` are the meta line's settings
    for evictions; with `replace` a pod whose node is removed is created again as well. `devices` is the resource type that counts devices in thousandths, empty if there are none, and
    `device_policy` says which of them a share is placed on (`licorne.workload.devices`). `file` is the name of the file that it was read from, `numbers` are the line numbers of its `lines` there,
    `config_place` is the place of `config` and `extra`, as `FILE:LINE`; all three are empty without a file.
    """

    name: str
    mode: Mode
    config: str | None = None
    extra: dict[str, str] = {}
    expect: int = 0
    lines: list[Line] | LineStream
    notes: list[str] = []
    grace_s: float = 1
    resubmit: bool = True
    replace: bool = False
    devices: str = ""
    device_policy: DevicePolicy = "least-left"
    file: str = ""
    numbers: Sequence[int] = ()
    config_place: str = ""

    @property
    def reloads(self) -> Iterable[str]:
        """The texts of the configurations that replace the first one."""
        if isinstance(self.lines, LineStream):
            return self.lines.reloads
        return (line.yaml for line in self.lines if type(line) is Reload)

    @property
    def first_arrival_s(self) -> float:
        """When the first ask arrives, in seconds; 0 if there is none. Nodes and applications may come before."""
        at: float = 0
        for line in self.lines:
            at = at if line.at is None else line.at
            if isinstance(line, Ask):
                return at
        return 0

    def place(self, index: int) -> str:
        """Return the place of a line, as `FILE:LINE`; empty if it is not known."""
        return f"{self.file}:{self.numbers[index]}" if 0 <= index < len(self.numbers) else ""

    def place_of(self, key: str) -> str:
        """Return the place of the first line with an ask, as `FILE:LINE`; empty if it is not known. It looks at all lines."""
        found = (index for index, line in enumerate(self.lines) if type(line) is Ask and line.key == key)
        return self.place(next(found, -1))


def read_workload(path: Path | str, *, progress: Progress | None = None, asks_max: int = ASKS_MAX) -> Workload:
    """Read a workload file (`-`: standard input; `.gz`: compressed).

    Raises WorkloadError for content that the format does not allow, or for more than `asks_max` asks altogether, and
    OSError for a file that cannot be read.
    """
    path = Path(path)
    name = "<stdin>" if str(path) == "-" else str(path)
    with _opened(path) as (stream, size):
        return parse_workload(stream, file=name, progress=progress, size=size, asks_max=asks_max)


def parse_workload(
    stream: Iterable[bytes],
    *,
    file: str = "<workload>",
    progress: Progress | None = None,
    size: int = 0,
    asks_max: int = ASKS_MAX,
) -> Workload:
    """Read a workload from lines of bytes; `file` is its name in messages, `size` its length in bytes, 0 if not known."""
    reader = _Reader(file, asks_max)
    done = 0
    for number, text in enumerate(stream, 1):
        reader.take(number, text)
        if progress is not None:
            done += len(text)
            if number % _BATCH == 0:
                progress(done, size)
    return reader.finish()


def unpacked_lines(stream: gzip.GzipFile, file: str, *, line_max: int = LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a compressed file, one of more than `line_max` bytes in pieces (`licorne._bounded.lines`); `file` is its name in messages.

    Raises:
        WorkloadError: it is cut off or damaged, or no gzip file; the line named is the first that could not be read.
    """
    number = 0
    while True:
        try:
            line = stream.readline(line_max + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            where = (
                f" behind the {counted(number, 'line')} before this one, so it is cut off or damaged" if number else ""
            )
            raise WorkloadError(f"{file}:{number + 1}: not a readable gzip file{where}: {error}") from None
        if not line:
            return
        number += 1
        yield line


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Iterable[bytes], int]]:
    """Open a file; yield its lines and the number of its bytes (0: not known beforehand)."""
    if str(path) == "-":
        yield lines(sys.stdin.buffer.readline, LINE_BYTES), 0
        return
    with opened(path, from_shell=True) as stream:
        if path.suffix == ".gz":
            yield unpacked_lines(gzip.GzipFile(fileobj=stream), str(path)), 0
        else:
            yield lines(stream.readline, LINE_BYTES), os.fstat(stream.fileno()).st_size


class _Reader:
    """Collects and checks line after line; its errors name file and line."""

    def __init__(self, file: str, asks_max: int) -> None:
        self.file = file
        self.asks_max = asks_max
        self.asks = 0
        self.numbers = array("Q")
        self.config_number = 0
        self.first_run = 0
        self.meta: Meta | None = None
        self.config: Config | None = None
        self.lines: list[Line] = []
        self.timed = False
        self.last_ns = 0
        self.decode = msgspec.json.Decoder(AnyLine).decode
        self.names: dict[str, str] = {}

    def take(self, number: int, text: bytes) -> None:
        """Decode and check one line.

        Raises:
            WorkloadError: the line is not allowed.
        """
        if len(text) > LINE_BYTES:
            raise self.fault(
                number, "", f"a line of more than {LINE_BYTES:,} bytes; is this a workload, a file of JSON lines?"
            )
        try:
            line = self.decode(text)
        except msgspec.MsgspecError as error:
            if not text.strip():
                return
            field, complaint = explain(str(error))
            if self.meta is None and complaint.startswith("not JSON"):
                complaint += "; is this a workload, a file of JSON lines?"
            raise self.fault(number, entry(field, text), complaint) from None
        except UnicodeDecodeError:
            raise self.fault(number, "", "is not UTF-8 text") from None
        if not _surely_unique(text):
            self.unique(number, text)
        if type(line) is Ask:
            # All asks of an application share one string instead of having one each.
            line.app = self.names.setdefault(line.app, line.app)
            if line.duration_s is not None:
                self.timed = True
            self.count(number, "max", line.max)
        elif type(line) is Meta or type(line) is Config:
            self.head(number, line)
            return
        elif type(line) is App:
            if line.style not in STYLES:
                raise self.fault(number, "style", f"{line.style!r} is unknown; it is {' or '.join(STYLES[1:])}")
            if line.gang:
                self.timed = True
                self.count(number, "gang", 0 if line.atomic else sum(group.min for group in line.gang))
        elif type(line) is Run:
            self.first_run = self.first_run or number
        if self.meta is None:
            raise self.fault(number, "t", 'the first line must be of kind "meta"')
        if self.meta.version == 1:
            self.check_version_1(number, line)
        elif line.at is not None:
            self.clock(number, line.at)
        self.lines.append(line)
        self.numbers.append(number)

    def unique(self, number: int, text: bytes) -> None:
        """Refuse an object that has a name twice: JSON does not define which one counts."""

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            made = dict(pairs)
            if len(made) < len(pairs):
                twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
                raise self.fault(number, twice, "stands twice in the same object")
            return made

        json.loads(text, object_pairs_hook=once)

    def count(self, number: int, field: str, asks: int) -> None:
        """Refuse a workload with more asks than anybody would simulate on purpose."""
        self.asks += asks
        if self.asks > self.asks_max:
            what = f"with it there are {self.asks:,} asks, and no more than {self.asks_max:,} are simulated"
            raise self.fault(number, field, f"{what}; --max-asks allows more")

    def head(self, number: int, line: Meta | Config) -> None:
        """Take a meta or config line, which precede all others and are not steps of the simulation."""
        if isinstance(line, Meta):
            if self.meta is not None:
                raise self.fault(number, "t", 'there is a "meta" line already')
            if self.lines or self.config is not None:
                raise self.fault(number, "t", 'the "meta" line must be the first')
            if line.version not in (1, 2):
                raise self.fault(number, "version", f"{line.version} is unknown; versions 1 and 2 can be read")
            self.meta = line
        elif self.meta is None:
            raise self.fault(number, "t", 'the first line must be of kind "meta"')
        elif self.config is not None:
            raise self.fault(number, "t", 'there is a "config" line already; a change of it is a "reload"')
        elif self.meta.version == 2 and self.lines:
            raise self.fault(number, "t", '"config" must stand before every other line but "meta"')
        else:
            self.config, self.config_number = line, number
        if self.meta.version == 1:
            self.check_version_1(number, line)
        elif line is self.config and line.at is not None:
            self.clock(number, line.at)

    def check_version_1(self, number: int, line: Line) -> None:
        """Refuse what only version 2 has."""
        if type(line) not in _VERSION_2:
            raise self.fault(number, "t", 'needs "version":2 in meta')
        for name, unset in _VERSION_2[type(line)]:
            if getattr(line, name) != unset:
                raise self.fault(number, name, 'needs "version":2 in meta')

    def clock(self, number: int, at: float) -> None:
        """Refuse a time that is before that of an earlier line."""
        now_ns = to_ns(at)
        if now_ns < self.last_ns:
            raise self.fault(number, "at", f"{at} is before the time of an earlier line; times may not decrease")
        self.last_ns = now_ns
        self.timed = True

    def fault(self, number: int, field: str, what: str) -> WorkloadError:
        place = f"{self.file}:{number}: "
        return WorkloadError(f"{place}{field}: {what}" if field else f"{place}{what}")

    def finish(self) -> Workload:
        """Return the workload, after the last line."""
        if self.meta is None:
            raise WorkloadError(f'{self.file}: there is no "meta" line; is this a workload file?')
        if self.timed and self.first_run:
            raise self.fault(self.first_run, "t", '"run" is for scripts; where lines have times, time itself decides')
        lines, numbers = self.lines, self.numbers
        if self.meta.version == 1:
            mode = Mode.BATCH
            rank: dict[type, int] = {Ask: 2, App: 1}  # nodes, then applications, then asks
            order = sorted(range(len(lines)), key=lambda index: rank.get(type(self.lines[index]), 0))
            lines, numbers = [lines[index] for index in order], array("Q", [numbers[index] for index in order])
        else:
            mode = Mode.TIMED if self.timed else Mode.SCRIPT
        return Workload(
            name=self.meta.name,
            mode=mode,
            config=self.config.yaml if self.config is not None else None,
            extra=self.config.extra if self.config is not None else {},
            expect=self.meta.expect,
            lines=lines,
            grace_s=self.meta.grace_s,
            resubmit=self.meta.resubmit,
            notes=list(self.meta.notes),
            replace=self.meta.replace,
            devices=self.meta.devices,
            device_policy=self.meta.device_policy,
            file=self.file,
            numbers=numbers,
            config_place=f"{self.file}:{self.config_number}" if self.config is not None else "",
        )


def _surely_unique(text: bytes) -> bool:
    """Decide quickly that no object of a line has a name twice. False: not certain, so the line must be examined closely.

    A decoded object has each name once, while in the text each name is followed by a colon. So if the text has as many
    colons as the decoded line and the objects directly in it have names, none occurs twice. Called for each line.
    """
    values = _decode(text)
    names = len(values)
    for value in values.values():
        if type(value) is dict:
            names += len(value)
    return text.count(b":") == names


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def explain(message: str) -> tuple[str, str]:
    """Return field and complaint, parsed from a message of the decoder."""
    where = _FIELD.search(message)
    field = where.group(1) if where is not None else ""
    text = message[: where.start()] if where is not None else message
    named = _NAMED.search(text)
    if named is not None:
        field = f"{field}.{named.group(1)}" if field else named.group(1)
        return field, "is missing" if "missing" in text else "is not a field of this kind of line"
    if field == "t" and text.startswith("Invalid value"):
        return field, f"unknown kind of line {text.removeprefix('Invalid value ')}"
    if text == "Expected `str` of length >= 1":
        return field, "must not be empty"
    if text.startswith(("JSON is malformed", "Input data was truncated")):
        return field, f"not JSON: {text.removeprefix('JSON is malformed: ')}"
    meaning = _MEANINGS.get(re.split(r"[.\[]", field)[0], "") if ", got " in text else ""
    return field, text[:1].lower() + text[1:].replace("`", "") + meaning


def entry(field: str, text: bytes) -> str:
    """Return the field; if the decoder named an entry of a map only as `[...]`, with the name of that entry."""
    if not field.endswith("[...]"):
        return field
    name = field.removesuffix("[...]")
    expected = str if name in ("tags", "attrs", "extra") else int
    try:
        entries = msgspec.json.decode(text)[name].items()
    except (KeyError, AttributeError, *UNDECODABLE):
        return name
    wrong = (
        key for key, value in entries if type(value) is not expected or (isinstance(value, int) and abs(value) >= 2**63)
    )
    return f"{name}.{next(wrong, '')}".rstrip(".")


def write_workload(workload: Workload, stream: IO[bytes], names: Names | None = None) -> int:
    """Write a workload as a file of JSON lines, beginning with its head; return the number of asks.

    `names` replaces names of users and groups; None: they are written.

    Raises:
        AnonymityError: names are to be replaced, and a configuration depends on them.
    """
    asks = 0
    for line in chain(_head(workload), workload.lines):
        asks += type(line) is Ask
        stream.write(encode(line if names is None else _nameless(line, names)) + b"\n")
    return asks


def _nameless(line: Line, names: Names) -> Line:
    """Return a line with the names of users and groups replaced."""
    match line:
        case Config() | Reload():
            return replace(line, yaml=names.configuration(line.yaml))
        case App():
            groups = tuple(map(names.of, line.groups))
            return replace(line, user=names.of(line.user), groups=groups, tags=names.tags(line.tags or {}) or None)
        case Ask():
            return replace(line, tags=names.tags(line.tags or {}) or None)
    return line


def _head(workload: Workload) -> Iterator[Line]:
    """Yield the lines before all others: the meta line, and the configuration if there is one."""
    version = 1 if workload.mode is Mode.BATCH else 2
    yield Meta(
        name=workload.name,
        expect=workload.expect,
        version=version,
        grace_s=workload.grace_s,
        resubmit=workload.resubmit,
        replace=workload.replace,
        devices=workload.devices,
        device_policy=workload.device_policy,
        notes=tuple(workload.notes) if version > 1 else (),
    )
    if workload.config is not None:
        yield Config(yaml=workload.config, extra=workload.extra)
