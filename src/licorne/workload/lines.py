"""The lines of a workload file, one class for each kind (docs/spec/workload-format.md).

These classes define the file format and nothing more: fields are named as in the file, a missing field has the value that
means "not said", and an unknown one is refused, because a misspelt `duration_s` that is silently ignored would make the
simulation meaningless. Both versions of the format share the classes; fields unknown to version 1 are refused by the
reader (`workload.py`), which alone knows the version.

Millions of asks are read, so the objects are small and exempt from cyclic garbage collection (a line refers only to texts,
numbers and flat maps, so it cannot be part of a cycle).
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from licorne.workload.measure import NANOSECONDS

GI = 1 << 30
"""The bytes of a GiB."""
Integer64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Integer32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=9_000_000_000)] | Annotated[float, msgspec.Meta(ge=0, le=9_000_000_000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 // 1_000_000)]
Resources = dict[str, Integer64]

DevicePolicy = Literal["least-left", "most-left", "first"]
"""Which device a share of one is placed on (`licorne.workload.devices`)."""
STYLES = ("", "Soft", "Hard")
"""What a gang does when its placeholders time out; empty: the scheduler's default, which is Soft."""


class Line(
    msgspec.Struct,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="t",
):
    """Base of all lines: the kind `t` and, in a timed file, the virtual time `at` in seconds."""

    at: Seconds | None = None


class Meta(Line, tag="meta"):
    """The first line: name of the workload, version of the format, allocations expected at the end (0: unknown).

    Evictions in a timed file: an evicted pod ends after `grace_s` seconds (above ten minutes its ask must say so too, by the tag
    `licorne/termination-grace-period`), and if `resubmit` is true it is then created again, with its full duration. With `replace` so is a pod whose node is removed, at once. `devices`: the resource type that
    counts devices in thousandths, and `device_policy`: which of them a share of one is placed on (`licorne.workload.devices`). `notes`: sentences for readers of results, such as what is not
    known of the cluster from which the workload was made.
    """

    name: str = ""
    expect: Integer64 = 0
    version: int = 1
    grace_s: Seconds = 1
    resubmit: bool = True
    replace: bool = False
    devices: str = ""
    device_policy: DevicePolicy = "least-left"
    notes: tuple[str, ...] = ()


class Config(Line, tag="config"):
    """Queue configuration and further settings of the scheduler."""

    yaml: str
    extra: dict[str, str] = {}


class Reload(Line, tag="reload"):
    """A queue configuration that replaces the current one."""

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
    """A node that takes no more pods from now on."""

    id: Name


class NodeUndrain(Line, tag="node-undrain"):
    """A node that takes pods again."""

    id: Name


class NodeRemove(Line, tag="node-remove"):
    """The removal of a node, with everything that runs on it."""

    id: Name


class TaskGroup(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a gang: at least `min` pods of the resources `res` must run at once. Asks name it as their `group`."""

    name: Name
    min: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    res: Resources


class App(Line, tag="app"):
    """A new application. `timeout_ms` limits its running time, `ph_timeout_ms` the wait of its placeholders.

    `gang`: the application is a gang of these groups, for which the simulator acts as a resource manager does: it creates
    the placeholders, and submits the asks when the application runs. An `atomic` gang has no placeholders.
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
        """Refuse contradictory fields.

        Raises:
            ValueError: `atomic` without a gang, `ph_ask` with one, or two groups of the same name.
        """
        if self.atomic and not self.gang:
            raise ValueError("atomic: needs a gang")
        if self.gang and self.ph_ask:
            raise ValueError("ph_ask: follows from the gang")
        if len({group.name for group in self.gang}) < len(self.gang):
            raise ValueError("gang: two groups have the same name")


class ReleaseApp(Line, tag="release-app"):
    """The end of an application with all its asks and allocations."""

    app: Name


class Ask(Line, tag="ask"):
    """An ask; with `node` an existing allocation; with a known key a change of its resources.

    `duration_s`: seconds from its allocation until the pod ends by itself; None: it runs until something ends it.
    `requested_s`: the time that its user expects it to run at most, which the orders of jobs and backfill go by; None: its
    duration. Nothing ends it after that time.
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
    requested_s: Seconds | None = None
    max: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    timeout_ms: Milliseconds = 0
    originator: bool = False


class Foreign(Line, tag="foreign"):
    """An allocation of another scheduler; with a known key a change of its resources, and of what its tags say."""

    key: Name
    node: str
    res: Resources
    tags: dict[str, str] | None = None


class Release(Line, tag="release"):
    """The end of an allocation or of a pending ask; an empty `app` means a foreign allocation."""

    app: str
    key: str


class Run(Line, tag="run"):
    """Decide until nothing more is possible."""


AnyLine = (
    Meta | Config | Reload | Node | NodeUpdate | NodeDrain | NodeUndrain | NodeRemove | App | ReleaseApp | Ask
    | Foreign | Release | Run
)  # fmt: skip

# Fields that are written whatever their value, because readers of the original benchmark rely on them.
ALWAYS: dict[type[Line], tuple[str, ...]] = {
    Meta: ("name", "expect"),
    Config: ("yaml", "extra"),
    App: ("queue", "user", "groups"),
    Ask: ("prio",),
}


def to_ns(seconds: float) -> int:
    """Convert seconds, as given in a file, to integral nanoseconds; exact for integral seconds of any size."""
    whole = int(seconds)
    return whole * NANOSECONDS + round((seconds - whole) * NANOSECONDS)


def from_ns(nanoseconds: int) -> float:
    """Return nanoseconds as seconds, as the lines of a workload have them: a whole number where it is one."""
    whole, rest = divmod(nanoseconds, NANOSECONDS)
    return whole + rest / NANOSECONDS if rest else whole


@cache
def _fields(kind: type[Line]) -> tuple[tuple[str, Any, bool], ...]:
    """Return name and default of each field of a kind of line, and whether it is always written."""
    always = ALWAYS.get(kind, ())
    rows: list[tuple[str, Any, bool]] = []
    for field in msgspec.structs.fields(kind):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        rows.append((field.name, default, field.name in always or default is msgspec.NODEFAULT))
    return tuple(rows)


def encode(line: Line) -> bytes:
    """Encode a line, without a line end: the fields in the order of their class, defaults left out."""
    kind = type(line)
    written: dict[str, Any] = {"t": kind.__struct_config__.tag}
    for name, default, always in _fields(kind):
        value = getattr(line, name)
        if always or value != default:
            written[name] = value
    return _encoder.encode(written)


_encoder = msgspec.json.Encoder()
