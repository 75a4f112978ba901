"""`python -m licorne.cli`: the command, where no script is installed."""

from __future__ import annotations

from licorne.cli import main

main()
