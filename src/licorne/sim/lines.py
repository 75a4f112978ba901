"""The lines of a workload file, one class for each kind (docs/spec/workload-format.md).

These classes are the file format and nothing more: fields are named as in the file, a missing field has the value
that means "not said", and an unknown one is refused, because a misspelt `duration_s` that is silently ignored turns
a simulation into fiction. Both versions share the classes; what version 1 does not know yet is refused by the
reader (`workload.py`), which alone knows the version.

Millions of asks are read, so they are kept slim: no class here takes part in cyclic garbage collection (a line
refers to nothing but texts, numbers and flat maps).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec

Integer64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Integer32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000)] | Annotated[float, msgspec.Meta(ge=0, le=9_000_000_000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 // 1_000_000)]
Resources = dict[str, Integer64]

NANOSECONDS = 1_000_000_000
STYLES = ("", "Soft", "Hard")
"""What becomes of a gang whose placeholders' time is over; not said: the scheduler's default, which is Soft."""


class Line(
    msgspec.Struct,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="t",
):
    """What every line has: its kind `t` and, in a timed file, the virtual time `at` in seconds."""

    at: Seconds | None = None


class Meta(Line, tag="meta"):
    """The first line: name of the workload, version of the format, allocations expected at the end (0: unknown).

    What evictions mean in a timed file: `grace_s` seconds pass until an evicted pod is gone, and if `resubmit` is true
    it is then created again, with its full duration.
    """

    name: str = ""
    expect: Integer64 = 0
    version: int = 1
    grace_s: Seconds = 1
    resubmit: bool = True


class Config(Line, tag="config"):
    """Queue configuration and further settings of the scheduler."""

    yaml: str
    extra: dict[str, str] = {}


class Reload(Line, tag="reload"):
    """Another queue configuration in place of the first."""

    yaml: str


class Node(Line, tag="node"):
    """A new node; with `drain` it takes no pods yet."""

    id: Name
    res: Resources
    attrs: dict[str, str] | None = None
    drain: bool = False


class NodeUpdate(Line, tag="node-update"):
    """New capacity or new attributes of a node."""

    id: Name
    res: Resources | None = None
    attrs: dict[str, str] | None = None


class NodeDrain(Line, tag="node-drain"):
    """The node takes no more pods."""

    id: Name


class NodeUndrain(Line, tag="node-undrain"):
    """The node takes pods again."""

    id: Name


class NodeRemove(Line, tag="node-remove"):
    """The node is gone, with all that ran there."""

    id: Name


class TaskGroup(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a gang: at least `min` pods of the resources `res` must run at once. Asks name it as their `group`."""

    name: Name
    min: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    res: Resources


class App(Line, tag="app"):
    """A new application. `timeout_ms` limits its running time, `ph_timeout_ms` the wait of its placeholders.

    `gang`: the application is a gang of these groups, for which the simulator does what a resource manager does. It
    creates the placeholders, and hands the asks in when the application runs; an `atomic` gang has no placeholders.
    """

    id: Name
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: dict[str, str] | None = None
    timeout_ms: Milliseconds = 0
    ph_timeout_ms: Milliseconds = 0
    ph_ask: Resources | None = None
    style: str = ""
    gang: tuple[TaskGroup, ...] = ()
    atomic: bool = False

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.atomic and not self.gang:
            raise ValueError("atomic: needs a gang")
        if self.gang and self.ph_ask:
            raise ValueError("ph_ask: follows from the gang")
        if len({group.name for group in self.gang}) < len(self.gang):
            raise ValueError("gang: two groups have the same name")


class ReleaseApp(Line, tag="release-app"):
    """The end of an application and of all that it has."""

    app: Name


class Ask(Line, tag="ask"):
    """An ask; with `node` an allocation that exists there already; with a known key a change of its resource.

    `duration_s`: the pod ends by itself so long after its allocation; None: it stays until something ends it.
    """

    key: Name
    app: str
    res: Resources
    prio: Integer32 = 0
    tags: dict[str, str] | None = None
    group: str = ""
    ph: bool = False
    pre_self: bool = False
    pre_other: bool = False
    node: str = ""
    duration_s: Seconds | None = None
    max: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    timeout_ms: Milliseconds = 0
    originator: bool = False


class Foreign(Line, tag="foreign"):
    """An allocation of another scheduler; with a known key a change of its resource."""

    key: Name
    node: str
    res: Resources


class Release(Line, tag="release"):
    """The end of an allocation or of a pending ask; an empty `app` means a foreign allocation."""

    app: str
    key: str


class Run(Line, tag="run"):
    """Decide until nothing more is possible."""


Version1 = Meta | Config | Node | App | Ask
Version2 = (
    Meta | Config | Reload | Node | NodeUpdate | NodeDrain | NodeUndrain | NodeRemove | App | ReleaseApp | Ask
    | Foreign | Release | Run
)  # fmt: skip

# Fields that a writer always writes, whatever their value: readers of the original benchmark count on them.
ALWAYS: dict[type[Line], tuple[str, ...]] = {
    Meta: ("name", "expect"),
    Config: ("yaml", "extra"),
    App: ("queue", "user", "groups"),
    Ask: ("prio",),
}


def to_ns(seconds: float) -> int:
    """Seconds, as a file gives them, in whole nanoseconds; exact for whole seconds of any size."""
    whole = int(seconds)
    return whole * NANOSECONDS + round((seconds - whole) * NANOSECONDS)


@cache
def _fields(kind: type[Line]) -> tuple[tuple[str, Any, bool], ...]:
    """Name and default of each field of a kind of line, and whether it is written whatever its value."""
    always = ALWAYS.get(kind, ())
    rows: list[tuple[str, Any, bool]] = []
    for field in msgspec.structs.fields(kind):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        rows.append((field.name, default, field.name in always or default is msgspec.NODEFAULT))
    return tuple(rows)


def encode(line: Line) -> bytes:
    """One line of a workload file, without its line end: the fields in the order of their class, defaults left out."""
    kind = type(line)
    written: dict[str, Any] = {"t": kind.__struct_config__.tag}
    for name, default, always in _fields(kind):
        value = getattr(line, name)
        if always or value != default:
            written[name] = value
    return _encoder.encode(written)


_encoder = msgspec.json.Encoder()
