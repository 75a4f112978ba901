"""The log of an error: the parts that are shown, and those that are not."""

from __future__ import annotations

import io
from typing import Literal

import pytest

from licorne.grpc.service import make_log


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_shows_no_values(form: Literal["text", "json"]) -> None:
    """Values of variables may be tokens and configurations."""
    out = io.StringIO()
    secret = str(2**70)  # no text that the lines of a traceback show

    def fails(password: str) -> None:
        raise ValueError("a reason")

    try:
        fails(secret)
    except ValueError:
        make_log(out, form=form).exception("the scheduler failed")
    assert "ValueError: a reason" in out.getvalue()
    assert "in fails" in out.getvalue()
    assert secret not in out.getvalue()


def test_control_characters_are_escaped() -> None:
    out = io.StringIO()
    make_log(out).info("registered", rm="\x1b[2Jx", version="\u2028")
    assert out.getvalue().isascii()
    assert "\x1b" not in out.getvalue()
    assert r"\x1b[2Jx" in out.getvalue()
