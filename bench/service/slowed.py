"""`licorne` with slices of its loop that are as much longer as everything is slower under valgrind: `python -m bench.service.slowed`.

Else the loop would have a turn after fifty times fewer decisions than it has.
"""

from __future__ import annotations

from typing import Final

from licorne.host import pace

SLOWER: Final = 50

if __name__ == "__main__":
    pace.SLICE_S *= SLOWER
    pace.paced.__defaults__ = (pace.SLICE_S,)
    from licorne.cli import main  # only now: modules take the length of a slice when they are imported

    main()
