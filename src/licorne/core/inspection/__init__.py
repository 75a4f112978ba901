"""Reports about the state for people and programs. Nothing here changes a decision.

explain         why an ask waits
dump            the whole state, as data
validate        the check of the invariants, from first principles
usage_history   what applications have used until now
"""
