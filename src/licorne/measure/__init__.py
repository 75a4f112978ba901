"""How licorne is measured: the core alone, under loads that can be made again from a seed.

bench           times a workload
boundary        how a workload reaches the core: by objects, or by bytes as on the wire
churn           a full cluster, in which pods come and go
contest         evictions and gangs
footprint       memory
"""
