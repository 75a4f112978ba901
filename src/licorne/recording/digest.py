"""The digest of decisions: of all messages for resource managers, in the order in which each of them gets its own.

How the messages are spread over calls, and how those for different resource managers interleave, does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from licorne.si.messages import NewAllocation, Output, Released

_encode = msgspec.json.Encoder().encode


TEXTS: Final = ("reason", "template", "message")
"""Fields that explain a decision to people, and may name a user."""


class Digest:
    """A running digest of outputs; `count` of them so far, `allocations` of which place an ask on a node.

    Without `texts`, what explains an output to people does not count.
    """

    def __init__(self, *, texts: bool = True) -> None:
        self.texts = texts
        self._hashes: dict[str, hashlib.blake2b] = {}
        self.count = 0
        self.allocations = 0

    def add(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Add outputs for a resource manager."""
        lines = []
        for output in outputs:
            if type(output) is NewAllocation:
                self.allocations += 1
                lines.append(f"{output.key} {output.node_id}\n")
            elif type(output) is Released:
                lines.append(f"-{output.key} {output.application_id} {output.termination:d}\n")
            else:
                shown = output if self.texts else _without_texts(output)
                lines.append(f"{type(output).__name__}{_fields(shown)}\n")
        self.count += len(lines)
        text = "".join(lines).encode("utf-8", "surrogatepass")
        self._hashes.setdefault(rm_id, hashlib.blake2b(digest_size=16)).update(text)

    def hex(self) -> str:
        """Return the digest of everything so far, as a text."""
        whole = hashlib.blake2b(digest_size=16)
        for rm_id in sorted(self._hashes):
            whole.update(f"{rm_id}\n{self._hashes[rm_id].hexdigest()}\n".encode("utf-8", "surrogatepass"))
        return whole.hexdigest()


def _without_texts(output: Output) -> Output:
    assert isinstance(output, msgspec.Struct)
    return msgspec.structs.replace(output, **dict.fromkeys(set(TEXTS) & set(output.__struct_fields__), ""))


def _fields(output: Output) -> str:
    try:
        return _encode(output).decode()
    except (UnicodeEncodeError, OverflowError):  # half a character, or a very large number
        return repr(output)
