"""How licorne is measured: the core alone, under loads that can be made again from a seed.

speed           the speed of deciding a workload
boundary        the form in which a workload reaches the core: objects, or bytes as on the wire
churn           a full cluster, in which allocations end and waiting asks take their room
contest         evictions and gangs
footprint       memory
machine         what this process and others use of the machine meanwhile
"""
