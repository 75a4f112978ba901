"""Writes deploy/monitoring/grafana.json, a Grafana dashboard of licorne's metrics, from the list of panels below.

python tools/dashboard.py            write it
python tools/dashboard.py --check    fail if the file is not what would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "deploy" / "monitoring" / "grafana.json"
QUEUE = '{queue=~"$queue"}'
Panel = tuple[str, str, str, list[tuple[str, str]]]
"""Title, description, unit, and expressions with their legends."""

ROWS: list[tuple[str, list[Panel]]] = [
    (
        "Work",
        [
            (
                "Decisions",
                "Allocations made per second.",
                "ops",
                [("rate(licorne_decisions_total[1m])", "allocations")],
            ),
            (
                "Applications",
                "Applications by state, of all queues.",
                "short",
                [("sum by (state) (yunikorn_scheduler_application_total)", "{{state}}")],
            ),
            (
                "Asks that wait",
                "Pending asks by why they are not tried now: no node takes them, a placeholder or a gang comes first, ...",
                "short",
                [("sum by (reason) (licorne_parked_asks)", "{{reason}}")],
            ),
            (
                "Time from ask to allocation",
                "Nine in ten, and one in two, of the asks placed in five minutes were placed within this time.",
                "s",
                [
                    (
                        f"histogram_quantile({share}, sum by (le, queue) (rate(licorne_waiting_seconds_bucket{QUEUE}[5m])))",
                        f"{{{{queue}}}} {said}",
                    )
                    for share, said in ((0.9, "p90"), (0.5, "p50"))
                ],
            ),
        ],
    ),
    (
        "Queues",
        [
            (
                f"{title} of $resource",
                description,
                "short",
                [
                    (
                        f'yunikorn_queue_resource{{queue=~"$queue",resource="$resource",state="{state}"}}',
                        "{{queue}}",
                    )
                ],
            )
            for state, title, description in (
                ("allocated", "Use", "What each queue uses; vcore in thousandths, memory in bytes."),
                ("pending", "Demand", "What the pending asks of each queue would use beside that."),
                ("guaranteed", "Guarantee", "What each queue may take back by preemption."),
                ("max", "Maximum", "What each queue may use at most; a queue without a maximum has no line."),
            )
        ]
        + [
            (
                "Running applications",
                "Applications that run, by queue.",
                "short",
                [('yunikorn_queue_app{queue=~"$queue",state="running"}', "{{queue}}")],
            ),
            (
                "Applications refused and failed",
                "Per minute, by queue.",
                "short",
                [
                    (
                        'sum by (queue, state) (60 * rate(yunikorn_queue_app_total{queue=~"$queue",state=~"rejected|failed"}[5m]))',
                        "{{queue}} {{state}}",
                    )
                ],
            ),
        ],
    ),
    (
        "Nodes and preemption",
        [
            (
                "Nodes",
                "Nodes by state; failed ones were refused.",
                "short",
                [("sum by (state) (yunikorn_scheduler_node)", "{{state}}")],
            ),
            (
                "Nodes by use of vcore",
                "How many nodes use which share of their cores.",
                "short",
                [("sum by (range) (yunikorn_scheduler_vcore_node_usage_total)", "{{range}}")],
            ),
            (
                "Reservations",
                "Nodes that are reserved for an ask.",
                "short",
                [("sum by (partition) (licorne_reservations)", "{{partition}}")],
            ),
            (
                "Searches for victims",
                "Per second; many without evictions mean guarantees that cannot be met.",
                "ops",
                [("sum by (partition) (rate(licorne_preemption_searches_total[5m]))", "{{partition}}")],
            ),
        ],
    ),
    (
        "The process",
        [
            (
                "Gaps between decisions",
                "The longest time without a decision while there was more to decide, since the metrics were read last.",
                "s",
                [("licorne_decision_gap_seconds_max", "gap"), ("licorne_loop_lag_seconds_max", "lag of the loop")],
            ),
            (
                "Processor",
                "Processors that the process keeps busy.",
                "short",
                [("rate(process_cpu_seconds_total[1m])", "processors")],
            ),
            ("Memory", "Resident memory.", "bytes", [("process_resident_memory_bytes", "resident")]),
            (
                "Lost lines of the log, and the clock",
                "Lines of the log that nobody read; by how much the machine's clock is ahead of the times shown.",
                "short",
                [
                    ("rate(licorne_log_lines_dropped_total[5m])", "lines/s"),
                    ("licorne_clock_offset_seconds", "offset, s"),
                ],
            ),
            (
                "Recording",
                "With --record: bytes written per second; what waits to be written; 1 while inputs are recorded.",
                "short",
                [
                    ("rate(licorne_recording_bytes_total[5m])", "bytes/s"),
                    ("licorne_recording_queue_bytes", "waiting, bytes"),
                    ('licorne_recording_state{state="on"}', "on"),
                ],
            ),
        ],
    ),
]


def dashboard() -> dict[str, Any]:
    """Return the dashboard in the form that Grafana imports."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        panels.append(
            _at({"type": "row", "title": title, "collapsed": False, "panels": []}, len(panels), 0, top, 24, 1)
        )
        top += 1
        for number, (name, description, unit, targets) in enumerate(row):
            panel = {
                "type": "timeseries",
                "title": name,
                "description": description,
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
                "targets": [
                    {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend}
                    for index, (expression, legend) in enumerate(targets)
                ],
            }
            panels.append(_at(panel, len(panels), 12 * (number % 2), top + 8 * (number // 2), 12, 8))
        top += 8 * ((len(row) + 1) // 2)
    return {
        "uid": "licorne",
        "title": "licorne",
        "description": "The scheduler: its queues, what waits, nodes, preemption, and the process.",
        "tags": ["licorne", "scheduler"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
                _variable("queue", "label_values(yunikorn_queue_resource, queue)", several=True),
                _variable("resource", "label_values(yunikorn_queue_resource, resource)", several=False),
            ]
        },
        "panels": panels,
    }


def _at(panel: dict[str, Any], number: int, left: int, top: int, width: int, height: int) -> dict[str, Any]:
    return {"id": number + 1, **panel, "gridPos": {"x": left, "y": top, "w": width, "h": height}}


def _variable(name: str, query: str, *, several: bool) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": query,
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        "allValue": ".*" if several else None,
        "current": {"text": "All", "value": "$__all"} if several else {"text": "vcore", "value": "vcore"},
    }


def main() -> int:
    """Write the file, or compare it with what would be written."""
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        return 0 if OUT.exists() and OUT.read_text(encoding="utf-8") == text else 1
    OUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
