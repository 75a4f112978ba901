"""A choice of device: shares go to the device with the most left, but an untouched one is kept for whole-device pods if it can be."""

from __future__ import annotations

from licorne import Policy
from licorne.sim.policies import Node, Pod

WHOLE = 1000


class SpreadDevices(Policy):
    """All in thousandths of a device."""

    def choose_device(self, pod: Pod, node: Node, share: int) -> int:
        """Return the index of the used device with the most left, or else of the first untouched one."""
        free = node.devices
        used = [index for index, left in enumerate(free) if share <= left < WHOLE]
        return max(used, key=lambda index: free[index]) if used else free.index(WHOLE)
