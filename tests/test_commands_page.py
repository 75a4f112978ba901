"""docs/reference/commands.md is what the commands say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cyclopts", reason="the commands need the extra cli")

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/commands.md"


def test_the_page_of_the_commands_is_made_from_the_code() -> None:
    from pages import commands_page  # noqa: PLC0415

    assert PAGE.read_text(encoding="utf-8") == commands_page(), "run: python tools/pages.py"


def test_every_command_and_option_is_on_the_page() -> None:
    from licorne.cli.commands import app  # noqa: PLC0415

    text = PAGE.read_text(encoding="utf-8")
    assert "* `SOURCE`: A workload in JSON lines" in text
    for name, command in app.resolved_commands().items():
        if name.startswith("-") or command.default_command is None:
            continue
        section = text.split(f"\n## licorne {name}\n")[1].split("\n## ")[0]
        for argument in command.assemble_argument_collection():
            assert argument.names[0] in section, (name, argument.names)
        assert "\nExit status: 0 " in section, name
