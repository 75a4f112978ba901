"""Reports about the state for people and programs. Nothing here changes a decision.

explain         why an ask waits; `sentences`: that in words
dump            the whole state, as data
reported        what a resource manager would report after a restart
validate        the check of the invariants, from first principles
"""
