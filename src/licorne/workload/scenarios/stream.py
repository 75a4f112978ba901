"""The lines of a scenario, made while they are read: applications with their asks, merged with the time line.

A million pods are never in memory at once: each class of applications is a stream in order of time, and the streams are merged.
Every iteration begins anew and gives the same lines. Each class draws from streams of random numbers of its own, one for the
times and one for everything else, so another class, or a higher load, does not change what the n-th application of a class is.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Final

from licorne.workload.lines import App, Ask, Line, TaskGroup
from licorne.workload.scenarios.draws import Source
from licorne.workload.scenarios.plan import Class, Person, Plan
from licorne.workload.scenarios.rates import arrivals, burst, merged_bursts
from licorne.workload.scenarios.timeline import Timeline
from licorne.workload.scenarios.values import MICROSECONDS, Variable, filled, seconds
from licorne.workload.workload import LineStream, WorkloadError

GROUP: Final = "pods"
"""The task group of a gang."""
_SHARED_MAX: Final = 10_000
"""Sizes of pods that share one map of amounts."""
Moment = tuple[int, list[Line]]
"""A time in microseconds, and the lines that are due then; the first has the time."""


class ScenarioLines(LineStream):
    """The lines of a plan with a seed and a load.

    `expected`: the number of asks that is expected, exactly so where no numbers are drawn.

    Raises, while it is read, WorkloadError if there are more than `asks_max` asks.
    """

    def __init__(self, plan: Plan, seed: int, load: float, asks_max: int) -> None:
        self._plan = plan
        self._seed = seed
        self._load = load
        self._asks_max = asks_max
        self.reloads = tuple(one.config for one in plan.happenings if one.kind == "configure")
        self.longest_ms = max((one.timeout_ms for one in plan.classes), default=0)
        self.length_s = seconds(plan.length_us)
        self.names_queues = any(one.given.queue for one in plan.classes)
        apps = [one.expected(load) for one in plan.classes]
        self.expected = sum(number * one.pods.mean() for number, one in zip(apps, plan.classes, strict=True))
        if self.expected > asks_max:
            raise _too_many(f"about {round(self.expected):,}", asks_max)
        self.steps = round(sum(apps) + 2 * self.expected)

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines in order of time; events come before applications of the same moment."""
        asks = 0
        for _, lines in self.moments():
            yield from lines
            if type(lines[0]) is App:
                asks += len(lines) - 1
                if asks > self._asks_max:
                    raise _too_many("more", self._asks_max)

    def moments(self) -> Iterator[Moment]:
        """Yield the lines by application, or step of the time line, each with its time."""
        streams = [Applications(one, self._seed, self._load).moments() for one in self._plan.classes]
        return merge(Timeline(self._plan, self._seed).steps(), *streams, key=itemgetter(0))


def _too_many(number: str, asks_max: int) -> WorkloadError:
    return WorkloadError(
        f"the scenario has {number} asks, and no more than {asks_max:,} are simulated; --max-asks allows more"
    )


class Applications:
    """Makes the applications of a class."""

    def __init__(self, about: Class, seed: int, load: float) -> None:
        self._about = about
        self._seed = seed
        self._load = load
        self._source = Source(seed, "class", about.name)
        self._shared: dict[tuple[int, ...], dict[str, int]] = {}

    def times_us(self) -> Iterator[int]:
        """Yield the times of arrival in microseconds, in order."""
        about, load = self._about, self._load
        source = Source(self._seed, "times", about.name)
        streams: list[Iterator[int]] = []
        if about.rates is not None:
            process = source if about.given.process == "poisson" else None
            streams.append(arrivals(about.rates, about.start_us, about.end_us, load, process))
        for index, one in enumerate(about.bursts):
            numbers, carry = Source(self._seed, "bursts", about.name, index), [0.0]
            bursts = (
                burst(at_us, one.apps.draw(numbers) * load, one.within_us, about.end_us, carry)
                for at_us in one.times_us
            )
            streams.append(merged_bursts(bursts))
        return merge(*streams)

    def moments(self) -> Iterator[Moment]:
        """Yield each application with its asks."""
        about, source = self._about, self._source
        for number, at_us in enumerate(self.times_us()):
            person = about.people[about.pick_person(source)]
            res = self._amounts(about.sizes[about.pick_size(source)])
            pods = about.pods.draw(source)
            name = f"{about.name}-{number}"
            yield at_us, [self._application(name, at_us, person, res, pods), *self._asks(name, res, pods)]

    def _application(self, name: str, at_us: int, person: Person, res: dict[str, int], pods: int) -> App:
        given = self._about.given
        user, group = person.name, person.groups[0] if person.groups else ""
        return App(
            at=seconds(at_us),
            id=name,
            queue=filled(given.queue, user, group),
            user=user,
            groups=person.groups,
            tags={key: filled(value, user, group) for key, value in given.tags.items()} or None,
            ph_timeout_ms=self._about.timeout_ms,
            style=given.style or "",
            gang=(TaskGroup(name=GROUP, min=pods, res=res),) if given.gang else (),
            atomic=given.gang == "atomic",
        )

    def _asks(self, name: str, res: dict[str, int], pods: int) -> Iterator[Ask]:
        """Yield the asks of an application. The pods of a gang run equally long, others as long as is drawn for each."""
        about, source, given = self._about, self._source, self._about.given
        duration, tags = about.duration, about.constraints
        if about.terms is not None:
            tags = {**(tags or {}), **about.terms(name)}
        priority = about.priority.draw(source)
        requested = None if about.requested is None else seconds(about.requested.draw(source))
        group = GROUP if given.gang else ""
        last = None if duration is None else seconds(duration.draw(source))
        each = duration is not None and duration.constant is None and not given.gang
        for number in range(pods):
            if each and number and duration is not None:
                last = duration.draw(source) / MICROSECONDS
            yield Ask(
                key=f"{name}-{number}",
                app=name,
                res=res,
                prio=priority,
                tags=tags,
                group=group,
                pre_self=given.evictable,
                pre_other=given.evicts,
                duration_s=last,
                requested_s=requested,
            )

    def _amounts(self, size: dict[str, Variable]) -> dict[str, int]:
        """Return the amounts of a pod; equal ones share one map."""
        drawn = tuple(one.draw(self._source) for one in size.values())
        found = self._shared.get((id(size), *drawn))
        if found is None:
            if len(self._shared) >= _SHARED_MAX:
                self._shared.clear()
            found = self._shared[id(size), *drawn] = dict(zip(size, drawn, strict=True))
        return found
