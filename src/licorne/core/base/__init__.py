"""Basics that every other package of the core may use, and that use none of them.

states          the states of applications, queues, partitions and nodes, and their transitions
timers          deadlines
order           kept orders: heaps whose items know their heap index
uuids           UUIDs of allocations, made from the stream of decisions
tags            quotas in the tags of applications
settings        the settings that the scheduler reads
setting_table   all settings that there are; `setting_kinds`: the types of their values
rejections      refusals and their reasons
"""
