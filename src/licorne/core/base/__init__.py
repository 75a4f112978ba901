"""What every other package of the core may need, and what needs none of them.

states          the states of objects and their transitions
timers          deadlines
order           kept orders: heaps whose items know their place
uuids           UUIDs of allocations, made from the stream of decisions
tags            quotas in the tags of applications
settings        the settings of the scheduler; `setting_table`: all that a program may give it; `setting_kinds`: their types
rejections      refusals and their reasons
"""
