"""`python -m licorne.cli`: the command `licorne`, for use without an installed script."""

from __future__ import annotations

from licorne.cli import main

main()
