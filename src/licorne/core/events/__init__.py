"""Event records of what happened in a partition, for `licorne.web` and for resource managers that listen.

Events are derived from what the scheduler does anyway; nothing here takes a decision.

partition_events    which records follow which change, and in which order
inputs              records of the effects of an input
records             how each kind of record is made, and the store in which records wait
runs                compact records that stand for many events of one kind
queues, users       records of queues, and of users and groups
notices             records about asks that wait, and applications that may not run
"""
