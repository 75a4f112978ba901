"""Configurations with quotas, delays and guarantees, in a short notation."""

from __future__ import annotations

from collections.abc import Iterable

from core.bench import Bench, config
from licorne.core.queues.queue import Queue

ON = "preemption: {quotapreemptionenabled: true}"
RULE = "preempting allocations to enforce new max quota for queue : "


def amounts(text: str) -> str:
    """`3` is vcore 3 (milli); `3 memory 4` has two types."""
    first, *rest = text.split()
    found = {"vcore": first} if first.lstrip("-").isdigit() else {first: rest.pop(0)}
    found |= dict(zip(rest[::2], rest[1::2], strict=True))
    return ", ".join(f"{name}: {value}{'m' if name == 'vcore' else ''}" for name, value in found.items())


def queue(name: str, maximum: str = "", guaranteed: str = "", delay: str = "", children: Iterable[str] = ()) -> str:
    """A queue as `core.bench.queue` reads it."""
    resources = [f"{key}: {{{amounts(text)}}}" for key, text in (("max", maximum), ("guaranteed", guaranteed)) if text]
    parts = [f"resources: {{{', '.join(resources)}}}"] if resources else []
    parts += [f"properties: {{quota.preemption.delay: {delay}}}"] if delay else []
    inside = [f"{{name: {child.partition(' ')[0]}, {child.partition(' ')[2]}}}" for child in children]
    parts += [f"queues: [{', '.join(inside).replace(', }', '}')}]"] if inside else []
    return f"{name} {', '.join(parts)}".strip()


def text(*queues: str, more: str = ON) -> str:
    """A configuration whose partition wants quotas to be enforced."""
    return config(*queues, more=more)


def cluster(configuration: str, vcore: int = 1_000, **others: int) -> Bench:
    """One node that is large enough for everything."""
    bench = Bench(configuration)
    bench.node("n1", capacity={"vcore": vcore, **others})
    return bench


def fill(bench: Bench, path: str, number: int, *, app: str = "", **fields: object) -> None:
    """Place allocations of vcore 1 in a queue, all of one application."""
    name = app or path.rpartition(".")[2]
    if name not in bench.partition.applications:
        bench.app(name, path)
    resource = fields.pop("resource", {"vcore": 1})
    for _ in range(number):
        bench.seconds += 1  # so that each is newer than the last one
        key = f"{name}-{len(bench.application(name).allocations)}"
        bench.ask(name, key, resource=resource, **fields)  # type: ignore[arg-type]
        assert bench.run(), f"{key}: not allocated"


def at(bench: Bench, path: str) -> Queue:
    """A queue."""
    found = bench.partition.tree.find(path)
    assert found is not None
    return found


def start_s(bench: Bench, path: str = "root.a") -> float | None:
    """When the queue's max is enforced, in seconds from now."""
    start = bench.partition.quotas.start_ns(at(bench, path))
    return None if start is None else (start - bench.partition.now) / 1e9


def left(bench: Bench, *paths: str) -> list[int]:
    """The vcore that each queue uses without the allocations being evicted."""
    queues = [at(bench, path) for path in paths]
    return [q.allocated_resource().get("vcore", 0) - q.preempting_resource().get("vcore", 0) for q in queues]


def victims(bench: Bench) -> list[str]:
    """The keys (their ids, too) of all victims so far, in order."""
    return [eviction.victim for eviction in bench.partition.evictions]
