"""The Scheduler Interface: the messages of both dialects, the core's own messages, and the adapters between them.

    first, v19                  the messages of peers (the first interface, and the 1.9 interface)
    messages                    inputs and outputs of the core, of which `allocations` has the frequent ones; `events`
    adapt_first, adapt_v19       translation between a dialect and the core, from and to objects or bytes, by `adapt`
    requests_v19                requests of 1.9, for programs that act as a resource manager
    wire                        any message of both dialects as protobuf bytes (`wire_read`, `wire_write`)
    wire_plan, wire_constants   the fields of messages by tag, and the numbers of the format
    callback                    the resource manager's side of the in-process API
    rpc                         names of the gRPC service and its calls
    constants                   names of attributes, tags and resources; `partitions`: names of partitions
    output_lines                outputs as lines of text, by which decisions are compared
    rest_objects                the JSON objects of the REST interface, which a state dump consists of

Asks and decisions, which come and go by the million, have compiled fast paths: `reading` and `decisions` (asks in,
allocations out, as objects of the dialects), `wire_asks`, by `wire_roles`, and `wire_decisions` (asks in, allocations out, as
bytes).
Modules whose names begin with an underscore are private to this package.
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
