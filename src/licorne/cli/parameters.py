"""Options that several commands have, each declared once, so that a command says a source or an output as all others do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, Protocol

from cyclopts import Parameter, validators

from licorne.cli.common import KeyValue
from licorne.config.properties import parse_duration_ns


class _Word(Protocol):
    """A word of the command line, as the parser's library hands it to a converter."""

    value: str


def _seconds(_: object, words: Sequence[_Word]) -> float:
    """Return the seconds that an option's word, such as `90` or `1m30s`, stands for. Raises ValueError: it is neither."""
    text = words[0].value
    nanoseconds = parse_duration_ns(text)
    try:
        value = float(text) if nanoseconds is None else nanoseconds / 1e9
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text}: give seconds, like 90, or a duration, like 1m30s or 168h")
    return value


DURATION: Final = Parameter(converter=_seconds, metavar="DURATION")
"""Annotates an option whose value is a time in seconds. The form of durations is docs/spec/config.md, section 12."""
OUTPUT: Final = Parameter(name=("--output", "-o"))
SEVERAL: Final = Parameter(negative="", show_default=False)
"""Annotates an option that may be given several times."""
Flag = Annotated[bool, Parameter(negative="", show_default=False)]
From = Annotated[str, Parameter(name="--from", allow_leading_hyphen=True)]
"""Where a command that has an argument of another kind takes what it works on."""
Output = Annotated[Path | None, OUTPUT]
"""The one file or folder that a command writes; a command that writes several has an option for each."""
Pairs = Annotated[tuple[KeyValue, ...], SEVERAL]
Texts = Annotated[tuple[str, ...], SEVERAL]
RunNumber = Annotated[int | None, Parameter(validator=validators.Number(gte=1))]
"""Number of a run of a recording."""
Seed = Annotated[int | None, Parameter(validator=validators.Number(gte=0, lt=2**63))]
Load = Annotated[float | None, Parameter(validator=validators.Number(gt=0, lte=1000))]
Jobs = Annotated[int | None, Parameter(validator=validators.Number(gte=1))]
"""How many processes run at a time."""
MaxAsks = Annotated[int, Parameter(validator=validators.Number(gte=1))]
