"""Writes docs/reference/settings.md from the table in the code: `python docs/generate_settings.py`."""

from __future__ import annotations

from pathlib import Path

from licorne.grpc.service.configuration.show import settings_page

if __name__ == "__main__":
    (Path(__file__).with_name("reference") / "settings.md").write_text(settings_page(), encoding="utf-8")
