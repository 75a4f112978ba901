"""What must hold when allocations are evicted because a quota was lowered (invariant 11).

Who was evicted is known from what the scheduler says; what each queue may use and is guaranteed from the configuration
in the test's own form; what it uses from the scheduler, whose sums `validate` has shown to be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne.si import messages

if TYPE_CHECKING:
    from machine.driver import Driver

MESSAGE = "preempting allocations to enforce new max quota for queue : "


def check(driver: Driver, rm_id: str, said: list[messages.Output]) -> None:
    """Victims were needed, and took nobody below its guarantee (invariant 11)."""
    for output in said:
        if isinstance(output, messages.Released) and output.message.startswith(MESSAGE):
            path = output.message.removeprefix(MESSAGE)
            _check_victim(driver, (rm_id, output.partition), output, path)
            driver.situations.count("quota enforced")
            driver.situations.met["quota enforced below a parent"] += path == "root.b"


def _check_victim(driver: Driver, key: tuple[str, str], output: messages.Released, path: str) -> None:
    queues: dict[str, Any] = driver.queues[key]
    partition = driver.partition(*key)
    app = driver.books[key].apps[output.application_id]
    mine = app.allocs[output.uuid or output.key].resource
    left = _left(partition, path)
    maximum = queues[path]["max"] or {}
    assert any(mine.get(name) and left.get(name, 0) + mine[name] > most for name, most in maximum.items()), (
        f"invariant 11: {output.key} could have stayed in {path}"
    )
    for name, most in maximum.items():
        assert not mine.get(name) or left.get(name, 0) >= most, f"invariant 11: too much of {name} was taken in {path}"
    level = partition.applications[app.id].queue
    while level.path.startswith(path):
        stays = _left(partition, level.path)
        for name, least in ((queues.get(level.path) or {}).get("guaranteed") or {}).items():
            assert not mine.get(name) or stays.get(name, 0) >= least, f"invariant 11: {level.path} below its guarantee"
        level = level.parent


def _left(partition: Any, path: str) -> dict[str, int]:
    """What a queue uses that stays."""
    queue = partition.tree.find(path)
    going = queue.preempting_resource()
    return {name: amount - going.get(name, 0) for name, amount in queue.allocated_resource().items()}
