"""The figures of a report, as data: `report.json` has them, and pages and tables are made of them.

Times are in seconds of virtual time, amounts as in the workload, shares are fractions of 1. A list over time has a value for
each bin, the mean of what was sampled in it, and None where nothing was. Nothing depends on the machine or on how long it
took, so the same input gives the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Values = list[float | None]
FILE = "report.json"
"""The file of a report that has its figures: an object, or a list of objects where there were several simulations."""
VERSION = 2
"""Changes when a program that reads `report.json` would have to."""


class ResourceOverTime(msgspec.Struct, frozen=True):
    """What the cluster has of a resource, what of it is used, and what waiting asks want."""

    resource: str
    capacity: Values
    used: Values
    pending: Values


class QueueOverTime(msgspec.Struct, frozen=True):
    """The use of a resource by a queue and all below it, with its own guarantee and max; None where it has none."""

    queue: str
    leaf: bool
    resource: str
    used: Values
    pending: Values
    guaranteed: Values
    max: Values


class ModelOverTime(msgspec.Struct, frozen=True):
    """The devices of one model: how many, and how many are untouched, partly and completely used."""

    model: str
    devices: Values
    untouched: Values
    partly: Values
    full: Values
    used: Values


class FragmentationOverTime(msgspec.Struct, frozen=True):
    """How much of the devices is idle and of no use for the usual pods, as shares of all devices and of what is idle.

    `typical` is the number of shapes that count as usual.
    """

    typical: int
    of_capacity: Values
    of_idle: Values


class NodesOverTime(msgspec.Struct, frozen=True):
    """How many nodes are used how much: those without any use, those up to 10 %, up to 20 % and so on.

    The use of a node is that of the resource of which it has the smallest part left. `classes[i]` is a class over time.
    """

    nodes: Values
    classes: list[Values]


class Shortfall(msgspec.Struct, frozen=True):
    """How far a queue was below its guarantee of a resource while it had demand for it.

    `demand_s`: how long it had demand; `short_s`: for how much of that time it was below the guarantee, or below its demand
    where that is less. `mean`: how much it lacked on average while it had demand, `most`: at most. `lost`: the sum over time, in
    amounts times seconds. Times and amounts are of samples.
    """

    queue: str
    resource: str
    guaranteed: int
    demand_s: float
    short_s: float
    mean: float
    most: int
    lost: float


CURVE = (0, *range(5, 95, 5), *range(95, 101))
"""At which per cent of the pods the curves of their times have values: closer where the longest are."""


class Spread(msgspec.Struct, frozen=True):
    """Times or ratios of several pods: how many, their mean, and nearest-rank percentiles; zeros if there are none."""

    number: int
    mean: float
    p50: float
    p95: float
    p99: float
    most: float
    curve: list[float]
    """the values at `CURVE` per cent of the pods"""


class PodTimes(msgspec.Struct, frozen=True):
    """The pods of a queue, of a user, or all: waiting and completion in seconds, and their bounded slowdown.

    The waiting of a pod is the sum of its waits, if it was placed (again) at last. `not_completed` did not end by themselves,
    or were never placed, as `never_placed` ones.
    """

    name: str
    pods: int
    never_placed: int
    not_completed: int
    waiting_s: Spread
    completion_s: Spread
    slowdown: Spread


def most_pods(rows: Sequence[PodTimes], number: int) -> list[PodTimes]:
    """Return the rows with the most pods, so many (`number`) at most, in the order in which they are given."""
    kept = sorted(range(len(rows)), key=lambda index: -rows[index].pods)[:number]
    return [rows[index] for index in sorted(kept)]


class NeverPlaced(msgspec.Struct, frozen=True):
    """An ask that was never placed, or not again, and why; `pods`: how many of it, where it repeats."""

    key: str
    application: str
    queue: str
    user: str
    reason: str
    pods: int


class Bar(msgspec.Struct, frozen=True):
    """The last run of a pod on a node."""

    node: str
    queue: str
    start_s: float
    end_s: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one simulation.

    `label` names it beside others. `licorne` is the version that simulated, `command` the command line, where it was one, each ""
    if not known. `start_s` and `bin_s`: where the bins of lists over time begin, and how long one is; there
    are `bins` of them, made of `samples`. `pending_asks` wait in the scheduler, `held_asks` before it, for a gang or a strict
    order. `evenness` is Jain's index over what queues have of their claims, and `evenness_mean` its mean over time.
    `never_placed` are asks up to a bound, `never_placed_all` counts all. `bars` are empty if there would be too many. `notes`
    say what was left out. `result` is the result of the simulation without its pods and without what depends on the machine.
    """

    version: int = VERSION
    label: str
    licorne: str = ""
    command: str = ""
    workload: str
    result: dict[str, Any]
    timed: bool
    start_s: float
    bin_s: float
    bins: int
    samples: int
    cluster: list[ResourceOverTime]
    pending_asks: Values
    held_asks: Values
    queues: list[QueueOverTime]
    device_resource: str
    devices: list[ModelOverTime]
    fragmentation: FragmentationOverTime | None
    nodes: NodesOverTime
    evenness: Values
    evenness_mean: float | None
    shortfalls: list[Shortfall]
    everything: PodTimes
    by_queue: list[PodTimes]
    by_user: list[PodTimes]
    never_placed: list[NeverPlaced]
    never_placed_all: int
    bars: list[Bar]
    notes: list[str]

    @property
    def times_s(self) -> list[float]:
        """The middle of each bin, in seconds."""
        return [round(self.start_s + (index + 0.5) * self.bin_s, 6) for index in range(self.bins)]


def decode_figures(data: bytes) -> list[Figures]:
    """Return the figures of all simulations of a report, from the content of `FILE`. Raises msgspec.MsgspecError."""
    found = msgspec.json.decode(data, type=Figures | list[Figures])
    return [found] if isinstance(found, Figures) else found
