"""Checks that hold when allocations are evicted because a quota was lowered (invariant 11).

The victims are known from the scheduler's messages; quotas and guarantees of the queues from the configuration
in the test's own form; the usage of queues from the scheduler, whose sums `validate` has shown to be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne.si import messages

if TYPE_CHECKING:
    from machine.driver import Driver

MESSAGE = "preempting allocations to enforce new max quota for queue : "


def check(driver: Driver, rm_id: str, said: list[messages.Output]) -> None:
    """Check that victims were needed, and took no queue below its guarantee (invariant 11)."""
    victims: dict[tuple[str, str], list[messages.Released]] = {}
    for output in said:
        if isinstance(output, messages.Released) and output.message.startswith(MESSAGE):
            victims.setdefault((output.partition, output.message.removeprefix(MESSAGE)), []).append(output)
    enforced = list(victims.items())
    for place, ((name, path), outputs) in enumerate(enforced):
        later = [output for (other, _), more in enforced[place + 1 :] if other == name for output in more]
        _check_victims(driver, (rm_id, name), path, outputs, later)
        driver.situations.met["quota enforced"] += len(outputs)
        driver.situations.met["quota enforced below a parent"] += path == "root.b"


def _check_victims(
    driver: Driver, key: tuple[str, str], path: str, outputs: list[messages.Released], later: list[messages.Released]
) -> None:
    """Check the victims of one queue's quota; `later` are those of quotas enforced after it, which were still there."""
    queues: dict[str, Any] = driver.queues[key]
    partition = driver.partition(*key)
    apps = driver.expected[key].apps

    def size_of(output: messages.Released) -> dict[str, int]:
        return apps[output.application_id].allocs[output.uuid or output.key].resource

    sizes = [size_of(output) for output in outputs]
    kept = [
        size_of(output)
        for output in later
        if f"{partition.applications[output.application_id].queue.path}.".startswith(f"{path}.")
    ]
    left = _left(partition, path)
    for size in kept:
        left = {name: left.get(name, 0) + size.get(name, 0) for name in left.keys() | size.keys()}
    # A queue that the configuration has lost since keeps its maximum until it is empty.
    maximum = (queues[path]["max"] if path in queues else partition.tree.find(path).max_resource()) or {}
    # Of other types than those that were above the maximum it does not matter how much goes.
    above = {
        name: most
        for name, most in maximum.items()
        if left.get(name, 0) + sum(size.get(name, 0) for size in sizes) > most
    }
    for output, size in zip(outputs, sizes, strict=True):
        assert any(size.get(name) and left.get(name, 0) + size[name] > most for name, most in above.items()), (
            f"invariant 11: {output.key} could have stayed in {path}"
        )
        for name, most in above.items():
            assert not size.get(name) or left.get(name, 0) >= most, (
                f"invariant 11: too much of {name} was taken in {path}"
            )
        _check_guarantees(partition, queues, partition.applications[output.application_id].queue, path, size)


def _check_guarantees(partition: Any, queues: dict[str, Any], level: Any, path: str, size: dict[str, int]) -> None:
    while level.path.startswith(path):
        stays = _left(partition, level.path)
        for name, least in ((queues.get(level.path) or {}).get("guaranteed") or {}).items():
            assert not size.get(name) or stays.get(name, 0) >= least, f"invariant 11: {level.path} below its guarantee"
        level = level.parent


def _left(partition: Any, path: str) -> dict[str, int]:
    """The usage of a queue without its victims."""
    queue = partition.tree.find(path)
    going = queue.preempting_resource()
    return {name: amount - going.get(name, 0) for name, amount in queue.allocated_resource().items()}
