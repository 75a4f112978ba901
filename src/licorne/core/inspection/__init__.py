"""Answers for people and programs, read off the state.

Nothing here changes anything.

explain         why an ask waits
story           what happened to an application or an ask
dump            everything, as data
validate        the invariants, proved from first principles
usage_history   what applications have used until now
"""
