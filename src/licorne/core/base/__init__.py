"""Basics that every other package of the core may use, and that use none of them.

states          the states of objects and their transitions timers          deadlines order           kept orders: heaps
whose items know their heap index uuids           UUIDs of allocations, made from the stream of decisions tags
quotas in the tags of applications settings        the settings that the scheduler reads; `setting_table`: all settings
there are; `setting_kinds`: their types rejections      refusals and their reasons
"""
