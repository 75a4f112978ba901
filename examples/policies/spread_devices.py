"""A choice of device: shares go to the device with the most left, but an untouched one is kept for whole-device pods if it can be."""

from __future__ import annotations

from collections.abc import Sequence

from licorne import Policy

WHOLE = 1000


class SpreadDevices(Policy):
    """All in thousandths of a device."""

    def choose_device(self, free: Sequence[int], share: int) -> int:
        """Return the index of the used device with the most left, or else of the first untouched one."""
        used = [index for index, left in enumerate(free) if share <= left < WHOLE]
        return max(used, key=lambda index: free[index]) if used else list(free).index(WHOLE)
