"""The digest of decisions: of all messages for resource managers, in the order in which each of them gets its own.

How the messages are spread over calls, and how those for different resource managers interleave, does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from licorne.si.messages import Output
from licorne.si.output_lines import output_lines


class Digest:
    """A running digest of outputs; `count` of them so far, `allocations` of which place an ask on a node.

    Without `texts`, what explains an output to people does not count.
    """

    def __init__(self) -> None:
        self.texts = True
        self._hashes: dict[str, hashlib.blake2b] = {}
        self.count = 0
        self.allocations = 0

    def add(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Add outputs for a resource manager."""
        lines, allocations = output_lines(outputs, texts=self.texts)
        self.add_lines(rm_id, lines, len(outputs), allocations)

    def add_lines(self, rm_id: str, lines: bytes, count: int, allocations: int) -> None:
        """Add so many outputs for a resource manager, and so many allocations among them, by their lines."""
        self.count += count
        self.allocations += allocations
        self._hashes.setdefault(rm_id, hashlib.blake2b(digest_size=16)).update(lines)

    def hex(self) -> str:
        """Return the digest of everything so far, as a text."""
        whole = hashlib.blake2b(digest_size=16)
        for rm_id in sorted(self._hashes):
            whole.update(f"{rm_id}\n{self._hashes[rm_id].hexdigest()}\n".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()
