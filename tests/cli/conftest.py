"""Running commands in this process, as a user would see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from licorne.cli import run


class Outcome(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def licorne(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `licorne` with arguments."""

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        try:
            status = run([str(argument) for argument in arguments])
        except SystemExit as leaving:  # wrong usage
            status = leaving.code if isinstance(leaving.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Outcome(status, out, err)

    return command
