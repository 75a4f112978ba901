"""`python -m licorne.state.recording RUN`: writes a checkpoint of a run that is recorded, as a process of low priority.

The process that records starts it (`licorne.state.recording.writer`). Exit status: 0, or 1 if there is no new checkpoint.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .folder import RecordingError
from .replay import add_checkpoint
from .runs import read_run


def main(folder: str) -> int:
    """Write the checkpoint; say on standard error why not."""
    os.nice(10)
    try:
        return 0 if add_checkpoint(read_run(Path(folder))) else 1
    except (RecordingError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
