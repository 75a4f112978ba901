"""Histories of schedulers that are replaced by restored ones in between."""

from __future__ import annotations

from random import Random

from determinism.history import History, Judge
from licorne import SchedulerAPI


def busy(steps: int = 300, *, first_interface: bool = False) -> History:
    """A history of some length."""
    history = History(first_interface)
    for _ in range(steps):
        history.step()
    return history


def replace(history: History) -> None:
    """Replace the scheduler of a history by one that is restored from its checkpoint, which has the same checkpoint."""
    data = history.api.checkpoint()
    api = SchedulerAPI(policy_groups=history.api.policy_groups, on_output=lambda _, outputs: history.take(outputs))
    api.restore_checkpoint(data, {"rm": Judge()})
    assert api.checkpoint() == data, "a restored scheduler has another state"
    history.api = api


def compare(steps: int, seed: int, *, first_interface: bool, often: float = 0.05) -> int:
    """Play a history twice, once with replacements; return how many there were. Raises AssertionError if they differ."""
    random = Random(seed)
    plain, replaced = History(first_interface), History(first_interface)
    plain.random.seed(seed)
    replaced.random.seed(seed)
    count = 0
    for step in range(steps):
        plain.step()
        replaced.step()
        assert plain.sha.digest() == replaced.sha.digest(), f"after {count} replacements, step {step}: other messages"
        if random.random() < often:
            replace(replaced)
            count += 1
    assert plain.api.checkpoint() == replaced.api.checkpoint(), "another state at the end"
    return count
