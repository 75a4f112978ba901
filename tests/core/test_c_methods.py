from __future__ import annotations

import pytest

from common.plain_python import printed_by
from core.c_methods import LAWS


@pytest.mark.parametrize("law", LAWS)
def test_a_law_holds_in_plain_python(law: str) -> None:
    assert printed_by("core.c_methods", law) == "holds"
