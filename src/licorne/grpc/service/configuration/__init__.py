"""The settings of `licorne serve`: where each value comes from, and what happens when it changes.

changes     watches the files while the service runs, and applies what has changed
building    makes the objects of the service (limits, security, REST) from the values
show        `--print-config`
loaded      reads and checks all of it, at the start and when a file has changed
queues      the queue configurations, and which resource manager gets which
values      merges all sources: for each key the strongest value, with its origin
files       the settings file: flat keys, a ConfigMap of Kubernetes, or a folder with a file for each key

`licorne.host.setting_table` has every setting: its key, option, type, default, and when a change takes effect.
"""

from __future__ import annotations

from .changes import Changes
from .loaded import Loaded, load_all
from .values import Given

__all__ = ["Changes", "Given", "Loaded", "load_all"]
