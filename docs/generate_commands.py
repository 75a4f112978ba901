"""Writes docs/reference/commands.md from the commands themselves: `python docs/generate_commands.py`."""

from __future__ import annotations

from pathlib import Path

from licorne.cli.commands_page import commands_page

if __name__ == "__main__":
    (Path(__file__).with_name("reference") / "commands.md").write_text(commands_page(), encoding="utf-8")
