"""Bytes as no honest peer would send them: fields in any order, twice, of the wrong wire type, groups, cuts, changes."""

from __future__ import annotations

import random
from typing import Any

from licorne.si._common import Resource
from licorne.si._schema import Field, Message, fields

_NUMBERS = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS = (b"", b"a", b"default", "ä€😀".encode(), b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"k" * 130)


def varint(value: int, extra: int = 0) -> bytes:
    """A number, on request with bytes that it does not need."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    if extra:
        out[-1] |= 128
        out += bytes([128] * (extra - 1)) + b"\0"
    return bytes(out)


def part(number: int, content: bytes) -> bytes:
    """A field that is text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


class Soup:
    """A source of such bytes, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def message(self, of: type[Message], depth: int = 0) -> bytes:
        """Draw the bytes of a message: mostly of fields that it has."""
        known = fields(of)
        out = bytearray()
        for _ in range(self.random.choice((0, 1, 2, 3, 6))):
            if known and self.random.random() < 0.85:
                out += self._field(self.random.choice(known), depth)
            else:
                out += self.unknown(self.random.choice((1, 3, 4, 7, 13, 15, 16, 19, 2**29 - 1)), depth)
        return bytes(out)

    def _number(self) -> bytes:
        value = self.random.choice(_NUMBERS) if self.random.random() < 0.5 else self.random.getrandbits(64)
        return varint(value, self.random.choice((0, 0, 0, 0, 1, 3, 9)))

    def _text(self) -> bytes:
        return self.random.choice(_TEXTS if self.random.random() < 0.2 else _TEXTS[:4])

    def _field(self, field: Field, depth: int) -> bytes:
        if self.random.random() < 0.05:
            return self.unknown(field.number, depth)
        inner: Any = field.type
        match field.kind:
            case "string":
                return part(field.number, self._text())
            case "message" if depth < 6:
                return part(field.number, self.message(inner, depth + 1))
            case "amounts":
                return part(field.number, self.message(Resource, depth + 1))
            case "map":
                return part(field.number, self._entry(self._text(), depth))
            case "quantities":
                return part(field.number, self._entry(self.message(inner, depth + 1), depth))
            case _:
                return varint(field.number << 3) + self._number()

    def _entry(self, value: bytes, depth: int) -> bytes:
        pieces = [part(1, self._text()), part(2, value)]
        if self.random.random() < 0.3:
            pieces = self.random.choices(pieces, k=self.random.randrange(4))
            if self.random.random() < 0.3:
                pieces.insert(0, self.unknown(self.random.choice((1, 2, 3)), depth))
        return b"".join(pieces)

    def unknown(self, number: int, depth: int) -> bytes:
        """A field that no message knows, or of a wire type that the number has not."""
        kind = self.random.choice((0, 1, 2, 3, 5, 5, 2, 0, 4, 6, 7) if self.random.random() < 0.1 else (0, 1, 2, 3, 5))
        tag = varint(number << 3 | kind)
        match kind:
            case 0:
                return tag + self._number()
            case 1:
                return tag + self.random.randbytes(8)
            case 2:
                return tag + varint(3) + self.random.randbytes(3)
            case 3 if depth < 9:
                inner = b"".join(self.unknown(self.random.choice((1, 2, 3, 20)), depth + 1) for _ in range(2))
                end = number if self.random.random() < 0.95 else number + 1
                return tag + inner + varint(end << 3 | 4)
            case 5:
                return tag + self.random.randbytes(4)
            case _:
                return tag

    def hostile(self, of: type[Message]) -> bytes:
        """Such a message as it is, cut short, with a few bytes changed, or no message at all."""
        data = self.message(of)
        match self.random.randrange(4):
            case 0:
                return data
            case 1:
                return data[: self.random.randrange(len(data) + 1)]
            case 2:
                changed = bytearray(data)
                for _ in range(self.random.randrange(1, 4) if data else 0):
                    changed[self.random.randrange(len(data))] = self.random.randrange(256)
                return bytes(changed)
            case _:
                return self.random.randbytes(self.random.randrange(24))
