"""`licorne` whose recording SIGUSR1 switches off, and SIGUSR2 on again: `python -m bench.service.switched serve --record DIR`.

So both are measured in one process. What it writes cannot be replayed, because inputs are missing.
"""

from __future__ import annotations

import signal
from typing import Any

from licorne.cli import main
from licorne.core.api import SchedulerAPI
from licorne.core.input_log import InputLog
from licorne.grpc.service import server


class SwitchedAPI(SchedulerAPI):
    """A scheduler whose log of inputs two signals take away and give back."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._log: InputLog | None = None
        signal.signal(signal.SIGUSR1, self._off)
        signal.signal(signal.SIGUSR2, self._on)

    def _off(self, *_: object) -> None:
        if self.input_log is not None:
            self._log, self.input_log = self.input_log, None

    def _on(self, *_: object) -> None:
        if self._log is not None:
            self.input_log = self._log


if __name__ == "__main__":
    vars(server)["SchedulerAPI"] = SwitchedAPI
    main()
