"""The applications that a recording has: as they were submitted, found without repeating anything."""

from __future__ import annotations

from collections.abc import Iterator

from licorne.si.messages import AddApplication

from .blocks import read_blocks
from .entries import INPUTS, decode_messages
from .folder import UNREADABLE, RecordingError, segments_in
from .runs import Run


def submitted_applications(run: Run) -> Iterator[AddApplication]:
    """Yield the applications of a run in the order in which they came, those that were refused too.

    Raises:
        RecordingError: the run cannot be read.
    """
    for segment in segments_in(run.folder):
        try:
            for block in read_blocks(segment):
                for entry in block:
                    if entry[0] == INPUTS:
                        found = decode_messages(entry[2])
                        yield from (each for each in found if isinstance(each, AddApplication))
        except (OSError, *UNREADABLE) as error:
            raise RecordingError(f"{segment}: is damaged: {error}") from None
