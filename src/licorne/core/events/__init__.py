"""Records of what happened, for `licorne.web` and others who listen.

Nothing here decides anything.

partition_events    which records follow which change, and in which order
inputs              records of what an input did
records             how each kind of record is made
runs                records that stand for many equal ones
queues, users       records of queues, and of users and groups
notices             what is worth telling of asks that wait
"""
