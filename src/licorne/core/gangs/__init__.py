"""Gangs: applications whose pods start together.

Either placeholders keep resources until the real asks come (`docs/understand/gangs.md`), or all asks are placed in one decision
(`docs/understand/gangs-atomic.md`).

task_groups             the task groups that an application lists in a tag
placeholders            the placeholders of an application: counters, admission, timeout clock
replacement             real asks take over the resources that placeholders keep
timeout                 the end of a gang's placeholder timeout
atomic                  gangs without placeholders
trial                   whether all asks of a gang fit on nodes, by placing them and undoing it
packing                 an exact search for nodes of different asks
plans                   when, and on which nodes, a gang that does not fit now will fit
backfill                nodes held for a waiting gang, and the asks that may run on them meanwhile
check_placeholders, check_atomic    the invariants of both kinds
"""
