"""Texts for people that several packages need."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, which gets an s unless the number is 1: `1 ask`, `2,000 asks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
