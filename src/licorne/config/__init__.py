"""The queue configuration: reading it, checking it, and explaining what is wrong and where.

`load` turns a text into a `Configuration` or refuses it as a whole; `as_data` gives it to be changed and written again;
`check` finds everything in it that is wrong or surely not meant. Nothing here reads a file or a clock.

Modules, from the top down: `check` has these functions, `counting` a limit on queues. `build` makes the `model`, which the
core sees. `structure`, `acl`, `placement`, `limits`, `resources` and `properties` check what was read, `simulation` what only the
simulator reads; `lint` warns, with `lint_amounts`, `lint_cluster`, `lint_effect` and `lint_rules`. `reader` makes the types of
`raw` out of `nodes`, which are YAML with lines and columns, and `scalars`. `problems` are what is found, `places` where, by
which of the `rules`. `manifest` reads ConfigMaps, `quantity` amounts of queues, `kubernetes` those of Kubernetes.
"""

from __future__ import annotations

from licorne.config.check import DEFAULT_CONFIGURATION, as_data, check, examine, load
from licorne.config.lint_cluster import Pod, RunningPartition
from licorne.config.model import Configuration
from licorne.config.problems import ConfigError, Problem, Report

__all__ = [
    "DEFAULT_CONFIGURATION", "ConfigError", "Configuration", "Pod", "Problem", "Report", "RunningPartition", "as_data", "check", "examine", "load",
]  # fmt: skip
