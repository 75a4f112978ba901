"""The Scheduler Interface: the messages of both dialects, the core's own, and what translates between them.

    first, v19                  what peers send and get (the first interface, and the 1.9 interface)
    messages                    what the core takes in and gives out
    adapt_first, adapt_v19       from the one to the other and back, also from bytes and to bytes
    wire                        any message of both dialects as protobuf bytes
    callback                    the resource manager's side of the in-process API
    rpc                         names of the gRPC service and its calls
    constants                   names of attributes, tags and resources

Compiled, for what comes and goes by the million: `reading` and `decisions` (asks in, allocations out, as objects of the
dialects), `wire_asks` and `wire_decisions` (the same as bytes). Modules whose names begin with an underscore are this
package's own.
"""

from __future__ import annotations

from licorne.si import adapt_first, adapt_v19, constants, first, messages, v19, wire
from licorne.si.adapt import Translation
from licorne.si.callback import ResourceManagerCallback, overrides
from licorne.si.partitions import qualified_partition, short_partition
from licorne.si.wire import WireError

__all__ = [
    "ResourceManagerCallback",
    "Translation",
    "WireError",
    "adapt_first",
    "adapt_v19",
    "constants",
    "first",
    "messages",
    "overrides",
    "qualified_partition",
    "short_partition",
    "v19",
    "wire",
]
