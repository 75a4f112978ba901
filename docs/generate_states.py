"""Writes docs/reference/states.md from the tables in the code: `python docs/generate_states.py`."""

from __future__ import annotations

from pathlib import Path

from licorne.kube.manager.stages import states_page

if __name__ == "__main__":
    (Path(__file__).with_name("reference") / "states.md").write_text(states_page(), encoding="utf-8")
