"""Basics that every other package of the core may use, and that use none of them.

states          the states of applications, queues, partitions and nodes, and their transitions
timers          deadlines
order           kept orders: heaps whose items know their heap index
uuids           UUIDs of allocations, made from the stream of decisions
tags            quotas in the tags of applications
settings        the settings that the scheduler reads
setting_table   the settings that a program may give the scheduler; `setting_kinds`: the types of their values. The tables of
                `licorne.host.setting_table` and `licorne.kube.settings` add those of the hosts
rejections      refusals and their reasons
"""
