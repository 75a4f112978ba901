"""The Scheduler Interface: the messages of both dialects, the core's own, and what translates between them.

    seed, v19                   what peers send and get (document 000, and 1.9)
    messages                    what the core takes in and gives out
    adapt_seed, adapt_v19       from the one to the other and back
    callback                    the resource manager's side of the in-process API
    constants                   names of attributes, tags and resources

Modules whose names begin with an underscore are this package's own.
"""

from __future__ import annotations

from licorne.si import adapt_seed, adapt_v19, constants, messages, seed, v19
from licorne.si.adapt import Translation, qualified_partition, short_partition
from licorne.si.callback import ResourceManagerCallback, overrides

__all__ = [
    "ResourceManagerCallback",
    "Translation",
    "adapt_seed",
    "adapt_v19",
    "constants",
    "messages",
    "overrides",
    "qualified_partition",
    "seed",
    "short_partition",
    "v19",
]
