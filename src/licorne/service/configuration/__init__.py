"""What `licorne serve` may be told, where each value comes from, and what happens when it changes.

table       every setting: its key, option, type, default, and when a change takes effect; the single truth of these,
            with `licorne.core.base.setting_table`, where those stand that any program may give the scheduler
files       the settings file: flat keys, a ConfigMap of Kubernetes, or a folder with a file for each key
values      the values of all sources, the strongest of each key, with their origins
queues      the queue configurations, and which resource manager gets which
loaded      all of it read and checked, at the start and again
building    what the values mean to the parts of the service
changes     looks after the files while the service runs, and applies what has changed
show        `--print-config`
"""

from __future__ import annotations

from .changes import Changes
from .loaded import Loaded, load_all
from .table import SETTINGS, Setting
from .values import Given

__all__ = ["SETTINGS", "Changes", "Given", "Loaded", "Setting", "load_all"]
