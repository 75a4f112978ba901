"""The capacity, pods and applications of a workload, with which `licorne config check --from` compares a configuration.

All of a workload counts, whatever its time: its nodes together, and the pods of all its lines. Its applications are taken to
be in the queues that they ask for, since nothing places them here.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from licorne.answers.rulesused import Submitted, asked_path, rules_used
from licorne.config import Pod, RunningPartition
from licorne.workload.lines import App, Ask, Node

if TYPE_CHECKING:
    from licorne.workload.workload import Workload

PARTITION = "default"
"""A workload has one partition."""


def partitions_of_workload(workload: Workload) -> dict[str, RunningPartition]:
    """Return the partition of a workload by its name, as configurations are compared with it."""
    capacity: Counter[str] = Counter()
    applications = {line.id: line for line in workload.lines if isinstance(line, App)}
    pods: list[Pod] = []
    for line in workload.lines:
        if isinstance(line, Node):
            capacity.update(line.res)
        elif isinstance(line, Ask) and not line.ph and line.app in applications:
            app = applications[line.app]
            pods.append(Pod(f"pod {line.key}", asked_path(app.queue), app.user, dict(line.res)))
    queues = Counter(asked_path(app.queue) for app in applications.values() if app.queue)
    submitted = [Submitted(app.queue, app.user, app.groups, app.tags or {}) for app in applications.values()]
    return {PARTITION: RunningPartition(dict(capacity), tuple(pods), dict(queues), partial(rules_used, submitted))}
