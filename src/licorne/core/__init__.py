"""The scheduler itself: pure and deterministic. It decides; everything around it hands in messages and takes them out.

Packages, from the top down. A module imports from packages below its own, never from one above (`.importlinter`):

(this folder)   the face: `api` and `calls` (the Scheduler Interface in process), `cluster` (all partitions), `partition`
inspection/     answers for people: why an ask waits, what happened to it, the state as data, the proof of the invariants
inputs/         what a message changes: applications, asks, allocations, nodes come and go
scheduling/     what is decided: which ask goes to which node now, reservations, deadlines
gangs/          applications that start together: with placeholders, or all at once
preemption/     who is evicted for whom
events/         the records of what happened, for those who listen
waiting/        the sums that decisions look at, and what wakes what waits
queues/         queues, applications, asks, and limits of users
placement/      which queue an application goes to
nodes/          nodes, and the index that finds one with room
base/           what all of the above needs: states, timers, settings, refusals
amounts/        amounts of resources
constants       numbers that several of them share

The hot modules are compiled where there is a C compiler, all of them or none (`docs/compiled.md`).
"""

from __future__ import annotations

from licorne.core.amounts import vectors

compiled: bool = not str(vectors.__file__).endswith(".py")
"""Whether the hot modules are C extensions; the build compiles all of them or none."""
