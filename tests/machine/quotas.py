"""Lowered quotas in the machine: a rule that lowers one and waits. The checks of that: `machine.evicted`."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from machine import configs
from machine.driver import SECOND_NS
from machine.world import World

small = st.integers(0, 7)


class Quotas(World):
    """The rule."""

    @rule(rm=small, which=small, part=st.integers(0, 4), then=small)
    def lower_quota(self, rm: int, which: int, part: int, then: int) -> None:
        """A queue is given as much as it uses, then less, and time passes until that is enforced."""
        rm_id = "s" if rm > 4 else "v"
        driver = self.driver
        partition = driver.partition(rm_id, "default")
        name = ("a", "b")[which % 2]
        queue = partition.tree.find(f"root.{name}")
        if queue is None or not queue.managed or queue.draining:
            return
        used = {key: amount for key, amount in queue.allocated_resource().items() if key != "memory" or which > 3}
        for tenths in (10, 1 + 2 * part):
            most = {key: amount * tenths // 10 for key, amount in used.items()}
            if not any(most.values()) or not self.configure(
                rm_id, {**self.chosen[rm_id], "lowered": (name, most, True)}
            ):
                return
        driver.advance(configs.QUOTA_DELAY_S * SECOND_NS - which % 2)
        self.then(then)
