"""A scenario with all its values understood: what the document means, checked as a whole, ready to make lines of.

Everything that can be wrong with a scenario is found here or before, so that making lines never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

import msgspec

from licorne.config import Configuration
from licorne.core.base.setting_table import SettingsError, check_settings
from licorne.core.base.settings import read_settings
from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.workload.scenarios import draws, values
from licorne.workload.scenarios.configurations import read_configuration
from licorne.workload.scenarios.document import (
    LENGTH_MAX_S,
    Arrivals,
    Bursts,
    Document,
    Draw,
    Event,
    Toleration,
    User,
    Value,
)
from licorne.workload.scenarios.draws import Source, picker
from licorne.workload.scenarios.rates import Rates, rates_of
from licorne.workload.scenarios.terms import PodTags, pod_tags
from licorne.workload.scenarios.unused import check_terms, warn_of_labels, warn_of_queues
from licorne.workload.yaml_files.faults import DocumentError, DocumentErrors, Path, Problem
from licorne.workload.yaml_files.reading import Problems

EVENTS_MAX: Final = 100_000
"""Events of a scenario, each repetition counted."""
PEOPLE_MAX: Final = 1_000_000
"""Users of a class."""
EVERY_MIN_US: Final = values.MICROSECONDS
Kind = Literal["leave", "join", "grow", "shrink", "fail", "drain", "configure", "burst"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_T = TypeVar("_T")


class Happening(NamedTuple):
    """An event of the time line other than a burst; `config` is the text of a queue configuration."""

    kind: Kind
    at_us: int
    every_us: int
    for_us: int
    pool: str
    nodes: int | None
    config: str


class Burst(NamedTuple):
    """Bursts of a class: when, how many applications, and within what time."""

    times_us: tuple[int, ...]
    apps: values.Variable
    within_us: int


class Person(NamedTuple):
    """A user and the groups that it belongs to."""

    name: str
    groups: tuple[str, ...]


NOTHING: Final = values.Variable(0, lambda _: 0)
"""What stands for a variable that is faulty."""


class Class(msgspec.Struct, kw_only=True):
    """A class of applications, understood: what each of its applications and pods is made of."""

    name: str
    given: Arrivals
    start_us: int
    end_us: int
    rates: Rates | None
    bursts: list[Burst]
    people: list[Person]
    pick_person: Callable[[Source], int]
    pods: values.Variable
    sizes: list[dict[str, values.Variable]]
    pick_size: Callable[[Source], int]
    duration: values.Variable | None
    requested: values.Variable | None
    priority: values.Variable
    timeout_ms: int
    constraints: dict[str, str] | None
    terms: PodTags | None

    def expected(self, load: float) -> float:
        """Return the number of applications that is expected, or nearly so where numbers of bursts are drawn."""
        found = self.rates.expected(self.start_us, self.end_us) if self.rates is not None else 0.0
        return load * (found + sum(len(burst.times_us) * burst.apps.mean() for burst in self.bursts))


class Plan(msgspec.Struct, kw_only=True):
    """A whole scenario, understood. `config` is the text of the queue configuration, None: the built-in one."""

    document: Document
    length_us: int
    grace_us: int
    sizes: dict[str, dict[str, int]]
    config: str | None
    classes: list[Class]
    happenings: list[Happening]
    warnings: tuple[Problem, ...] = ()

    @property
    def has_devices(self) -> bool:
        """Whether nodes of any pool have devices that are shared."""
        return any(pool.devices for pool in self.document.cluster.values())


class Planner:
    """Makes a plan of a document, and notes what is wrong."""

    def __init__(self, document: Document, problems: Problems, folder: FilePath) -> None:
        self.document = document
        self.problems = problems
        self.folder = folder
        self.length_us = LENGTH_MAX_S * values.MICROSECONDS
        self.configurations: list[Configuration] = []

    def tried(self, make: Callable[[], _T]) -> _T | None:
        """Return what is made, or None if it is faulty, which is noted."""
        try:
            return make()
        except DocumentError as fault:
            self.problems.add(fault)
        except DocumentErrors as several:
            self.problems.add(*several.faults)
        return None

    def plan(self) -> Plan:
        """Return the plan.

        Raises:
            ScenarioError: the document is not usable.
        """
        document = self.document
        self.length_us = self.tried(lambda: _positive(document.length, ("length",))) or self.length_us
        grace_us = self.tried(lambda: values.time_us(document.grace, ("grace",)))
        sizes = {name: self._node(name) for name in document.cluster}
        config = None if document.queues is None else self._config(document.queues, ("queues",))
        self.tried(self._settings)
        known = {name: self._class(name) for name in document.arrivals}
        happenings = [self.tried(partial(self._event, index, known)) for index in range(len(document.events))]
        for one in known.values():
            if one.given.rate is None and one.given.bursts is None and not one.bursts:
                fault = "needs a rate or bursts, unless a burst of the events names it"
                self.problems.note(("arrivals", one.name), fault)
        self.problems.refuse()
        warn_of_labels(document, self.problems)
        check_terms(document, self.problems)
        warn_of_queues(known, self.configurations, self.problems)
        return Plan(
            document=document,
            length_us=self.length_us,
            grace_us=grace_us or 0,
            sizes=sizes,
            config=config,
            classes=list(known.values()),
            happenings=[one for one in happenings if one is not None],
            warnings=tuple(sorted(self.problems.warnings, key=lambda one: (one.line, one.column))),
        )

    # -- cluster and queues --------------------------------------------------------------------------------------

    def _node(self, name: str) -> dict[str, int]:
        """Return the amounts of a node of a pool, with its devices in thousandths."""
        pool, path = self.document.cluster[name], ("cluster", name, "size")
        if not pool.size:
            self.problems.note(path, "is empty; write like {vcore: 32, memory: 128Gi}")
        res = {
            kind: self.tried(partial(values.quantity, kind, value, (*path, kind))) or 0
            for kind, value in pool.size.items()
        }
        self._check_no_devices(res, path)
        if pool.devices:
            res[self.document.devices] = 1000 * pool.devices
        return res

    def _config(self, given: str | dict[str, Any] | list[Any], path: Path) -> str:
        """Return the text of a queue configuration, checked; what is wrong with it is noted at its own place."""
        read = self.tried(lambda: read_configuration(given, path, self.problems, self.folder))
        text, configuration = read or ("", None)
        if configuration is not None:
            self.configurations.append(configuration)
        return text

    def _settings(self) -> None:
        for name, value in self.document.settings.items():
            try:
                check_settings({name: value})
                read_settings({name: value})
            except SettingsError as error:
                self.problems.note(("settings", name), str(error).removeprefix(f"{name}: "))

    # -- arrivals ------------------------------------------------------------------------------------------------

    def _class(self, name: str) -> Class:
        """Return the plan of a class of arrivals; mistakes in it are noted, and do not end the reading."""
        given, path = self.document.arrivals[name], ("arrivals", name)
        start_us = self._time(given.start, (*path, "from"))
        end_us = self.length_us if given.end is None else min(self._time(given.end, (*path, "to")), self.length_us)
        if start_us >= end_us and not self.problems.is_faulty((*path, "to")):
            self.problems.note((*path, "from"), "is not before `to`, or before the end of the scenario")
        self.tried(partial(_check_template, given.queue, (*path, "queue")))
        for tag, text in given.tags.items():
            self.tried(partial(_check_template, text, (*path, "tags", tag)))
        for key in ("style", "timeout"):
            if getattr(given, key) is not None and given.gang != "placeholders":
                self.problems.note((*path, key), "is for gangs with placeholders")
        people, weights = self.tried(partial(_people, given, name, path)) or ([], [])
        sizes, shares = self._sizes(given, path)
        return Class(
            name=name,
            given=given,
            start_us=start_us,
            end_us=end_us,
            rates=None if given.rate is None else self.tried(partial(rates_of, given.rate, (*path, "rate"))),
            bursts=[] if given.bursts is None else [self._bursts(given.bursts, start_us, end_us, (*path, "bursts"))],
            people=people,
            pick_person=picker(weights or [1.0]),
            pods=self._variable(given.pods, values.COUNT, (*path, "pods")),
            sizes=sizes,
            pick_size=picker(shares),
            duration=None
            if given.duration is None
            else self._variable(given.duration, values.TIME, (*path, "duration")),
            requested=None
            if given.requested is None
            else self._variable(given.requested, values.TIME, (*path, "requested")),
            priority=self._variable(given.priority, values.PRIORITY, (*path, "priority")),
            timeout_ms=0
            if given.timeout is None
            else values.milliseconds(self._time(given.timeout, (*path, "timeout"))),
            constraints=_constraints(given),
            terms=pod_tags(self.document, name),
        )

    def _time(self, value: Value, path: Path) -> int:
        """Return a time in microseconds, 0 if it is faulty, which is noted."""
        return self.tried(partial(values.time_us, value, path)) or 0

    def _variable(self, value: Draw, unit: values.Unit, path: Path) -> values.Variable:
        """Return what a value or a distribution means; one that is faulty is noted."""
        return self.tried(partial(values.variable, value, unit, path)) or NOTHING

    def _sizes(self, given: Arrivals, path: Path) -> tuple[list[dict[str, values.Variable]], list[float]]:
        """Return the sizes of the pods of a class, and their weights, not all of which are 0."""
        weighed: list[tuple[dict[str, Draw], float, Path]] = [
            (one.size, one.weight, (*path, "sizes", index, "size")) for index, one in enumerate(given.sizes or ())
        ]
        if (given.size is None) == (given.sizes is None):
            self.problems.note(path, "needs either size or sizes")
        if given.size is not None:
            weighed.append((given.size, 1, (*path, "size")))
        weights = [weight for _, weight, _ in weighed]
        if weights and not sum(weights):
            self.problems.note((*path, "sizes"), "needs one with a weight above 0")
        devices = self._devices(given, path)
        sizes = [{**self._size(size, at), **devices} for size, _, at in weighed]
        return sizes, weights if sum(weights) else [1.0]

    def _size(self, size: dict[str, Draw], path: Path) -> dict[str, values.Variable]:
        found = self.tried(partial(values.size_of, size, path)) or {}
        self._check_no_devices(found, path)
        return found

    def _check_no_devices(self, size: Mapping[str, object], path: Path) -> None:
        if self.document.devices in size:
            self.problems.note((*path, self.document.devices), "counts devices: give their number with `devices`")

    def _devices(self, given: Arrivals, path: Path) -> dict[str, values.Variable]:
        """Return what each pod of a class has of devices."""
        if given.devices is None:
            return {}
        if not any(pool.devices for pool in self.document.cluster.values()):
            self.problems.note((*path, "devices"), "no pool of the cluster has devices")
        return {self.document.devices: self._variable(given.devices, values.DEVICES, (*path, "devices"))}

    def _bursts(self, given: Bursts, start_us: int, end_us: int, path: Path) -> Burst:
        within_us = self._time(given.within, (*path, "within"))
        apps = self._variable(given.apps, values.COUNT, (*path, "apps"))
        chosen: Sequence[int] = ()
        if (given.at is None) == (given.every is None):
            self.problems.note(path, "needs either at, a list of times, or every")
        elif given.at is not None:
            chosen = sorted(self._time(one, (*path, "at", index)) for index, one in enumerate(given.at))
        else:
            first_us = self._time(given.first, (*path, "first"))
            chosen = self._repeated(first_us, given.every, end_us, path)
        return Burst(tuple(time for time in chosen if start_us <= time < end_us), apps, within_us)

    # -- events --------------------------------------------------------------------------------------------------

    def _event(self, index: int, classes: dict[str, Class]) -> Happening | None:
        given, path = self.document.events[index], ("events", index)
        kinds = [kind for kind in KINDS if getattr(given, kind) is not None]
        at_us = self._time(given.at, (*path, "at"))
        if at_us >= self.length_us:
            self.problems.note((*path, "at"), "is not before the end of the scenario")
        times = self._repeated(at_us, given.every, self.length_us, path)
        if len(kinds) != 1:
            what = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            raise DocumentError(path, f"an event has exactly one of {', '.join(KINDS)}; {what}")
        kind = kinds[0]
        for key in _misplaced(given, kind):
            allowed = "".join(f", {one}" for one in _ALLOWED[kind])
            self.problems.note((*path, key), f"is not for {kind}; for it are at, every{allowed}")
        if kind == "burst":
            self._burst_event(given, classes, tuple(times), path)
            return None
        config = ""
        if given.configure is not None:
            config = self._config(given.configure, (*path, "configure"))
        elif getattr(given, kind) not in self.document.cluster:
            known = ", ".join(self.document.cluster)
            self.problems.note((*path, kind), f"there is no such pool; known are {known}")
        for_us = 0 if given.lasting is None else self.tried(partial(_positive, given.lasting, (*path, "for"))) or 0
        pool = "" if kind == "configure" else getattr(given, kind)
        return Happening(kind, at_us, times.step if given.every is not None else 0, for_us, pool, given.nodes, config)

    def _repeated(self, first_us: int, every: Value | None, end_us: int, path: Path) -> range:
        """Return the times of something that is repeated until the end, or happens once."""
        every_us = None if every is None else self.tried(partial(_every, every, path))
        if every_us is None:
            return range(first_us, min(first_us + 1, end_us))
        times = range(first_us, end_us, every_us)
        is_length_known = self.length_us < LENGTH_MAX_S * values.MICROSECONDS or not self.problems.found
        if len(times) > EVENTS_MAX and is_length_known:
            fault = f"that is {len(times):,} times; at most {EVENTS_MAX:,} are possible"
            self.problems.note((*path, "every"), fault)
        return times

    def _burst_event(self, given: Event, classes: dict[str, Class], times: tuple[int, ...], path: Path) -> None:
        if given.burst not in self.document.arrivals:
            raise DocumentError(
                (*path, "burst"), f"there is no such class; known are {', '.join(self.document.arrivals)}"
            )
        within_us = self._time(given.within, (*path, "within"))
        apps = given.apps
        if apps is None:
            raise DocumentError(path, "needs the key apps: how many applications come")
        if given.burst in classes:
            classes[given.burst].bursts.append(Burst(times, values.Variable(apps, lambda _: apps), within_us))


def _positive(value: Value, path: Path) -> int:
    found = values.time_us(value, path)
    if not found:
        raise DocumentError(path, "must be above 0")
    return found


def _every(value: Value, path: Path) -> int:
    every_us = values.time_us(value, (*path, "every"))
    if every_us < EVERY_MIN_US:
        raise DocumentError((*path, "every"), "is at least 1 s")
    return every_us


_ALLOWED: Final[dict[Kind, tuple[str, ...]]] = {
    "leave": ("nodes", "for"),
    "join": ("nodes", "for"),
    "grow": ("nodes", "for"),
    "shrink": ("nodes",),
    "fail": ("nodes", "for"),
    "drain": ("nodes", "for"),
    "configure": (),
    "burst": ("apps", "within"),
}
"""The keys that an event of a scenario may have, by its kind, beside `at` and `every`."""


def _misplaced(given: Event, kind: Kind) -> list[str]:
    """Return the keys of an event that are not for its kind."""
    said = {"nodes": given.nodes, "for": given.lasting, "apps": given.apps, "within": given.within or None}
    return [key for key, value in said.items() if value is not None and key not in _ALLOWED[kind]]


def _check_template(text: str, path: Path) -> None:
    left = text.replace("{user}", "").replace("{group}", "")
    if "{" in left or "}" in left:
        raise DocumentError(path, "in braces stand {user} and {group} only")


def _people(given: Arrivals, name: str, path: Path) -> tuple[list[Person], list[float]]:
    """Return the users of a class and their weights."""
    users = given.users
    if users is None:
        return [Person(name, ())], [1.0]
    if isinstance(users, int):
        return [Person(f"{name}-{index}", ()) for index in range(users)], [1.0] * users
    people: list[Person] = []
    weights: list[float] = []
    for user, one in dict.fromkeys(users, 1.0).items() if isinstance(users, list) else users.items():
        about = one if isinstance(one, User) else User(weight=one)
        parts = [1 / draws.exp(about.skew * draws.ln(float(rank))) for rank in range(1, about.count + 1)]
        whole = sum(parts)
        names = [user] if about.count == 1 else [f"{user}-{index}" for index in range(about.count)]
        people += [Person(each, tuple(about.groups)) for each in names]
        weights += [about.weight * part / whole for part in parts]
    if not people or not sum(weights):
        raise DocumentError((*path, "users"), "needs a user with a weight above 0")
    if len(people) > PEOPLE_MAX:
        raise DocumentError((*path, "users"), f"has {len(people):,} users; at most {PEOPLE_MAX:,} are possible")
    return people, weights


def _constraints(given: Arrivals) -> dict[str, str] | None:
    """Return the tag with which pods of a class name their nodes (docs/spec/scheduler-interface.md, section 9)."""
    made: dict[str, Any] = {}
    selector = {key: value for key, value in given.nodes.items() if isinstance(value, str)}
    several = [
        {"key": key, "operator": "In", "values": value} for key, value in given.nodes.items() if isinstance(value, list)
    ]
    if selector:
        made["nodeSelector"] = selector
    if several:
        made["nodeAffinity"] = [several]
    if given.tolerates:
        made["tolerations"] = [_toleration(one) for one in given.tolerates]
    return {CONSTRAINTS_TAG: msgspec.json.encode(made).decode()} if made else None


def _toleration(given: str | Toleration) -> dict[str, str]:
    if isinstance(given, str):
        return {"key": given, "operator": "Exists"}
    made = {"key": given.key, "operator": "Exists" if given.value is None else "Equal"}
    if given.value is not None:
        made["value"] = given.value
    if given.effect:
        made["effect"] = given.effect
    return made
