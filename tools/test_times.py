"""Where the minutes of the tests go, by ring, folder, file and test: `make test-times` writes the reports that this reads.

    test_times.py REPORT.xml ...

A report is what pytest writes with `--junitxml`; its name, without the ending, is that of the ring. The time of a test is its wall
time with the fixtures that are set up for it, in one of two processes, so a ring takes half of the sum and the time it
takes to start. The output is Markdown.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

SLOWEST = 100


def main(reports: list[Path]) -> None:
    """Print the tables."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    tests: list[tuple[float, str, str]] = []
    print("| ring | tests | s of tests | s from start to end |\n|---|---|---|---|")
    for report in reports:
        suite = ET.parse(report).getroot().find("testsuite")  # noqa: S314  pytest has written it just now
        assert suite is not None
        cases = [(float(case.get("time", 0)), _file(case), case.get("name", "")) for case in suite.iter("testcase")]
        print(
            f"| {report.stem} | {len(cases)} | {sum(case[0] for case in cases):.0f} | {float(suite.get('time', 0)):.0f} |"
        )
        for time_s, file, name in cases:
            folder = file.rpartition("/")[0] or file
            times[folder][report.stem].append(time_s)
            times[file][report.stem].append(time_s)
            tests.append((time_s, f"{file}::{name}", report.stem))
    rings = [report.stem for report in reports]
    for title, rows in (
        ("folder", [name for name in times if not name.endswith(".py")]),
        ("file", [name for name in times if name.endswith(".py")]),
    ):
        _table(title, rows, rings, times)
    print(f"\nThe slowest {SLOWEST} tests:\n\n| s | test | ring |\n|---|---|---|")
    for time_s, name, ring in sorted(tests, reverse=True)[:SLOWEST]:
        print(f"| {time_s:.1f} | `{name[:110]}` | {ring} |")


def _file(case: ET.Element) -> str:
    return case.get("file") or case.get("classname", "").replace(".", "/") + ".py"


def _table(title: str, rows: list[str], rings: list[str], times: dict[str, dict[str, list[float]]]) -> None:
    print(f"\n| {title} | {' | '.join(f'{ring}: tests | s' for ring in rings)} |\n|---|{'---|---|' * len(rings)}")
    for row in sorted(rows, key=lambda name: -sum(sum(some) for some in times[name].values())):
        cells = [f"{len(times[row][ring])} | {sum(times[row][ring]):.1f}" for ring in rings]
        print(f"| `{row}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
