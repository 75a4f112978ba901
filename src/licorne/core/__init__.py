"""The scheduler itself: a pure, deterministic state machine that takes messages in and gives decisions out.

Packages, from the top down. A module imports from packages below its own, never from one above (`.importlinter`):

(this folder)   the outer layer: `api`, `calls` (the Scheduler Interface in process), `arguments` (their checks), `strict`,
                `connection` (a resource manager as the API sees it), `plugins`, `incidents`, `input_log`, `cluster`,
                `manager` (a resource manager as the cluster sees it), `partition`, and `contents` (what it holds)
checkpoint/     the whole state as bytes, and back: what it consists of, attribute by attribute
inspection/     reports for people: why an ask waits, the state as data, the check of the invariants
inputs/         the handling of messages: applications, asks, allocations and nodes are added, changed and removed
scheduling/     decisions: which ask is placed on which node now; reservations and deadlines
gangs/          applications whose asks start together: with placeholders, or all in one step
preemption/     which allocations are evicted, and for which asks
events/         records of what has happened, for listeners
waiting/        the sums that decisions read, and the parking and wake-up of what waits
queues/         queues, applications, asks, and limits of users and groups
placement/      which queue an application is placed in
nodes/          nodes, and the index that finds one with room
base/           states, timers, settings and refusals, which all of the above need
amounts/        amounts of resources
constants       numbers that several packages share

The hot modules are compiled where there is a C compiler, all of them or none (`docs/understand/compiled.md`).
"""

from __future__ import annotations

from licorne.core.amounts import vectors

compiled: bool = not str(vectors.__file__).endswith(".py")
"""Whether the hot modules are C extensions; the build compiles either all of them or none."""
