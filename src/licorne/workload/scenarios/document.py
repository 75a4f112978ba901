"""What a scenario may say: a class for each mapping of the file, the fields of which are its keys.

These classes are the one definition of the format. The reader converts the YAML by them, the JSON Schema for editors is
generated from them, and the reference in docs/use/scenarios.md lists their docstrings' keys. A quantity, a time or a rate is still
as it was written; `licorne.workload.scenarios.values` gives it its meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from licorne.workload.lines import DevicePolicy
from licorne.workload.yaml_files.repair import StandIns, Text

NODES_MAX = 100_000
"""Nodes of a pool, at most."""
LENGTH_MAX_S = 3_650 * 86_400
"""Longest scenario: ten years."""

Value = str | int | float
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Load = Annotated[float, msgspec.Meta(gt=0, le=1_000)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=NODES_MAX)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
Skew = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class _Mapping(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all mappings: a key that is not known is an error."""


class Lognormal(_Mapping):
    """A distribution whose logarithm is normal, with `sigma` as the deviation of the logarithm; give `median` or `mean`."""

    sigma: Annotated[float, msgspec.Meta(ge=0, le=10)]
    median: Value | None = None
    mean: Value | None = None


class Pareto(_Mapping):
    """A distribution with a heavy tail: x is exceeded with probability (min / x) ** shape."""

    min: Value
    shape: Annotated[float, msgspec.Meta(gt=0, le=100)]


class Drawn(_Mapping):
    """A distribution: exactly one of the kinds; what is drawn below `min` or above `max` counts as that."""

    choice: dict[str, NotNegative] | list[Value] | None = None
    uniform: tuple[Value, Value] | None = None
    exponential: Value | None = None
    lognormal: Lognormal | None = None
    pareto: Pareto | None = None
    table: Annotated[list[tuple[Share, Value]], msgspec.Meta(min_length=2)] | None = None
    min: Value | None = None
    max: Value | None = None


Draw = Value | Drawn
"""A value, or a distribution from which each is drawn."""


class Taint(_Mapping):
    """A taint of all nodes of a pool, which keeps away pods that do not tolerate it, or with `PreferNoSchedule` as long as others take them."""

    key: Text
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Toleration(_Mapping):
    """A taint that pods tolerate; without `value` whatever its value is, without `effect` whatever its effect is."""

    key: Text
    value: str | None = None
    effect: Literal["", "NoSchedule", "NoExecute", "PreferNoSchedule"] = ""


class Pool(_Mapping):
    """A pool of equal nodes: their number, their amounts, labels, taints and devices; `absent`: not there until it joins."""

    nodes: Annotated[int, msgspec.Meta(ge=0, le=NODES_MAX)]
    size: dict[Text, Value]
    labels: dict[Text, str] = {}
    taints: list[Taint] = []
    devices: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    absent: bool = False


class Sine(_Mapping):
    """A wave around the mean rate: `swing` is how far the peak is above it, as a share; `peak` is when in the period it is."""

    swing: Share
    peak: Value = "14h"
    period: Value = "1d"


class Profile(_Mapping):
    """A rate that changes: around a `mean` by factors over the day and week or a wave, or by `steps` that repeat `every` period."""

    mean: Value | None = None
    day: Annotated[list[NotNegative], msgspec.Meta(min_length=1, max_length=1440)] | None = None
    week: Annotated[list[NotNegative], msgspec.Meta(min_length=7, max_length=7)] | None = None
    sine: Sine | None = None
    steps: Annotated[dict[str, Value], msgspec.Meta(min_length=1, max_length=10_000)] | None = None
    every: Value | None = None


class Bursts(_Mapping):
    """Many applications at once: `apps` of them, spread evenly `within` a time, `at` given times or `every` so often."""

    apps: Draw
    within: Value = 0
    at: Annotated[list[Value], msgspec.Meta(max_length=100_000)] | None = None
    every: Value | None = None
    first: Value = 0


class User(_Mapping):
    """A user, or with `count` that many alike: their weight together, their groups; `skew`: the n-th weighs 1 / n ** skew."""

    weight: NotNegative = 1
    groups: list[Text] = []
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    skew: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0


class Sized(_Mapping):
    """One of several sizes of pods, and its weight."""

    size: dict[Text, Draw]
    weight: NotNegative = 1


class Preferences(_Mapping):
    """What the pods of a class would rather have: labels of their nodes, and pods to be near, apart from, or spread among."""

    nodes: dict[Text, str | list[str]] = {}
    near: dict[Text, Name] = {}
    apart: dict[Text, Name] = {}
    spread: dict[Text, Skew] = {}


class Arrivals(_Mapping):
    """A class of applications: when they come, whose they are, and what their pods want."""

    rate: Value | Profile | None = None
    process: Literal["poisson", "even"] = "poisson"
    bursts: Bursts | None = None
    start: Value = msgspec.field(name="from", default=0)
    end: Value | None = msgspec.field(name="to", default=None)
    queue: str = ""
    users: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | list[Text] | dict[Text, NotNegative | User] | None = None
    tags: dict[Text, str] = {}
    pods: Draw = 1
    size: dict[Text, Draw] | None = None
    sizes: Annotated[list[Sized], msgspec.Meta(min_length=1)] | None = None
    devices: Draw | None = None
    duration: Draw | None = None
    requested: Draw | None = None
    priority: Draw = 0
    gang: Literal["atomic", "placeholders"] | None = None
    style: Literal["Soft", "Hard"] | None = None
    timeout: Value | None = None
    nodes: dict[Text, str | list[str]] = {}
    tolerates: list[str | Toleration] = []
    near: dict[Text, Name] = {}
    apart: dict[Text, Name] = {}
    spread: dict[Text, Skew] = {}
    prefers: Preferences | None = None
    evictable: bool = False
    evicts: bool = False


class Event(_Mapping):
    """Something that happens `at` a time, and again `every` so often: exactly one of the kinds.

    leave, join, grow, shrink, fail, drain: a pool, and how many `nodes` of it; `for`: how long until it is undone.
    configure: a queue configuration. burst: a class, of which `apps` come `within` a time.
    """

    at: Value
    every: Value | None = None
    leave: str | None = None
    join: str | None = None
    grow: str | None = None
    shrink: str | None = None
    fail: str | None = None
    drain: str | None = None
    configure: str | dict[str, Any] | list[dict[str, Any]] | None = None
    burst: str | None = None
    nodes: Count | None = None
    lasting: Value | None = msgspec.field(name="for", default=None)
    apps: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    within: Value = 0


class Document(_Mapping):
    """A scenario: a cluster, queues, arrivals and events."""

    scenario: Text
    length: Value
    cluster: Annotated[dict[Name, Pool], msgspec.Meta(min_length=1)]
    arrivals: Annotated[dict[Name, Arrivals], msgspec.Meta(min_length=1)]
    queues: str | dict[str, Any] | list[dict[str, Any]] | None = None
    events: list[Event] = []
    seed: Seed = 1
    load: Load = 1
    grace: Value = 1
    resubmit: bool = True
    replace: bool = True
    devices: Text = "gpu-milli"
    device_policy: DevicePolicy = "least-left"
    settings: dict[Text, str] = {}


STAND_INS: StandIns = {
    (Document, "scenario"): "a scenario",
    (Document, "length"): LENGTH_MAX_S,
    (Pool, "nodes"): 1,
    (Pool, "size"): {"vcore": 1},
    (Pool, "devices"): 1,
    (Arrivals, "gang"): "placeholders",
    (Bursts, "apps"): 1,
    (Event, "at"): 0,
    (Sized, "size"): {"vcore": 1},
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a scenario, for editors that complete and check while one writes."""
    made = msgspec.json.schema(Document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a scenario of licorne", **made}
