"""Writes docs/reference/config-rules.md from the table in the code: `python docs/generate_config_rules.py`."""

from __future__ import annotations

from pathlib import Path

from licorne.config.rules import rules_page

if __name__ == "__main__":
    (Path(__file__).with_name("reference") / "config-rules.md").write_text(rules_page(), encoding="utf-8")
