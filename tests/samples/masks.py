"""What in the output of a sample depends on the machine or the moment, and is not compared."""

from __future__ import annotations

import re

MASKS = (
    ("time of day", re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    ("time in nanoseconds", re.compile(r"\b1[789]\d{17}\b"), "TIME"),
    ("time that a command took", re.compile(r"\bin \d+\.\d+ s\b"), "in SECONDS"),
    ("id drawn at random", re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "UUID"),
    ("port", re.compile(r"\b127\.0\.0\.1:\d{2,5}\b *"), "ADDRESS "),
    ("rate", re.compile(r"\d[\d,]* (pods|asks|allocations|bindings|decisions)/s"), "RATE"),
    ("form of the core", re.compile(r"\((compiled|interpreted)\)"), "(FORM)"),
    ("value of a metric", re.compile(r"^(yunikorn_\S+) [\d.e+]+$"), r"\1 NUMBER"),
)
"""Name, what it looks like, and what is compared instead."""


def masked(line: str) -> str:
    """Return a line in which everything that may differ is replaced."""
    for _, pattern, replacement in MASKS:
        line = pattern.sub(replacement, line)
    return line.rstrip()
