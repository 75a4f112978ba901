"""Questions that pages ask are answered however slow the machine is."""

from __future__ import annotations

import pytest

from common.waiting import WAIT_S
from licorne.answers import process


@pytest.fixture(autouse=True)
def _answers_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ENDING_S", WAIT_S)
