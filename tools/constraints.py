"""Writes constraints.txt, the version of each package that pip chose, from pip's report on an installation.

`make constraints` has pip choose the newest versions that pyproject.toml allows, without installing them. There are no
hashes: with them pip would refuse the editable installation of licorne itself, and the wheels of other platforms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEADER = """\
# The version of each package with which licorne was developed and tested last, chosen with Python {python} on {platform}.
# For an installation that can be repeated: pip install --constraint constraints.txt '.[all]'
# Made by `make constraints`; the bounds are those of pyproject.toml.
"""


def constraints(report: dict[str, Any]) -> str:
    """Return the text of the file: a package a line, by name, without the project itself, which comes from a folder."""
    chosen = {
        one["metadata"]["name"].lower().replace("_", "-"): one["metadata"]["version"]
        for one in report["install"]
        if "dir_info" not in one["download_info"]
    }
    environment = report["environment"]
    head = HEADER.format(
        python=environment["python_version"],
        platform=f"{environment['sys_platform']} {environment['platform_machine']}",
    )
    return head + "".join(f"{name}=={version}\n" for name, version in sorted(chosen.items()))


if __name__ == "__main__":
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path("constraints.txt").write_text(constraints(report), encoding="utf-8")
