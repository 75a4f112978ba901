"""Applications whose tasks start together.

Either placeholders hold the room until the real asks come (`docs/gangs.md`), or all asks start in one decision
(`docs/gangs-atomic.md`).

task_groups             the task groups that an application lists
placeholders            what an application has to do with placeholders
replacement             real asks take over what placeholders hold
timeout                 what happens when a gang has waited too long
atomic                  gangs without placeholders
trial                   whether all asks of a gang fit, tried and undone
plans                   when, and where, a gang that fits no nodes now will fit them
backfill                nodes held for a waiting gang, and what may run on them meanwhile
check_placeholders, check_atomic    the invariants of both
"""
